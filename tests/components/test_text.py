"""Words: the same keys and placeholders in every language, and every key that is used exists."""

import ast
import json
import re
import string
from pathlib import Path

import gradio as gr
import pytest

from components.text import CHINESE, ENGLISH, LOCALES, Words, load_words, locale_of

ROOT = Path(__file__).parent.parent.parent
TEXT = ROOT / "assets" / "text"
NAMES = sorted(path.stem for path in (TEXT / ENGLISH).glob("*.json"))
# A key in code: the name of a file of words, a dot, and a key, and nothing else in the string.
KEY = re.compile(rf"({'|'.join(NAMES)})\.[a-z][\w.-]*")
FILE_ENDINGS = (".json", ".js", ".css")


@pytest.fixture(scope="module")
def words() -> Words:
    return load_words()


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None}


@pytest.mark.parametrize("name", NAMES)
def test_languages_have_equal_keys_and_placeholders(name: str) -> None:
    texts = [json.loads((TEXT / locale / f"{name}.json").read_text("utf-8")) for locale in LOCALES]
    assert set(texts[0]) == set(texts[1])
    different = [k for k in texts[0] if placeholders(texts[0][k]) != placeholders(texts[1][k])]
    assert different == []


def test_no_file_exists_in_one_language_only() -> None:
    assert sorted(path.stem for path in (TEXT / CHINESE).glob("*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_chinese_is_translated(name: str) -> None:
    english, chinese = (
        json.loads((TEXT / locale / f"{name}.json").read_text("utf-8")) for locale in LOCALES
    )
    # Names and units stay as they are; a sentence of several words does not.
    same = [k for k, text in english.items() if text == chinese[k] and text.count(" ") > 3]
    assert same == []


def strings_in(path: Path) -> set[str]:
    text = path.read_text("utf-8")
    if path.suffix == ".js":
        return set(re.findall(r"[\"'`]([\w.-]+)[\"'`]", text))
    nodes = ast.walk(ast.parse(text))
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def test_every_key_that_code_uses_exists(words: Words) -> None:
    files = [*(ROOT / "components").rglob("*.py"), *(ROOT / "assets").rglob("*.js")]
    strings = {text for path in files for text in strings_in(path)}
    used = {text for text in strings if KEY.fullmatch(text) and not text.endswith(FILE_ENDINGS)}
    assert used, "the pattern of keys finds nothing any more"
    # A key may also be the start of several keys, filled up by the code.
    missing = {key for key in used if not words.has(key)}
    starts = {k for k in missing if any(name.startswith(k) for name in words.sentences[ENGLISH])}
    assert missing - starts == set()


def test_every_error_code_that_is_raised_has_a_sentence(words: Words) -> None:
    codes = set()
    for layer in ("models", "explorer", "components"):
        for path in (ROOT / layer).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call):
                    codes |= {
                        keyword.value.value
                        for keyword in node.keywords
                        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
                        if keyword.value.value is not None
                    }
    assert codes
    assert {code for code in codes if not words.has(f"errors.{code}")} == set()


def test_say_fills_placeholders_and_names_a_missing_key(words: Words) -> None:
    assert words.say(ENGLISH, "shell.time_left", duration="3 s") == "3 s left"
    assert words.say(CHINESE, "shell.time_left", duration="3 s") == "剩余 3 s"
    with pytest.raises(KeyError, match=r"shell\.nothing.*add it there"):
        words.say(ENGLISH, "shell.nothing")
    with pytest.raises(KeyError, match="duration"):
        words.say(ENGLISH, "shell.time_left")


def test_t_gives_a_handle_only_for_a_key_that_exists(words: Words) -> None:
    assert words.t("shell.open").key == "shell.open"
    with pytest.raises(KeyError):
        words.t("shell.nothing")


def test_gradio_gets_one_chinese_text_for_both_of_its_chinese_locales(words: Words) -> None:
    table = words.translations.translations_dict
    assert table["zh-CN"] == table["zh-TW"]
    assert table["zh-CN"]["shell.open"] == "打开"


def make_request(cookie: str | None, accepted: str) -> gr.Request:
    cookies = {} if cookie is None else {"glassbox_language": cookie}

    class Inner:
        headers = {"accept-language": accepted}

    Inner.cookies = cookies
    return gr.Request(request=Inner())


@pytest.mark.parametrize(
    ("cookie", "accepted", "locale"),
    [
        (None, "de-DE,de;q=0.9", ENGLISH),
        (None, "zh-HK,zh;q=0.9", CHINESE),
        (None, "", ENGLISH),
        ("en", "zh-CN", ENGLISH),
        ("zh-CN", "en-US", CHINESE),
    ],
)
def test_the_language_is_the_chosen_one_then_the_accepted_one(
    cookie: str | None, accepted: str, locale: str
) -> None:
    assert locale_of(make_request(cookie, accepted)) == locale


def test_a_call_without_a_request_reads_english() -> None:
    assert locale_of(None) == ENGLISH
