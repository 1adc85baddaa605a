"""Attention maps against the model's own trace, and against transformers' eager attention."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.attention_maps import (
    check_index,
    compute_attention,
    compute_patterns,
    compute_scores,
    compute_thumbnails,
    find_strongest_keys,
)
from explorer.errors import ConfigError
from models import Trace, load_model


@pytest.fixture(scope="module")
def loaded(golden_folder):
    """The tiny Llama with a tokenizer whose ids are bytes, cut to its vocabulary."""
    from models.tokenizers import Tokenizer

    class LetterTokenizer(Tokenizer):
        def _encode(self, text, special):
            return [byte % 97 for byte in text.encode()]

        def _token_bytes(self, token):
            return bytes([token])

    return replace(
        load_model(golden_folder / "llama"),
        tokenizer_or_error=LetterTokenizer(name="letters", vocab_size=97, special_tokens={}),
    )


TEXT = "a short text to read"


def test_patterns_equal_those_of_the_models_own_eager_kernel(loaded):
    maps = compute_attention(loaded, TEXT)
    trace = Trace(record=("blocks.*.attn.pattern",))
    loaded.model(torch.tensor([maps.ids]), trace=trace)
    for layer in range(2):
        expected = trace[f"blocks.{layer}.attn.pattern"][0].numpy()
        np.testing.assert_allclose(compute_patterns(maps, layer), expected, atol=1e-5)


def test_scores_become_the_row_by_softmax(loaded):
    maps = compute_attention(loaded, TEXT)
    row = compute_patterns(maps, 1)[4, 9]
    scores = compute_scores(maps, 1, 4, 9).astype(np.float64)
    exponentials = np.exp(scores - scores.max())
    np.testing.assert_allclose(row[:10], exponentials / exponentials.sum(), atol=1e-6)
    assert (row[10:] == 0).all()


def test_rows_sum_to_one(loaded):
    patterns = compute_patterns(compute_attention(loaded, TEXT), 0)
    np.testing.assert_allclose(patterns.sum(-1), 1, atol=1e-6)


def test_long_texts_are_cut_and_say_so(loaded):
    maps = compute_attention(loaded, "x" * 100)
    assert (len(maps.ids), maps.n_left_out) == (61, 39)  # the model's context
    assert compute_attention(loaded, "x" * 100, most_tokens=7).n_left_out == 93


def test_a_window_of_a_long_text_is_what_the_model_reads_there(loaded):
    text = "".join(chr(97 + i % 26) for i in range(100))
    maps = compute_attention(loaded, text, first=30)
    assert (maps.first, len(maps.ids), maps.n_left_out) == (30, 61, 39)
    alone = compute_attention(loaded, text[30:91])
    np.testing.assert_array_equal(compute_patterns(maps, 1), compute_patterns(alone, 1))
    assert compute_attention(loaded, text, first=99).first == 39  # moved so that it is full
    assert compute_attention(loaded, "abc", first=2).first == 0


def test_grouped_heads_are_counted(loaded):
    maps = compute_attention(loaded, TEXT)
    assert (maps.n_layers, maps.n_heads, maps.n_kv_heads, maps.d_head) == (2, 6, 3, 10)


def test_one_token_is_a_map_of_one_cell(loaded):
    maps = compute_attention(loaded, "x")
    assert compute_patterns(maps, 0).tolist() == [[[1.0]]] * 6
    assert compute_thumbnails(compute_patterns(maps, 0)).tolist() == [[[255]]] * 6


def test_thumbnails_pool_by_the_maximum():
    patterns = np.zeros((2, 130, 130), dtype=np.float32)
    patterns[1, 129, 64] = 0.5
    small = compute_thumbnails(patterns, size=64)
    assert small.shape == (2, 44, 44)  # blocks of 3
    assert small[1, 43, 21] == 128
    assert small.sum() == 128


def test_strongest_keys_come_first_and_zeros_not_at_all(loaded):
    maps = compute_attention(loaded, "abcd")
    keys = find_strongest_keys(maps, np.array([0.1, 0.6, 0.0, 0.3], dtype=np.float32))
    assert [(k.position, round(k.weight, 1)) for k in keys] == [(1, 0.6), (3, 0.3), (0, 0.1)]
    assert keys[0].label == maps.labels[1]


def test_empty_text_and_indices_beyond_the_end_are_refused(loaded):
    with pytest.raises(ConfigError, match="type some"):
        compute_attention(loaded, "")
    maps = compute_attention(loaded, TEXT)
    with pytest.raises(ConfigError, match="choose 0 to 1"):
        compute_patterns(maps, 2)
    with pytest.raises(ConfigError, match="choose 0 to 5"):
        compute_scores(maps, 0, 6, 0)
    with pytest.raises(ConfigError, match="no token -1"):
        check_index("token", -1, 4)


@pytest.mark.slow
def test_smollm2_patterns_equal_transformers(smollm2_file):
    from transformers import LlamaConfig, LlamaForCausalLM

    loaded = load_model(smollm2_file)
    text = "When Mary and John went to the store, 玛丽 gave a drink 🦙 to John. " * 12
    maps = compute_attention(loaded, text, most_tokens=200)
    assert len(maps.ids) == 200
    config = LlamaConfig(
        vocab_size=49_152, hidden_size=576, intermediate_size=1_536, num_hidden_layers=30,
        num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=8_192,
        rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 1e5},
        tie_word_embeddings=True, attn_implementation="eager",
    )  # fmt: skip
    theirs = LlamaForCausalLM(config).eval()
    theirs.load_state_dict(_in_their_names(loaded), strict=False)
    with torch.no_grad():
        expected = theirs(torch.tensor([maps.ids]), output_attentions=True).attentions
    future = np.triu_indices(200, 1)
    for layer in range(30):
        found = compute_patterns(maps, layer)
        np.testing.assert_allclose(found, expected[layer][0].numpy(), atol=1e-5)
        np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
        assert (found[:, future[0], future[1]] == 0).all()


def _in_their_names(loaded):
    from models.hf_layout import hf_rules
    from models.weight_rules import save_weights

    weights = save_weights(
        hf_rules(loaded.config), dict(loaded.model.named_parameters()), loaded.config
    )
    return {**weights, "lm_head.weight": weights["model.embed_tokens.weight"]}
