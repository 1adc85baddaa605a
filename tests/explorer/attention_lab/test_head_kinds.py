"""Kinds of heads against plain loops; rollout and pairs against the formulas."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.attention_lab.ablation import compute_ablation, scan_heads
from explorer.attention_lab.head_kinds import (
    KINDS,
    compute_head_kinds,
    compute_pair,
    compute_random_maps,
    compute_rollout,
    rank_heads,
    score_kinds,
)
from explorer.attention_lab.kv_cache import trace_decoding
from explorer.attention_lab.masks import MaskSettings, build_mask, run_masked
from explorer.attention_lab.patching import compute_patching
from explorer.attention_maps import compute_attention, compute_patterns, read_ids
from explorer.errors import ConfigError, WeightError
from models import Trace
from tests.explorer.attention_lab.conftest import open_tiny

TEXT = "abcab abca, ab"


def by_loops(pattern, ids):
    """The definitions, one weight after the other."""
    n, found = len(ids), {kind: [] for kind in KINDS}
    for t in range(1, n):
        row = pattern[t]
        found["previous"].append(row[t - 1])
        found["first"].append(row[0])
        found["self"].append(row[t])
        copies = [s for s in range(t) if ids[s] == ids[t]]
        if copies:
            found["duplicate"].append(sum(row[s] for s in copies))
        after = [s + 1 for s in copies if s + 1 < t]
        if after:
            found["induction"].append(sum(row[s] for s in after))
        if t >= 8:
            found["local"].append(sum(row[t - 7 : t + 1]))
        found["entropy"].append(-sum(w * math.log(w) for w in row if w > 0))
        found["distance"].append(sum(w * (t - s) for s, w in enumerate(row)))
    return {kind: np.mean(values) if values else math.nan for kind, values in found.items()}


def test_kinds_equal_the_definitions(llama):
    maps = compute_attention(llama, TEXT)
    found = compute_head_kinds(maps).scores
    for layer in range(2):
        patterns = compute_patterns(maps, layer).astype(float)
        for head in range(6):
            expected = by_loops(patterns[head].tolist(), maps.ids)
            for kind in KINDS:
                assert found[kind][layer, head] == pytest.approx(expected[kind], rel=1e-5), kind


def test_a_perfect_induction_head_scores_one_and_a_text_without_copies_nothing():
    ids = (5, 6, 7, 5, 6, 7)
    pattern = np.zeros((1, 6, 6), np.float32)
    pattern[0, range(6), [0, 0, 0, 1, 2, 3]] = 1
    scores = score_kinds(pattern, ids)
    assert scores["induction"] == pytest.approx([1])
    assert scores["duplicate"] == pytest.approx([0])
    assert np.isnan(score_kinds(pattern, (1, 2, 3, 4, 5, 6))["induction"]).all()
    one = score_kinds(np.ones((1, 1, 1), np.float32), (3,))
    assert all(np.isnan(one[kind]).all() for kind in KINDS)


def test_the_random_row_comes_twice(llama):
    maps = compute_random_maps(llama, half_tokens=9, seed=2)
    assert maps.ids[:9] == maps.ids[9:]
    assert len(set(maps.ids)) == 9
    assert compute_random_maps(llama, half_tokens=64).ids[:30] != maps.ids  # cut to the context


def test_heads_are_ranked_and_those_without_a_score_left_out():
    scores = np.array([[0.1, np.nan], [0.7, 0.3]])
    found = [(head.layer, head.head) for head in rank_heads(scores)]
    assert found == [(1, 0), (1, 1), (0, 0)]
    assert len(rank_heads(scores, least=0.2)) == 2


def test_rollout_multiplies_the_layers(llama):
    maps = compute_attention(llama, TEXT)
    n = len(maps.ids)
    expected = np.eye(n)
    for layer in range(2):
        mixed = 0.5 * compute_patterns(maps, layer).mean(0) + 0.5 * np.eye(n)
        expected = mixed @ expected
    found = compute_rollout(maps, 1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)


def test_the_vectors_of_a_pair_give_its_score_and_weight(llama, golden_folder):
    maps = compute_attention(llama, TEXT)
    pair = compute_pair(maps, 1, 4, 9, 3)
    trace = Trace(record=("blocks.1.attn.*",))
    llama.model(torch.tensor([maps.ids]), trace=trace)
    assert pair.score == pytest.approx(float(trace["blocks.1.attn.scores"][0, 4, 9, 3]), abs=1e-5)
    assert pair.weight == pytest.approx(float(trace["blocks.1.attn.pattern"][0, 4, 9, 3]), abs=1e-5)
    assert pair.capped == pair.score
    capped = open_tiny(golden_folder / "gemma2")
    ids = capped.tokenizer.encode(TEXT)
    trace = Trace(record=("blocks.0.attn.scores",))
    capped.model(torch.tensor([ids]), trace=trace)
    found = compute_pair(compute_attention(capped, TEXT), 0, 1, 9, 3)
    expected = float(trace["blocks.0.attn.scores"][0, 1, 9, 3])
    assert found.capped == pytest.approx(expected, abs=1e-5)
    assert found.score != pytest.approx(expected, abs=1e-5)
    trace = Trace(record=("blocks.1.attn.*",))
    llama.model(torch.tensor([maps.ids]), trace=trace)
    assert np.array_equal(pair.value, trace["blocks.1.attn.v"][0, 2, 3].numpy())
    with pytest.raises(ConfigError, match="no token 99"):
        compute_pair(maps, 1, 4, 99, 0)


def test_numbers_that_went_wrong_name_the_first_layer(llama):
    def spoil(name):
        model = copy.deepcopy(llama.model)
        with torch.no_grad():
            model.get_parameter(name).view(-1)[:50] = float("nan")
        return replace(llama, model=model)

    nothing = build_mask(MaskSettings(), 7)
    analyses = {
        "maps": lambda loaded: compute_attention(loaded, TEXT),
        "ablation": lambda loaded: compute_ablation(loaded, TEXT, (), n_new=0),
        "scan": lambda loaded: next(scan_heads(loaded, TEXT)),
        "patching": lambda loaded: next(compute_patching(loaded, "abc", "xbc")),
        "masks": lambda loaded: run_masked(
            loaded, [1, 2, 3, 4, 5, 6, 7], "abcdefg", (nothing,) * 2, layer=0, head=0
        ),
        "cache": lambda loaded: trace_decoding(loaded, TEXT, layer=0, head=0, n_new=1),
    }
    for analysis in analyses.values():
        with pytest.raises(WeightError, match="layer 0 computes NaN"):
            analysis(spoil("blocks.0.ffn.down_proj.weight"))
    with pytest.raises(WeightError, match="layer 1 computes NaN"):
        analyses["maps"](spoil("blocks.1.attn.k_proj.weight"))
    with pytest.raises(WeightError, match="the embedding has NaN"):
        read_ids(spoil("embed.weight"), [0, 2, 3])
    with pytest.raises(WeightError, match="last norm or the head computes NaN"):
        analyses["ablation"](spoil("final_norm.weight"))
