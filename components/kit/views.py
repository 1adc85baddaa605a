"""How every view of the kit is made: a `gr.HTML` with a script and a style of our own.

A view called `chips` consists of `assets/kit/chips.js` and `assets/kit/chips.css`, read when the
page is built, a fixed HTML template here, and its data in `value`.

Two rules keep user and model text from running as code. Gradio evaluates a template as JavaScript,
so templates hold no data at all. The scripts write text with `textContent` only.

What the scripts share is in `assets/kit/kit.js`, which `components/early_head.py` puts into the
page once, ahead of Gradio's scripts. `assets/kit/kit.css` goes in front of each style, because
Gradio scopes styles to one component.

Listen to the events of a view with `trigger_mode="always_last"`. Gradio's default, `once`, drops
an event that comes while the one before it is being answered: the last step of a playing stepper
would never arrive.

The words of both languages travel as a property, and the script picks by `navigator.language`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from components.text import ASSETS, LOCALES, Words

KIT = ASSETS / "kit"


def build_view(
    name: str,
    words: Words,
    *,
    template: str,
    value: Any = None,
    elem_id: str,
    texts: Mapping[str, Mapping[str, str]] | None = None,
    **properties: Any,
) -> gr.HTML:
    """Build one view of the kit.

    Args:
        name: Of its files in `assets/kit`, and the first part of its keys in `kit.json`.
        words: The sentences of the page.
        template: Its HTML; fixed text, never with data in it.
        value: What it shows first; JSON.
        elem_id: Its id in the page.
        texts: Further sentences for each locale, under the keys that the script asks for.
        **properties: Fixed settings that the script reads as `props.<name>`.

    Returns:
        The component. Its events are the names quoted in its script.
    """
    sentences = {locale: read_sentences(words, locale, f"kit.{name}.") for locale in LOCALES}
    for locale, further in (texts or {}).items():
        sentences[locale].update(further)
    return gr.HTML(
        value=value,
        html_template=template,
        css_template=_read(KIT / "kit.css") + _read(KIT / f"{name}.css"),
        js_on_load=_keep({"words": sentences, **properties}) + _read(KIT / f"{name}.js"),
        apply_default_css=False,
        elem_id=elem_id,
        words=sentences,
        **properties,
    )


def update_view(**changes: Any) -> Any:
    """What a handler returns to change properties of a view, its value only where it is among them.

    Args:
        **changes: `value` and properties by name.
    """
    return gr.update(**changes)


def read_sentences(words: Words, locale: str, start: str) -> dict[str, str]:
    """Give the sentences whose key begins with `start`, under the rest of their key."""
    name = start.partition(".")[0]
    entries = words.of_file(locale, name).items()
    return {key.removeprefix(start): text for key, text in entries if key.startswith(start)}


def pick_texts(words: Words, keys: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Give sentences of any file to a view, in every language.

    Args:
        words: The sentences of the page.
        keys: For each name that the script asks for, the full key of the sentence.

    Returns:
        For each locale, the mapping from name to sentence.

    Raises:
        KeyError: No sentence has one of the keys.
    """
    return {
        locale: {name: words.sentences[locale][key] for name, key in keys.items()}
        for locale in LOCALES
    }


def _keep(properties: Mapping[str, Any]) -> str:
    """A line of script that puts properties back where they are missing.

    An event that leaves a `gr.HTML` as it is still sends it the properties `{"__type__": "update"}`
    (seen in Gradio 6.31), and a view that is not in the page yet, such as one in a closed drawer,
    loses its own through that.
    """
    fixed = json.dumps(properties)
    missing = "if (props[key] === undefined) props[key] = fixed"
    return f"for (const [key, fixed] of Object.entries({fixed})) {missing};\n"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
