"""Examples: a row of "Try this" buttons."""

from collections.abc import Sequence

import gradio as gr

from components.kit.views import build_view, pick_texts
from components.text import Words

_TEMPLATE = '<div class="heading"></div><div class="row" role="group"></div>'


def build_examples(words: Words, keys: Sequence[str], *, elem_id: str) -> gr.HTML:
    """Build a row of buttons, each of which tries one example.

    Event `example`: `event.index`, the place of the example in `keys`.

    Args:
        words: The sentences of the page.
        keys: Full keys of the buttons' words, such as `attention.example_drink`; three are right.
        elem_id: Its id in the page.

    Returns:
        The component; it has no value.

    Raises:
        KeyError: No sentence has one of the keys.
    """
    texts = pick_texts(words, {f"example_{index}": key for index, key in enumerate(keys)})
    return build_view(
        "examples", words, template=_TEMPLATE, elem_id=elem_id, texts=texts, count=len(keys)
    )
