"""Llama 3's tokenizer.model: ranks in a text file, and the special tokens that it does not hold."""

import base64
import json

import pytest

from models.errors import TokenizerError
from models.tokenizers import load_tokenizer

WORDS = [b" the", b"12", b"123", b"he", b" t"]


def write_ranks(folder, words=WORDS, **settings):
    """A small vocabulary of the same form: 256 bytes and a few words."""
    tokens = [bytes([byte]) for byte in range(256)] + sorted(words, key=len)
    lines = [f"{base64.b64encode(token).decode()} {rank}" for rank, token in enumerate(tokens)]
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.model").write_text("\n".join(lines) + "\n")
    for name, values in settings.items():
        (folder / f"{name}.json").write_text(json.dumps(values))
    return folder


def test_special_tokens_of_llama3(tmp_path):
    ours = load_tokenizer(write_ranks(tmp_path))
    first = 256 + len(WORDS)
    special = ours.special_tokens
    assert ours.vocab_size == first + 256 == len(special) + first
    expected = {
        "<|begin_of_text|>": 0,
        "<|end_of_text|>": 1,
        "<|reserved_special_token_0|>": 2,
        "<|reserved_special_token_3|>": 5,
        "<|start_header_id|>": 6,
        "<|end_header_id|>": 7,
        "<|reserved_special_token_4|>": 8,
        "<|eot_id|>": 9,
        "<|reserved_special_token_5|>": 10,
        "<|reserved_special_token_250|>": 255,
    }
    assert {text: special[text] - first for text in expected} == expected
    assert (ours.bos_id, ours.eos_id, ours.pad_id) == (first, first + 1, None)
    assert ours.adds_bos is True


@pytest.mark.parametrize(
    "settings",
    [
        {"params": {"use_scaled_rope": True}},
        {"config": {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}},
        {"config": {"rope_parameters": {"rope_type": "llama3", "factor": 32.0}}},
    ],
)
def test_special_tokens_of_llama31(tmp_path, settings):
    ours = load_tokenizer(write_ranks(tmp_path, **settings))
    first = 256 + len(WORDS)
    expected = {
        "<|finetune_right_pad_id|>": 4,
        "<|reserved_special_token_2|>": 5,
        "<|start_header_id|>": 6,
        "<|eom_id|>": 8,
        "<|eot_id|>": 9,
        "<|python_tag|>": 10,
        "<|reserved_special_token_3|>": 11,
        "<|reserved_special_token_247|>": 255,
    }
    assert {text: ours.special_tokens[text] - first for text in expected} == expected
    assert ours.pad_id == first + 4


@pytest.mark.parametrize(
    "settings",
    [{"params": {"use_scaled_rope": False}}, {"config": {"rope_scaling": None}}],
)
def test_plain_rotation_is_llama3(tmp_path, settings):
    ours = load_tokenizer(write_ranks(tmp_path, **settings))
    assert "<|eom_id|>" not in ours.special_tokens


def test_texts(tmp_path):
    ours = load_tokenizer(write_ranks(tmp_path))
    text = "a the 1234 你好 \n\n<|eot_id|>"
    assert ours.decode(ours.encode(text)) == text == ours.decode(ours.encode(text, special=True))
    assert ours.special_tokens["<|eot_id|>"] not in ours.encode(text)
    assert ours.encode(text, special=True)[-1] == ours.special_tokens["<|eot_id|>"]
    assert [ours.token_bytes(i) for i in ours.encode(" the1234")] == [b" the", b"123", b"4"]


def test_damaged_ranks(tmp_path):
    folder = write_ranks(tmp_path)
    path = folder / "tokenizer.model"
    whole = path.read_text()
    path.write_text(whole + "no rank\n")
    with pytest.raises(TokenizerError, match="line 262 is no token and rank"):
        load_tokenizer(folder)
    path.write_text("".join(whole.splitlines(keepends=True)[:100]))
    with pytest.raises(TokenizerError, match="156 of the 256 single bytes are missing"):
        load_tokenizer(folder)
