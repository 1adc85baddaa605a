"""What the Tokens tab computes: comparisons, training with its steps, windows, embeddings."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer as Library
from tokenizers import models as library_models
from tokenizers import pre_tokenizers, trainers

from explorer.embeddings import (
    ToySetup,
    compute_input_vectors,
    compute_toy_lookup,
    find_neighbours,
    map_tokens,
)
from explorer.errors import ConfigError, ExplorerError, Stopped, TokenizerError
from explorer.tokenizer_lab.before_bpe import compare_round_trips
from explorer.tokenizer_lab.bpe_training import BpeSetup, train_recorded, train_steps
from explorer.tokenizer_lab.comparison import compare_tokenizers, count_languages, count_words
from explorer.tokenizer_lab.extension import NEW_ROWS, compare_extended, grow_and_predict
from explorer.tokenizer_lab.kept import KeptTokenizers
from explorer.tokenizer_lab.merge_tree import compute_merge_tree
from explorer.tokenizer_lab.named import list_named, load_named
from explorer.tokenizer_lab.window_view import WindowSetup, compute_window_view, view_windows
from models.growing import NewRows
from models.tokenizers import train_bpe
from tests.components.tiny_chat import ByteTokenizer, build_tiny_chat

LOW = "\n".join(["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3)


@pytest.fixture(scope="module")
def gpt2():
    if "gpt2" not in list_named():
        pytest.skip("requirements-offline.txt is not installed")
    return load_named("gpt2")


# ------------------------------------------------------------------------------------ comparison
def test_counts_are_what_they_say(gpt2):
    text = "Hello, unfamiliar world! 你好"
    found = compare_tokenizers({"a": gpt2, "b": ByteTokenizer()}, text, context_length=50)
    ids = gpt2.encode(text)
    assert found[0].n_tokens == len(ids)
    assert found[0].characters_per_token == len(text) / len(ids)
    assert found[1].bytes_per_token == 1.0
    assert found[0].context_share == len(ids) / 50
    assert found[0].fertility * count_words(text) == pytest.approx(len(ids))
    assert found[0].is_exact
    assert count_words("I don't know, 3.5 times.") == 5
    with pytest.raises(TokenizerError, match="choose 1 to 4"):
        compare_tokenizers({}, text)


def test_ten_languages_counted_one_by_one(gpt2):
    costs = count_languages({"gpt2": gpt2, "bytes": ByteTokenizer()})
    assert len(costs.languages) == len(set(costs.texts)) == 10
    assert costs.counts["gpt2"] == tuple(len(gpt2.encode(text)) for text in costs.texts)
    assert costs.counts["bytes"] == tuple(len(text.encode()) for text in costs.texts)
    assert costs.premiums("gpt2")[0] == 1.0


# ---------------------------------------------------------------------------------------- merges
def test_the_tree_of_a_word_covers_it(gpt2):
    tree = compute_merge_tree(gpt2, "an unfamiliarword", word=1)
    assert tree.words == ("an", "·unfamiliarword")
    assert list(tree.ids) == gpt2.encode(" unfamiliarword")
    for step, parts in enumerate(tree.parts):
        assert "".join(tree.nodes[i].symbols for i in parts) == "Ġunfamiliarword"
        assert len(parts) == len("·unfamiliarword") - step
    for node in tree.nodes:
        if node.children:
            left, right = (tree.nodes[i] for i in node.children)
            assert left.symbols + right.symbols == node.symbols
            assert (left.start, right.end) == (node.start, node.end)
    with pytest.raises(TokenizerError, match="type one"):
        compute_merge_tree(gpt2, "")


def test_a_space_makes_another_word(gpt2):
    with_space, without = (compute_merge_tree(gpt2, text) for text in (" hello", "hello"))
    assert with_space.nodes[0].symbols == "Ġ"
    assert (with_space.ids, without.ids) == ((23748,), (31373,))


# -------------------------------------------------------------------------------------- training
@pytest.mark.parametrize("start", ["bytes", "characters"])
def test_training_is_that_of_the_library(start):
    text = Path("assets/samples/village.txt").read_text(encoding="utf-8")[:4_000]
    setup = BpeSetup(vocab_size=400, start=start, special_tokens="<|endoftext|>")
    mine = train_recorded(text, setup)
    theirs = Library(library_models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        min_frequency=2,
        special_tokens=["<|endoftext|>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if start == "bytes" else [],
    )
    if start == "characters":
        from tokenizers import Regex

        pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
        theirs.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    theirs.train_from_iterator([text], trainer)
    made = mine.vocabulary.to_tokenizer()
    assert made.to_json().count('"merges"') == 1
    assert dict(mine.vocabulary.vocab) == theirs.get_vocab()
    assert made.encode(text) == theirs.encode(text).ids


def test_low_lower_newest_widest_by_hand():
    training = train_recorded(LOW, BpeSetup(start="characters", special_tokens="", vocab_size=99))
    pairs = Counter()
    for word, times in (("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)):
        for pair in zip(word, word[1:], strict=False):
            pairs[pair] += times
    first = training.steps[0]
    assert (first.pair, first.count) == (("e", "s"), 9)
    assert {(p.pair, p.count) for p in first.top_pairs} <= set(pairs.items())
    assert [p.count for p in first.top_pairs] == [n for _, n in pairs.most_common(10)]
    assert [s.new_token for s in training.steps[:4]] == ["es", "est", "lo", "low"]
    assert training.vocabulary.stopped_early  # 99 tokens are more than the text allows
    assert training.sizes[-1] == len(training.vocabulary.vocab) == 23
    n_tokens = [training.n_start_tokens, *(s.n_tokens for s in training.steps)]
    assert training.compression == tuple(training.n_bytes / n for n in n_tokens)


def test_texts_and_settings_that_cannot_be_used():
    for text in ("", "   ", "\n\t"):
        with pytest.raises(TokenizerError, match="empty or blank"):
            train_recorded(text, BpeSetup())
    with pytest.raises(TokenizerError, match="choose 257 or more"):
        train_recorded("abc", BpeSetup(vocab_size=200))
    for wrong in ({"vocab_size": float("nan")}, {"start": "x"}, {"min_frequency": 0}):
        with pytest.raises(ConfigError, match="must be|choose bytes"):
            train_recorded("abc", BpeSetup(**wrong))
    same = train_recorded("a" * 5_000, BpeSetup(vocab_size=300))
    assert same.vocabulary.stopped_early
    assert same.steps[0].pair == ("a", "a")


def test_a_training_says_how_far_it_is_and_can_be_stopped():
    text = Path("assets/samples/village.txt").read_text(encoding="utf-8")[:4_000]
    setup, seen = BpeSetup(vocab_size=270), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.tokenizers.bpe_words._PART_CHARACTERS", 1_500)
        *told, training = train_steps(text, setup)
        with pytest.raises(Stopped):
            seen.extend(train_steps(text, setup, cancelled=lambda: len(seen) == 1))
    counted = [p.done for p in told if p.phase == "counting"]
    assert len(counted) == 3
    assert counted == sorted(counted)
    assert counted[-1] == len(text)
    assert [p.done for p in told if p.phase == "joining"] == list(range(1, 14))
    assert {p.total for p in told if p.phase == "joining"} == {270 - 256 - 1}
    assert (training.n_all_words, seen) == (train_recorded(text, setup).n_all_words, told[:1])


# ------------------------------------------------------------------------------------------ kept
def test_a_kept_tokenizer_is_its_owners_and_opens_in_the_library(tmp_path):
    kept = KeptTokenizers(tmp_path)
    training = train_recorded(LOW, BpeSetup(vocab_size=270))
    made = kept.keep(training.vocabulary.to_tokenizer(), "low words", "trained", "anna")
    assert [k.source for k in kept.list("anna")] == [made.source]
    assert kept.list("ben") == ()
    again = KeptTokenizers(tmp_path).open(made.source)
    library = Library.from_str(kept.read_json(made.source))
    assert again.encode("lowest\nlow") == library.encode("lowest\nlow").ids
    assert again.name == "low words"
    uploaded = kept.keep_files([next(tmp_path.glob("tokenizers/*/tokenizer.json"))], "ben")
    assert kept.open(uploaded.source).encode("lowest") == again.encode("lowest")


def test_files_that_are_no_tokenizer_leave_nothing_behind(tmp_path):
    kept = KeptTokenizers(tmp_path)
    bad = tmp_path / "tokenizer.json"
    for content in (b"{}", b"\xff\xfe", b'{"model": {"type": "WordPiece"}}', b""):
        bad.write_bytes(content)
        with pytest.raises(ExplorerError):
            kept.keep_files([bad], "anna")
    with pytest.raises(TokenizerError, match=r"upload one tokenizer\.json"):
        kept.keep_files([tmp_path / "x.png"], "anna")
    for source in ("kept:../../etc", "kept:", "kept:" + "A" * 22):
        with pytest.raises(TokenizerError, match="not there any more"):
            kept.open(source)
    assert list((tmp_path / "tokenizers").iterdir()) == []


# ---------------------------------------------------------------------------------- before pairs
def test_what_older_tokenizers_lose():
    trips = {t.kind: t for t in compare_round_trips("the cat, the hat", "the  cat sat")}
    assert trips["words"].error.code == "words-unknown"
    assert trips["words_unknown"].decoded == "the cat <|unk|>"
    assert trips["words_unknown"].n_unknown == 1
    assert trips["characters"].error.code == "tokenizer-character-unknown"
    assert trips["bytes"].is_exact
    assert trips["bytes"].ids == tuple(b"the  cat sat")


# ------------------------------------------------------------------------------------- extending
def test_a_grown_model_says_the_same_but_for_the_new_tokens():
    tokenizer = train_bpe("abcabd abc " * 9, vocab_size=259).to_tokenizer()
    loaded = replace(build_tiny_chat(), tokenizer_or_error=tokenizer)
    found = grow_and_predict(loaded, ["<new>"], "abc", rows="zero")
    assert (found.rows_before, found.rows_after) == (259, 260)
    assert found.old_rows_equal
    assert found.largest_logit_change < 1e-6  # another order of sums in a larger product
    with torch.inference_mode():
        ids = torch.tensor([tokenizer.encode("abc")])
        chances = loaded.model(ids)[0, -1].softmax(-1)
    assert found.before[0].id == int(chances.argmax())
    assert found.before[0].probability == pytest.approx(float(chances.max()))


def test_ids_before_and_after(gpt2):
    new = ("MyNewToken_1", "MyNewToken_2")
    found = compare_extended(gpt2, new, "MyNewToken_2")
    assert (found.after, found.new_ids[new[0]]) == ((50258,), 50257)
    assert len(found.before) > 1
    assert get_args(NewRows) == NEW_ROWS


# --------------------------------------------------------------------------------------- windows
def test_windows_of_the_verdict(gpt2, data_folder):
    text = (data_folder / "the-verdict.txt").read_text(encoding="utf-8")
    first, second = compute_window_view(gpt2, text, WindowSetup(context=4)).batches[:2]
    assert first.inputs.tolist() == [[40, 367, 2885, 1464]]
    assert first.targets.tolist() == [[367, 2885, 1464, 1807]]
    assert second.targets.tolist() == [[2885, 1464, 1807, 3619]]
    eight = compute_window_view(gpt2, text, WindowSetup(context=4, stride=4, batch_size=8))
    assert eight.batches[0].inputs[1].tolist() == [1807, 3619, 402, 271]
    overlapping = compute_window_view(gpt2, text, WindowSetup(context=8, stride=2, batch_size=4))
    assert overlapping.batches[0].inputs[:, 0].tolist() == [40, 2885, 1807, 402]
    assert (overlapping.overlap, overlapping.reads[:9]) == (6, (1, 1, 2, 2, 3, 3, 4, 4, 4))


def test_numbers_shuffled_as_the_loader_of_torch_does():
    ids = np.arange(1_001)
    setup = WindowSetup(context=4, stride=4, batch_size=2)
    plain = view_windows(ids, (), setup)
    assert (plain.n_windows, plain.n_batches, plain.n_unused) == (250, 125, 0)
    assert plain.batches[-1].inputs.tolist() == [[992, 993, 994, 995], [996, 997, 998, 999]]
    mixed = view_windows(ids, (), WindowSetup(context=4, stride=4, batch_size=2, shuffle=True))
    assert mixed.batches[-1].inputs[:, 0].tolist() == [880, 112]
    torch.manual_seed(123)
    rows = torch.arange(1_000).reshape(250, 4)
    loader = torch.utils.data.DataLoader(rows, batch_size=2, shuffle=True)
    assert mixed.batches[0].inputs.tolist() == next(iter(loader)).tolist()


def test_windows_that_cannot_be_cut(gpt2):
    with pytest.raises(ConfigError, match="needs 5"):
        compute_window_view(gpt2, "short", WindowSetup(context=4))
    for wrong in ({"context": 0}, {"stride": float("nan")}, {"batch_size": 2.5}, {"seed": -1}):
        with pytest.raises(ConfigError, match="whole number"):
            compute_window_view(gpt2, "a b c d e f g", WindowSetup(**wrong))


# ------------------------------------------------------------------------------------ embeddings
def test_lookup_is_one_hot_times_matrix():
    found = compute_toy_lookup([2, 3, 1], ToySetup(n_rows=4, n_columns=5))
    expected = [0.6957, -1.8061, -1.1589, 0.3255, -0.6315]
    assert np.allclose(found.product[0], expected, atol=5e-5)
    assert np.array_equal(found.product, found.rows)
    torch.manual_seed(123)
    matrix = torch.nn.Embedding(6, 3).weight.detach().numpy()
    six = compute_toy_lookup([3], ToySetup())
    assert np.array_equal(six.matrix, matrix)
    assert np.allclose(six.rows[0], [-0.4015, 0.9666, -1.1481], atol=5e-5)
    with pytest.raises(ConfigError, match="from 0 to 5"):
        compute_toy_lookup([6], ToySetup())


def test_neighbours_and_map_from_the_matrix_itself():
    loaded = build_tiny_chat()
    matrix = loaded.model.embed.weight.double()
    unit = matrix / matrix.norm(dim=1, keepdim=True)
    cosines = unit @ unit[70]
    found = find_neighbours(loaded, 70, n=5)
    best = sorted((i for i in range(259) if i != 70), key=lambda i: -float(cosines[i]))[:5]
    assert list(found.ids) == best
    assert np.allclose(found.cosines, [float(cosines[i]) for i in best], atol=1e-6)
    ids = [10, 20, 30, 40, 50]
    rows = matrix[ids].numpy()
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    plane = (rows - rows.mean(0)) @ vectors[:, [-1, -2]]
    drawn = map_tokens(loaded, ids)
    assert np.allclose(np.abs(drawn.points), np.abs(plane), atol=1e-6)
    assert np.allclose(drawn.explained, values[[-1, -2]] / values.sum(), atol=1e-9)
    with pytest.raises(ConfigError, match="3 to"):
        map_tokens(loaded, [5, 5, 5])
    with pytest.raises(ConfigError, match="choose 0 to 258"):
        find_neighbours(loaded, 259)


def test_input_is_token_plus_position():
    loaded = build_tiny_chat()
    found = compute_input_vectors(loaded, [5, 6, 7])
    assert found.kind == "rope"
    assert not found.positions.any()
    assert np.array_equal(found.inputs, loaded.model.embed.weight[[5, 6, 7]].numpy())
