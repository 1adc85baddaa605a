"""What the chosen number format costs, measured on demand: a button, a Stop, and a line of text.

Nothing is known beforehand: the model reads a sample in float32 and in the chosen format, and the
line says both perplexities.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from components.context import AppContext
from components.errors import card_for, wire
from components.kit.line import build_line
from components.text import Words, locale_of
from explorer.errors import Stopped
from explorer.format_cost import CostStep, FormatCost, measure_format_cost
from explorer.number_formats import DEFAULT_DTYPE, join_dtype, split_dtype


@dataclass(frozen=True, eq=False)
class FormatCostPart:
    """The components.

    Args:
        measure: Starts a measurement.
        stop: Ends it; shown meanwhile.
        line: How far it is, then its result.
        running: State: source that is being measured, None when none is.
    """

    measure: gr.Button
    stop: gr.Button
    line: gr.HTML
    running: gr.State


def build_format_cost(ctx: AppContext) -> FormatCostPart:
    """Build the components, without their events."""
    t = ctx.words.t
    with gr.Row(elem_id="format-cost"):
        measure = gr.Button(t("shell.cost_measure"), interactive=False, elem_id="format-measure")
        stop = gr.Button(t("shell.cost_stop"), visible=False, elem_id="format-stop")
        line = build_line(ctx.words, elem_id="format-cost-line", look="help")
    return FormatCostPart(measure, stop, line, gr.State(None))


def wire_format_cost(
    ctx: AppContext, part: FormatCostPart, source: gr.Textbox, dtype: gr.Radio, card: Any
) -> None:
    """Connect the events.

    Args:
        ctx: The page's context.
        part: The components.
        source: Where a model is typed; left empty, the open one is measured.
        dtype: The chosen number format.
        card: Card slot for errors.
    """
    on = FormatCostHandlers(ctx, part, card)
    options: dict[str, Any] = {"card": card, "words": ctx.words}
    inputs = [source, ctx.model_id, ctx.owner, dtype]
    shown = [part.line, part.measure, part.stop, part.running]
    wire(part.measure.click, on.measure, inputs, shown, api_name="measure_format", **options)
    stopping = [part.running, ctx.owner]
    wire(part.stop.click, on.stop, stopping, [], api_name="stop_measuring", **options)
    wire(dtype.change, on.format, [dtype, part.running], [part.line, part.measure], **options)


class FormatCostHandlers:
    """The handlers of the events.

    Args:
        ctx: The page's context.
        part: The components.
        card: Card slot for errors.
    """

    def __init__(self, ctx: AppContext, part: FormatCostPart, card: Any) -> None:
        self._ctx = ctx
        self._part = part
        self._card = card

    def measure(
        self,
        source: str,
        model_id: str | None,
        owner: str | None,
        dtype: str,
        request: gr.Request,
    ) -> Iterator[dict[Any, Any]]:
        """Measure, telling how far it is; whatever happens, the buttons come back."""
        ctx, locale = self._ctx, locale_of(request)
        chosen = (source or "").strip() or split_dtype(ctx.source_of(model_id))[0]
        chosen = join_dtype(chosen, dtype)
        with ctx.stops.armed(_work_of(request)) as switch:
            try:
                for step in measure_format_cost(
                    ctx.store,
                    chosen,
                    ctx.owner_of(owner, request),
                    stopped=switch.is_set,
                    turn=partial(ctx.slots.turn, cancelled=switch.is_set),
                ):
                    running = None if step.phase == "done" else chosen
                    yield self._shown(say_step(ctx.words, locale, step), running, dtype)
            except Exception as error:
                # With the card in one update: a second one right behind it would overtake it in
                # Gradio's page, and Stop would stay.
                stopped = isinstance(error, Stopped)
                card = None if stopped else card_for(ctx.words, locale, error)
                yield {**self._shown("", None, dtype), self._card: card}

    def stop(self, running: str | None, owner: str | None, request: gr.Request) -> None:
        """End the measurement: between two passes, or the loading before them."""
        ctx = self._ctx
        ctx.stops.stop(_work_of(request))
        if running is None:
            return
        for source in (split_dtype(running)[0], running):
            ctx.store.cancel(source, ctx.owner_of(owner, request))

    def format(self, dtype: str, running: str | None) -> tuple[Any, Any]:
        """Another format: what was measured of the last one goes; float32 needs no measuring."""
        if running is not None:
            return gr.skip(), gr.skip()
        return "", gr.Button(interactive=dtype != DEFAULT_DTYPE)

    def _shown(self, text: str, running: str | None, dtype: str) -> dict[Any, Any]:
        part, busy = self._part, running is not None
        return {
            part.line: text,
            part.measure: gr.Button(visible=not busy, interactive=dtype != DEFAULT_DTYPE),
            part.stop: gr.Button(visible=busy),
            part.running: running,
        }


def say_step(words: Words, locale: str, step: CostStep) -> str:
    """Word one step of a measurement."""
    if step.cost is not None:
        return say_cost(words, locale, step.cost)
    share = "…" if step.done_share is None else f"{step.done_share:.0%}"
    return words.say(locale, f"shell.cost_{step.phase}", dtype=step.dtype, share=share)


def say_cost(words: Words, locale: str, cost: FormatCost) -> str:
    """Word the result: both perplexities, and the difference with its sign."""
    return words.say(
        locale,
        "shell.cost_done",
        dtype=cost.dtype,
        tokens=cost.exact.n_tokens,
        exact=f"{cost.exact.perplexity:.2f}",
        rounded=f"{cost.rounded.perplexity:.2f}",
        added=f"{cost.added_share:+.1%}",
    )


def _work_of(request: gr.Request) -> str:
    return f"format-cost-{request.session_hash}"
