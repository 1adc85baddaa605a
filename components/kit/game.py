"""Guess the next token: the rounds are played in the page, and the score stays there."""

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = """
<div class="empty"></div>
<div class="board" hidden>
<div class="line"><span class="round"></span><span class="score" role="status"></span></div>
<p class="context"></p>
<div class="options" role="group"></div>
<div class="verdict" role="status"></div>
<button class="button next" type="button" hidden></button>
</div>
"""


def build_game(words: Words, *, elem_id: str) -> gr.HTML:
    """Build the view.

    Its value is `{"deal": fresh text, "rounds": [{"context": text, "options": [{"t": label, "p":
    probability, "came": bool}], "model": label, "right": bool}]}` or None.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.

    Returns:
        The component.
    """
    return build_view("game", words, template=_TEMPLATE, elem_id=elem_id, target=elem_id)
