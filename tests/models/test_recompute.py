"""Activations computed again in the backward pass: the same bits, less memory."""

from dataclasses import replace

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

from models.cache import KVCache
from models.config import DropoutConfig, MoeConfig
from models.errors import ConfigError
from models.initialise import build_decoder

DROPOUT = DropoutConfig(embedding=0.1, attention=0.2, residual=0.3)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def gradients_of(config, ids, generator, *, recompute: bool):
    """Loss and gradients of one pass."""
    model = build_decoder(config, seeded(5))
    logits = model(ids[:, :-1], generator=generator, recompute=recompute)
    loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    return loss, {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("rates", [DropoutConfig(), DROPOUT], ids=["no dropout", "dropout"])
def test_gradients_and_generator_are_the_same_bits(config, ids, rates) -> None:
    config = replace(config, dropout=rates)
    plain_generator, generator = seeded(8), seeded(8)
    loss, expected = gradients_of(config, ids, plain_generator, recompute=False)
    again, found = gradients_of(config, ids, generator, recompute=True)
    assert torch.equal(loss, again)
    for name, gradient in expected.items():
        assert torch.equal(found[name], gradient), name
    assert torch.equal(generator.get_state(), plain_generator.get_state())


def test_without_a_generator_nothing_is_dropped(config, ids) -> None:
    config = replace(config, dropout=DROPOUT)
    _, expected = gradients_of(config, ids, None, recompute=False)
    _, found = gradients_of(config, ids, None, recompute=True)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_experts_are_chosen_again_as_before(llama_config, ids) -> None:
    moe = MoeConfig(n_experts=5, n_active=2, d_ff=28, normalise_weights=True)
    config = replace(llama_config, moe=moe, dropout=DROPOUT)
    _, expected = gradients_of(config, ids, seeded(8), recompute=False)
    _, found = gradients_of(config, ids, seeded(8), recompute=True)
    used = [name for name in expected if expected[name] is not None]
    assert all(torch.equal(found[name], expected[name]) for name in used)


def test_accumulated_passes_draw_as_without_it(llama_config, ids) -> None:
    config = replace(llama_config, dropout=DROPOUT)
    found = []
    for recompute in (False, True):
        model, generator = build_decoder(config, seeded(5)), seeded(8)
        for _ in range(2):  # the second forward pass goes on drawing after the first backward pass
            model(ids, generator=generator, recompute=recompute).square().mean().backward()
        found.append([p.grad for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def kept_numbers(config, ids, *, recompute: bool) -> int:
    """Distinct numbers that a forward pass keeps for its backward pass, weights apart."""
    model = build_decoder(config, seeded(5))
    weights = {p.data_ptr() for p in model.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor):
        if tensor.data_ptr() not in weights:
            kept[tensor.data_ptr()] = tensor
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(ids, recompute=recompute).square().mean()
    assert loss.requires_grad
    return sum(tensor.numel() for tensor in kept.values())


def test_a_block_keeps_its_input_alone(llama_config, ids) -> None:
    deep = replace(llama_config, layer_types=("full",) * 6)
    per_stream = ids.numel() * llama_config.d_model
    growth = {
        recompute: kept_numbers(deep, ids, recompute=recompute)
        - kept_numbers(llama_config, ids, recompute=recompute)
        for recompute in (False, True)
    }
    assert growth[False] > 3 * 8 * per_stream
    assert growth[True] <= 3 * per_stream


def test_a_cache_is_refused(model, ids) -> None:
    cache = KVCache(model.config, batch=2, capacity=9)
    with pytest.raises(ConfigError, match="one or the other"):
        model(ids, cache=cache, recompute=True)
