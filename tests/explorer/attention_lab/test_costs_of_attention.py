"""Cache, tiles, variants and experts against whole passes, torch and published counts."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from explorer.attention_lab.experts import (
    LayerSettings,
    compute_experts,
    find_published_experts,
    measure_layers,
)
from explorer.attention_lab.flash import (
    compute_tiled_softmax,
    count_traffic,
    measure_peaks,
    tiled_attention,
)
from explorer.attention_lab.kv_cache import measure_generation, trace_decoding, with_window
from explorer.attention_lab.variants import (
    CONTEXTS,
    PUBLISHED,
    VARIANTS,
    VariantSettings,
    build_variant_config,
    compute_published,
    compute_variants,
    settings_of,
)
from explorer.errors import ConfigError, ContextError
from models import Decoder, KVCache, Trace, build_decoder

TEXT = "a text"


# ------------------------------------------------------------------------------------ KV cache
def test_decoding_computes_the_rows_of_one_whole_pass(llama):
    found = trace_decoding(llama, TEXT, layer=1, head=4, n_new=5)
    assert [(step.first, step.last) for step in found.steps] == [
        (0, 6), (6, 7), (7, 8), (8, 9), (9, 10), (10, 11),
    ]  # fmt: skip
    ids = llama.tokenizer.encode(TEXT)
    trace = Trace(record=("blocks.1.attn.pattern", "blocks.1.attn.k"))
    for _ in range(5):
        ids.append(int(llama.model(torch.tensor([ids]))[0, -1].argmax()))
    llama.model(torch.tensor([ids]), trace=trace)
    expected = trace["blocks.1.attn.pattern"][0, 4].numpy()
    np.testing.assert_allclose(found.pattern, expected, atol=1e-5)
    np.testing.assert_allclose(found.keys, trace["blocks.1.attn.k"][0, 2, :, :8], atol=1e-5)
    assert found.largest_difference < 1e-4
    last = found.steps[-1]
    assert last.cache_bytes == KVCache(llama.config, 1, 11).nbytes
    assert last.cached_operations < last.uncached_operations / 10


def test_a_window_drops_what_no_query_will_see(gemma):
    layer = gemma.config.layer_types.index("window")
    window = gemma.config.attention.window
    found = trace_decoding(gemma, "some letters", layer=layer, head=0, n_new=8)
    assert found.window == window
    for step in found.steps:
        assert step.kept == tuple(range(max(0, step.last - window), step.last))
        row = found.pattern[step.last - 1]
        assert set(np.flatnonzero(row)) <= set(step.kept)


def test_any_model_can_be_given_a_window(llama, gemma):
    config = dataclasses.replace(
        llama.config,
        layer_types=("window",) * 2,
        rope={"window": llama.config.rope["full"]},
        attention=dataclasses.replace(llama.config.attention, window=4),
    )
    twin = Decoder(config)
    twin.load_state_dict(llama.model.state_dict())
    found = trace_decoding(llama, TEXT, layer=1, head=4, n_new=5, window=4)
    ids, trace = llama.tokenizer.encode(TEXT), Trace(record=("blocks.1.attn.pattern",))
    for _ in range(5):
        ids.append(int(twin(torch.tensor([ids]))[0, -1].argmax()))
    twin(torch.tensor([ids]), trace=trace)
    expected = trace["blocks.1.attn.pattern"][0, 4].detach().numpy()
    np.testing.assert_allclose(found.pattern, expected, atol=1e-5)
    assert found.steps[-1].kept == (7, 8, 9, 10)
    assert found.steps[-1].cache_bytes == KVCache(config, 1, 4).nbytes
    assert found.largest_difference < 1e-4
    narrow = with_window(gemma, 2).config  # its layers with a window get the new one
    assert (narrow.layer_types, narrow.attention.window) == (gemma.config.layer_types, 2)
    weights = with_window(llama, 4).model.embed.weight
    assert weights.data_ptr() == llama.model.embed.weight.data_ptr()


def test_both_ways_to_write_are_measured_and_the_memory_is_counted(llama):
    states = list(measure_generation(llama, TEXT, n_new=3))
    assert len(states) == 3
    final = states[-1]
    assert len(final.cached_s) == len(final.uncached_s) == 3
    assert final.cache_bytes[-1] == KVCache(llama.config, 1, 9).nbytes
    assert final.cached_per_s == pytest.approx(3 / sum(final.cached_s))
    with pytest.raises(ContextError, match="24 are read here"):
        trace_decoding(llama, "x" * 25, layer=0, head=0)


# ------------------------------------------------------------------------------------ flash
@pytest.mark.parametrize("tile", [1, 2, 3, 11, 50])
def test_tiles_give_what_the_whole_gives(tile):
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(11, generator=generator, dtype=torch.float64) * 20
    scores[[0, 1, 7]] = -math.inf
    values = torch.randn(11, 5, generator=generator, dtype=torch.float64)
    found = compute_tiled_softmax(scores.numpy(), values.numpy(), tile)
    np.testing.assert_allclose(found.output, (scores.softmax(0) @ values).numpy(), rtol=1e-12)
    assert found.largest_difference < 1e-12
    assert len(found.steps) == math.ceil(11 / tile)
    assert found.steps[-1].total == pytest.approx(float((scores - scores.max()).exp().sum()))


def test_tiled_attention_is_that_of_torch():
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(2, 3, 37, 10, generator=generator) for _ in range(3))
    for causal in (True, False):
        expected = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        found = tiled_attention(q, k, v, tile=8, causal=causal)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_stored_bytes_grow_with_the_square_or_with_the_length():
    short, long = count_traffic(1_000, 64, 128), count_traffic(2_000, 64, 128)
    assert long.plain_stored == 4 * short.plain_stored == 4 * 2 * 1_000**2 * 4
    assert long.tiled_stored == 2 * short.tiled_stored
    assert long.tiled_moved < long.plain_moved
    # 64K tokens of fp16 scores are 8 GiB a head
    assert count_traffic(65_536, 64, 128).plain_stored // 2 // 2 == 8 * 2**30


def test_the_measured_peak_of_the_fused_kernel_grows_slower():
    *_, found = measure_peaks((128, 256))
    small, large = found
    assert large.eager_bytes > 3.5 * small.eager_bytes
    assert small.eager_bytes >= 2 * 4 * 128 * 128 * 4
    assert large.fused_bytes < large.eager_bytes


def test_a_blind_query_and_an_empty_tile_are_refused():
    with pytest.raises(ConfigError, match="allow one key"):
        compute_tiled_softmax([-math.inf], np.zeros((1, 2)), 1)
    with pytest.raises(ConfigError, match="choose 1 or more"):
        compute_tiled_softmax([1.0], np.zeros((1, 2)), 0)


# ------------------------------------------------------------------------------------ variants
def test_llama_3_8b_with_all_heads_and_with_groups():
    found = {variant.name: variant for variant in compute_variants(VariantSettings())}
    assert tuple(found) == VARIANTS
    assert found["mha"].n_parameters == 67_108_864
    assert found["gqa"].n_parameters == 41_943_040
    assert found["mha"].kept_per_token == 2 * 32 * 128
    assert found["gqa"].kept_per_token == 2 * 8 * 128
    assert found["mqa"].kept_per_token == 2 * 128
    assert found["mla"].kept_per_token == 512 + 64
    # 8,192 tokens, 32 layers, bfloat16: 1 GiB
    assert found["gqa"].cache_bytes == 2**30
    assert found["window"].cache_bytes == 2**29


def test_shapes_and_counts_are_those_of_the_models():
    settings = VariantSettings(
        d_model=64, n_heads=6, n_groups=3, d_head=16, latent=32, rotary=8, window=16, n_layers=1
    )
    for variant in compute_variants(settings):
        model = build_decoder(
            build_variant_config(variant.name, settings), torch.Generator().manual_seed(0)
        )
        attention = model.blocks[0].attn
        weights = dict(attention.named_parameters())
        for name, shape in variant.shapes:
            assert tuple(weights[f"{name}.weight"].shape) == shape, (variant.name, name)
        matrices = sum(w.numel() for w in weights.values() if w.ndim == 2)
        assert variant.n_parameters == matrices == sum(a * b for _, (a, b) in variant.shapes)
        cache = KVCache(model.config, 1, 1, dtype=torch.bfloat16)
        assert variant.kept_per_token * 2 == cache.nbytes


def test_published_models_have_their_own_heads():
    found = {model.name: model for model in compute_published(8_192)}
    assert tuple(found) == PUBLISHED
    llama3 = found["llama3-8b"]
    assert (llama3.attention_parameters, llama3.cache_bytes) == (41_943_040, 2**30)
    gemma3 = found["gemma3-1b"]
    assert (gemma3.window, gemma3.n_layers - gemma3.n_window_layers) == (512, 4)
    assert len(llama3.bytes_by_context) == len(CONTEXTS)
    chosen = settings_of("llama3-8b", VariantSettings(n_heads=1, n_groups=1, d_model=64))
    assert (chosen.d_model, chosen.n_heads, chosen.n_groups) == (4_096, 32, 8)
    with pytest.raises(ConfigError, match="choose 1, 2, 4"):
        compute_variants(VariantSettings(n_groups=5))


# ------------------------------------------------------------------------------------ experts
def test_choices_are_those_of_the_router(moe):
    found = compute_experts(moe, TEXT)
    trace = Trace(record=("blocks.0.ffn.*", "blocks.0.router.logits", "blocks.0.resid_mid"))
    llama_ids = torch.tensor([moe.tokenizer.encode(TEXT)])
    with torch.no_grad():
        logits = moe.model(llama_ids, trace=trace)
        block = moe.model.blocks[0]
        router = block.ffn.router(block.ffn_norm(trace["blocks.0.resid_mid"]))[0]
    expected = router.softmax(-1)
    np.testing.assert_allclose(found.probabilities[0], expected.numpy(), atol=1e-6)
    best = expected.topk(2)
    assert np.array_equal(found.chosen[0], best.indices.numpy())
    weights = best.values / best.values.sum(-1, keepdim=True)
    np.testing.assert_allclose(found.weights[0], weights.numpy(), atol=1e-6)
    counts = torch.bincount(best.indices.flatten(), minlength=5) / best.indices.numel()
    np.testing.assert_allclose(found.load[0], counts.numpy())
    assert found.n_experts == 5
    expected_loss = functional.cross_entropy(logits[0, :-1], llama_ids[0, 1:])
    assert found.loss == pytest.approx(float(expected_loss), abs=1e-5)
    assert found.loss == found.loss_without


def test_an_expert_that_is_off_is_not_chosen(moe):
    busy = int(compute_experts(moe, TEXT).load[0].argmax())
    found = compute_experts(moe, TEXT, layer=0, expert=busy)
    assert found.loss != found.loss_without
    assert found.before != found.after
    assert found.load[0, busy] > 0
    assert found.load_without[0, busy] == 0
    np.testing.assert_allclose(found.load_without.sum(1), 1)
    with pytest.raises(ConfigError, match="choose 0 to 4"):
        compute_experts(moe, TEXT, expert=5)


def test_a_model_without_experts_says_what_it_has(llama):
    with pytest.raises(ConfigError, match="one feed-forward of width 52"):
        compute_experts(llama, TEXT)


def test_layers_with_experts_hold_more_than_they_use():
    sizes = LayerSettings(d_model=32, d_expert=16, n_experts=5, n_active=2, n_tokens=7)
    moe, active, total = measure_layers(sizes)
    one = 3 * 32 * 16
    assert (moe.n_parameters, moe.n_active) == (5 * one + 32 * 5, 2 * one + 32 * 5)
    assert (active.n_parameters, total.n_parameters) == (2 * one, 5 * one)
    assert moe.n_bytes == 4 * moe.n_parameters
    assert all(cost.forward_s[1] > 0 for cost in (moe, active, total))


def test_published_experts_at_work():
    found = {model.name: model for model in find_published_experts()}
    qwen = found["qwen3-30b-a3b"]
    assert qwen.n_parameters == 30_532_122_624
    # 3.3 billion, as its name says, with both embeddings
    idle = 48 * (128 - 8) * 3 * 2_048 * 768
    assert qwen.n_active == 30_532_122_624 - idle
