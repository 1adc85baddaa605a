"""Masks against plain loops, and against models that were built with them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.attention_lab.masks import (
    MaskSettings,
    build_mask,
    compute_reach,
    count_kept,
    count_kept_bytes,
    masks_of_layers,
    parse_mask,
    run_masked,
    write_mask,
)
from explorer.errors import ConfigError
from models import Decoder, KVCache

IDS = [5, 17, 3, 60, 5, 22, 41]
LABELS = tuple("abcdefg")


def test_a_window_of_four_counts_the_query():
    mask = build_mask(MaskSettings(kind="window", width=4), 8)
    assert np.flatnonzero(mask[7]).tolist() == [4, 5, 6, 7]
    other = build_mask(MaskSettings(kind="window", width=4, counts_query=False), 8)
    assert np.flatnonzero(other[7]).tolist() == [3, 4, 5, 6, 7]


def test_each_kind_is_its_rule():
    n = 7
    rules = {
        "causal": lambda q, k: k <= q,
        "window": lambda q, k: 0 <= q - k < 3,
        "sinks": lambda q, k: k <= q and (q - k < 3 or k < 2),
        "prefix": lambda q, k: k <= q or (q < 2 and k < 2),
        "documents": lambda q, k: k <= q and (q > 2) == (k > 2),
        "padding": lambda q, k: q == k or 2 <= k <= q,
    }
    for kind, rule in rules.items():
        found = build_mask(MaskSettings(kind=kind, width=3, count=2), n, ends=(2, 6))
        expected = [[bool(rule(q, k)) for k in range(n)] for q in range(n)]
        assert found.tolist() == expected, kind
    with pytest.raises(ConfigError, match="choose causal"):
        build_mask(MaskSettings(kind="painted"), n)


def test_five_layers_with_a_window_and_one_without():
    settings = MaskSettings(kind="mixed", width=2, ratio=5)
    masks = masks_of_layers(settings, build_mask(settings, 9), 12)
    kept = count_kept(masks)
    assert kept == (2, 2, 2, 2, 2, 9) * 2


def test_kept_bytes_are_those_of_a_cache(llama):
    masks = masks_of_layers(MaskSettings(), build_mask(MaskSettings(), 7), 2)
    found = count_kept_bytes(llama, masks)
    assert sum(found.layers) == found.own == KVCache(llama.config, 1, 7).nbytes
    window = MaskSettings(kind="window", width=3)
    few = count_kept_bytes(llama, masks_of_layers(window, build_mask(window, 7), 2))
    assert few.layers == (found.own // 2 // 7 * 3,) * 2


def test_reach_grows_by_the_window_less_one():
    settings = MaskSettings(kind="window", width=3)
    masks = masks_of_layers(settings, build_mask(settings, 12), 7)
    assert compute_reach(masks) == (3, 5, 7, 9, 11, 12, 12)


def test_the_models_own_mask_changes_nothing(llama):
    masks = masks_of_layers(MaskSettings(), build_mask(MaskSettings(), 7), 2)
    found = run_masked(llama, IDS, LABELS, masks, layer=1, head=4)
    np.testing.assert_allclose(found.pattern, found.pattern_before, atol=1e-6)
    assert found.divergence_nats == pytest.approx(0, abs=1e-6)
    assert found.before == pytest.approx(found.after)


def test_a_window_is_a_model_with_that_window(llama):
    config = replace(
        llama.config,
        layer_types=("window",) * 2,
        rope={"window": llama.config.rope["full"]},
        attention=replace(llama.config.attention, window=3),
    )
    twin = Decoder(config)
    twin.load_state_dict(llama.model.state_dict())
    settings = MaskSettings(kind="window", width=3)
    masks = masks_of_layers(settings, build_mask(settings, 7), 2)
    found = run_masked(llama, IDS, LABELS, masks, layer=1, head=4)
    with torch.no_grad():
        expected = twin(torch.tensor([IDS]))[0, -1].softmax(-1)
    best = expected.topk(3).values.tolist()
    assert sorted(found.after, reverse=True)[:3] == pytest.approx(best, abs=1e-5)
    assert found.divergence_nats > 0
    assert (found.pattern[build_mask(settings, 7) == 0] == 0).all()


def test_a_mask_that_forbids_everything_gives_rows_of_zeros(llama):
    nothing = np.zeros((7, 7), bool)
    found = run_masked(llama, IDS, LABELS, (nothing, nothing), layer=0, head=0)
    assert (found.pattern == 0).all()
    assert found.blind == tuple(range(7))
    assert np.isfinite(found.after).all()


def test_a_painted_mask_travels_as_text_and_nonsense_is_refused():
    mask = build_mask(MaskSettings(kind="sinks", width=2), 5)
    assert np.array_equal(parse_mask(write_mask(mask)), mask)
    for wrong in ([], ["01"], ["01", "2x"], ["1" * 99] * 99):
        with pytest.raises(ConfigError, match="rows of as many 0 and 1"):
            parse_mask(wrong)
