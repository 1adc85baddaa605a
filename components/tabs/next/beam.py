"""The panel "beam": greedy, drawing, and beam search as a tree."""

from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.errors import wire
from components.forms import Form, build_form, read_form, with_form
from components.kit.beam_tree import build_beam_tree, make_tree
from components.kit.cards import build_note
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.working import Working, build_working
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.text import locale_of
from explorer.beam_tree import BeamSettings, BeamTree, compute_beam_tree
from explorer.inspector_snippets import make_beam_snippet
from explorer.snippets import source_file_of

FORMULA = r"""
$$\text{score} = \frac{\sum_{t=1}^{n} \ln p(x_t \mid x_{<t})}{n^{\,\alpha}}
\qquad \alpha = \text{length penalty}$$
"""


MOST_ROOT_CHARACTERS = 24  # of the prompt

# What the panel shows when there is no text, or none that it can read.
NOTHING: tuple[Any, ...] = ("", *[None] * 4, dict(NO_EXPORTS))


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    form: Form
    run: gr.Button
    stop: gr.Button
    said: gr.HTML
    tree: gr.HTML
    texts: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What every handler fills."""
        drawer = self.working
        return [self.said, self.tree, self.texts, drawer.facts, drawer.table, drawer.exports]


def build(asking: Asking, seed: Any) -> Form:
    """Build the panel and connect its events; returns its form.

    Args:
        asking: The question of the tab.
        seed: The control of the seed.
    """
    words, t = asking.ctx.words, asking.ctx.words.t
    with gr.Row(elem_classes=["panel-controls"]):
        form = build_form(words, BeamSettings, prefix="next.beam", elem_id="beam")
    with gr.Row(elem_classes=["button-row"]):
        run = gr.Button(t("next.search"), variant="primary", elem_id="beam-run", min_width=0)
        stop = gr.Button(t("next.stop"), elem_id="beam-stop", min_width=0)
    said = build_line(words, elem_id="beam-said", look="help")
    tree = build_beam_tree(words, elem_id="beam-tree")
    gr.HTML(t("next.beam_texts"), elem_classes=["heading"])
    texts = build_number_matrix(words, elem_id="beam-texts")
    working = build_working(words, elem_id="beam-working", formula=FORMULA, png="beam-tree")
    build_note(words, "next.look_for_beam", elem_id="beam-note")
    parts = Parts(form, run, stop, said, tree, texts, working)
    ctx, held, options = asking.ctx, asking.held["beam"], asking.options
    on = BeamHandlers(asking)
    inputs = [held, seed, ctx.owner, *form.inputs]
    events = [held.change, run.click, *(control.release for control in form.inputs)]
    search = with_form(on.search, BeamSettings)
    wire(events, search, inputs, parts.outputs(), nothing=NOTHING, **options)
    wire(stop.click, asking.stopper("beam"), [], [], queue=False, **options)
    expose(on.next_beam, "next_beam")
    return form


class BeamHandlers:
    """Handlers of the panel's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._ctx = asking.ctx

    def search(
        self,
        ask: Ask,
        seed: int,
        owner: str | None,
        request: gr.Request,
        settings: BeamSettings,
    ) -> tuple[Any, ...]:
        """Search, and draw the tree."""
        if not ask.text:
            return NOTHING
        ctx, locale = self._ctx, locale_of(request)
        with (
            self._asking.working("beam", request) as turn,
            ctx.store.lease(ask.source, ctx.owner_of(owner, request)) as loaded,
        ):
            found = compute_beam_tree(
                loaded, ask.text, settings, chat=ask.chat, seed=int(seed), turn=turn
            )
        said = ctx.words.say(locale, "next.beam_said", model=found.model_name, n=len(found.nodes))
        snippet = make_beam_snippet(ask.source, ask.text, ask.chat, settings, int(seed))
        return (
            said,
            make_tree(ask.text[-MOST_ROOT_CHARACTERS:], found.nodes),
            self._texts(found, locale),
            {"tensor": "logits", "file": source_file_of(compute_beam_tree)},
            self._table(found, locale),
            {"csv": self._publish(found), "png": "beam-tree", "python": snippet},
        )

    def next_beam(
        self,
        text: str,
        request: gr.Request,
        n_beams: int = 3,
        max_new_tokens: int = 6,
        length_penalty: float = 1.0,
    ) -> dict[str, Any]:
        """Search the best continuations of a text: texts with their scores, best first."""
        given = {
            "n_beams": n_beams,
            "max_new_tokens": max_new_tokens,
            "length_penalty": length_penalty,
        }
        ctx, settings = self._ctx, read_form(BeamSettings, given)
        with ctx.store.lease(ctx.source_of(None), ctx.owner_of(None, request)) as loaded:
            found = compute_beam_tree(loaded, text, settings, turn=ctx.slots.turn)
        return {
            "texts": [t.text for t in found.texts],
            "scores": [t.score for t in found.texts],
            "greedy": "".join(token.label for token in found.greedy),
        }

    def _texts(self, found: BeamTree, locale: str) -> dict[str, Any]:
        """Finished texts with their scores, and what greedy and drawing write."""
        say = self._ctx.words.say
        rows = [f"{place}" for place in range(1, len(found.texts) + 1)]
        cells: list[list[Any]] = [
            [t.text, str(t.n_tokens), t.log_probability, t.score] for t in found.texts
        ]
        for name, tokens in (("greedy", found.greedy), ("drawn", found.drawn)):
            rows.append(say(locale, f"next.beam_{name}"))
            total = float(sum(np.log(max(token.probability, 1e-45)) for token in tokens))
            text = "".join(token.label for token in tokens)
            cells.append([text, str(len(tokens)), total, None])
        columns = ("text", "length", "sum", "score")
        return {
            "corner": say(locale, "next.beam_place"),
            "rows": rows,
            "cols": [say(locale, f"next.beam_column_{name}") for name in columns],
            "tokens": [0],
            "cells": cells,
            "digits": 3,
            "selected_row": 0,
        }

    def _table(self, found: BeamTree, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        columns = ("depth", "log", "sum", "status")
        nodes = found.nodes[:50]
        return {
            "corner": say(locale, "next.column_token"),
            "rows": [node.label for node in nodes],
            "cols": [say(locale, f"next.beam_column_{name}") for name in columns],
            "cells": [
                [
                    str(node.depth),
                    node.log_probability,
                    node.total,
                    say(locale, f"next.beam_{node.status}"),
                ]
                for node in nodes
            ],
            "digits": 4,
        }

    def _publish(self, found: BeamTree) -> str:
        cells = [
            [-1 if n.parent is None else n.parent, n.depth, n.log_probability, n.total]
            for n in found.nodes
        ]
        return self._ctx.routes.publish(
            np.array(cells, dtype=np.float64),
            row_labels=[node.label for node in found.nodes],
            column_labels=("parent", "depth", "log_probability", "sum"),
        )
