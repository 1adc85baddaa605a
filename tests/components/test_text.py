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
CODE = [
    path for layer in ("models", "explorer", "components") for path in (ROOT / layer).rglob("*.py")
]
TREES = [ast.parse(path.read_text("utf-8")) for path in CODE]
SCRIPTS = sorted((ROOT / "assets").rglob("*.js"))


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
    for tree in TREES:
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Name) and call.func.id == "RowProblem":
                continue  # of a row of a data set: its words are the Fine-tune tab's
            found = [key.value for key in call.keywords if key.arg == "code"]
            codes |= {pattern_of(value) for value in found} - {None}
    assert codes
    known = words.of_file(ENGLISH, "errors")
    missing = {c for c in codes if not any(re.fullmatch(f"errors\\.{c}", key) for key in known)}
    assert missing == set()


def pattern_of(node: ast.expr) -> str | None:
    """A text in code as a pattern, with a group for each part that is filled in later."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if not isinstance(node, ast.JoinedStr):
        return None
    return "".join(
        "(.+)" if isinstance(n, ast.FormattedValue) else pattern_of(n) for n in node.values
    )


class Sayings:
    """What the code may say: its texts and names, and f-strings filled with them."""

    def __init__(self) -> None:
        self.texts = {text for path in SCRIPTS for text in strings_in(path)}
        self.patterns = set()
        for node in (node for tree in TREES for node in ast.walk(tree)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.texts |= {node.value, node.value.replace(" ", "_")}
            elif isinstance(node, ast.ClassDef):
                self.texts.add(node.name)  # titles of errors go by their class
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.texts.add(node.target.id)  # controls of a form go by their field
            elif isinstance(node, ast.JoinedStr):
                self.patterns.add(pattern_of(node))
        # Those that make a key, or a part of one: a letter or a dot, and nothing but such.
        self.patterns = {p for p in self.patterns if re.fullmatch(r"(\(\.\+\)|\\?[\w.-])+", p)}
        # A form's: its first part is the beginning of a key, so it has a dot of its own.
        self.patterns = {re.sub(r"^\(\.\+\)\\\.\(", r"(.+\\..+)\\.(", p) for p in self.patterns}
        self.patterns -= {p for p in self.patterns if not p.replace("(.+)", "").strip("\\-")}

    def contain(self, text: str, depth: int = 2) -> bool:
        if text in self.texts:
            return True
        found = (re.fullmatch(pattern, text) for pattern in self.patterns if depth)
        return any(all(self.contain(part, depth - 1) for part in f.groups()) for f in found if f)


def test_no_sentence_is_left_over(words: Words) -> None:
    sayings = Sayings()
    unused = {key for key in words.sentences[ENGLISH] if not sayings.contain(key)}
    # A script of the kit names the last part of the key only; the rest is the script's name.
    for path in (ROOT / "assets" / "kit").glob("*.js"):
        unused -= {f"kit.{path.stem}.{text}" for text in strings_in(path)}
    # Its property `what` is one of these.
    unused -= {"kit.pickers.layer", "kit.pickers.head"}
    assert unused == set()


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
