"""The panel "checkpoints": what it shows is what the checkpoint computes."""

import numpy as np
import pytest
import torch
from gradio_client.exceptions import AppError

from components.tabs.pretrain.checkpoint_handlers import CheckpointHandlers, Look
from explorer.checkpoint_sources import find_checkpoint
from explorer.errors import SourceError
from explorer.runs import Runs
from explorer.training.run_folder import RUNS_FOLDER
from models import generate
from models.sampling import SamplingConfig
from tests.components.pretrain.page_calls import event
from tests.components.run_folders import make_run, train_in_process


def test_a_checkpoint_opens_like_any_model_and_writes_what_it_would(client, ctx, home, trained):
    source = f"run:{trained}@3"
    with ctx.store.lease(source, "local") as loaded:
        ids = loaded.tokenizer.encode("Ada")
        greedy = SamplingConfig(temperature=0.0)
        tokens = list(generate(loaded.model, ids, max_new_tokens=8, sampling=greedy))
        expected = loaded.tokenizer.decode([token.id for token in tokens])
    found = client.predict(trained, 3, "Ada", 8, api_name="/pretrain_sample")
    assert found == {"source": source, "text": expected}
    assert ctx.store.summary(source, "local").name == "small one @ 3"


@pytest.mark.parametrize("n_tokens", [0, 501])
def test_a_sample_of_no_length_is_refused(client, trained, n_tokens):
    with pytest.raises(AppError, match="choose 1 to 500"):
        client.predict(trained, 3, "Ada", n_tokens, api_name="/pretrain_sample")


@pytest.mark.parametrize(
    "source",
    ["run:x@1", "run:{id}@2000", "run:{id}", "run:../../x@0", "run:0123456789abcdef01234567@0"],
)
def test_what_is_no_checkpoint_is_refused(home, trained, source):
    with pytest.raises(SourceError, match="choose another one"):
        find_checkpoint(home / RUNS_FOLDER, source.format(id=trained))


def test_the_scrubber_shows_what_the_checkpoint_computes(ctx, trained, nobody):
    on = CheckpointHandlers(ctx)
    entered = on.enter(Look(), trained, "", None, nobody)[-1]
    values = on.read(entered, trained, "Ada lives", None, nobody)
    place, stepper, prompt, written, opened, layer, *_rest, look = values
    assert prompt == "Ada lives"
    assert stepper == {"index": 3, "count": 4}
    assert "small one" in place
    assert written.startswith(prompt)
    assert opened.visible
    with ctx.store.lease(f"run:{trained}@3", "local") as loaded:
        from models import Trace

        trace = Trace(record=("blocks.2.attn.pattern",))
        loaded.model(torch.tensor([loaded.tokenizer.encode(prompt)]), trace=trace)
        pattern = trace["blocks.2.attn.pattern"][0, 0].numpy()
    assert layer["index"] == 2
    cells = ctx.routes.find(look.shown.matrix_id).cells
    np.testing.assert_allclose(cells, pattern, atol=1e-5)
    first = on.step(look, trained, prompt, None, event(index=0), nobody)
    assert first[-1].step == 0
    assert first[1]["index"] == 0
    assert on.open(first[-1]) == f"run:{trained}@0"
    # a new checkpoint of the run does not take away what is looked at
    again = on.follow(first[-1], trained, prompt, None, nobody)
    assert again[1] == {"index": 0, "count": 4}
    assert again[-1].step == 0


def test_the_last_layer_of_the_lens_is_the_models_own_answer(ctx, trained, nobody):
    *_, lens, _facts, _table, _exports, look = CheckpointHandlers(ctx).enter(
        Look(), trained, "", None, nobody
    )
    with ctx.store.lease(look.shown.source, "local") as loaded, torch.no_grad():
        ids = loaded.tokenizer.encode(look.prompt)
        probabilities = loaded.model(torch.tensor([ids]))[0, look.shown.query].softmax(-1)
        best = probabilities.topk(2)
        tokens = [loaded.tokenizer.decode([int(i)]) for i in best.indices]
    *row, entropy, rank = lens["cells"][-1]
    assert row[::2] == tokens
    np.testing.assert_allclose(row[1::2], best.values, rtol=1e-4)
    np.testing.assert_allclose(entropy, -(probabilities * probabilities.log()).sum(), rtol=1e-4)
    assert rank == "1"


def test_before_the_first_checkpoint_the_scrubber_says_so(ctx, home, nobody):
    run_id = make_run(home)
    values = CheckpointHandlers(ctx).enter(Look(), run_id, "", None, nobody)
    assert "not there yet" in values[0]
    assert CheckpointHandlers(ctx).enter(Look(), None, "", None, nobody)[1]["count"] == 0
    Runs(home).delete(run_id, "local")


def test_maps_of_a_model_without_a_mask_show_all_of_it(ctx, home, nobody):
    run_id = make_run(home, breakage="no_mask", n_steps=1)
    train_in_process(home, run_id)
    *_, big, _lens, _facts, _table, _exports, look = CheckpointHandlers(ctx).enter(
        Look(), run_id, "", None, nobody
    )
    assert big["value"]["causal"] is False
    cells = ctx.routes.find(look.shown.matrix_id).cells
    assert (cells[0, 1:] > 0).all()
    np.testing.assert_allclose(cells.sum(axis=1), 1, atol=1e-5)
    Runs(home).delete(run_id, "local")
