"""Well-known chat formats: when one stands in for a template, and what it writes."""

import base64
import json
import shutil

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from models.errors import TokenizerError
from models.registry import FAMILIES
from models.tokenizers import ChatTemplate, default_chat_template, load_tokenizer
from models.tokenizers.byte_table import byte_to_character

FORMATS = {family.name: family.chat_formats for family in FAMILIES}
TALK = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": " Hi "},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "And?"},
]


def make_tokenizer(folder, special, bos, eos, sentencepiece=False, characters=256):
    if sentencepiece:
        tokens = ["<unk>", *special, *(f"<0x{b:02X}>" for b in range(256)), "▁"]
        library = tokenizers.Tokenizer(
            models.BPE({t: i for i, t in enumerate(tokens)}, [], byte_fallback=True)
        )
        library.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        library.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
             decoders.Strip(" ", 1, 0)]
        )  # fmt: skip
    else:
        library = tokenizers.Tokenizer(
            models.BPE({c: i for i, c in enumerate(byte_to_character()[:characters])}, [])
        )
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        library.decoder = decoders.ByteLevel()
    library.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    folder.mkdir(exist_ok=True)
    library.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(f'{{"bos_token": "{bos}", "eos_token": "{eos}"}}')
    return load_tokenizer(folder)


LLAMA3_SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>",
                  "<|end_header_id|>", "<|eot_id|>"]  # fmt: skip
KINDS = {
    "llama3": (LLAMA3_SPECIAL, *LLAMA3_SPECIAL[:2]),
    "llama2": (["<s>", "</s>"], "<s>", "</s>", True),
    "mistral3": (["<s>", "</s>", "[INST]", "[/INST]"], "<s>", "</s>", True),
    "tekken": (["<s>", "</s>", "[INST]", "[/INST]"], "<s>", "</s>"),
    "gemma": (["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"], "<bos>", "<eos>"),
    "chatml": (["<|im_start|>", "<|im_end|>"], "<|im_end|>", "<|im_end|>"),
}


@pytest.fixture
def make(tmp_path):
    return lambda kind: make_tokenizer(tmp_path / kind, *KINDS[kind])


def choose(family, tokenizer, name="x-instruct", stop_ids=frozenset()):
    return default_chat_template(FORMATS[family], tokenizer, names=[name], stop_ids=stop_ids)


LLAMA3_TURN = "<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>"


@pytest.mark.parametrize(
    ("family", "kind", "name", "expected"),
    [
        (
            "Llama", "llama3", "Llama 3",
            "<|begin_of_text|>" + LLAMA3_TURN.format("system", "Be kind.")
            + LLAMA3_TURN.format("user", "Hi") + LLAMA3_TURN.format("assistant", "Yes.")
            + LLAMA3_TURN.format("user", "And?")
            + "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
        (
            "Llama", "llama2", "Llama 2",
            "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\n Hi [/INST] Yes. </s><s>[INST] And? [/INST]",
        ),
        ("Mistral", "llama2", "Mistral v1",
         "<s>[INST] Be kind.\n\n Hi  [/INST] Yes.</s>[INST] And? [/INST]"),
        ("Mistral", "mistral3", "Mistral v3",
         "<s>[INST]  Hi [/INST] Yes.</s>[INST] Be kind.\n\nAnd?[/INST]"),
        ("Mistral", "tekken", "Mistral v3 (tekken)",
         "<s>[INST] Hi [/INST]Yes.</s>[INST]Be kind.\n\nAnd?[/INST]"),
        (
            "Gemma", "gemma", "Gemma",
            "<bos><start_of_turn>user\nBe kind.\n\nHi<end_of_turn>\n<start_of_turn>model\n"
            "Yes.<end_of_turn>\n<start_of_turn>user\nAnd?<end_of_turn>\n<start_of_turn>model\n",
        ),
        *(
            (family, "chatml", "ChatML",
             "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n"
             "<|im_start|>assistant\nYes.<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n"
             "<|im_start|>assistant\n")
            for family in ("Llama", "Qwen", "Olmo")
        ),
    ],
)  # fmt: skip
def test_what_the_formats_write(make, family, kind, name, expected):
    chat = choose(family, make(kind))
    assert chat.format_name == name
    assert chat.render(TALK) == expected
    assert chat.render(TALK[1:2])


@pytest.mark.parametrize(
    ("family", "kind"),
    [("Llama", "llama2"), ("Mistral", "mistral3"), ("Mistral", "tekken"), ("Gemma", "gemma")],
)
@pytest.mark.parametrize("roles", [("user", "user"), ("assistant",), ("user", "system")])
def test_turns_out_of_order_are_refused(make, family, kind, roles):
    chat = choose(family, make(kind))
    with pytest.raises(TokenizerError, match="user and assistant take turns"):
        chat.render([{"role": role, "content": "x"} for role in roles])


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("Meta-Llama-3-8B-Instruct", True),
        ("meta-llama/Llama-2-7b-chat-hf", True),
        ("gemma-3-1b-it", True),
        ("x_CHAT.Q4_0", True),
        ("Meta-Llama-3-8B", False),
        ("italian-llama-3", False),
        ("chatty-uninstructed", False),
        ("", False),
    ],
)
def test_a_name_says_whether_a_model_chats(make, name, used):
    assert (choose("Llama", make("llama3"), name) is not None) is used


def test_a_stop_token_says_that_a_model_chats(make):
    tokenizer = make("llama3")
    end_of_turn = tokenizer.special_tokens["<|eot_id|>"]
    stops = frozenset({tokenizer.eos_id})
    assert choose("Llama", tokenizer, "base", stops) is None
    chat = choose("Llama", tokenizer, "base", stops | {end_of_turn})
    assert (chat.format_name, chat.stop_ids) == ("Llama 3", {end_of_turn})


@pytest.mark.parametrize(
    ("family", "kind"),
    [("GPT-2", "chatml"), ("Qwen", "llama3"), ("Gemma", "llama2"), ("Llama", "tekken"),
     ("Mistral", "gemma"), ("Olmo", "llama2")],
)  # fmt: skip
def test_no_format_without_its_tokens(make, family, kind):
    assert choose(family, make(kind)) is None


def test_own_template_has_no_format_name(make):
    chat = ChatTemplate("{{ x }}", make("chatml"))
    assert (chat.format_name, chat.stop_ids) == (None, frozenset())


def test_llama3_in_metas_layout(tmp_path):
    tokens = [bytes([byte]) for byte in range(256)]
    lines = [f"{base64.b64encode(token).decode()} {rank}" for rank, token in enumerate(tokens)]
    (tmp_path / "tokenizer.model").write_text("\n".join(lines))
    chat = choose("Llama", load_tokenizer(tmp_path))
    ids = chat.encode([{"role": "user", "content": "<|eot_id|>"}])
    assert [i - 256 for i in ids if i >= 256] == [0, 6, 7, 9, 6, 7]
    assert chat.stop_ids == {265}


@pytest.fixture
def folder(golden_folder, tmp_path):
    """A tiny Llama of 97 rows; 84 bytes, and special tokens from id 84 on."""
    folder = tmp_path / "tiny"
    shutil.copytree(golden_folder / "llama", folder)
    make_tokenizer(folder, [*LLAMA3_SPECIAL, "<picture>"], *LLAMA3_SPECIAL[:2], characters=84)
    return folder


def test_loading_uses_the_format_of_the_family(folder):
    from models import load_model

    config = json.loads((folder / "config.json").read_text())
    assert load_model(folder).chat is None
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [85, 88]}))
    loaded = load_model(folder)
    assert loaded.chat.format_name == "Llama 3"
    assert {85, 88} <= loaded.stop_ids
    (folder / "generation_config.json").unlink()
    named = folder.rename(folder.with_name("tiny-instruct"))
    loaded = load_model(named)
    assert loaded.chat.format_name == "Llama 3"
    assert 88 in loaded.stop_ids
    (named / "chat_template.jinja").write_text("own")
    loaded = load_model(named)
    assert (loaded.chat.source, loaded.chat.format_name) == ("own", None)
    assert config["vocab_size"] == 97


def test_loading_leaves_out_special_tokens_without_a_row(folder):
    from models import load_model

    more = [f"<picture{i}>" for i in range(8)]
    make_tokenizer(folder, LLAMA3_SPECIAL + more, *LLAMA3_SPECIAL[:2], characters=84)
    assert load_tokenizer(folder).vocab_size == 97
    make_tokenizer(folder, [*LLAMA3_SPECIAL, *more, "<no-row>"], *LLAMA3_SPECIAL[:2], characters=84)
    tokenizer = load_model(folder).tokenizer
    assert tokenizer.vocab_size == 97
    assert "<no-row>" not in tokenizer.special_tokens
    assert max(tokenizer.encode("A<no-row><picture7>", special=True)) == 96
    make_tokenizer(folder, LLAMA3_SPECIAL, *LLAMA3_SPECIAL[:2], characters=110)
    with pytest.raises(TokenizerError, match="the model only 97"):
        _ = load_model(folder).tokenizer
