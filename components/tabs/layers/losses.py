"""The panel "losses": a text with every token coloured by the model's surprise."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.errors import wire
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.curve_panel import Curve, curves_message
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.plotly_panel import build_plotly_panel
from components.kit.working import Working, build_working
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.tabs.layers.comparison import build_comparison
from components.text import locale_of
from components.token_units import MOST_CHIPS, last_token_of, make_units, unit_of_token
from explorer.inspector_snippets import make_losses_snippet
from explorer.snippets import source_file_of
from explorer.token_losses import TokenLosses, stream_token_losses

FORMULA = r"""
$$\ell_t = -\ln \frac{e^{z_{x_t}}}{\sum_j e^{z_j}} = \ln \sum_j e^{z_j} - z_{x_t} \qquad
L = \frac{1}{N} \sum_t \ell_t \qquad \text{perplexity} = e^{L}$$
"""

# What the panel shows when there is no text, or none that it can read.
NOTHING: tuple[Any, ...] = (
    "",
    {"units": [], "more": 0, "total": 0},
    *[None] * 5,
    dict(NO_EXPORTS),
    "",
)


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    stop: gr.Button
    said: gr.HTML
    chips: gr.HTML
    steps: gr.HTML
    worst: gr.HTML
    curve: gr.HTML
    working: Working
    kept: gr.State

    def outputs(self) -> list[Any]:
        """What reading a text fills."""
        drawer = self.working
        views = [self.said, self.chips, self.steps, self.worst, self.curve]
        return [*views, drawer.facts, drawer.table, drawer.exports, self.kept]


def build(asking: Asking) -> None:
    """Build the panel and connect its events.

    Args:
        asking: The question of the tab.
    """
    words, t = asking.ctx.words, asking.ctx.words.t
    with gr.Row(elem_classes=["button-row"]):
        stop = gr.Button(t("layers.stop"), elem_id="losses-stop", min_width=0)
    said = build_line(words, elem_id="losses-said", look="help")
    chips = build_token_chips(words, elem_id="losses-chips", mode="probability", readout="popover")
    gr.HTML(t("layers.loss_steps"), elem_classes=["heading"])
    steps = build_number_matrix(words, elem_id="losses-steps")
    gr.HTML(t("layers.loss_worst"), elem_classes=["heading"])
    worst = build_number_matrix(words, elem_id="losses-worst")
    gr.HTML(t("layers.loss_curve"), elem_classes=["heading"])
    curve = build_plotly_panel(
        words, elem_id="losses-curve", label_key="layers.loss_curve", height=260
    )
    compared = build_comparison(asking)
    working = build_working(words, elem_id="losses-working", formula=FORMULA, png="losses-curve")
    build_note(words, "layers.look_for_losses", elem_id="losses-note")
    parts = Parts(stop, said, chips, steps, worst, curve, working, gr.State(""))
    ctx, held, options = asking.ctx, asking.held["losses"], asking.options
    on = LossHandlers(asking)
    wire(held.change, on.read, [held, ctx.owner], parts.outputs(), nothing=NOTHING, **options)
    wire(stop.click, asking.stopper("losses"), [], [], queue=False, **options)
    wire(chips.token_click, on.token, [parts.kept], [steps, chips], **options)
    compared.wire(asking)
    expose(on.layers_losses, "layers_losses")


class LossHandlers:
    """Handlers of the panel's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._ctx = asking.ctx

    def read(self, ask: Ask, owner: str | None, request: gr.Request) -> Iterator[tuple[Any, ...]]:
        """Read the text window by window, and show the whole."""
        if not ask.text:
            yield NOTHING
            return
        ctx, locale, found = self._ctx, locale_of(request), None
        with (
            self._asking.working("losses", request) as turn,
            ctx.store.lease(ask.source, ctx.owner_of(owner, request)) as loaded,
        ):
            for found in stream_token_losses(loaded, ask.text, turn=turn):
                yield (self._say(found, locale), *[gr.skip()] * 8)
        assert found is not None
        at = found.worst(1)[0]
        yield (
            self._say(found, locale),
            gr.update(value=make_loss_chips(found), selected=unit_of_token(found.units, at)),
            self._steps(found, at, locale),
            self._worst(found, locale),
            self._curve(found, locale),
            {
                "tensor": "logits",
                "shape": [1, len(found.ids), 1],
                "file": source_file_of(stream_token_losses),
                "test": "tests/explorer/test_inspector_texts.py",
            },
            self._table(found, locale),
            {
                "csv": self._publish(found),
                "png": "losses-curve",
                "python": make_losses_snippet(ask.source, ask.text),
            },
            ctx.results.put(found),
        )

    def token(self, event: gr.EventData, kept: str, request: gr.Request) -> tuple[Any, Any]:
        """Show how the loss of the clicked token comes about."""
        found = self._ctx.results.get(kept)
        if not isinstance(found, TokenLosses):
            return gr.skip(), gr.skip()
        unit = int(event._data["index"])
        at = max(1, last_token_of(found.units, unit))
        return self._steps(found, at, locale_of(request)), gr.update(selected=unit)

    def layers_losses(self, text: str, request: gr.Request) -> dict[str, Any]:
        """The loss of every token of a text, their mean, and the perplexity."""
        ctx = self._ctx
        with ctx.store.lease(ctx.source_of(None), ctx.owner_of(None, request)) as loaded:
            *_, found = stream_token_losses(loaded, text, turn=ctx.slots.turn)
        return {
            "tokens": list(found.labels),
            "nats": found.nats.tolist(),
            "mean": found.mean_nats,
            "perplexity": found.perplexity,
            "bits_per_byte": found.bits_per_byte,
        }

    def _say(self, found: TokenLosses, locale: str) -> str:
        key = "layers.losses_cut" if found.n_left_out else "layers.losses_said"
        return self._ctx.words.say(
            locale,
            key,
            model=found.model_name,
            n=f"{len(found.nats):,}",
            mean=f"{found.mean_nats:.4f}",
            perplexity=f"{found.perplexity:.3f}",
            bits=f"{found.bits_per_byte:.3f}",
            left_out=f"{found.n_left_out:,}",
        )

    def _steps(self, found: TokenLosses, at: int, locale: str) -> dict[str, Any]:
        """From logits to the loss of one token: exponentials, their sum, the pick, -ln."""
        say, i = self._ctx.words.say, at - 1
        labels = [*found.top_labels[i], found.labels[at]]
        logits = np.array([*found.top_logits[i], found.logits[i]], dtype=np.float64)
        shares = np.exp(logits - float(found.log_sums[i]))
        cells = [
            [x, np.exp(x - logits.max()), p, -np.log(p)]
            for x, p in zip(logits.tolist(), shares.tolist(), strict=True)
        ]
        return {
            "corner": say(locale, "layers.loss_corner", place=at),
            "rows": [*labels[:-1], say(locale, "layers.loss_came", token=labels[-1])],
            "cols": [say(locale, f"layers.loss_{n}") for n in ("logit", "exp", "share", "nats")],
            "cells": [[float(value) for value in row] for row in cells],
            "digits": 4,
            "selected_row": len(labels) - 1,
        }

    def _worst(self, found: TokenLosses, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        places = found.worst(10)
        return {
            "corner": say(locale, "layers.column_token"),
            "rows": [f"{at} {found.labels[at]}" for at in places],
            "cols": [say(locale, f"layers.worst_{n}") for n in ("nats", "rank", "expected")],
            "tokens": [2],
            "cells": [
                [float(found.nats[at - 1]), f"{found.ranks[at - 1]:,}", found.top_labels[at - 1][0]]
                for at in places
            ],
            "digits": 3,
        }

    def _curve(self, found: TokenLosses, locale: str) -> str:
        say, curve = self._ctx.words.say, found.context_curve()
        line = Curve(
            say(locale, "layers.loss_curve"),
            [float(start) for start, _, _ in curve],
            [mean for _, _, mean in curve],
        )
        return curves_message(
            [line],
            x_title=say(locale, "layers.axis_context"),
            y_title=say(locale, "layers.axis_nats"),
        )

    def _table(self, found: TokenLosses, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        return {
            "corner": say(locale, "layers.column_token"),
            "rows": [f"{i + 1} {found.labels[i + 1]}" for i in range(min(50, len(found.nats)))],
            "cols": [say(locale, f"layers.loss_{n}") for n in ("logit", "sum", "share", "nats")],
            "cells": [
                [float(x), float(total), float(np.exp(-nats)), float(nats)]
                for x, total, nats in list(
                    zip(found.logits, found.log_sums, found.nats, strict=True)
                )[:50]
            ],
            "digits": 4,
        }

    def _publish(self, found: TokenLosses) -> str:
        columns = [found.logits, found.log_sums, found.nats, found.ranks, found.contexts]
        return self._ctx.routes.publish(
            np.stack([np.asarray(c, dtype=np.float64) for c in columns], axis=1),
            row_labels=found.labels[1:],
            column_labels=("logit", "log_sum", "nats", "rank", "context"),
        )


def make_loss_chips(found: TokenLosses) -> dict[str, Any]:
    """Chips of a text, each with the probability that the model gave it."""
    units = found.units[:MOST_CHIPS]
    described, at = make_units(units), 0
    for chip, unit in zip(described, units, strict=True):
        first, at = at, at + len(unit.ids)
        if first == 0:
            continue  # nobody has foreseen it
        chip["p"] = round(float(np.exp(-found.nats[first - 1 : at - 1].sum())), 6)
        chip["rank"] = int(found.ranks[first - 1 : at - 1].max())
        tops = found.top_logits[first - 1] - found.log_sums[first - 1]
        shares = np.exp(tops).tolist()
        chip["alt"] = [
            [label, round(share, 4)]
            for label, share in zip(found.top_labels[first - 1], shares, strict=True)
        ][:3]
    return {"units": described, "more": len(found.ids) - at, "total": len(found.ids)}
