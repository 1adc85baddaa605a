"""Runs of fine-tuning through the loop: trained, stopped, gone on with, opened again."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from explorer.datasets.splits import Parts
from explorer.errors import DataError
from explorer.training.events import Evaluated, Failed, Finished, Sampled, Saved, Scored
from explorer.training.learner import load_class_head
from explorer.training.loop import train
from explorer.training.new_tuning import make_tuning_run
from explorer.training.objectives.classification import collate_texts
from explorer.training.run_folder import RunFolder
from explorer.training.tuning_setup import TuningSetup
from models.loading import load_model
from models.lora_files import load_adapter
from tests.explorer.training.tuning_cases import draw_parts

SETUP = TuningSetup(
    template="phi3", epochs=2.0, batch_size=3, learning_rate=3e-3, row_limit=64, lora_rank=3
)


def make(runs: Path, base: Path, objective: str, **changes: object) -> RunFolder:
    setup = replace(SETUP, **changes)  # type: ignore[arg-type]
    return make_tuning_run(
        runs,
        setup,
        objective,
        draw_parts(),
        load_model(base),
        base=str(base),
        base_name="tiny",
        data_name="rows",
        about={},
    )


@pytest.mark.slow
def test_each_objective_trains_scores_and_opens_again(tmp_path: Path, base: Path) -> None:
    plain = load_model(base)
    ids = torch.tensor([[3, 40, 7, 90, 12]])
    for objective, scored in (("classification", 1), ("sft", 1), ("preference", 9)):
        run = make(tmp_path, base, objective)
        events = list(train(run.path))
        assert not [event for event in events if isinstance(event, Failed)]
        names = {event.name for event in events if isinstance(event, Scored)}
        assert len(names) == scored
        assert isinstance(events[-1], Finished)
        last = load_model(run.checkpoint(4))
        assert not torch.allclose(last.model(ids), plain.model(ids), atol=1e-4)


@pytest.mark.slow
def test_the_length_of_answers_is_told_while_it_learns(tmp_path: Path, base: Path) -> None:
    run = make(tmp_path, base, "preference")
    events, tokenizer = list(train(run.path)), load_model(base).tokenizer
    told = {e.step: e.value for e in events if isinstance(e, Scored) and e.name == "answer_tokens"}
    assert {0, 4} <= told.keys()
    for step, value in told.items():
        texts = [e.text for e in events if isinstance(e, Sampled) and e.step == step]
        assert value == pytest.approx(sum(len(tokenizer.encode(t)) for t in texts) / len(texts))


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_numbers(tmp_path: Path, base: Path) -> None:
    losses = []
    for stop_after in (None, 2):
        run = make(tmp_path, base, "sft", trains="lora")
        events = train(run.path)
        for event in events:
            if stop_after is not None and isinstance(event, Saved) and event.step == stop_after:
                events.close()
                break
        rest = list(train(run.path)) if stop_after is not None else []
        assert not [event for event in rest if isinstance(event, Failed)]
        losses.append(load_model(run.checkpoint(4)).model.state_dict())
    for name, tensor in losses[0].items():
        assert torch.equal(tensor, losses[1][name]), name


@pytest.mark.slow
def test_only_the_adapter_changes_and_it_opens_alone(tmp_path: Path, base: Path) -> None:
    run = make(tmp_path, base, "sft", trains="lora")
    list(train(run.path))
    before, after = load_model(base).model, load_model(run.checkpoint(4)).model
    changed = {
        name
        for name, tensor in before.state_dict().items()
        if not torch.equal(tensor, after.state_dict()[name])
    }
    assert changed == {f"blocks.{i}.attn.{part}_proj.weight" for i in (0, 1) for part in "qv"}
    load_adapter(run.checkpoint(4) / "adapter", before)
    ids = torch.tensor([[3, 40, 7, 90, 12]])
    torch.testing.assert_close(before(ids), after(ids), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_classifier_reads_the_last_real_token(tmp_path: Path, base: Path) -> None:
    run = make(tmp_path, base, "classification", trains="last_block")
    list(train(run.path))
    loaded = load_model(run.checkpoint(4))
    found = load_class_head(run.checkpoint(4), loaded)
    assert found.labels == ("blue", "red")
    short, long = [5, 9, 30], [5, 9, 30, 41, 8, 60]
    alone = found.model(torch.tensor([short]))
    batch = collate_texts([short, long], [0, 1], 0)
    torch.testing.assert_close(found.model(batch.ids, batch.valid)[:1], alone, rtol=1e-5, atol=1e-5)
    found.model.pooling = "position"
    assert not torch.allclose(found.model(batch.ids, batch.valid)[:1], alone, atol=1e-3)
    unchanged = ("embed.weight", "blocks.0.attn.q_proj.weight")
    for name in unchanged:
        assert torch.equal(
            loaded.model.state_dict()[name], load_model(base).model.state_dict()[name]
        )


@pytest.mark.slow
def test_patience_ends_a_run_and_the_best_is_kept(tmp_path: Path, base: Path) -> None:
    run = make(tmp_path, base, "sft", epochs=20.0, learning_rate=1.0, patience=2)
    events = list(train(run.path))
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "patience"
    evaluated = [event for event in events if isinstance(event, Evaluated)]
    best = min(evaluated, key=lambda event: event.validation_loss)
    assert best.step in run.checkpoint_steps()
    assert len([e for e in evaluated if e.step > best.step]) >= 2


def test_one_class_is_refused(tmp_path: Path, base: Path) -> None:
    parts = draw_parts()
    same = {
        name: tuple(replace(e, label="red") for e in part) for name, part in parts.items().items()
    }
    with pytest.raises(DataError) as error:
        make_tuning_run(
            tmp_path,
            SETUP,
            "classification",
            Parts(**same),
            load_model(base),
            base="",
            base_name="tiny",
            data_name="rows",
            about={},
        )
    assert error.value.code == "tune-one-class"
    assert not list(tmp_path.iterdir())
