"""How every view of the kit is made: a `gr.HTML` with a script and a style of our own.

A view called `chips` consists of `assets/kit/chips.js` and `assets/kit/chips.css`, a fixed HTML
template here, and its data in `value`. Scripts and styles of all views travel once, as two files
that `view_assets.py` puts together; a view in the page only calls its own.

Two rules keep user and model text from running as code. Gradio evaluates a template as JavaScript,
so templates hold no data at all. The scripts write text with `textContent` only.

What the scripts share is in `assets/kit/kit.js`, which `components/early_head.py` puts into the
page once, ahead of Gradio's scripts. `assets/kit/kit.css` goes in front of each style.

Listen to the events of a view with `trigger_mode="always_last"`. Gradio's default, `once`, drops
an event that comes while the one before it is being answered: the last step of a playing stepper
would never arrive.

The words of both languages travel with the script, which picks by `navigator.language`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import gradio as gr

from components.kit.view_assets import KIT, read_file, read_sentences
from components.text import LOCALES, Words

__all__ = ["KIT", "build_view", "pick_texts", "read_sentences", "update_view"]

_QUOTED = re.compile(r"""(['"])([a-z]+(?:_[a-z]+)*)\1""")


def build_view(
    name: str,
    words: Words,
    *,
    template: str,
    value: Any = None,
    elem_id: str,
    elem_classes: Sequence[str] = (),
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
        elem_classes: Its classes, besides that of the view.
        texts: Further sentences for each locale, under the keys that the script asks for.
        **properties: Fixed settings that the script reads as `props.<name>`.

    Returns:
        The component. Its events are the names quoted in its script.
    """
    call = ", ".join(json.dumps(part) for part in (name, properties, dict(texts or {})))
    return gr.HTML(
        value=value,
        html_template=template,
        js_on_load=(
            f"glassboxViews.mount({call}, element, props, trigger, server, upload, watch);"
            f" // {_list_events(name)}"
        ),
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=[f"view-{name}", *elem_classes],
        **properties,
    )


@cache
def _list_events(name: str) -> str:
    """The words quoted in a script: Gradio knows an event by its name in `js_on_load`."""
    found = {match[2] for match in _QUOTED.finditer(read_file(f"{name}.js"))}
    return " ".join(f"'{word}'" for word in sorted(found))


def update_view(**changes: Any) -> Any:
    """What a handler returns to change properties of a view, its value only where it is among them.

    Args:
        **changes: `value` and properties by name.
    """
    return gr.update(**changes)


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
