"""SentencePiece vocabularies, from tokenizer.model and GGUF, against the library itself."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import gguf
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import TokenizerError
from models.gguf_file import GgufFile
from models.tokenizers import StreamDecoder, load_gguf_tokenizer, load_tokenizer
from models.tokenizers.sentencepiece_file import (
    Piece,
    PieceKind,
    build_bpe_model,
    read_sentencepiece,
    write_sentencepiece,
)

TURN, TABLE, INST = "<start_of_turn>", "<table>", "[INST]"
SENTENCES = [
    "the quick brown fox jumps over the lazy dog",
    "the dog sees the fox and the fox sees the dog",
    "a quick dog, a lazy fox; they see the other one there",
] * 8


def train(**changes):
    options = {
        "model_type": "bpe",
        "vocab_size": 330,
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "user_defined_symbols": [TURN, TABLE, "\n\n"],
        "control_symbols": [],
        "num_threads": 1,
        "hard_vocab_limit": False,
        "minloglevel": 2,
    }
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=model, **options | changes
    )
    return model.getvalue()


@pytest.fixture(scope="module")
def plain():
    return train()


@pytest.fixture(scope="module")
def models(plain):
    """Like Llama 2, like Gemma, like Mistral v3, and one that changes texts."""
    return {
        "llama": plain,
        "gemma": train(add_dummy_prefix=False),
        "mistral": train(control_symbols=[INST]),
        "unigram": train(
            model_type="unigram",
            vocab_size=300,
            normalization_rule_name="nmt_nfkc",
            remove_extra_whitespaces=True,
        ),
    }


def save(data, folder, **config):
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.model").write_bytes(data)
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module", params=["llama", "gemma", "mistral", "unigram"])
def pair(request, models, tmp_path_factory):
    data = models[request.param]
    folder = save(data, tmp_path_factory.mktemp(request.param))
    return load_tokenizer(folder), sentencepiece.SentencePieceProcessor(model_proto=data)


PIECES = ("the", " the", "Fox ", "é", "你好", "\n", "\n\n", " ", "   ", "▁", "\0", "👨‍👩‍👧",
          "<0x0A>", TABLE, "</s>", "\ue000", "\r\n\t", "\u0301")  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4))).map("".join)


@settings(max_examples=50, deadline=None)
@given(text=texts)
def test_plain_text_equals_the_library(pair, text):
    ours, library = pair
    assert ours.encode(text) == library.encode(text)


@settings(max_examples=50, deadline=None)
@given(text=texts, special=st.booleans())
def test_any_text_survives(models, tmp_path_factory, text, special):
    for name in ("llama", "gemma", "mistral"):
        ours = cached(models[name], tmp_path_factory)
        ids = ours.encode(text, special=special)
        # "▁" is how a space is written, so that this one character cannot be told from it.
        expected = text.replace("▁", " ")
        stream = StreamDecoder(ours)
        streamed = "".join(map(stream.push, ids)) + stream.flush()
        if special:  # a piece behind a special token begins with a space of its own, as in Llama 2
            gone = dict.fromkeys(map(ord, " "))
            assert ours.decode(ids).translate(gone) == expected.translate(gone)
            assert streamed.translate(gone) == expected.translate(gone)
        else:
            assert ours.decode(ids) == streamed == expected


_LOADED: dict = {}


def cached(data, factory):
    if data not in _LOADED:
        _LOADED[data] = load_tokenizer(save(data, factory.mktemp("m")))
    return _LOADED[data]


def test_facts(pair):
    ours, library = pair
    assert ours.vocab_size == library.vocab_size()
    assert (ours.bos_id, ours.eos_id, ours.pad_id, ours.adds_bos) == (1, 2, None, True)
    assert {"<s>", "</s>", "<unk>", TURN} <= ours.special_tokens.keys()
    assert TABLE not in ours.special_tokens
    for i in range(ours.vocab_size):
        text = library.id_to_piece(i)
        expected = bytes.fromhex(text[3:5]) if library.is_byte(i) else text.encode()
        assert ours.token_bytes(i) == expected.replace("▁".encode(), b" ")
    with pytest.raises(TokenizerError, match="not in the vocabulary"):
        ours.token_bytes(ours.vocab_size)


def test_special_tokens_are_parsed_only_when_asked(pair):
    ours, _ = pair
    for text, token in ours.special_tokens.items():
        assert ours.encode(text, special=True) == [token]
        assert token not in ours.encode(f"a{text}b") or text == "<unk>"
    assert ours.encode(TABLE)[-1] == ours.encode(TABLE, special=True)[-1]


@pytest.mark.parametrize(
    ("name", "legacy", "space"),
    [
        ("llama", None, True),
        ("llama", False, False),
        ("mistral", None, False),
        ("mistral", True, True),
        ("gemma", None, False),
    ],
)
def test_space_after_a_special_token(models, tmp_path, name, legacy, space):
    config = {} if legacy is None else {"legacy": legacy}
    ours = load_tokenizer(save(models[name], tmp_path, **config))
    library = sentencepiece.SentencePieceProcessor(model_proto=models[name])
    with_space, without = library.piece_to_id(["▁the", "the"])
    after = with_space if space else without
    first = without if name == "gemma" else with_space
    assert ours.encode("the") == [first]
    assert ours.encode("<s>the</s>the", special=True) == [1, after, 2, after]
    assert ours.encode_continuation("the") == [after]
    assert ours.decode(ours.encode(" the  dog ")) == " the  dog "


def test_settings_files_name_and_add_tokens(models, tmp_path):
    last = sentencepiece.SentencePieceProcessor(model_proto=models["llama"]).vocab_size()
    folder = save(
        models["llama"],
        tmp_path,
        add_bos_token=False,
        eos_token={"content": "<|end|>"},
        pad_token="<unk>",
        added_tokens_decoder={
            str(last): {"content": "<|end|>", "special": True, "rstrip": True},
            str(last + 1): {"content": "<think>", "special": False},
            str(last + 5): {"content": "<far>", "special": True},
        },
    )
    (folder / "added_tokens.json").write_text(json.dumps({"<|end|>": last, "old": last + 2}))
    ours = load_tokenizer(folder)
    assert (ours.eos_id, ours.pad_id, ours.adds_bos, ours.vocab_size) == (last, 0, False, last + 6)
    the = ours.encode("the")
    assert ours.encode("<|end|> \nthe", special=True) == [last, *the]
    assert ours.split_special("a<|end|> b") == ["a", "<|end|> ", "b"]
    assert last + 1 in ours.encode("the<think>the")
    assert last + 2 in ours.encode("old")
    assert last not in ours.encode("<|end|>")
    assert ours.token_bytes(last + 1) == b"<think>"
    with pytest.raises(TokenizerError, match="some may be unused"):
        ours.token_bytes(last + 4)
    assert ours.without_special_from(last + 1) is None
    smaller = ours.without_special_from(last + 5)
    assert smaller.vocab_size == last + 3
    assert max(smaller.encode("<far>", special=True)) < last


def test_usual_names_count_only_as_control_tokens(tmp_path):
    """Gemma has <bos> and <eos>; its <s> and </s> are tags of HTML."""
    data = train(
        bos_piece="<bos>", eos_piece="<eos>", user_defined_symbols=["<s>", "</s>"], pad_id=3
    )
    ours = load_tokenizer(save(data, tmp_path))
    assert (ours.bos_id, ours.eos_id, ours.pad_id) == (1, 2, 3)
    assert "<s>" not in ours.special_tokens


def test_settings_files_rename_pieces(models, tmp_path):
    table = sentencepiece.SentencePieceProcessor(model_proto=models["gemma"]).piece_to_id(TABLE)
    token = {"content": "<tool>", "special": True}
    ours = load_tokenizer(save(models["gemma"], tmp_path, added_tokens_decoder={str(table): token}))
    assert ours.encode("<tool>", special=True) == [table]
    assert table not in ours.encode(f"<tool>{TABLE}")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"eos_token": "<end>"}, "eos_token '<end>' is not in the vocabulary"),
        ({"added_tokens_decoder": [1]}, "added_tokens_decoder is no object"),
        ({"added_tokens_decoder": {"a": {"content": "x"}}}, "'a' is no token id"),
        ({"added_tokens_decoder": {"5": "x"}}, "added_tokens_decoder holds 'x'"),
        ({"added_tokens_decoder": {"9": {"content": "<s>", "special": True}}}, "tokenizer.model"),
    ],
)
def test_damaged_settings(models, tmp_path, config, problem):
    with pytest.raises(TokenizerError, match=problem):
        load_tokenizer(save(models["llama"], tmp_path, **config))


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 0.999))
def test_cut_off_files(models, tmp_path_factory, share):
    data = models["llama"]
    folder = save(data[: int(len(data) * share)], tmp_path_factory.mktemp("cut"))
    try:
        ours = load_tokenizer(folder)  # a cut between two tokens leaves a smaller vocabulary
    except TokenizerError as error:
        assert "again" in error.message  # noqa: PT017
    else:
        assert ours.vocab_size < 330


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 40, b"\x0a\xff\xff\xff\xff\x7f", b"\x0b", b"PK\3\4"]
)
def test_other_files(tmp_path, data):
    with pytest.raises(TokenizerError, match=r"tokenizer\.model cannot be used"):
        load_tokenizer(save(data, tmp_path))


def test_written_file_reads_back(models):
    for data in models.values():
        model = read_sentencepiece(data)
        again = read_sentencepiece(write_sentencepiece(model))
        assert (again.pieces, again.adds_space) == (model.pieces, model.adds_space)
        off = read_sentencepiece(write_sentencepiece(replace(model, adds_space=False)))
        assert off.adds_space is False


def write_gguf(path, model, **changes):
    """A GGUF file with this vocabulary, as llama.cpp converts it."""
    writer = gguf.GGUFWriter(path, "llama")
    values = {
        "model": "llama",
        "tokens": [piece.text for piece in model.pieces],
        "scores": [piece.score for piece in model.pieces],
        "token_type": [int(piece.kind) for piece in model.pieces],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "add_space_prefix": None if model.adds_space else False,
    } | changes
    adders = {str: writer.add_string, list: writer.add_array, int: writer.add_uint32}
    adders[bool] = writer.add_bool
    for key, value in values.items():
        if value is not None:
            adders[type(value)](f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return GgufFile(path)


@pytest.mark.parametrize("name", ["llama", "gemma", "mistral"])
def test_gguf_equals_the_library(models, tmp_path, name):
    library = sentencepiece.SentencePieceProcessor(model_proto=models[name])
    with write_gguf(tmp_path / "a.gguf", read_sentencepiece(models[name])) as file:
        ours = load_gguf_tokenizer(file)
    for text in ("the  quick fox", " lazy", "你好\0\n\n", f"<table>{TABLE}", "", "x" * 5000):
        assert ours.encode(text) == library.encode(text)
        assert ours.decode(ours.encode(text)) == text
    assert (ours.bos_id, ours.eos_id, ours.adds_bos) == (1, 2, True)
    assert ours.encode(f"<s>{TURN}", special=True) == [1, library.piece_to_id(TURN)]
    assert ours.strips_first_space is (name != "gemma")


@pytest.mark.parametrize(("scores", "expected"), [((-1, -2), [6, 5]), ((-2, -1), [3, 7])])
def test_gguf_joins_by_score_and_not_by_id(tmp_path, scores, expected):
    special = {"<unk>": PieceKind.UNKNOWN, "<s>": PieceKind.CONTROL, "</s>": PieceKind.CONTROL}
    pieces = [
        *(Piece(text, 0.0, kind) for text, kind in special.items()),
        *(Piece(text, -9.0, PieceKind.NORMAL) for text in "abc"),
        Piece("ab", float(scores[0]), PieceKind.NORMAL),
        Piece("bc", float(scores[1]), PieceKind.NORMAL),
    ]
    with write_gguf(tmp_path / "a.gguf", build_bpe_model(pieces, adds_space=False)) as file:
        assert load_gguf_tokenizer(file).encode("abc") == expected


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"scores": None}, "scores does not list"),
        ({"scores": [0.5]}, "scores does not list"),
        ({"token_type": [1] * 330}, "vocabulary cannot be used.*unk"),
        ({"token_type": [9] * 330}, "9 is not a valid PieceKind"),
        ({"bos_token_id": 10**6}, "bos token 1000000 is not one of"),
    ],
)
def test_gguf_vocabularies_that_cannot_be_used(plain, tmp_path, changes, problem):
    model = read_sentencepiece(plain)
    assert len(model.pieces) == 330
    with pytest.raises(TokenizerError, match=problem):
        load_gguf_tokenizer(write_gguf(tmp_path / "a.gguf", model, **changes))


def test_without_byte_tokens_unknown_characters_are_unknown(tmp_path):
    model = read_sentencepiece(train(byte_fallback=False, vocab_size=60))
    assert not any(piece.kind == PieceKind.BYTE for piece in model.pieces)
    data = write_sentencepiece(build_bpe_model(model.pieces, adds_space=True))
    ours = load_tokenizer(save(data, tmp_path))
    assert ours.encode("你")[-1] == 0
    assert ours.decode(ours.encode("你")) == "<unk>"


def test_threads_see_the_same(models, tmp_path):
    ours = load_tokenizer(save(models["mistral"], tmp_path))
    text = "the fox <s>你好 the" * 50
    expected = [ours.encode(text, special=s) for s in (False, True)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: ours.encode(text, special=bool(i % 2)), range(64)))
    assert found == expected * 32


@pytest.mark.slow
@pytest.mark.parametrize("text", [" " * 10**6, "a" * 10**6, "\ud800" * 1000, "你" * 10**5])
def test_long_and_odd_texts(models, tmp_path, text):
    ours = load_tokenizer(save(models["llama"], tmp_path))
    assert ours.decode(ours.encode(text)) == text.replace("\ud800", "\ufffd")
