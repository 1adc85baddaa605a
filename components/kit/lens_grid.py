"""The logit lens as a table: a row for each layer, a column for each token, words in the cells."""

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = """
<div class="empty"></div>
<div class="line" hidden><label class="by"></label><select class="button choice"></select>
<span class="done" role="status"></span></div>
<div class="pane" tabindex="0" role="region" hidden><table><thead><tr class="heads"></tr></thead>
<tbody class="rows"></tbody></table></div>
"""


def build_lens_grid(words: Words, *, elem_id: str) -> gr.HTML:
    """Build the view.

    Its value is a text that grows, JSON a line: first `{"cols": [label], "corner": text, "stages":
    how many there will be, "at": column}`, then for each row `{"s": name, "t": [label], "p":
    [probability], "r": [rank of the followed token, 1 is first], "e": [nats]}`.

    Event `cell`, by click or Enter: `event.row` (0 is the first that came) and `event.column`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.

    Returns:
        The component.
    """
    return build_view("lens_grid", words, template=_TEMPLATE, elem_id=elem_id, target=elem_id)
