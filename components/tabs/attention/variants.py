"""The panel "variants": MHA, GQA, MQA, MLA and a window, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import gradio as gr
import numpy as np

from components.address import Parse, parse_choice, parse_integer
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.plotly_panel import build_plotly_panel, figure_message
from components.kit.seen import build_seen
from components.kit.working import Working, build_working
from components.tabs.attention.drawer import Shown, fill_drawer
from components.tabs.attention.figures import make_lines
from components.tabs.tab import TabHead
from components.text import locale_of
from explorer.attention_lab.recorded import read_recorded
from explorer.attention_lab.snippets import make_variants_snippet
from explorer.attention_lab.variants import (
    CONTEXTS,
    PUBLISHED,
    Variant,
    VariantSettings,
    compute_published,
    compute_variants,
    settings_of,
)

EXAMPLE_KEYS = tuple(f"attention.variants.example_{n}" for n in ("llama", "small", "long"))
EXAMPLES = (
    VariantSettings(),
    VariantSettings(
        d_model=576, n_heads=9, n_groups=3, d_head=64, latent=96, rotary=32, window=512,
        n_layers=30, context=2_048,
    ),
    VariantSettings(context=131_072),
)  # fmt: skip
FORMULA = r"""
$$\text{numbers kept per token and layer:}\quad
\text{MHA } 2 H d \quad \text{GQA } 2 K d \quad \text{MQA } 2 d \quad \text{MLA } c + r
\qquad \text{window: at most } w \text{ tokens}$$
"""
TEST_FILE = "tests/explorer/attention_lab/test_costs_of_attention.py"
GIBIBYTE = 2**30


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    preset: gr.Dropdown
    examples: gr.HTML
    form: Form
    said: gr.HTML
    table: gr.HTML
    shapes: gr.HTML
    plot: gr.HTML
    published: gr.HTML
    quality_said: gr.HTML
    quality: gr.HTML
    working: Working
    seen: gr.HTML

    def outputs(self) -> list[Any]:
        """What `VariantHandlers.show` fills."""
        views = [self.said, self.table, self.shapes, self.plot, self.published]
        return [*views, *self.working.outputs]


class VariantHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def show(self, request: gr.Request, settings: VariantSettings) -> tuple[Any, ...]:
        """Count parameters and bytes of each variant, and of published models."""
        locale, say = locale_of(request), self._ctx.words.say
        found = compute_variants(settings)
        names = [say(locale, f"attention.variants.name.{variant.name}") for variant in found]
        columns = [
            say(locale, f"attention.variants.{key}") for key in ("parameters", "kept", "cache")
        ]
        cells = [[v.n_parameters, v.kept_per_token, v.cache_bytes / GIBIBYTE] for v in found]
        lines = {
            name: [n / GIBIBYTE for n in variant.bytes_by_context]
            for name, variant in zip(names, found, strict=True)
        }
        figure = make_lines(
            CONTEXTS,
            lines,
            x_title=say(locale, "attention.variants.axis_context"),
            y_title=say(locale, "attention.variants.axis_bytes"),
            log_x=True,
            log_y=True,
        )
        table = {
            "rows": names,
            "cols": columns,
            "cells": [_say(row) for row in cells],
        }
        drawer = Shown(
            tensor="attn.*_proj.weight",
            cells=np.array(cells, dtype=np.float64),
            rows=names,
            columns=columns,
            function=compute_variants,
            test=TEST_FILE,
            python=make_variants_snippet(settings),
            png="lab-variants-plot",
        )
        said = say(
            locale,
            "attention.variants.said",
            context=f"{settings.context:,}",
            layers=settings.n_layers,
            dtype=settings.dtype,
        )
        published = self._published(settings, locale)
        return (
            said,
            table,
            self._shapes(found, names, locale),
            figure_message(figure),
            published,
            *fill_drawer(self._ctx, drawer),
        )

    def choose(self, preset: str, *sizes: Any) -> tuple[Any, ...]:
        """Take the size of a published model."""
        named = dict(zip(vars(VariantSettings()), sizes, strict=True))
        return tuple(vars(settings_of(preset, VariantSettings(**named))).values())

    def example(self, event: gr.EventData) -> tuple[Any, ...]:
        """Choose the sizes of an example."""
        return tuple(vars(EXAMPLES[int(event._data["index"])]).values())

    def quality(self, request: gr.Request) -> tuple[Any, ...]:
        """The recorded training of each variant."""
        locale, say = locale_of(request), self._ctx.words.say
        recorded = read_recorded("attention_variants")
        if recorded is None:
            return say(locale, "attention.variants.not_recorded"), None
        runs = recorded["runs"]
        names = [say(locale, f"attention.variants.name.{run['variant']}") for run in runs]
        keys = ("loss", "losses", "parameters", "kept")
        cells = [
            [
                f"{run['validation_loss']:.4f}",
                "  ".join(f"{loss:.4f}" for loss in run["losses"]),
                f"{run['parameters']:,}",
                str(run["kept_per_token"]),
            ]
            for run in runs
        ]
        table = {
            "rows": names,
            "cols": [say(locale, f"attention.variants.quality_{key}") for key in keys],
            "cells": cells,
        }
        said = say(
            locale,
            "attention.variants.recorded",
            steps=recorded["steps"],
            seeds=recorded["seeds"],
            layers=recorded["sizes"]["n_layers"],
            width=recorded["sizes"]["d_model"],
            context=recorded["context"],
            window=recorded["sizes"]["window"],
            script=recorded["script"],
        )
        return said, table

    def attention_variants(self, *, settings: VariantSettings) -> list[dict[str, Any]]:
        """Parameters and bytes of cache of MHA, GQA, MQA, MLA and a window at one size."""
        return [
            {**vars(variant), "shapes": {name: list(shape) for name, shape in variant.shapes}}
            for variant in compute_variants(settings)
        ]

    def _shapes(
        self, found: Sequence[Variant], names: Sequence[str], locale: str
    ) -> dict[str, Any]:
        """(out, in) of every matrix that some variant has."""
        matrices = dict.fromkeys(name for variant in found for name, _ in variant.shapes)
        rows = [dict(variant.shapes) for variant in found]
        return {
            "corner": self._ctx.words.say(locale, "attention.variants.shapes"),
            "rows": list(names),
            "cols": list(matrices),
            "cells": [
                ["{} × {}".format(*row[name]) if name in row else "–" for name in matrices]
                for row in rows
            ],
        }

    def _published(self, settings: VariantSettings, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        keys = ("layers", "heads", "groups", "width", "window", "parameters", "cache", "reads")
        found = compute_published(settings.context, settings.dtype)
        return {
            "rows": [model.name for model in found],
            "cols": [say(locale, f"attention.variants.{key}") for key in keys],
            "cells": [
                [
                    f"{model.n_layers} ({model.n_window_layers})",
                    str(model.n_heads),
                    str(model.n_kv_heads),
                    str(model.d_head),
                    "–" if model.window is None else f"{model.window:,}",
                    f"{model.attention_parameters:,}",
                    f"{model.cache_bytes / GIBIBYTE:.3f}",
                    f"{model.context_length:,}",
                ]
                for model in found
            ],
        }


def _say(row: list[float]) -> list[str]:
    n_parameters, kept, cache = row
    return [f"{n_parameters:,}", f"{kept:,}", f"{cache:.3f}"]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    seen = build_seen(words, elem_id="lab-variants-seen")
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            preset = gr.Dropdown(
                list(PUBLISHED),
                value="llama3-8b",
                label=t("attention.variants.preset"),
                elem_id="lab-variants-preset",
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="lab-variants-examples")
            form = build_form(
                words, VariantSettings, prefix="attention.variants", elem_id="lab-variants"
            )
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="lab-variants-said", look="heading")
            table = build_number_matrix(words, elem_id="lab-variants-table")
            shapes = build_number_matrix(words, elem_id="lab-variants-shapes")
            plot = build_plotly_panel(
                words, elem_id="lab-variants-plot", label_key="attention.variants.label", height=360
            )
            gr.HTML(t("attention.variants.published"), elem_classes=["lab-heading"])
            published = build_number_matrix(words, elem_id="lab-variants-published")
            gr.HTML(t("attention.variants.quality"), elem_classes=["lab-heading"])
            quality_said = build_line(words, elem_id="lab-variants-quality-said", look="help")
            quality = build_number_matrix(words, elem_id="lab-variants-quality")
            working = build_working(
                words, elem_id="lab-variants-working", formula=FORMULA, png="lab-variants-plot"
            )
    build_note(words, "attention.look_for_variants", elem_id="lab-variants-note")
    return Parts(
        preset, examples, form, said, table, shapes, plot, published, quality_said, quality,
        working, seen,
    )  # fmt: skip


def wire_panel(ctx: AppContext, head: TabHead, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
    """
    on = VariantHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    form = parts.form.inputs
    show = with_form(on.show, VariantSettings)
    for event in (parts.seen.seen, *(control.input for control in form)):
        wire(event, show, form, parts.outputs(), trigger_mode="always_last", **options)
    for event, handler, inputs in (
        (parts.preset.input, on.choose, [parts.preset, *form]),
        (parts.examples.example, on.example, []),
    ):
        chosen = wire(event, handler, inputs, form, **options)
        wire(chosen.then, show, form, parts.outputs(), **options)
    wire(parts.seen.seen, on.quality, [], [parts.quality_said, parts.quality], **options)
    expose(with_form(on.attention_variants, VariantSettings), "attention_variants")
    for field in fields(VariantSettings):
        facts = field.metadata
        if "choices" in facts:
            parse: Parse = parse_choice(facts["choices"])
        else:
            parse = parse_integer(facts["least"], facts["most"])
        key = f"variants_{field.name}"
        ctx.address.register("attention", key, parts.form.controls[field.name], parse)
