"""AdamW and Muon: formulas, groups, PyTorch's own, and going on from a saved state."""

import copy
import io
import math

import pytest
import torch
from torch import nn

from explorer.errors import WeightError
from explorer.training.optimisers import build_optimiser, clip_gradients
from explorer.training.run_config import OptimiserConfig
from tests.explorer.training.tiny_models import build_tiny

MATRICES = {"q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"}


def fill_gradients(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def take_steps(model: nn.Module, optimiser, seeds: range) -> None:
    for seed in seeds:
        fill_gradients(model, seed)
        optimiser.step(1e-2 / (1 + seed))


def weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def test_adamw_follows_its_formula() -> None:
    model = build_tiny()
    config = OptimiserConfig(beta1=0.8, beta2=0.9, eps=1e-6, weight_decay=0.3)
    expected = {n: p.double() for n, p in weights_of(model).items()}
    means = {n: torch.zeros_like(p) for n, p in expected.items()}
    squares = {n: torch.zeros_like(p) for n, p in expected.items()}
    optimiser = build_optimiser(model, config)
    for t, rate in enumerate((0.02, 0.01, 0.005), start=1):
        fill_gradients(model, t)
        for name, parameter in model.named_parameters():
            gradient = parameter.grad.double()
            means[name] = 0.8 * means[name] + 0.2 * gradient
            squares[name] = 0.9 * squares[name] + 0.1 * gradient**2
            mean, square = means[name] / (1 - 0.8**t), squares[name] / (1 - 0.9**t)
            decay = 0.3 if parameter.ndim >= 2 else 0.0
            expected[name] -= rate * (decay * expected[name] + mean / (square.sqrt() + 1e-6))
        optimiser.step(rate)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.double(), expected[name], atol=1e-6, rtol=1e-5)


def decayed_names(model: nn.Module, config: OptimiserConfig) -> set[str]:
    """Parameters that shrink although their gradient is 0."""
    for parameter in model.parameters():
        parameter.data.fill_(1.0)
        parameter.grad = torch.zeros_like(parameter)
    build_optimiser(model, config).step(0.5)
    return {name for name, p in model.named_parameters() if not torch.equal(p, torch.ones_like(p))}


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_decay_spares_norms_and_biases_unless_told(kind: str) -> None:
    model = build_tiny()
    names = {name for name, _ in model.named_parameters()}
    spared = {name for name in names if name.endswith("bias") or "norm" in name}
    assert decayed_names(build_tiny(), OptimiserConfig(kind=kind)) == names - spared
    assert decayed_names(model, OptimiserConfig(kind=kind, decay="everything")) == names


def test_muon_works_on_the_matrices_of_the_blocks_alone() -> None:
    model = build_tiny()
    optimiser = build_optimiser(model, OptimiserConfig(kind="muon"))
    take_steps(model, optimiser, range(1))
    by_muon = {n for n, entries in optimiser.state_dict().items() if "momentum_buffer" in entries}
    expected = {
        name
        for name, _ in model.named_parameters()
        if name.startswith("blocks.") and name.split(".")[-2] in MATRICES and "weight" in name
    }
    assert by_muon == expected
    assert len(expected) == 12


@pytest.mark.parametrize("shape", [(44, 60), (60, 44)])
def test_a_muon_update_is_nearly_orthogonal_and_as_large_as_one_of_adamw(shape) -> None:
    model = nn.ModuleDict({"blocks": nn.ModuleList([nn.Linear(shape[1], shape[0], bias=False)])})
    before = weights_of(model)["blocks.0.weight"]
    optimiser = build_optimiser(model, OptimiserConfig(kind="muon", weight_decay=0.0))
    take_steps(model, optimiser, range(1))
    update = (before - weights_of(model)["blocks.0.weight"]) / 1e-2
    singular = torch.linalg.svdvals(update / (0.2 * math.sqrt(60)))
    assert singular.min() > 0.5  # 0.7 to 1.2 by the post; bfloat16 adds a little
    assert singular.max() < 1.4
    assert float(update.square().mean().sqrt()) == pytest.approx(0.2, rel=0.2)


def orthogonalise(u: torch.Tensor) -> torch.Tensor:
    """Newton-Schulz steps of the post, in double precision and without the transposition."""
    x = u / u.norm()
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x


def test_muon_follows_its_formula() -> None:
    model = nn.ModuleDict({"blocks": nn.ModuleList([nn.Linear(52, 44, bias=False)])})
    weight = model["blocks"][0].weight
    weight.data.normal_(std=0.1, generator=torch.Generator().manual_seed(7))
    expected, mean = weight.detach().double(), torch.zeros(44, 52, dtype=torch.float64)
    optimiser = build_optimiser(model, OptimiserConfig(kind="muon", weight_decay=0.3))
    for t in range(3):
        fill_gradients(model, t)
        gradient = weight.grad.double()
        mean = 0.95 * mean + 0.05 * gradient
        update = orthogonalise(0.05 * gradient + 0.95 * mean)
        expected = expected - 0.02 * (0.3 * expected + 0.2 * math.sqrt(52) * update)
        optimiser.step(0.02)
    # measured 3.4e-4: three updates of 0.02 * 0.2, computed in bfloat16, which holds 8 bits
    torch.testing.assert_close(weight.double(), expected, atol=6e-4, rtol=0)


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_going_on_from_a_saved_state_equals_never_having_stopped(kind: str) -> None:
    config = OptimiserConfig(kind=kind)
    whole = build_tiny()
    optimiser = build_optimiser(whole, config)
    take_steps(whole, optimiser, range(3))
    file = io.BytesIO()
    torch.save(optimiser.state_dict(), file)
    resumed = copy.deepcopy(whole)
    take_steps(whole, optimiser, range(3, 6))

    again = build_optimiser(resumed, config)
    file.seek(0)
    again.load_state_dict(torch.load(file, weights_only=True))
    take_steps(resumed, again, range(3, 6))
    for name, parameter in whole.named_parameters():
        assert torch.equal(parameter, resumed.get_parameter(name)), name


def test_a_parameter_without_gradient_stays_and_has_no_state() -> None:
    model = build_tiny()
    optimiser = build_optimiser(model, OptimiserConfig())
    fill_gradients(model, 1)
    model.blocks[1].attn.q_proj.weight.grad = None
    before = weights_of(model)["blocks.1.attn.q_proj.weight"]
    optimiser.step(0.1)
    state = optimiser.state_dict()
    assert state["blocks.1.attn.q_proj.weight"] == {}
    assert torch.equal(model.blocks[1].attn.q_proj.weight, before)
    build_optimiser(build_tiny(), OptimiserConfig()).load_state_dict(state)


def test_a_state_of_something_else_is_refused_and_changes_nothing() -> None:
    model = build_tiny()
    optimiser = build_optimiser(model, OptimiserConfig())
    take_steps(model, optimiser, range(2))
    kept = copy.deepcopy(optimiser.state_dict())
    muon = build_optimiser(model, OptimiserConfig(kind="muon"))
    take_steps(model, muon, range(1))
    with pytest.raises(WeightError, match="momentum_buffer.*begin a new run"):
        optimiser.load_state_dict(muon.state_dict())
    with pytest.raises(WeightError, match="parameters differ: embed.weight"):
        optimiser.load_state_dict({n: s for n, s in kept.items() if n != "embed.weight"})
    other = {n: {k: t[..., :-1] if t.ndim else t for k, t in s.items()} for n, s in kept.items()}
    with pytest.raises(WeightError, match=r"exp_avg of .* is \(97, 43\), not \(97, 44\)"):
        optimiser.load_state_dict(other)
    for name, entries in optimiser.state_dict().items():
        assert all(torch.equal(entries[key], kept[name][key]) for key in kept[name])


def test_zero_grad_gives_the_memory_back() -> None:
    model = build_tiny()
    fill_gradients(model, 1)
    build_optimiser(model, OptimiserConfig()).zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_clipping_scales_all_gradients_together() -> None:
    model = build_tiny()
    fill_gradients(model, 4)
    before = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert float(clip_gradients(model, 2.5)) == pytest.approx(float(before.norm()), rel=1e-6)
    after = torch.cat([p.grad.flatten() for p in model.parameters()])
    torch.testing.assert_close(after, before * 2.5 / before.norm(), rtol=1e-5, atol=0)


@pytest.mark.parametrize("max_norm", [None, 1e6])
def test_gradients_within_the_norm_stay_as_they_are(max_norm: float | None) -> None:
    model = build_tiny()
    fill_gradients(model, 4)
    before = [p.grad.clone() for p in model.parameters()]
    clip_gradients(model, max_norm)
    assert all(torch.equal(p.grad, b) for p, b in zip(model.parameters(), before, strict=True))


def test_a_norm_that_is_not_finite_is_reported() -> None:
    model = build_tiny()
    fill_gradients(model, 4)
    model.embed.weight.grad[3, 5] = math.inf
    assert float(clip_gradients(model, 1.0)) == math.inf
