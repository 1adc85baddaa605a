"""Number matrix: a small table of numbers, the twin of a figure for those who cannot see it."""

from typing import Any

import gradio as gr

from components.kit.views import build_view
from components.text import Words

# Rows that a tab puts into such a table; the CSV file has them all.
MOST_TABLE_ROWS = 50

_TEMPLATE = """
<div class="pane" role="region" tabindex="0" hidden><table>
<thead><tr class="columns"></tr></thead><tbody class="lines"></tbody></table></div>
<div class="foot" hidden><button class="button copy" type="button"></button></div>
"""


def build_number_matrix(
    words: Words, *, elem_id: str, value: dict[str, Any] | None = None
) -> gr.HTML:
    """Build a table of numbers.

    Its value is `{"rows": [text], "cols": [text], "cells": [[number, text or None]],
    "digits": 4}`; None is a masked cell, and `rows` may be empty. Optional: `"corner"` (the heading
    of the row labels), `"tokens"` (the columns whose text is that of tokens, as `[0]`: spaces in it
    are drawn as dots, in all other text they stay spaces), `"shade"` (the number that the fullest
    colour stands for; cells are not coloured without it), `"wide"` (texts wrap in place of being
    cut) and `"selected_row"`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        value: What it shows first.

    Returns:
        The component.
    """
    return build_view("number_matrix", words, template=_TEMPLATE, value=value, elem_id=elem_id)
