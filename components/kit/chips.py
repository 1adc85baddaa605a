"""Token chips: the text as the model reads it, one chip for each unit.

A unit is a grapheme or longer: where one character is cut into several tokens (`玛` is three
bytes, and may be three tokens), the chip stands for all of them.
"""

from collections.abc import Sequence
from typing import Any, Literal

import gradio as gr

from components.kit.views import build_view
from components.text import Words

ChipMode = Literal["plain", "probability", "weight"]

_TEMPLATE = """
<div class="legend" hidden><span class="quantity"></span><span class="low"></span>
<span class="ramp"></span><span class="high"></span></div>
<div class="chips" role="listbox" tabindex="-1"></div>
<div class="foot" hidden><button class="button copy" type="button" hidden></button>
<button class="button copy-text" type="button" hidden></button>
<button class="button copy-json" type="button" hidden></button><span class="more"></span></div>
<div class="readout"></div>
<div class="lanes" hidden><span class="name-ids"></span><div class="lane lane-ids"></div>
<span class="name-bytes"></span><div class="lane lane-bytes"></div></div>
<div class="popover" popover="manual"></div>
"""


def build_token_chips(
    words: Words,
    *,
    elem_id: str,
    mode: ChipMode = "plain",
    readout: Literal["below", "popover", "aside"] = "below",
    copy: bool = False,
    lanes: bool = False,
    value: dict[str, Any] | str | None = None,
    weights: Sequence[float] = (),
    selected: int = -1,
) -> gr.HTML:
    """Build a row of token chips.

    Its value is `{"units": [...], "more": tokens not shown, "total": tokens in all}`, with optional
    `"ids_from"` (id of published bytes with all ids as JSON, for the copy button, where some units
    are not shown). A unit is `{"t": text, "ids": [id]}` and, as known, `"hex": ["e7 8e"]` (bytes of
    each token, where the text does not tell them), `"special": true`, `"p"` (probability 0 to 1),
    `"rank"` (1 is the likeliest) and `"alt": [[text, p], ...]`.

    A value that grows while it is looked at is a text instead, with the JSON of one unit a line: of
    a text Gradio sends only the new end, and the page draws only what is new.

    Weights change alone: return `update_view(weights=[one for each unit], selected=index)`.

    Event `token_click`: the handler annotates `event: gr.EventData` and reads `event.index`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        mode: What the colour means: nothing (six in turn), `p`, or `w`.
        readout: Where a unit's details appear: in a fixed place below, or beside the chip; on a
            phone, `popover` is at the bottom of the screen, and `aside` nowhere, for pages that
            answer a click with the same and more.
        copy: Whether a button copies the ids as a JSON list.
        lanes: Whether ids and bytes also stand in rows of their own, linked with the chips, and
            buttons copy the text and both as JSON; a text that is not drawn whole is fetched from
            the bytes `"text_from"` of the value.
        value: What it shows first.
        weights: The first weights.
        selected: The unit that is chosen first; -1 is none.

    Returns:
        The component.
    """
    return build_view(
        "chips",
        words,
        template=_TEMPLATE,
        value=value,
        elem_id=elem_id,
        mode=mode,
        readout=readout,
        copy=copy,
        lanes=lanes,
        weights=list(weights),
        selected=selected,
    )
