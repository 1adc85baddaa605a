"""The panel "ablate": heads and layers switched off or scaled, a scan, patching."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.heatmap import build_heatmap
from components.kit.line import build_line
from components.kit.seen import build_seen
from components.kit.working import Working, build_working
from components.tabs.attention.ablate_handlers import EXAMPLES, AblateHandlers
from components.tabs.attention.drawer import NO_DRAWER
from components.tabs.tab import TabHead
from explorer.attention_lab.patching import PATCH_PAIRS

EXAMPLE_KEYS = tuple(f"attention.ablate.example_{name}" for name in ("heads", "first", "ffn"))
FORMULA = r"""
$$z_h \leftarrow \alpha\, z_h \qquad
\Delta L = L(\alpha = 0) - L(\alpha = 1), \quad
L = -\tfrac{1}{T-1}\sum_t \ln p(x_{t+1}\mid x_{\le t})$$
"""
PATCH_FORMULA = r"""
$$\text{restored} =
\frac{d_{\text{patched}} - d_{\text{other}}}{d_{\text{first}} - d_{\text{other}}},
\qquad d = \text{logit}(\text{answer}) - \text{logit}(\text{other answer})$$
"""


@dataclass(frozen=True, eq=False)
class ChangeParts:
    """Components that change parts of the model."""

    text: gr.Textbox
    changes: gr.Textbox
    examples: gr.HTML
    run: gr.Button
    stop: gr.Button
    said: gr.HTML
    bars: gr.HTML
    written: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What `AblateHandlers.change` fills."""
        return [self.said, self.bars, self.written, *self.working.outputs]

    def nothing(self) -> list[Any]:
        """What they show after an error."""
        return ["", None, "", *NO_DRAWER]


@dataclass(frozen=True, eq=False)
class MapParts:
    """Components of a run over all layers: a scan, or patching."""

    start: gr.Button
    stop: gr.Button
    said: gr.HTML
    map: gr.HTML
    bars: gr.HTML | None
    working: Working

    def outputs(self) -> list[Any]:
        """What `AblateHandlers.scan` and `.patch` fill."""
        bars = [] if self.bars is None else [self.bars]
        return [self.said, self.map, *bars, *self.working.outputs]

    def nothing(self) -> list[Any]:
        """What they show after an error."""
        bars = [] if self.bars is None else [None]
        return ["", None, *bars, *NO_DRAWER]


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    change: ChangeParts
    scan: MapParts
    clean: gr.Textbox
    corrupt: gr.Textbox
    patch: MapParts
    seen: gr.HTML


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    t = ctx.words.t
    seen = build_seen(ctx.words, elem_id="lab-ablate-seen")
    change = _build_change(ctx)
    gr.HTML(t("attention.ablate.scan_title"), elem_classes=["lab-heading"])
    scan = _build_map(ctx, "scan", FORMULA, with_bars=True)
    gr.HTML(t("attention.ablate.patch_title"), elem_classes=["lab-heading"])
    with gr.Row(elem_classes=["lab-pair"]):
        clean, corrupt = (
            gr.Textbox(
                text,
                label=t(f"attention.ablate.{name}"),
                info=t(f"attention.ablate.{name}_info"),
                lines=2,
                elem_id=f"lab-patch-{name}",
            )
            for name, text in zip(("clean", "corrupt"), PATCH_PAIRS[0], strict=True)
        )
    patch = _build_map(ctx, "patch", PATCH_FORMULA, with_bars=False)
    build_note(ctx.words, "attention.look_for_ablate", elem_id="lab-ablate-note")
    return Parts(
        change=change,
        scan=scan,
        clean=clean,
        corrupt=corrupt,
        patch=patch,
        seen=seen,
    )


def _build_change(ctx: AppContext) -> ChangeParts:
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            text = gr.Textbox(
                EXAMPLES[0][0],
                label=t("attention.text"),
                lines=3,
                max_lines=8,
                elem_id="lab-ablate-text",
            )
            changes = gr.Textbox(
                "",
                label=t("attention.ablate.changes"),
                info=t("attention.ablate.changes_info"),
                placeholder="3.1, 5.attn, 7.ffn x 0.5",
                elem_id="lab-ablate-changes",
            )
            with gr.Row(elem_classes=["button-row"]):
                run = gr.Button(
                    t("attention.ablate.run"), variant="primary", elem_id="lab-ablate-run"
                )
                stop = gr.Button(t("attention.lab_stop"), elem_id="lab-ablate-stop")
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="lab-ablate-examples")
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="lab-ablate-said", look="heading")
            bars = build_bar_list(words, elem_id="lab-ablate-bars")
            written = build_line(words, elem_id="lab-ablate-written", look="text")
            working = build_working(words, elem_id="lab-ablate-working", formula=FORMULA)
    return ChangeParts(text, changes, examples, run, stop, said, bars, written, working)


def _build_map(ctx: AppContext, name: str, formula: str, *, with_bars: bool) -> MapParts:
    words, t = ctx.words, ctx.words.t
    with gr.Column(elem_classes=["figure"], min_width=0):
        with gr.Row(elem_classes=["button-row"]):
            start = gr.Button(
                t(f"attention.ablate.{name}_start"),
                variant="primary",
                elem_id=f"lab-{name}-start",
            )
            stop = gr.Button(t("attention.lab_stop"), elem_id=f"lab-{name}-stop")
        said = build_line(words, elem_id=f"lab-{name}-said", look="heading")
        with gr.Row(elem_classes=["lab-pair"]):
            with gr.Column(min_width=0):
                big = build_heatmap(words, elem_id=f"lab-{name}-map")
            bars = None
            if with_bars:
                with gr.Column(min_width=0):
                    bars = build_bar_list(words, elem_id=f"lab-{name}-bars")
        working = build_working(
            words, elem_id=f"lab-{name}-working", formula=formula, png=f"lab-{name}-map"
        )
    return MapParts(start, stop, said, big, bars, working)


def wire_panel(ctx: AppContext, head: TabHead, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
    """
    on = AblateHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    model, change = [ctx.model_id, ctx.owner], parts.change
    inputs, outputs = [change.text, change.changes, *model], change.outputs()
    changed = {**options, "nothing": change.nothing()}
    typed, scan, patch = [change.text, change.changes], parts.scan, parts.patch
    example = wire(change.examples.example, on.example, [], typed, queue=False, **options)
    picked = [change.changes]
    pick = wire(scan.map.row_select, on.pick, picked, picked, **options)
    for event in (parts.seen.seen, change.run.click, change.changes.submit):
        wire(event, on.change, inputs, outputs, trigger_mode="always_last", **changed)
    for event in (example.then, pick.then):
        wire(event, on.change, inputs, outputs, **changed)
    wire(change.stop.click, on.stop_change, [], [], queue=False, **options)
    scanned = {**options, "nothing": scan.nothing()}
    wire(scan.start.click, on.scan, [change.text, *model], scan.outputs(), **scanned)
    wire(scan.stop.click, on.stop_scan, [], [], queue=False, **options)
    texts = [parts.clean, parts.corrupt, *model]
    wire(parts.seen.seen, on.offer_pair, texts, [parts.clean, parts.corrupt], **options)
    patched = {**options, "nothing": patch.nothing()}
    wire(patch.start.click, on.patch, texts, patch.outputs(), **patched)
    wire(patch.stop.click, on.stop_patch, [], [], queue=False, **options)
    expose(on.attention_ablate, "attention_ablate")
    expose(on.attention_scan, "attention_scan")
    expose(on.attention_patch, "attention_patch")
    for key, component in (
        ("ablate_text", change.text),
        ("off", change.changes),
        ("clean", parts.clean),
        ("corrupt", parts.corrupt),
    ):
        ctx.address.register("attention", key, component)
