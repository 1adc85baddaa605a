"""Words of the page, by key, in every language.

Each file `assets/text/<locale>/<name>.json` is a flat mapping from key to sentence. A sentence is
asked for as `name.key`: `tokens.title` is the key `title` of `tokens.json`.

Two ways lead to the screen. `Words.t` gives a handle that Gradio translates in the browser: use it
for labels, buttons and headings. `Words.say` gives the sentence itself, with its placeholders
filled: use it where Python writes the text (cards, table headers, figures).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gradio as gr

ASSETS = Path(__file__).parent.parent / "assets"
ENGLISH = "en"
CHINESE = "zh-CN"
LOCALES = (ENGLISH, CHINESE)

# Set by the script that runs first in the page (assets/early.js).
LANGUAGE_COOKIE = "glassbox_language"


@dataclass(frozen=True)
class Words:
    """All sentences of the page.

    Args:
        sentences: For each locale, the mapping from `name.key` to the sentence.
    """

    sentences: Mapping[str, Mapping[str, str]]

    def t(self, key: str) -> Any:
        """Give a handle that Gradio translates in the browser.

        Args:
            key: `name.key` of a sentence without placeholders.

        Returns:
            The handle, accepted wherever Gradio takes a label or a text.

        Raises:
            KeyError: No sentence has this key.
        """
        self._find(ENGLISH, key)
        return self.translations(key)

    def say(self, locale: str, key: str, /, **values: object) -> str:
        """Give the sentence itself, with its placeholders filled.

        Args:
            locale: One of `LOCALES`.
            key: `name.key` of the sentence.
            **values: One value for each `{placeholder}`.

        Returns:
            The sentence in that language.

        Raises:
            KeyError: No sentence has this key, or a placeholder got no value.
        """
        return self._find(locale, key).format(**values)

    def has(self, key: str) -> bool:
        """Tell whether a sentence with this key exists in every language."""
        return all(key in self.sentences[locale] for locale in LOCALES)

    def of_file(self, locale: str, name: str) -> dict[str, str]:
        """Give all sentences of one file, by their full keys."""
        start = f"{name}."
        return {k: v for k, v in self.sentences[locale].items() if k.startswith(start)}

    @cached_property
    def translations(self) -> gr.I18n:
        """The table that `launch(i18n=...)` wants.

        Gradio knows `zh-CN` and `zh-TW` only; a reader of either gets our one Chinese text.
        """
        english = dict(self.sentences[ENGLISH])
        chinese = dict(self.sentences[CHINESE])
        return gr.I18n(**{"en": english, "zh-CN": chinese, "zh-TW": chinese})

    def _find(self, locale: str, key: str) -> str:
        sentence = self.sentences[locale].get(key)
        if sentence is None:
            name = key.partition(".")[0]
            raise KeyError(f"no sentence {key!r} in assets/text/{locale}/{name}.json; add it there")
        return sentence


def load_words(folder: Path = ASSETS / "text") -> Words:
    """Read the sentences of every language from disk.

    Args:
        folder: Holds one folder for each locale.

    Returns:
        The sentences, keyed `name.key`.
    """
    sentences: dict[str, dict[str, str]] = {}
    for locale in LOCALES:
        sentences[locale] = {}
        for path in sorted((folder / locale).glob("*.json")):
            entries = json.loads(path.read_text(encoding="utf-8"))
            sentences[locale].update({f"{path.stem}.{key}": text for key, text in entries.items()})
    return Words(sentences)


def locale_of(request: gr.Request | None) -> str:
    """Find the language of the visitor who sent a request.

    The cookie that the page sets counts first, then what the browser accepts. A request that is
    missing (a direct call, a test) reads English.

    Args:
        request: What Gradio hands to a handler.

    Returns:
        One of `LOCALES`.
    """
    if request is None or request.request is None:
        return ENGLISH
    chosen = request.cookies.get(LANGUAGE_COOKIE) or request.headers.get("accept-language", "")
    return CHINESE if chosen.lower().startswith("zh") else ENGLISH
