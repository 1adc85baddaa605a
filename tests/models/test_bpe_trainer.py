"""Merges against the trainer of `tokenizers`, against plain counting, and against the textbook."""

import json
import random
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, models, pre_tokenizers, trainers

import models.tokenizers.bpe_words as words_module
from models.errors import TokenizerError
from models.tokenizers import iterate_merges, load_tokenizer, save_tokenizer, train_bpe
from models.tokenizers.rank_files import GPT2_WORDS, to_library_pattern

ROOT = Path(__file__).parent.parent.parent
CLASSIC = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def library_cutter(cutting, start):
    """Written anew, with GPT-2's pattern as OpenAI published it."""
    published = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    steps = [pre_tokenizers.Digits(individual_digits=True)] if cutting == "digits" else []
    if cutting != "whole":
        steps.append(pre_tokenizers.Split(Regex(published), behavior="isolated"))
    if start == "bytes":
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    return pre_tokenizers.Sequence(steps)


def train_library(text, vocab_size, *, cutting="gpt2", start="bytes", special=(), frequency=2):
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = library_cutter(cutting, start)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=frequency,
        special_tokens=list(special),
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if start == "bytes" else [],
    )
    library.train_from_iterator([text], trainer)
    return library


def assert_equal_to_library(text, vocab_size, **options):
    ours = train_bpe(
        text,
        vocab_size=vocab_size,
        pre_tokenizer=options.get("cutting", "gpt2"),
        start=options.get("start", "bytes"),
        special_tokens=options.get("special", ()),
        min_frequency=options.get("frequency", 2),
    )
    library = train_library(text, vocab_size, **options)
    model = json.loads(library.to_str())["model"]
    assert list(ours.merges) == [tuple(merge) for merge in model["merges"]]
    assert ours.vocab == model["vocab"]
    tokenizer = ours.to_tokenizer()
    sample = text[:3000]
    assert tokenizer.encode(sample) == library.encode(sample, add_special_tokens=False).ids
    assert tokenizer.decode(tokenizer.encode(sample)) == sample
    return ours


@pytest.fixture(scope="module")
def chinese():
    files = sorted((ROOT / "assets/text/zh-CN").glob("*.json"))
    return "\n".join(
        value for file in files for value in json.loads(file.read_text("utf-8")).values()
    )


def read(data_folder, name):
    return (data_folder / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("start", ["bytes", "characters"])
@pytest.mark.parametrize("vocab_size", [300, 517, 1500, 9000])
def test_the_verdict(data_folder, start, vocab_size):
    text = read(data_folder, "the-verdict.txt")
    assert_equal_to_library(text, vocab_size, start=start)


@pytest.mark.parametrize("cutting", ["gpt2", "digits", "whole"])
@pytest.mark.parametrize("start", ["bytes", "characters"])
def test_ways_to_cut(data_folder, cutting, start):
    text = read(data_folder, "the-verdict.txt")[:6000] + " 1234 1234 12, 12 34\n\n  x12y12"
    assert_equal_to_library(text, 500, start=start, cutting=cutting, frequency=1)


@pytest.mark.parametrize(("start", "vocab_size"), [("bytes", 3000), ("characters", 2500)])
def test_instructions(data_folder, start, vocab_size):
    text = read(data_folder, "instruction-data.json")
    assert_equal_to_library(text, vocab_size, start=start, special=["<|endoftext|>", "<|pad|>"])


@pytest.mark.parametrize("start", ["bytes", "characters"])
@pytest.mark.parametrize("vocab_size", [1300, 2000, 20000])
def test_chinese(chinese, start, vocab_size):
    assert len(chinese) > 5000
    assert_equal_to_library(chinese, vocab_size, start=start)


@pytest.mark.parametrize("start", ["bytes", "characters"])
@pytest.mark.parametrize("seed", range(60))
def test_random_strings(seed, start):
    """Few letters, so that ties, runs of one letter and tokens made in two ways are common."""
    chance = random.Random(seed)
    letters = chance.choice(["ab", "abc", "aab ", "abcdé ", "你好ab "])
    words = ["".join(chance.choices(letters, k=chance.randint(1, 14))) for _ in range(60)]
    text = " ".join(chance.choices(words, k=150))
    size = 256 + chance.randint(1, 150) if start == "bytes" else chance.randint(10, 150)
    cutting = chance.choice(["gpt2", "digits"])
    assert_equal_to_library(
        text, size, start=start, cutting=cutting, frequency=chance.choice([1, 2, 5])
    )


@settings(max_examples=50, deadline=None)
@given(text=st.text(min_size=1).map(lambda t: t.encode("utf-16", "ignore").decode("utf-16")))
def test_any_string(text):
    if text:
        assert_equal_to_library(text * 3, 320, frequency=1)


def test_the_pattern_cuts_as_the_published_one(data_folder):
    text = read(data_folder, "the-verdict.txt") + " don't I'LL 你好！ \t\n 12ab\n\n"
    cut = pre_tokenizers.Split(Regex(to_library_pattern(GPT2_WORDS)), behavior="isolated")
    expected = [word for word, _ in library_cutter("gpt2", "characters").pre_tokenize_str(text)]
    assert [word for word, _ in cut.pre_tokenize_str(text)] == expected
    counted = words_module.count_words([text], "gpt2")
    assert counted == Counter(expected)
    assert words_module.count_words([text], "whole") == {text: 1}


def test_the_classic_example():
    steps = list(iterate_merges(CLASSIC, vocab_size=20, start="characters", n_top_pairs=3))
    joins = [("".join(step.pair), step.count) for step in steps]
    assert joins[:2] == [("es", 9), ("est", 9)]
    assert sorted(joins[2:4]) == [("lo", 7), ("low", 7)]
    assert [(top.pair, top.count) for top in steps[0].top_pairs] == [
        (("e", "s"), 9), (("s", "t"), 9), (("w", "e"), 8)]  # fmt: skip
    # l o w ×5, l o w e r ×2, n e w e s t ×6, w i d e s t ×3 are 79 letters; "es" saves 9.
    assert [step.n_tokens for step in steps[:2]] == [70, 61]
    assert steps[1].bytes_per_token == 79 / 61
    vocabulary = train_bpe(CLASSIC, vocab_size=20, start="characters")
    assert list(vocabulary.vocab)[:10] == list("deilnorstw")
    assert vocabulary.to_tokenizer().encode("lowest") == [
        vocabulary.vocab["low"], vocabulary.vocab["est"]]  # fmt: skip


def plain_merges(words, n_steps):
    """The algorithm as the paper prints it: all pairs are counted again at every step."""
    symbols = {tuple(word): count for word, count in words.items()}
    ids = {symbol: i for i, symbol in enumerate(sorted({s for word in symbols for s in word}))}
    for _ in range(n_steps):
        counts = Counter()
        for word, count in symbols.items():
            for pair in pairwise(word):
                counts[pair] += count
        ranked = sorted(counts, key=lambda p: (-counts[p], ids[p[0]], ids[p[1]]))
        best = ranked[0]
        ids.setdefault("".join(best), len(ids))
        yield best, [(pair, counts[pair]) for pair in ranked[:10]]
        symbols = {join_plainly(word, best): count for word, count in symbols.items()}


def join_plainly(word, pair):
    joined = []
    for symbol in word:
        if joined and (joined[-1], symbol) == pair and len(joined[-1]) == len(pair[0]):
            joined[-1] = pair[0] + pair[1]
        else:
            joined.append(symbol)
    return tuple(joined)


def test_every_step_and_its_best_pairs_equal_plain_counting(data_folder):
    words = Counter(read(data_folder, "the-verdict.txt")[:5000].lower().split())
    steps = iterate_merges(words, vocab_size=2000, start="characters")
    for step, (pair, top) in zip(islice(steps, 150), plain_merges(words, 150), strict=True):
        assert step.pair == pair
        assert [(each.pair, each.count) for each in step.top_pairs] == top
        assert step.count == top[0][1]
        assert step.new_token == "".join(pair)


def test_looking_at_the_best_pairs_changes_nothing(data_folder):
    text = read(data_folder, "the-verdict.txt")
    seen = []
    watched = train_bpe(text, vocab_size=800, on_step=seen.append)
    assert watched == train_bpe(text, vocab_size=800)
    assert len(seen) == 800 - 256
    assert [step.step for step in seen] == list(range(1, 545))
    assert {len(step.top_pairs) for step in seen} == {10}
    tokens = watched.to_tokenizer().encode(text)
    assert seen[-1].n_tokens == len(tokens)
    assert seen[-1].bytes_per_token == len(text.encode()) / len(tokens)


def test_several_texts_are_joined_inside_each_only():
    one = train_bpe("abab", vocab_size=10, start="characters", pre_tokenizer="whole")
    two = train_bpe(["ab", "ab"], vocab_size=10, start="characters", pre_tokenizer="whole")
    assert ("ba" in one.vocab, "abab" in two.vocab) == (False, False)
    assert two.merges == (("a", "b"),)


def test_special_tokens_are_cut_out_and_come_first():
    special = ("<|endoftext|>", "<|pad|>")
    vocabulary = train_bpe("end end<|endoftext|>end end", vocab_size=400, special_tokens=special)
    assert [vocabulary.vocab[token] for token in special] == [0, 1]
    assert "<|" not in vocabulary.vocab
    tokenizer = vocabulary.to_tokenizer("mine")
    assert tokenizer.eos_id == 0
    assert tokenizer.encode("end<|pad|>", special=True) == [vocabulary.vocab["end"], 1]


def test_no_join_makes_a_special_token():
    vocabulary = train_bpe({"the": 9}, vocab_size=300, special_tokens=["the"])
    tokenizer = vocabulary.to_tokenizer()
    assert vocabulary.stopped_early
    assert 0 not in tokenizer.encode("the")
    assert tokenizer.decode(tokenizer.encode("the")) == "the"
    assert tokenizer.encode("the", special=True) == [0]


@pytest.mark.parametrize("start", ["bytes", "characters"])
def test_saved_and_loaded(tmp_path, data_folder, start):
    text = read(data_folder, "the-verdict.txt")
    tokenizer = train_bpe(
        text, vocab_size=600, start=start, special_tokens=["<|endoftext|>"]
    ).to_tokenizer()
    save_tokenizer(tokenizer, tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.special_tokens == tokenizer.special_tokens
    assert loaded.eos_id == tokenizer.eos_id == 0
    if start == "characters":
        with pytest.raises(TokenizerError, match="no token for '你'"):
            loaded.encode("你")
    else:
        assert loaded.decode(loaded.encode("你")) == "你"


@pytest.mark.slow
@pytest.mark.parametrize("start", ["bytes", "characters"])
def test_transformers_reads_it(tmp_path, data_folder, start):
    from transformers import AutoTokenizer

    text = read(data_folder, "the-verdict.txt")
    vocabulary = train_bpe(text, vocab_size=900, start=start, special_tokens=["<|endoftext|>"])
    tokenizer = vocabulary.to_tokenizer()
    save_tokenizer(tokenizer, tmp_path)
    theirs = AutoTokenizer.from_pretrained(str(tmp_path))
    assert theirs(text)["input_ids"] == tokenizer.encode(text)
    assert theirs.decode(theirs(text)["input_ids"]) == text


@pytest.mark.parametrize("text", ["", [], ["", ""], {}, {"": 3, "a": 0}])
def test_nothing_to_learn_from(text):
    with pytest.raises(TokenizerError, match="give the text"):
        train_bpe(text, vocab_size=300)


def test_a_vocabulary_smaller_than_its_start():
    with pytest.raises(TokenizerError, match="257 tokens.*choose 257 or more") as caught:
        iterate_merges("abc", vocab_size=256, special_tokens=["<x>"])  # at once, not later
    assert caught.value.facts == {"asked": 256, "needed": 257}
    exact = train_bpe("ababab", vocab_size=256)
    assert (exact.merges, exact.stopped_early) == ((), False)


def test_a_frequency_below_one():
    with pytest.raises(TokenizerError, match="choose 1"):
        train_bpe("abc", vocab_size=300, min_frequency=0)


@pytest.mark.parametrize("special", [("<a>", "<a>b"), ("<a>", "<a>"), ("",), ("a",)])
def test_special_tokens_that_contain_each_other(special):
    with pytest.raises(TokenizerError, match="choose another text"):
        train_bpe("a text", vocab_size=300, special_tokens=special)


def test_nothing_left_to_join_is_said():
    vocabulary = train_bpe("ab ab", vocab_size=1000)
    assert vocabulary.merges == (("a", "b"),)
    assert vocabulary.stopped_early
    assert vocabulary.asked_size == 1000


def test_a_long_word_is_learnt_and_an_endless_one_refused(monkeypatch):
    runs = train_bpe("ab" * 50_000, vocab_size=260)
    assert [len(token) for token in list(runs.vocab)[256:]] == [2, 4, 8, 16]
    monkeypatch.setattr(words_module, "_MOST_CHARACTERS", 1000)
    with pytest.raises(TokenizerError, match="word of 1001 characters") as caught:
        train_bpe("x " + "y" * 1000, vocab_size=300)
    assert caught.value.facts == {"found": 1001, "limit": 1000}


def test_half_characters_become_replacement_characters():
    assert "\ufffd" in train_bpe("\ud800a", vocab_size=9, start="characters").vocab
    assert train_bpe({"\ud800": 2}, vocab_size=300).merges[0] == ("¿", "½")


# letters, digits, signs, an accent apart, and blanks of all kinds: not all engines agree on \x1c
HARD_LETTERS = "ab1٣é\u0301。'! \n\t\r\x1c\x85\xa0\u3000\u200b"


@settings(max_examples=80, deadline=None)
@given(text=st.text(HARD_LETTERS, max_size=60), cutting=st.sampled_from(["gpt2", "digits"]))
def test_words_counted_in_parts_are_those_of_the_whole_text(text, cutting):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words_module, "_PART_CHARACTERS", 5)
        counts = Counter()
        done = list(words_module.count_words_by_parts([text], counts, cutting))
    cutter = library_cutter(cutting, "characters")
    assert counts == Counter(word for word, _ in cutter.pre_tokenize_str(text))
    assert done == sorted(set(done))
    assert (done or [0])[-1] == len(text)
