"""The panel "space": tokens on their way through the residual stream, laid into a plane."""

from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.errors import wire
from components.kit.cards import build_note
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.plotly_panel import build_plotly_panel
from components.kit.working import build_working
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.tabs.layers.figures import ways_message
from components.text import locale_of
from explorer.inspector_snippets import make_space_snippet
from explorer.prompts import read_prompt
from explorer.residual_space import MOST_TOKENS, ResidualSpace, compute_residual_space
from explorer.snippets import source_file_of

FORMULA = r"""
$$\hat x_{l,t} = \frac{x_{l,t}}{|x_{l,t}|} \qquad
\text{plane: } \hat x V_{1,2}, \quad \hat X - \bar{\hat X} = U S V^{\top} \qquad
\cos = \hat x_{l,t} \cdot \hat x_{L,t}$$
"""

# What the panel shows when there is no text, or none that it can read.
NOTHING: tuple[Any, ...] = ("", *[None] * 4, dict(NO_EXPORTS))


def build(asking: Asking) -> gr.Checkbox:
    """Build the panel and connect its events; returns its switch.

    Args:
        asking: The question of the tab.
    """
    words, t = asking.ctx.words, asking.ctx.words.t
    scaled = gr.Checkbox(
        True, label=t("layers.scaled"), info=t("layers.scaled_info"), elem_id="space-scaled"
    )
    said = build_line(words, elem_id="space-said", look="help")
    chart = build_plotly_panel(
        words, elem_id="space-chart", label_key="layers.space_label", height=520
    )
    gr.HTML(t("layers.cosines"), elem_classes=["heading"])
    cosines = build_number_matrix(words, elem_id="space-cosines")
    working = build_working(words, elem_id="space-working", formula=FORMULA, png="space-chart")
    build_note(words, "layers.look_for_space", elem_id="space-note")
    ctx, held = asking.ctx, asking.held["space"]
    on = SpaceHandlers(asking)
    drawer = [working.facts, working.table, working.exports]
    outputs = [said, chart, cosines, *drawer]
    events = [held.change, scaled.input]
    options = {**asking.options, "nothing": NOTHING}
    wire(events, on.look, [held, scaled, ctx.owner], outputs, **options)
    expose(on.layers_space, "layers_space")
    return scaled


class SpaceHandlers:
    """Handlers of the panel's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._ctx = asking.ctx

    def look(
        self, ask: Ask, scaled: bool, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """Lay the stream into a plane."""
        if not ask.text:
            return NOTHING
        locale = locale_of(request)
        found = self._compute(ask.source, ask.text, scaled, owner, request)
        explained = f"{sum(found.explained):.0%}"
        return (
            self._ctx.words.say(
                locale,
                "layers.space_said",
                model=found.model_name,
                n=len(found.labels),
                share=explained,
            ),
            ways_message(self._ctx.words, locale, found),
            self._numbers(found, found.cosines, locale, shade=1.0),
            {
                "tensor": "blocks.*.resid_post",
                "shape": list(found.cosines.shape),
                "file": source_file_of(compute_residual_space),
                "test": "tests/explorer/test_inspector_texts.py",
            },
            self._numbers(found, found.lengths, locale),
            {
                "csv": self._publish(found),
                "png": "space-chart",
                "python": make_space_snippet(ask.source, ask.text, scaled),
            },
        )

    def layers_space(self, text: str, request: gr.Request, scaled: bool = True) -> dict[str, Any]:
        """The stream of every token after every layer in a plane, and its cosines to the end."""
        found = self._compute(self._ctx.source_of(None), text, scaled, None, request)
        return {
            "tokens": list(found.labels),
            "stages": list(found.stages),
            "points": found.points.tolist(),
            "cosines": found.cosines.tolist(),
            "explained": list(found.explained),
        }

    def _compute(
        self, source: str, text: str, scaled: bool, owner: str | None, request: gr.Request
    ) -> ResidualSpace:
        ctx = self._ctx
        with ctx.store.lease(source, ctx.owner_of(owner, request)) as loaded:
            ids = read_prompt(loaded, text, most_tokens=MOST_TOKENS)
            return compute_residual_space(loaded, ids, scaled=scaled, turn=ctx.slots.turn)

    def _numbers(
        self, found: ResidualSpace, values: Any, locale: str, *, shade: float | None = None
    ) -> dict[str, Any]:
        more = {} if shade is None else {"shade": shade}
        return {
            "corner": self._ctx.words.say(locale, "layers.layer"),
            "rows": list(found.stages),
            "cols": [f"{i} {label}" for i, label in enumerate(found.labels)],
            "cells": [[float(v) for v in row] for row in values],
            "digits": 2,
            **more,
        }

    def _publish(self, found: ResidualSpace) -> str:
        n_stages, n_tokens = found.cosines.shape
        names = [f"{stage} {label}" for stage in found.stages for label in found.labels]
        flat = found.points.reshape(n_stages * n_tokens, 2)
        table = np.column_stack([flat, found.cosines.ravel(), found.lengths.ravel()])
        columns = ("first", "second", "cosine", "length")
        return self._ctx.routes.publish(table, row_labels=names, column_labels=columns)
