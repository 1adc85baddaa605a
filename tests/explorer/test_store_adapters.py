"""Checkpoints that are small adapters stand on the memory of one base, and outlive nothing else."""

import shutil
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from glassbox_fake_models import LONG_S, wait_until

from explorer.checkpoint_sources import AdapterPlace, find_adapter
from explorer.errors import BudgetError
from explorer.memory import compute_available_bytes
from explorer.model_loader import ModelLoader
from explorer.store import ModelStore
from explorer.training.learner import make_learner, plain_decoder, write_learner_files
from explorer.training.new_tuning import make_tuning_run
from explorer.training.run_folder import RunFolder
from explorer.training.tuning_setup import TuningSetup
from explorer.uploads import Uploads
from models.initialise import build_decoder
from models.loading import LoadedModel, load_model
from models.lora import lora_layers, merged_copy
from models.saving import save_model
from models.sources import ResolvedSource
from models.tokenizers.bpe_trainer import train_bpe
from tests.explorer.training.run_cases import TEXT, tiny_model
from tests.explorer.training.tuning_cases import draw_parts

SETUP = TuningSetup(trains="lora", template="phi3", epochs=1.0, batch_size=3, row_limit=64)
OWNER = "ann"


@dataclass(frozen=True)
class Place:
    """A base, runs that were made from it, and their folder."""

    base: str
    runs: Path

    def tune(self, loaded: LoadedModel, source: str, seed: int) -> str:
        """A run with one checkpoint whose adapter has learned something."""
        run = make_tuning_run(
            self.runs,
            SETUP,
            "sft",
            draw_parts(),
            loaded,
            base=source,
            base_name=loaded.info.name,
            data_name="rows",
            about={},
        )
        tuning, draw = run.read_config().tuning, torch.Generator().manual_seed(seed)
        assert tuning is not None
        learner = make_learner(load_model(run.initial_folder).model, tuning, draw)
        with torch.no_grad():
            for _, layer in lora_layers(learner):
                layer.lora_b.normal_(0, 0.3, generator=draw)
        folder = run.checkpoint(1)
        save_model(folder, plain_decoder(learner), tokenizer=loaded.tokenizer)
        write_learner_files(folder, learner, tuning)
        return f"run:{run.id}@1"

    def store(self, **options: object) -> ModelStore:
        settings = {"budget_bytes": 10**9, "available_bytes": compute_available_bytes, **options}
        return ModelStore(runs=self.runs, uploads=Uploads(self.runs), **settings)  # type: ignore[arg-type]

    def size(self) -> int:
        return load_model(self.base).info.n_bytes


@pytest.fixture
def place(tmp_path: Path) -> Place:
    tokenizer = train_bpe(TEXT, vocab_size=280, special_tokens=("<|endoftext|>",)).to_tokenizer("t")
    config = replace(tiny_model(tokenizer.vocab_size, dropout=0.0), context_length=96)
    model = build_decoder(config, torch.Generator().manual_seed(1))
    save_model(tmp_path / "base", model, tokenizer=tokenizer)
    return Place(str(tmp_path / "base"), tmp_path / "runs")


def folder_of(place: Place, source: str) -> Path:
    return RunFolder(place.runs / source[4:-2]).checkpoint(1)


def open_last(store: ModelStore, source: str):
    *_, last = store.open(source, OWNER)
    return last.summary


def test_three_adapters_take_one_base_and_three_adapters(place: Place) -> None:
    plain, store = load_model(place.base), place.store()
    sources = [place.tune(plain, place.base, seed) for seed in range(3)]
    found = [open_last(store, source) for source in sources]
    size = place.size()
    for summary, source in zip(found, sources, strict=True):
        assert summary.base_name == "base"
        assert summary.n_base_bytes == size
        assert summary.n_bytes < size / 5
        with store.lease(source, OWNER) as tuned, store.lease(place.base, OWNER) as base:
            assert tuned.model.embed.weight.data_ptr() == base.model.embed.weight.data_ptr()
            ids = torch.tensor([tuned.tokenizer.encode("Ada has")])
            alone = load_model(folder_of(place, source)).model
            torch.testing.assert_close(tuned.model(ids), alone(ids), rtol=1e-5, atol=1e-5)
    assert store._shelf.used_bytes == size + sum(summary.n_bytes for summary in found)


def test_a_base_that_is_here_for_its_adapters_goes_with_the_last_one(place: Place) -> None:
    plain, store = load_model(place.base), place.store()
    sources = [place.tune(plain, place.base, seed) for seed in range(2)]
    for source in sources:
        open_last(store, source)
    assert store.summary(place.base, OWNER) is None  # nobody has opened it
    store.unload(sources[0], OWNER)
    assert store._shelf.used_bytes > place.size()
    store.unload(sources[1], OWNER)
    assert store._shelf.used_bytes == 0


def test_a_base_that_is_unloaded_stays_under_its_adapters(place: Place) -> None:
    store = place.store()
    source = place.tune(load_model(place.base), place.base, 1)
    open_last(store, place.base)
    summary = open_last(store, source)
    store.unload(place.base, OWNER)
    assert store._shelf.used_bytes == place.size() + summary.n_bytes
    open_last(store, place.base)
    store.unload(source, OWNER)
    assert store._shelf.used_bytes == place.size()  # somebody has it open


def test_room_is_made_of_adapters_first_and_then_of_their_base(place: Place) -> None:
    size = place.size()
    source = place.tune(load_model(place.base), place.base, 1)
    other = place.runs.parent / "other"
    shutil.copytree(place.base, other)
    store = place.store(budget_bytes=int(1.5 * size))
    open_last(store, source)
    open_last(store, place.base)  # the adapter is now the one used longest ago
    open_last(store, source)  # and now its base
    with store.lease(source, OWNER), pytest.raises(BudgetError, match="unload a model"):
        open_last(store, str(other))
    open_last(store, str(other))
    assert store._shelf.used_bytes == size


def test_a_model_tuned_twice_stands_on_the_first_base(place: Place) -> None:
    store = place.store()
    first = place.tune(load_model(place.base), place.base, 1)
    with store.lease(first, OWNER) as loaded:
        second = place.tune(loaded, first, 2)
    summary = open_last(store, second)
    assert summary.base_name == "base"
    with store.lease(second, OWNER) as tuned, store.lease(place.base, OWNER) as base:
        assert tuned.model.embed.weight.data_ptr() == base.model.embed.weight.data_ptr()
        alone = load_model(folder_of(place, second)).model
        wanted = merged_copy(tuned.model).state_dict()
        for name, tensor in alone.state_dict().items():
            torch.testing.assert_close(wanted[name], tensor, rtol=1e-5, atol=1e-6)


def test_who_no_longer_wants_a_checkpoint_no_longer_wants_its_base(place: Place) -> None:
    source = place.tune(load_model(place.base), place.base, 1)
    loader, reached, go_on = ModelLoader(), threading.Event(), threading.Event()
    plain_load = loader.load

    def wait_and_load(resolved: ResolvedSource, dtype: str) -> LoadedModel:
        reached.set()
        assert go_on.wait(LONG_S)
        return plain_load(resolved, dtype)

    loader.load = wait_and_load  # type: ignore[method-assign]
    store = place.store(loader=loader)
    opening = threading.Thread(target=lambda: list(store.open(source, OWNER)))
    opening.start()
    assert reached.wait(LONG_S)  # the base is being read
    store.cancel(source, OWNER)
    opening.join(LONG_S)
    wait_until(lambda: len(store._loads) == 1)  # the checkpoint's own load has ended
    go_on.set()
    wait_until(lambda: not store._loads)
    assert store._shelf.used_bytes == 0


@pytest.mark.parametrize("gone", ["deleted", "exchanged", "unreadable", "adapter", "rounded"])
def test_without_its_base_a_checkpoint_opens_with_all_its_weights(place: Place, gone: str) -> None:
    loaded = load_model(place.base)
    source = place.tune(loaded, place.base, 1)
    weights, dtype = Path(place.base) / "model.safetensors", "float32"
    if gone == "deleted":
        shutil.rmtree(place.base)
    elif gone == "exchanged":
        other = build_decoder(loaded.config, torch.Generator().manual_seed(2))
        save_model(Path(place.base), other, tokenizer=loaded.tokenizer)
    elif gone == "unreadable":
        weights.write_bytes(b"no weights")
    elif gone == "adapter":
        adapter = folder_of(place, source) / "adapter" / "adapter_model.safetensors"
        adapter.write_bytes(b"no adapter")
    else:
        dtype = "bfloat16"
    store = place.store()
    *_, last = store.open(source, OWNER, dtype)
    summary, alone = last.summary, load_model(folder_of(place, source), dtype)
    assert (summary.base_name, summary.n_bytes) == ("", alone.info.n_bytes)
    with store.lease(summary.id, OWNER) as tuned:
        ids = torch.tensor([[3, 40, 7]])
        torch.testing.assert_close(tuned.model(ids), alone.model(ids), rtol=0, atol=0)
    assert store._shelf.used_bytes == summary.n_bytes  # nothing of the base is left


def test_runs_that_were_made_each_others_base_by_hand_stand_alone(place: Place) -> None:
    loaded = load_model(place.base)
    sources = [place.tune(loaded, place.base, seed) for seed in range(2)]
    folder = folder_of(place, sources[0]) / "adapter"
    assert find_adapter(place.runs, sources[0]) == AdapterPlace(place.base, folder)
    for source, other in zip(sources, reversed(sources), strict=True):
        run = RunFolder(folder_of(place, source).parent)
        config = run.read_config()
        assert config.tuning is not None
        run.write_config(replace(config, tuning=replace(config.tuning, base=other)))
    assert find_adapter(place.runs, sources[0]) is None
    assert open_last(place.store(), sources[0]).base_name == ""


def test_on_a_public_host_a_base_of_another_visitor_is_not_shared(place: Place) -> None:
    source = place.tune(load_model(place.base), "upload:Zm9vYmFyYmF6cXV4", 1)
    summary = open_last(place.store(public=True), source)
    assert summary.base_name == ""
