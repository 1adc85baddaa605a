"""Mistral's tekken.json: ids against tiktoken and transformers, and files that cannot be used."""

import base64
import json

import pytest
import tiktoken

from models.errors import TokenizerError
from models.tokenizers import load_tokenizer

# Mistral's own pattern: words end where small letters meet capitals, numbers are single digits
PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
JOINED = [b"th", b"the", b" the", b"in", b"ing", b" c", b" cat", b"\xc3\xa9", b"\xe4\xbd", b"12"]
NAMES = {0: "<unk>", 1: "<s>", 2: "</s>", 3: "[INST]", 4: "[/INST]", 11: "<pad>"}
TEXTS = (
    "",
    "the cat in the hat, singing 1234 times",
    "Café 你好 👩‍👩‍👧  \n\n  thE TheThing",
    " leading and trailing \t",
    "[INST]the[/INST] <SPECIAL_7>",
)


def tekken(**changes):
    tokens = [bytes([byte]) for byte in range(256)] + JOINED
    tokens += [b"never reached", b"nor this"]  # beyond the vocabulary that config states
    return {
        "config": {
            "pattern": PATTERN,
            "num_vocab_tokens": len(tokens),
            "default_vocab_size": 256 + len(JOINED) + 13,
            "default_num_special_tokens": 13,
            "version": "v7",
        },
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(tokens)
        ],
        "special_tokens": [
            {"rank": rank, "token_str": NAMES.get(rank, f"<SPECIAL_{rank}>"), "is_control": True}
            for rank in range(13)
        ],
        **changes,
    }


@pytest.fixture
def write(tmp_path):
    def write(content):
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / "tekken.json").write_text(text, encoding="utf-8")
        return tmp_path

    return write


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("special", [False, True])
def test_ids_equal_those_of_tiktoken(write, text, special):
    names = {NAMES.get(rank, f"<SPECIAL_{rank}>"): rank for rank in range(13)}
    ranks = {bytes([byte]): byte + 13 for byte in range(256)}
    ranks |= {token: 256 + 13 + i for i, token in enumerate(JOINED)}
    theirs = tiktoken.Encoding(
        "theirs", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=names
    )
    allowed = "all" if special else set()
    expected = theirs.encode(text, allowed_special=allowed, disallowed_special=())
    ours = load_tokenizer(write(tekken()))
    assert ours.encode(text, special=special) == expected
    assert ours.decode(expected) == text
    assert ours.vocab_size == 256 + len(JOINED) + 13


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_ids_equal_those_of_transformers(write, text):
    from transformers.integrations.mistral.tokenizer import MistralConverter

    folder = write(tekken())
    theirs = MistralConverter(str(folder / "tekken.json")).converted()
    expected = theirs.encode(text, add_special_tokens=False).ids
    assert load_tokenizer(folder).encode(text, special=True) == expected


def test_special_tokens_have_their_roles(write):
    ours = load_tokenizer(write(tekken()))
    assert (ours.bos_id, ours.eos_id, ours.pad_id, ours.adds_bos) == (1, 2, 11, True)
    assert ours.special_tokens["[INST]"] == 3
    assert ours.special_tokens["<SPECIAL_12>"] == 12


def test_the_first_files_name_no_special_tokens(write):
    content = tekken()
    del content["special_tokens"]
    ours = load_tokenizer(write(content))
    assert ours.special_tokens["[TOOL_CALLS]"] == 9
    assert ours.special_tokens["<SPECIAL_11>"] == 11
    assert (ours.bos_id, ours.eos_id, ours.pad_id) == (1, 2, None)
    assert ours.encode("[INST]", special=True) == [3]


def test_a_tokenizer_json_beside_it_is_read_first(write):
    folder = write(tekken())
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(TokenizerError, match="tokenizer.json"):
        load_tokenizer(folder)


def _changed(path, value):
    content = tekken()
    *way, last = path
    inside = content
    for key in way:
        inside = inside[key]
    inside[last] = value
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "tekken.json cannot be used"),
        ("[]", "tekken.json cannot be used"),
        ({}, "no config with a pattern"),
        (_changed(["config", "pattern"], "(("), "no regular expression"),
        (_changed(["config", "default_vocab_size"], 10**12), "default_vocab_size is 1000000000000"),
        (_changed(["config", "default_vocab_size"], 900), "does not hold the 887 tokens"),
        (_changed(["config", "default_num_special_tokens"], -1), "special_tokens is -1"),
        (_changed(["vocab", 7, "rank"], 8), "entry 7 of its vocab has the rank 8"),
        (_changed(["vocab", 7, "token_bytes"], "%%"), "entry 7 of its vocab is no base64"),
        (_changed(["vocab", 7, "token_bytes"], "AA=="), "given twice"),
        (_changed(["vocab", 7], "x"), "is no rank"),
        (_changed(["special_tokens", 3, "rank"], 2), "has the rank 2"),
        (_changed(["special_tokens", 3, "rank"], 99), "has the rank 99"),
        (_changed(["special_tokens", 3, "token_str"], "<s>"), "given twice"),
        (_changed(["special_tokens"], 5), "is no rank"),
    ],
)
def test_a_damaged_file_says_what_is_wrong(write, content, message):
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(write(content))
