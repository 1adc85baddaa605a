"""What window layers keep: bounded bytes, nothing lost in long chunks, honest rewinding."""

from dataclasses import replace

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models import KVCache, Trace, build_decoder, generate
from models.config import AttentionConfig, RopeConfig
from models.errors import ContextError
from models.sampling import SamplingConfig

WINDOW = 5
N = 60


def _seeded(seed):
    return torch.Generator().manual_seed(seed)


def _windowed(config, window=WINDOW, cap=None):
    return replace(
        config,
        attention=AttentionConfig(n_heads=6, n_kv_heads=3, d_head=10, window=window, score_cap=cap),
        layer_types=("window", "full", "window"),
        rope={"full": RopeConfig(), "window": RopeConfig(theta=777.0)},
        initialisation="torch_default",
    )


@pytest.fixture(scope="module")
def text():
    return torch.randint(0, 97, (2, N), generator=_seeded(6))


@pytest.fixture(params=[1, 2, WINDOW], ids=lambda w: f"window {w}")
def windowed(request, llama_config):
    return build_decoder(_windowed(llama_config, request.param), _seeded(5)).requires_grad_(False)


def _close(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_bytes_are_those_of_the_window(llama_config):
    config = _windowed(llama_config)
    a_slot = 2 * 3 * 10 * 4  # keys and values, 3 heads of 10, float32
    assert KVCache(config, 1, 1_000, rewind=0).nbytes == (1_000 + 2 * 5) * a_slot
    assert KVCache(config, 1, 1_000, rewind=7).nbytes == (1_000 + 2 * 12) * a_slot
    assert KVCache(config, 1, 1_000).nbytes == (1_000 + 2 * 37) * a_slot
    assert KVCache(config, 1, 3).nbytes == 3 * 3 * a_slot


@pytest.mark.parametrize("rewind", [0, 1, 9])
@pytest.mark.parametrize(
    "sizes", [(60,), (1,) * 60, (23, 37), (2,) * 30, (5, 1, 11, 1, 1, 30, 2, 9), (6,) * 10]
)
def test_any_chunks_equal_whole(windowed, text, sizes, rewind):
    cache = KVCache(windowed.config, 2, N, rewind=rewind)
    before = cache.nbytes
    steps = [windowed(chunk, cache=cache) for chunk in text.split(sizes, dim=1)]
    _close(torch.cat(steps, 1), windowed(text))
    assert cache.nbytes == before


def test_a_long_chunk_keeps_what_its_first_queries_need(llama_config, text):
    """Trimmed before scoring, token 20 would see itself alone."""
    model = build_decoder(_windowed(llama_config), _seeded(5)).requires_grad_(False)
    cache = KVCache(model.config, 2, N, rewind=0)
    model(text[:, :20], cache=cache)
    trace = Trace(record=("blocks.0.attn.pattern", "blocks.0.attn.mask"))
    model(text[:, 20:50], cache=cache, trace=trace)
    pattern = trace["blocks.0.attn.pattern"]
    assert pattern.shape == (2, 6, 30, 50)  # column n is position n
    for query in range(20, 50):
        row = pattern[:, :, query - 20]
        assert (row[..., query - 4 : query + 1] > 0).all()
        assert (row[..., : query - 4] == 0).all()
        assert (row[..., query + 1 :] == 0).all()


@pytest.mark.parametrize("cap", [None, 3.0])
def test_what_the_trace_shows_equals_the_pass_without_a_cache(llama_config, text, cap):
    model = build_decoder(_windowed(llama_config, cap=cap), _seeded(5)).requires_grad_(False)
    whole = Trace(record=("blocks.*.attn.pattern", "blocks.*.attn.mask"))
    model(text, trace=whole)
    cache = KVCache(model.config, 2, N, rewind=3)
    at = 0
    for chunk in text.split([20, 1, 3, 30, 1, 5], dim=1):
        part = Trace(record=("blocks.*.attn.pattern", "blocks.*.attn.mask"))
        model(chunk, cache=cache, trace=part)
        end = at + chunk.shape[1]
        for layer in range(3):
            name = f"blocks.{layer}.attn"
            _close(part[f"{name}.pattern"], whole[f"{name}.pattern"][:, :, at:end, :end])
            assert torch.equal(
                part[f"{name}.mask"].expand(2, -1, -1, -1),
                whole[f"{name}.mask"][:, :, at:end, :end].expand(2, -1, -1, -1),
            )
        at = end


@example(lengths=[(30, 0)], seed=1, window=1, rewind=0, cap=3.0)
@example(lengths=[(12, 3), (12, 1)], seed=1, window=1, rewind=0, cap=3.0)
@settings(deadline=None, max_examples=25)
@given(
    lengths=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=8),
    seed=st.integers(0, 99),
    window=st.integers(1, 6),
    rewind=st.integers(0, 4),
    cap=st.sampled_from([None, 3.0]),  # with one, the eager kernel
)
def test_padded_rows_of_unequal_length_go_on_together(lengths, seed, window, rewind, cap):
    """Each step brings each row some tokens, padding anywhere around them."""
    from tests.models.conftest import LLAMA_LIKE

    model = build_decoder(_windowed(LLAMA_LIKE, window, cap), _seeded(5)).requires_grad_(False)
    rows = torch.randint(0, 97, (2, 96), generator=_seeded(seed))
    cache = KVCache(model.config, 2, 96, rewind=rewind)
    held, found = [0, 0], [[], []]
    for counts in lengths:
        width = max(*counts, 1) + 1
        ids = torch.full((2, width), 3)
        valid = torch.zeros(2, width, dtype=torch.bool)
        for row, count in enumerate(counts):
            places = torch.randperm(width, generator=_seeded(seed + count))[:count].sort().values
            ids[row, places] = rows[row, held[row] : held[row] + count]
            valid[row, places] = True
            held[row] += count
        logits = model(ids, valid=valid, cache=cache)
        assert logits.isfinite().all()
        for row in range(2):
            found[row].append(logits[row][valid[row]])
    assert cache.lengths.tolist() == held
    for row in range(2):
        if held[row]:
            _close(torch.cat(found[row]), model(rows[row : row + 1, : held[row]])[0])


@pytest.mark.parametrize("back", range(1, 9))
def test_rewinding_within_the_promise_goes_on_as_if_never_read_further(windowed, text, back):
    cache = KVCache(windowed.config, 2, N, rewind=8)
    for chunk in text.split([17, 1, 12, 30], dim=1)[:3]:
        windowed(chunk, cache=cache)
    windowed(text[:, 40 : 40 + back], cache=cache)  # a draft that is taken back
    cache.truncate(30)
    assert cache.lengths.tolist() == [30, 30]
    again = [windowed(chunk, cache=cache) for chunk in text[:, 30:].split([1, 2, 1, 26], dim=1)]
    _close(torch.cat(again, 1), windowed(text)[:, 30:])


def test_rewinding_step_by_step_is_counted_from_the_furthest_point(llama_config, text):
    model = build_decoder(_windowed(llama_config), _seeded(5)).requires_grad_(False)
    cache = KVCache(model.config, 2, N, rewind=4)
    model(text[:, :30], cache=cache)
    cache.truncate(28)
    model(text[:, 28:29], cache=cache)
    with pytest.raises(ContextError, match="go back to 25 at the least"):
        cache.truncate(24)
    cache.truncate(25)
    _close(model(text[:, 25:], cache=cache), model(text)[:, 25:])


def test_rewinding_too_far_is_refused_and_changes_nothing(windowed, text):
    cache = KVCache(windowed.config, 2, N, rewind=4)
    windowed(text[:, :30], cache=cache)
    with pytest.raises(ContextError, match=r"go back to 25 at the least, to 0, or .* rewind=18"):
        cache.truncate(12)
    assert cache.lengths.tolist() == [30, 30]
    _close(windowed(text[:, 30:], cache=cache), windowed(text)[:, 30:])
    cache.truncate(0)
    _close(windowed(text, cache=cache), windowed(text))


def test_full_layers_rewind_to_anywhere(model, ids):
    cache = KVCache(model.config, 2, 7, rewind=0)
    model(ids, cache=cache)
    cache.truncate(1)
    _close(model(ids[:, 1:], cache=cache), model(ids)[:, 1:])


def test_rows_change_places(windowed, text):
    cache = KVCache(windowed.config, 2, N, rewind=0)
    windowed(text[:, :30], cache=cache)
    cache.select_rows(torch.tensor([1, 1, 0]))
    swapped = text[[1, 1, 0]]
    _close(windowed(swapped[:, 30:31], cache=cache), windowed(swapped[:, :31])[:, -1:])


def test_long_prompts_are_generated_from_as_without_a_cache(llama_config):
    config = replace(_windowed(llama_config), context_length=400)
    model = build_decoder(config, _seeded(5)).requires_grad_(False)
    prompt = torch.randint(0, 97, (300,), generator=_seeded(3)).tolist()
    greedy = SamplingConfig(temperature=0.0)
    found = [t.id for t in generate(model, prompt, max_new_tokens=12, sampling=greedy)]
    for i, id_ in enumerate(found):
        assert int(model(torch.tensor([prompt + found[:i]]))[0, -1].argmax()) == id_
