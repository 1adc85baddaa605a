"""The balance of experts: its number against transformers, its gradient, what it does."""

from dataclasses import replace

import pytest
import torch

from explorer.errors import ConfigError
from explorer.training.distributed import Processes
from explorer.training.events import Step
from explorer.training.expert_balance import RouterTrace, compute_layer_balance
from explorer.training.loop import train
from explorer.training.objectives.objective import Batch
from explorer.training.objectives.pretrain import compute_loss_sum
from explorer.training.run_config import OptimiserConfig
from models.config import MoeConfig
from models.initialise import build_decoder
from models.loading import load_model
from models.trace import Trace
from tests.explorer.training.run_cases import make_tiny_run, tiny_config, tiny_model
from tests.explorer.training.tiny_models import draw_ids

EXPERTS = MoeConfig(n_experts=5, n_active=2, d_ff=12, normalise_weights=True)
ALONE = Processes()


def moe_model(vocab_size=97):
    return replace(tiny_model(vocab_size, dropout=0.0), moe=EXPERTS)


def draw_logits(seed=4):
    return torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(seed))


def test_equal_loads_give_k_and_one_favourite_gives_all():
    ids = torch.tensor([[[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]])
    even = compute_layer_balance(torch.zeros(1, 5, 5), ids, None, ALONE)
    assert float(even) == pytest.approx(2.0)
    logits = torch.tensor([30.0, 30.0, 0.0, 0.0, 0.0]).expand(1, 7, 5)
    worst = compute_layer_balance(logits, logits.topk(2).indices, None, ALONE)
    assert float(worst) == pytest.approx(5.0)


@pytest.mark.slow
@pytest.mark.parametrize("padded", [False, True])
def test_one_layer_gives_the_number_of_transformers(padded):
    from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func

    logits = draw_logits()
    valid = torch.ones(2, 7, dtype=torch.bool)
    valid[1, 3:] = not padded
    expected = load_balancing_loss_func((logits.flatten(0, 1),), 5, 2, valid.long())
    found = compute_layer_balance(logits, logits.topk(2).indices, valid if padded else None, ALONE)
    assert float(found) == pytest.approx(float(expected), rel=1e-6)


def test_a_pass_gives_the_mean_of_its_layers_with_gradients_also_when_recomputed():
    model = build_decoder(moe_model(), torch.Generator().manual_seed(3))
    gradients = []
    for recompute in (False, True):
        model.zero_grad()
        trace = RouterTrace()
        model(draw_ids(), trace=trace, recompute=recompute)
        loss = trace.compute_balance_loss(None, ALONE)
        loss.backward()
        gradients.append([b.ffn.router.weight.grad.clone() for b in model.blocks])
    recorded = Trace(record=("blocks.*.router.*",))
    model(draw_ids(), trace=recorded)
    each = [
        compute_layer_balance(recorded[f"{n}.logits"], recorded[f"{n}.ids"], None, ALONE)
        for n in ("blocks.0.router", "blocks.1.router")
    ]
    assert loss.item() == pytest.approx(sum(each).item() / 2, rel=1e-6)
    assert all(float(g.abs().max()) > 0 for g in gradients[0])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def losses_and_favour(folder, weight):
    """Losses of a run whose router begins with a favourite, and its highest share at the end."""
    config = tiny_config(30)
    run = make_tiny_run(
        folder,
        n_steps=40,
        balance_weight=weight,
        optimiser=OptimiserConfig(learning_rate=1e-2),
        watch=replace(config.watch, evaluate_every=0, sample_every=0, save_every=0),
    )
    vocab_size = run.read_config().model.vocab_size
    run.write_config(replace(run.read_config(), model=moe_model(vocab_size)))
    losses = [e.loss for e in train(run.path) if isinstance(e, Step)]

    trace = Trace(record=("blocks.1.router.ids",))
    ids = torch.arange(24).remainder(vocab_size)[None]
    load_model(run.checkpoint(40)).model(ids, trace=trace)
    return losses, trace["blocks.1.router.ids"].flatten().bincount(minlength=5).max() / 48


@pytest.mark.slow
def test_the_curve_stays_the_cross_entropy_and_the_loads_become_even(tmp_path):
    without, favour = losses_and_favour(tmp_path / "without", 0.0)
    with_it, balanced = losses_and_favour(tmp_path / "with", 1.0)
    assert with_it[0] == without[0]  # before any update: the balance is no part of the number
    assert with_it[1:] != without[1:]
    assert balanced < favour
    assert with_it[-1] < with_it[0] - 0.5


@pytest.mark.slow
def test_a_dense_model_is_trained_as_before(tmp_path):
    losses = []
    for weight in (0.0, 0.5):
        run = make_tiny_run(tmp_path / str(weight), n_steps=3, balance_weight=weight)
        losses.append([e.loss for e in train(run.path) if isinstance(e, Step)])
    assert losses[0] == losses[1]


def test_a_weight_below_0_or_without_end_is_refused():
    for weight in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="balance_weight"):
            tiny_config(30, balance_weight=weight)


def test_the_trace_leaves_the_loss_as_it_is():
    model = build_decoder(moe_model(), torch.Generator().manual_seed(3))
    batch = Batch(draw_ids(), draw_ids(seed=7))
    plain = compute_loss_sum(model, batch, None, False)
    watched = compute_loss_sum(model, batch, None, False, RouterTrace())
    assert torch.equal(plain, watched)
