"""The panel "attribution": what each part of the model adds to one logit."""

from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.errors import wire
from components.kit.cards import build_note
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.plotly_panel import build_plotly_panel
from components.kit.working import Working, build_working
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.tabs.layers.figures import heads_message, norms_message, parts_message
from components.tabs.layers.place import place_within, say_target
from components.text import locale_of
from explorer.attribution import MOST_TOKENS, Attribution, compute_attribution
from explorer.inspector_snippets import make_attribution_snippet
from explorer.prompts import read_prompt
from explorer.snippets import source_file_of

FORMULA = r"""
$$\text{logit}_w = u_w \cdot \mathrm{norm}(x) = \sum_{c} \frac{c \cdot (g \odot u_w)}
{\mathrm{rms}(x)} \qquad x = \sum_c c$$
"""

# What the panel shows when there is no text, or none that it can read.
NOTHING: tuple[Any, ...] = ("", "", *[None] * 6, dict(NO_EXPORTS))


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    said: gr.HTML
    sums: gr.HTML
    bars: gr.HTML
    heads: gr.HTML
    norms: gr.HTML
    neurons: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What every handler fills."""
        drawer = self.working
        views = [self.said, self.sums, self.bars, self.heads, self.norms, self.neurons]
        return [*views, drawer.facts, drawer.table, drawer.exports]


def build(asking: Asking) -> None:
    """Build the panel and connect its events.

    Args:
        asking: The question of the tab.
    """
    words, t = asking.ctx.words, asking.ctx.words.t
    said = build_line(words, elem_id="attribution-said", look="help")
    sums = build_line(words, elem_id="attribution-sums", look="heading")
    bars = build_plotly_panel(
        words, elem_id="attribution-bars", label_key="layers.parts_label", height=300
    )
    gr.HTML(t("layers.heads"), elem_classes=["heading"])
    heads = build_plotly_panel(
        words, elem_id="attribution-heads", label_key="layers.heads", height=340
    )
    gr.HTML(t("layers.norms"), elem_classes=["heading"])
    norms = build_plotly_panel(
        words, elem_id="attribution-norms", label_key="layers.norms", height=200
    )
    gr.HTML(t("layers.neurons"), elem_classes=["heading"])
    neurons = build_number_matrix(words, elem_id="attribution-neurons")
    working = build_working(
        words, elem_id="attribution-working", formula=FORMULA, png="attribution-bars"
    )
    build_note(words, "layers.look_for_attribution", elem_id="attribution-note")
    parts = Parts(said, sums, bars, heads, norms, neurons, working)
    ctx, held = asking.ctx, asking.held["attribution"]
    on = AttributionHandlers(asking)
    options = {**asking.options, "nothing": NOTHING}
    wire(held.change, on.split, [held, ctx.owner], parts.outputs(), **options)
    expose(on.layers_attribution, "layers_attribution")


class AttributionHandlers:
    """Handlers of the panel's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._ctx = asking.ctx

    def split(self, ask: Ask, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """Split the logit, and show the parts."""
        if not ask.text:
            return NOTHING
        ctx, locale = self._ctx, locale_of(request)
        with ctx.store.lease(ask.source, ctx.owner_of(owner, request)) as loaded:
            ids = read_prompt(loaded, ask.text, most_tokens=MOST_TOKENS)
            found = compute_attribution(
                loaded, ids, position=place_within(ask, ids), target=ask.target, turn=ctx.slots.turn
            )
        place = {"token": found.labels[found.position], "place": found.position}
        said = ctx.words.say(locale, "layers.attribution_said", model=found.model_name, **place)
        snippet = make_attribution_snippet(ask.source, ask.text, found.position, ask.target)
        return (
            f"{said} · {say_target(ctx.words, locale, found.target)}",
            self._sums(found, locale),
            parts_message(ctx.words, locale, found),
            heads_message(ctx.words, locale, found),
            norms_message(ctx.words, locale, found),
            self._neurons(found, locale),
            {
                "tensor": "blocks.*.attn.z, blocks.*.ffn_out",
                "file": source_file_of(compute_attribution),
                "test": "tests/explorer/test_inspector_layers.py",
            },
            self._table(found, locale),
            {"csv": self._publish(found), "png": "attribution-bars", "python": snippet},
        )

    def layers_attribution(
        self, text: str, request: gr.Request, position: int = -1, target: str = ""
    ) -> dict[str, Any]:
        """What embedding, heads and feed-forwards add to a logit; the parts sum to it."""
        ctx = self._ctx
        with ctx.store.lease(ctx.source_of(None), ctx.owner_of(None, request)) as loaded:
            ids = read_prompt(loaded, text, most_tokens=MOST_TOKENS)
            found = compute_attribution(
                loaded, ids, position=position, target=target, turn=ctx.slots.turn
            )
        return {
            "target": found.target.label,
            "logit": found.logit,
            "total": found.total,
            "embedding": found.embedding,
            "heads": found.heads.tolist(),
            "attention": found.attention.tolist(),
            "feed_forward": found.feed_forward.tolist(),
            "constant": found.constant,
        }

    def _sums(self, found: Attribution, locale: str) -> str:
        capped = abs(found.logit - found.logit_before_cap) > 1e-3
        return self._ctx.words.say(
            locale,
            "layers.sums_capped" if capped else "layers.sums",
            embedding=f"{found.embedding:.3f}",
            attention=f"{found.attention.sum():.3f}",
            feed_forward=f"{found.feed_forward.sum():.3f}",
            constant=f"{found.constant:.3f}",
            total=f"{found.total:.3f}",
            logit=f"{found.logit:.3f}",
        )

    def _neurons(self, found: Attribution, locale: str) -> dict[str, Any] | None:
        if not found.neurons:
            return None
        say = self._ctx.words.say
        columns = [say(locale, f"layers.neuron_{name}") for name in ("activation", "contribution")]
        n_words = len(found.neurons[0].promotes)
        return {
            "corner": say(locale, "layers.neuron"),
            "rows": [f"{n.layer}.{n.index}" for n in found.neurons],
            "cols": [*columns, say(locale, "layers.neuron_promotes"), *[""] * (n_words - 1)],
            "cells": [[n.activation, n.contribution, *n.promotes] for n in found.neurons],
            "digits": 3,
        }

    def _table(self, found: Attribution, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        columns = ("attention", "feed_forward", "best_head", "norm")
        cells: list[list[Any]] = [[None, None, "", float(found.stream_norms[0])]]
        for layer in range(len(found.feed_forward)):
            best = int(np.abs(found.heads[layer]).argmax())
            cells.append(
                [
                    float(found.attention[layer]),
                    float(found.feed_forward[layer]),
                    f"h{best} {found.heads[layer, best]:.3f}",
                    float(found.stream_norms[layer + 1]),
                ]
            )
        return {
            "corner": say(locale, "layers.layer"),
            "rows": ["embed", *map(str, range(len(found.feed_forward)))],
            "cols": [say(locale, f"layers.part_{name}") for name in columns],
            "cells": cells,
            "digits": 4,
        }

    def _publish(self, found: Attribution) -> str:
        n_layers, n_heads = found.heads.shape
        table = np.column_stack([found.heads, found.attention_bias, found.feed_forward])
        first = np.zeros((1, n_heads + 2))
        first[0, -1] = found.embedding  # the row of the embedding has one part only
        return self._ctx.routes.publish(
            np.concatenate([first, table]),
            row_labels=["embed", *map(str, range(n_layers))],
            column_labels=[*(f"h{h}" for h in range(n_heads)), "bias", "feed_forward_or_embedding"],
        )
