"""Configuration values that leave a part out, to see what it is for: each by a plain formula."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from models import KVCache, Trace, build_decoder
from models.config import AttentionConfig, NormConfig
from models.counting import count_parameters
from models.errors import ConfigError
from models.mla_config import MlaConfig


def _seeded(seed):
    return torch.Generator().manual_seed(seed)


def _build(config, **changes):
    changed = replace(config, initialisation="torch_default", **changes)
    return build_decoder(changed, _seeded(5)).requires_grad_(False)


def _without_mask(config):
    return replace(config, attention=replace(config.attention, causal=False))


def test_without_normalisation_a_sublayer_reads_the_stream_itself(config, ids):
    model, trace = _build(config, norm=NormConfig(kind="none")), Trace(record=("*",))
    model(ids, trace=trace)
    attention = model.blocks[1].attn
    read = trace["blocks.1.resid_pre"]
    v = attention.v_proj(read).unflatten(-1, (-1, 10)).transpose(1, 2)
    torch.testing.assert_close(trace["blocks.1.attn.v"], v, atol=1e-5, rtol=0)
    head = model.embed.weight if config.tied_head else model.head.weight
    expected = trace["blocks.2.resid_post"] @ head.T
    torch.testing.assert_close(trace["logits"], expected, atol=1e-4, rtol=1e-5)


def test_without_normalisation_nothing_is_counted_or_saved_for_it(config):
    bare = replace(config, norm=NormConfig(kind="none"))
    model = _build(bare)
    counted = count_parameters(bare)
    assert counted.parts["norms"] == 0
    assert counted.unique == sum(p.numel() for p in model.parameters())
    assert not any("norm" in name for name in model.state_dict())
    assert model.to(torch.float64).dtype == torch.float64


def test_without_residual_a_sublayer_takes_the_place_of_the_stream(config, ids):
    model, trace = _build(config, residual=False), Trace(record=("*",))
    model(ids, trace=trace)
    for layer in range(3):
        name = f"blocks.{layer}"
        assert torch.equal(trace[f"{name}.resid_mid"], trace[f"{name}.attn_out"])
        assert torch.equal(trace[f"{name}.resid_post"], trace[f"{name}.ffn_out"])


def test_without_mask_every_token_reads_all(config, ids):
    model = _build(_without_mask(config))
    trace = Trace(record=("blocks.0.attn.*",))
    logits = model(ids, trace=trace)
    q, k, v = (trace[f"blocks.0.attn.{part}"] for part in "qkv")
    expected = functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    torch.testing.assert_close(trace["blocks.0.attn.z"], expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(model(ids), logits, atol=1e-5, rtol=0)  # the fused kernel too


def test_without_mask_a_cached_token_reads_all_that_came_and_all_that_comes_with_it(config, ids):
    model = _build(_without_mask(config))
    valid = torch.tensor([[False, True, True, True, True, True, True], [True] * 7])
    cache, trace = KVCache(model.config, 2, 20), Trace(record=("blocks.*.attn.mask",))
    padded = model(ids, valid=valid, cache=cache)
    for row in range(2):
        alone = model(ids[row : row + 1, 1 - row :])
        torch.testing.assert_close(padded[row, 1 - row :], alone[0], atol=1e-5, rtol=0)
    model(ids[:, :2], cache=cache, trace=trace)
    mask = trace["blocks.1.attn.mask"]
    assert mask[0, 0].tolist() == [[True] * 8 + [False]] * 2  # a row that is one token shorter
    assert mask[1, 0].tolist() == [[True] * 9] * 2


def test_without_mask_latent_attention_reads_all_too(llama_config, ids):
    latent = replace(
        _without_mask(llama_config),
        mla=MlaConfig(kv_lora_rank=14, qk_rope_head_dim=4),
        attention=AttentionConfig(n_heads=6, n_kv_heads=6, d_head=10, causal=False),
    )
    model = _build(latent)
    changed = ids.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 97
    assert not torch.allclose(model(ids)[:, 0], model(changed)[:, 0])
    assert torch.equal(_build(llama_config)(ids)[:, 0], _build(llama_config)(changed)[:, 0])


def test_a_window_needs_the_mask(llama_config):
    with pytest.raises(ConfigError, match="choose causal=True or 'full' layers"):
        replace(
            llama_config,
            layer_types=("window",) * 3,
            rope={"window": llama_config.rope["full"]},
            attention=replace(llama_config.attention, window=4, causal=False),
        )


def test_unit_normal_weights_have_unit_variance_and_no_bias(gpt_config):
    model = build_decoder(replace(gpt_config, initialisation="unit_normal"), _seeded(5))
    for name in ("q_proj", "o_proj"):
        layer = getattr(model.blocks[1].attn, name)
        assert layer.weight.std().item() == pytest.approx(1, abs=0.05)
        assert not layer.bias.any()
    assert model.embed.weight.std().item() == pytest.approx(1, abs=0.05)
