"""Ablation, scan and patching against whole passes with the same changes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from explorer.attention_lab.ablation import (
    ChangeSpec,
    compute_ablation,
    parse_changes,
    scan_heads,
)
from explorer.attention_lab.patching import PATCH_PAIRS, choose_pair, compute_patching
from explorer.errors import ConfigError, ContextError, Stopped
from models import Trace
from tests.explorer.attention_lab.conftest import LetterTokenizer

ROOT = Path(__file__).parents[3]
TEXT = "some text to read"


def loss_with(loaded, edits):
    ids = torch.tensor([loaded.tokenizer.encode(TEXT)])
    with torch.no_grad():
        logits = loaded.model(ids, trace=Trace(edits=edits))
    return float(functional.cross_entropy(logits[0, :-1], ids[0, 1:]))


def off(head):
    def edit(z):
        z[:, head] = 0
        return z

    return edit


def test_losses_are_those_of_cross_entropy(llama):
    changes = parse_changes("1.4, 0.ffn x 0.5")
    found = compute_ablation(llama, TEXT, changes, n_new=3)
    edits = {"blocks.1.attn.z": off(4), "blocks.0.ffn_out": lambda x: x * 0.5}
    assert found.loss == pytest.approx(loss_with(llama, {}), abs=1e-5)
    assert found.loss_changed == pytest.approx(loss_with(llama, edits), abs=1e-5)
    assert found.token_losses.shape == (2, len(TEXT) - 1)
    assert found.divergence_nats > 0
    assert (len(found.written), len(found.written_changed)) == (3, 3)


def test_no_change_changes_nothing(llama):
    found = compute_ablation(llama, TEXT, (), n_new=2)
    assert found.loss == found.loss_changed
    assert found.before == found.after
    assert found.written == found.written_changed


def test_the_scan_gives_each_head_what_a_whole_pass_gives(llama):
    states = list(scan_heads(llama, TEXT))
    assert [state.done for state in states] == [0, 6, 12]
    assert np.isnan(states[1].effects[1]).all()
    plain = loss_with(llama, {})
    for layer in range(2):
        for head in range(6):
            expected = loss_with(llama, {f"blocks.{layer}.attn.z": off(head)}) - plain
            assert states[-1].effects[layer, head] == pytest.approx(expected, abs=2e-5)


def test_patching_gives_what_a_whole_pass_gives(llama):
    clean, corrupt = "xbcdefgh?", "abcdefghi"
    final = list(compute_patching(llama, clean, corrupt))[-1]
    ids = [torch.tensor([llama.tokenizer.encode(text)]) for text in (clean, corrupt)]
    with torch.no_grad():
        kept = Trace(record=("blocks.1.resid_pre",))
        last = [llama.model(ids[0], trace=kept)[0, -1], llama.model(ids[1])[0, -1]]
        answer, other = (int(logits.argmax()) for logits in last)
        assert answer != other

        def put(x):
            x[:, 8] = kept["blocks.1.resid_pre"][:, 8]
            return x

        patched = llama.model(ids[1], trace=Trace(edits={"blocks.1.resid_pre": put}))[0, -1]
    d = [float(x[answer] - x[other]) for x in (*last, patched)]
    expected = (d[2] - d[1]) / (d[0] - d[1])
    assert final.restored[1, 8] == pytest.approx(expected, abs=1e-4)
    np.testing.assert_allclose(final.restored[:, 1:8].shape, (2, 7))
    assert np.abs(final.restored[0, 1:8]).max() < 1e-3  # those tokens are equal in both texts


def test_a_scan_can_be_stopped(llama):
    states = scan_heads(llama, TEXT, stopped=lambda: True)
    assert next(states).done == 0
    with pytest.raises(Stopped):
        next(states)


def test_changes_are_read_and_what_is_none_is_refused(llama):
    assert parse_changes(" L3.h1 \n 5.ffn x 0.5; 0.attn") == (
        ChangeSpec(layer=3, part="1", factor=0.0),
        ChangeSpec(layer=5, part="ffn", factor=0.5),
        ChangeSpec(layer=0, part="attn", factor=0.0),
    )
    for wrong in ("x", "1.", "1.mlp", "1.2 x y"):
        with pytest.raises(ConfigError, match="write 3.1"):
            parse_changes(wrong)
    for factor in ("99", "nan"):
        with pytest.raises(ConfigError, match="choose -10 to 10"):
            parse_changes(f"1.2 x {factor}")
    with pytest.raises(ConfigError, match="no head 6"):
        compute_ablation(llama, TEXT, parse_changes("0.6"))


def test_a_chinese_keyboard_separates_changes_too():
    expected = parse_changes("3.1, 5.ffn x 0.5, 0.attn")
    for mark in "，；、\u3000;\n":
        assert parse_changes(f"3.1{mark}5.ffn x 0.5{mark}0.attn") == expected
    assert parse_changes("3.1、5.ffn\u3000×\u30000.5，\u30000.attn\u3000") == expected


class WordTokenizer(LetterTokenizer):
    """A word a token, but for one that is several."""

    def _encode(self, text, special):
        words = text.replace("John", "J o h n").split()
        return [sum(word.encode()) % 97 for word in words]


def test_the_pair_to_patch_has_equally_many_tokens_and_two_answers(llama):
    assert choose_pair(llama) == PATCH_PAIRS[0]
    words = WordTokenizer(name="words", vocab_size=97, special_tokens={})
    chosen = choose_pair(replace(llama, tokenizer_or_error=words))
    assert chosen in PATCH_PAIRS[1:]


def test_the_starter_can_be_patched_between_the_pair_chosen_for_it():
    from models import load_model

    starter = load_model(ROOT / "assets" / "starter")
    clean, corrupt = choose_pair(starter)
    last = list(compute_patching(starter, clean, corrupt))[-1]
    assert (last.answer, last.other) == (" Luke", " Ella")
    assert np.isfinite(last.restored).all()


def test_texts_that_do_not_fit_are_refused(llama):
    with pytest.raises(ConfigError, match="longer text"):
        list(scan_heads(llama, "x"))
    with pytest.raises(ContextError, match="take a part"):
        compute_ablation(llama, "x" * 100, ())
    with pytest.raises(ConfigError, match="3 and 4 tokens"):
        list(compute_patching(llama, "abc", "abcd"))
    with pytest.raises(ConfigError, match="same token"):
        list(compute_patching(llama, "abc", "abc"))


@pytest.mark.slow
def test_the_head_scan_of_smollm2_finishes_and_ranks(smollm2_file):
    from models import load_model

    text = "When Mary and John went to the store, John gave a drink to Mary. " * 6
    states = list(scan_heads(load_model(smollm2_file), text))
    assert states[-1].done == states[-1].total == 270
    assert np.isfinite(states[-1].effects).all()
