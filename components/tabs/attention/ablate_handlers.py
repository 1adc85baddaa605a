"""Handlers of the panel "ablate": change parts, scan all heads, patch between two texts."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.tabs.attention.drawer import (
    NO_DRAWER,
    Shown,
    draw_map,
    fill_drawer,
    fill_next_drawer,
    names_of_heads,
)
from components.tabs.attention.reading import Reader, make_probability_bars, number_or_none, work_id
from components.text import locale_of
from explorer.attention_lab.ablation import (
    AblationResult,
    HeadScan,
    compute_ablation,
    parse_changes,
    scan_heads,
    split_changes,
)
from explorer.attention_lab.head_kinds import rank_heads
from explorer.attention_lab.patching import PATCH_PAIRS, PatchResult, choose_pair, compute_patching
from explorer.attention_lab.snippets import (
    make_ablation_snippet,
    make_patching_snippet,
    make_scan_snippet,
)

TEST_FILE = "tests/explorer/attention_lab/test_ablation.py"
MOST_RANKED = 15
# A text and the changes.
EXAMPLES = (
    ("When Mary and John went to the store, John gave a drink to", ""),
    ("The blue cat sat on the warm mat. The blue cat sat on the warm", "0.attn"),
    ("The capital of France is the city of", "1.ffn, 2.ffn"),
)


class AblateHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx
        self._reader = Reader(ctx)

    def change(
        self,
        text: str,
        changes: str,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> Iterator[tuple[Any, ...]]:
        """Read the text with and without the changes, then continue it both ways."""
        locale, say = locale_of(request), self._ctx.words.say
        chosen = parse_changes(changes)
        armed = self._ctx.stops.armed(work_id(request, "ablate"))
        opened = self._reader.open(model_id, owner, request)
        with armed as switch, opened as (source, loaded):
            turn = partial(self._ctx.slots.turn, cancelled=switch.is_set)
            found = compute_ablation(loaded, text, chosen, n_new=0, turn=turn)
            drawer = fill_next_drawer(
                self._ctx,
                found,
                locale,
                function=compute_ablation,
                test=TEST_FILE,
                python=make_ablation_snippet(source, text, changes),
            )
            bars = make_probability_bars(found, self._ctx.words, locale)
            yield (
                self._losses(found, locale),
                bars,
                say(locale, "attention.ablate.writing"),
                *drawer,
            )
            found = compute_ablation(loaded, text, chosen, turn=turn)
        written = say(
            locale, "attention.ablate.written", before=found.written, after=found.written_changed
        )
        yield gr.skip(), gr.skip(), written, *(gr.skip(),) * 3

    def stop_change(self, request: gr.Request) -> None:
        """Stop writing."""
        self._ctx.stops.stop(work_id(request, "ablate"))

    def scan(
        self, text: str, model_id: str | None, owner: str | None, request: gr.Request
    ) -> Iterator[tuple[Any, ...]]:
        """Switch off one head after the other; Stop leaves what is known."""
        locale = locale_of(request)
        armed = self._ctx.stops.armed(work_id(request, "scan"))
        opened = self._reader.open(model_id, owner, request)
        with armed as switch, opened as (source, loaded):
            turn = partial(self._ctx.slots.turn, cancelled=switch.is_set)
            for state in scan_heads(loaded, text, turn=turn, stopped=switch.is_set):
                yield self._scanned(state, source, text, locale)

    def stop_scan(self, request: gr.Request) -> None:
        """Stop the scan."""
        self._ctx.stops.stop(work_id(request, "scan"))

    def pick(self, changes: str, event: gr.EventData) -> str:
        """Switch off the head that was clicked, with what is off already."""
        entry = f"{int(event._data['index'])}.{int(event._data['column'])}"
        entries = split_changes(changes)
        return ", ".join([*entries, entry] if entry not in entries else entries)

    def patch(
        self,
        clean: str,
        corrupt: str,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> Iterator[tuple[Any, ...]]:
        """Put the stream of one text into the other, layer by layer."""
        locale = locale_of(request)
        armed = self._ctx.stops.armed(work_id(request, "patch"))
        opened = self._reader.open(model_id, owner, request)
        with armed as switch, opened as (source, loaded):
            turn = partial(self._ctx.slots.turn, cancelled=switch.is_set)
            states = compute_patching(loaded, clean, corrupt, turn=turn, stopped=switch.is_set)
            for state in states:
                yield self._patched(state, source, clean, corrupt, locale)

    def offer_pair(
        self,
        clean: str,
        corrupt: str,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, Any]:
        """Two texts that this model can be patched between, where none were typed."""
        if (clean, corrupt) not in PATCH_PAIRS:
            return gr.skip(), gr.skip()
        with self._reader.open(model_id, owner, request) as (_, loaded):
            return choose_pair(loaded, turn=self._ctx.slots.turn)

    def stop_patch(self, request: gr.Request) -> None:
        """Stop the patching."""
        self._ctx.stops.stop(work_id(request, "patch"))

    def example(self, event: gr.EventData) -> tuple[str, str]:
        """Type an example: the text and the changes."""
        return EXAMPLES[int(event._data["index"])]

    # ------------------------------------------------------------------------------ for programs
    def attention_ablate(self, text: str, changes: str, request: gr.Request) -> dict[str, Any]:
        """Read a text with the page's first model, with and without changes such as 3.1 x 0.5."""
        with self._reader.open(None, None, request) as (_, loaded):
            found = compute_ablation(
                loaded, text, parse_changes(changes), turn=self._ctx.slots.turn
            )
        return {
            "loss": number_or_none(found.loss),
            "loss_changed": number_or_none(found.loss_changed),
            "tokens": list(found.tokens),
            "before": list(found.before),
            "after": list(found.after),
            "divergence_nats": found.divergence_nats,
            "written": found.written,
            "written_changed": found.written_changed,
        }

    def attention_scan(self, text: str, request: gr.Request) -> dict[str, Any]:
        """Rank all heads of the page's first model by what switching them off does to the loss."""
        with self._reader.open(None, None, request) as (_, loaded):
            *_, last = scan_heads(loaded, text, turn=self._ctx.slots.turn)
        return {"loss": last.loss, "effects": last.effects.tolist()}

    def attention_patch(self, clean: str, corrupt: str, request: gr.Request) -> dict[str, Any]:
        """Put the stream of one text into another, in every layer and token."""
        with self._reader.open(None, None, request) as (_, loaded):
            *_, last = compute_patching(loaded, clean, corrupt, turn=self._ctx.slots.turn)
        return {
            "answer": last.answer,
            "other": last.other,
            "labels": list(last.labels),
            "restored": last.restored.tolist(),
        }

    # ------------------------------------------------------------------------------ what is shown
    def _losses(self, found: AblationResult, locale: str) -> str:
        say = self._ctx.words.say
        moved = say(locale, "attention.ablate.moved", divergence=f"{found.divergence_nats:.4f}")
        if np.isnan(found.loss):
            return f"{say(locale, 'attention.lab_no_loss')} {moved}"
        before, after = f"{found.loss:.4f}", f"{found.loss_changed:.4f}"
        losses = say(locale, "attention.ablate.losses", before=before, after=after)
        return f"{losses} {moved}"

    def _scanned(self, state: HeadScan, source: str, text: str, locale: str) -> tuple[Any, ...]:
        say = self._ctx.words.say
        rows, columns = names_of_heads(state.effects.shape)
        most = float(np.abs(np.nan_to_num(state.effects)).max())
        title = say(locale, "attention.ablate.map")
        ranked = rank_heads(np.abs(state.effects), MOST_RANKED)
        signed = [float(state.effects[head.layer, head.head]) for head in ranked]
        bars = [
            {"label": f"L{head.layer} h{head.head}", "value": value}
            for head, value in zip(ranked, signed, strict=True)
        ]
        drawer = NO_DRAWER
        if state.done == state.total:
            drawer = fill_drawer(
                self._ctx,
                Shown(
                    tensor="blocks.*.attn.z",
                    cells=state.effects,
                    rows=rows,
                    columns=columns,
                    function=scan_heads,
                    test=TEST_FILE,
                    python=make_scan_snippet(source, text),
                    png="lab-scan-map",
                    digits=5,
                ),
            )
        return (
            say(
                locale,
                "attention.ablate.scanned",
                done=state.done,
                total=state.total,
                loss=f"{state.loss:.4f}",
            ),
            draw_map(
                self._ctx, state.effects, rows, title, columns=columns, most=most, signed=True
            ),
            {"bars": bars, "digits": 4},
            *drawer,
        )

    def _patched(
        self, state: PatchResult, source: str, clean: str, corrupt: str, locale: str
    ) -> tuple[Any, ...]:
        say = self._ctx.words.say
        rows = [f"L{layer}" for layer in range(len(state.restored))]
        columns = [f"{i} {label}" for i, label in enumerate(state.labels)]
        title = say(locale, "attention.ablate.patch_map")
        drawer = NO_DRAWER
        if not np.isnan(state.restored).any():
            drawer = fill_drawer(
                self._ctx,
                Shown(
                    tensor="blocks.*.resid_pre",
                    cells=state.restored,
                    rows=rows,
                    columns=columns,
                    function=compute_patching,
                    test=TEST_FILE,
                    python=make_patching_snippet(source, clean, corrupt),
                    png="lab-patch-map",
                ),
            )
        return (
            say(
                locale,
                "attention.ablate.patched",
                answer=state.answer,
                other=state.other,
                clean=f"{state.clean:.2f}",
                corrupt=f"{state.corrupt:.2f}",
            ),
            draw_map(self._ctx, state.restored, rows, title, columns=columns),
            *drawer,
        )
