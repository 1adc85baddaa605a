"""Cards that say what went wrong or what may help, and the "What to look for" note."""

from typing import Any

import gradio as gr

from components.kit.views import build_view, pick_texts
from components.text import Words

_CARD = """
<div class="card" hidden>
<svg class="mark" viewBox="0 0 18 18" aria-hidden="true"><circle cx="9" cy="9" r="8"/>
<path class="letter" d="M9 8.2v4.6M9 5.2v.1"/>
<path class="cross" d="M6.2 6.2l5.6 5.6M11.8 6.2l-5.6 5.6"/></svg>
<div class="words">
<div class="title"></div><div class="text"></div><div class="remedy"></div></div>
<button class="close" type="button">&times;</button>
</div>
"""


def build_card(words: Words, *, elem_id: str, value: dict[str, str] | None = None) -> gr.HTML:
    """Build a card, hidden while its value is None.

    Its value is `{"kind": "error", "hint" or "info", "title": text, "text": text,
    "remedy": text}`; all but the kind may be missing. An error is read out at once. The reader can
    close it: event `dismiss`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        value: What it shows first.

    Returns:
        The component.
    """
    return build_view("card", words, template=_CARD, value=value, elem_id=elem_id)


def build_note(words: Words, key: str, *, elem_id: str) -> Any:
    """Build the "What to look for" text under a picture.

    Args:
        words: The sentences of the page.
        key: Full key of the text, such as `attention.look_for`. `code` in backquotes and words
            between asterisks are set apart.
        elem_id: Its id in the page.

    Returns:
        The component; it has no value.

    Raises:
        KeyError: No sentence has this key.
    """
    texts = pick_texts(words, {"text": key})
    return build_view("note", words, template='<p class="note"></p>', elem_id=elem_id, texts=texts)
