"""Text table: rows of texts that wrap, with a search box: data sets, answers side by side."""

import gradio as gr

from components.kit.views import build_view
from components.text import Words

# Rows that travel to the page at once; the search box looks through these.
MOST_ROWS = 1_000
_TEMPLATE = """
<div class="body" hidden><div class="top"><input class="search" type="search">
<span class="count" role="status"></span></div>
<div class="pane" role="region" tabindex="0"><table><thead><tr class="columns"></tr></thead>
<tbody class="lines"></tbody></table></div>
<button class="button further" type="button" hidden></button></div>
"""


def build_text_table(words: Words, *, elem_id: str, clickable: bool = False) -> gr.HTML:
    """Build a table of texts.

    Its value is `{"cols": [text], "rows": [[text]], "total": rows in all, "marks": {row: {column:
    "good" or "bad"}}}`, or None; the last two may be missing.

    Event `row_click` where it is clickable: `event.index`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        clickable: Whether a row can be pressed.

    Returns:
        The component.
    """
    return build_view("text_table", words, template=_TEMPLATE, elem_id=elem_id, clickable=clickable)
