"""Handlers of the part "all heads": measure them once, then sort, filter and compare."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
import numpy as np
from numpy.typing import NDArray

from components.context import AppContext
from components.model_choices import list_models
from components.tabs.attention.drawer import Shown as Numbers
from components.tabs.attention.drawer import draw_map, fill_drawer, names_of_heads
from components.tabs.attention.handlers import HeadsHandlers
from components.tabs.attention.overview_views import is_same, make_head_bars, subtract_common
from components.tabs.attention.reading import Reader, work_id
from components.tabs.attention.views import Shown
from components.text import locale_of
from explorer.attention_lab.head_kinds import (
    KINDS,
    SHARES,
    HeadKinds,
    compute_head_kinds,
    compute_random_maps,
    rank_heads,
    stream_head_kinds,
)
from explorer.attention_lab.snippets import Reading, make_kinds_snippet
from explorer.attention_maps import AttentionMaps, compute_attention

MOST_RANKED = 15
READINGS = ("text", "random")
ORDERS = ("largest", "smallest")
PROGRESS_S = 0.5
QUOTED = 24
TEST_FILE = "tests/explorer/attention_lab/test_head_kinds.py"


@dataclass(frozen=True)
class Question:
    """What the controls ask for, in their order.

    Args:
        kind: Of `KINDS`.
        reading: Of `READINGS`.
        order: Of `ORDERS`.
        least: Scores below that share of the largest are left out of the ranking.
        other_text: Text to compare with, or "".
        other_model: Model to compare with, or "".
    """

    kind: str
    reading: str
    order: str
    least: float
    other_text: str
    other_model: str

    @property
    def compares(self) -> bool:
        """Whether two readings are compared."""
        return bool(self.other_text.strip() or self.other_model.strip())

    def readings(self, shown: Shown) -> list[Reading]:
        """What must be read: the text of the panel, and what it is compared with."""
        own = (shown.source, shown.text, shown.first)
        if not self.compares:
            return [own]
        text = self.other_text.strip()
        other = (self.other_model.strip() or shown.source, text or shown.text)
        return [own, (*other, 0 if text else shown.first)]


def ask(
    kind: str, reading: str, order: str, least: float, text: str | None, model: str | None
) -> Question:
    """The question, from the values of the controls."""
    known = kind if kind in KINDS else KINDS[0]
    return Question(known, reading, order, float(least or 0), text or "", model or "")


@dataclass(frozen=True)
class Measured:
    """What has been measured, kept between events.

    Args:
        awake: Whether somebody has looked at this part.
        at: The reading that is shown.
        kept: Scores that were measured last: reading and kind of reading, and the id of the scores.
        places: Heads of the ranking.
    """

    awake: bool = False
    at: Reading = ("", "", 0)
    kept: tuple[tuple[Reading, str, str], ...] = ()
    places: tuple[tuple[int, int], ...] = ()

    def find(self, reading: Reading, kind: str) -> str:
        """Id of the scores of a reading, or ""."""
        return next((id_ for at, of, id_ in self.kept if (at, of) == (reading, kind)), "")


class OverviewHandlers:
    """Handlers of the part's events.

    Args:
        ctx: The page's context.
        heads: Those of the panel, which keep what was read.
    """

    def __init__(self, ctx: AppContext, heads: HeadsHandlers) -> None:
        self._ctx = ctx
        self._heads = heads
        self._reader = Reader(ctx)

    def show(
        self,
        shown: Shown,
        measured: Measured,
        owner: str | None,
        request: gr.Request,
        *controls: Any,
    ) -> Iterator[tuple[Any, ...]]:
        """Score every head, or the difference from another text or model; layer by layer."""
        if not shown.text:
            yield (*(gr.skip(),) * 6, replace(measured, awake=True))
            return
        question = ask(*controls)
        readings = question.readings(shown)
        scores = []
        with self._ctx.stops.armed(work_id(request, "overview")) as switch:
            for reading in readings:
                found = self._kept(measured, reading, question.reading)
                if found is None:
                    maps = self._maps(reading, question.reading, shown, owner, request)
                    for state in self._measure(maps, switch.is_set, request):
                        if isinstance(state, str):
                            yield (state, *(gr.skip(),) * 6)
                        else:
                            found = state
                    assert found is not None, "a model has at least one layer"
                    measured = self._keep(measured, reading, question.reading, found)
                scores.append(found.scores[question.kind])
        yield self._view(question, readings, scores, replace(measured, awake=True), request)

    def follow(
        self,
        shown: Shown,
        measured: Measured,
        owner: str | None,
        request: gr.Request,
        *controls: Any,
    ) -> Iterator[tuple[Any, ...]]:
        """Measure again when the panel reads something else; not before somebody has looked."""
        if measured.awake and measured.at != (shown.source, shown.text, shown.first):
            yield from self.show(shown, measured, owner, request, *controls)
        else:
            yield (gr.skip(),) * 7

    def offer(self, shown: Shown, owner: str | None, request: gr.Request) -> Any:
        """Models and checkpoints that can be compared."""
        found = list_models(self._ctx, shown.source, self._ctx.owner_of(owner, request))
        return gr.Dropdown(found, allow_custom_value=True)

    def ranked(
        self,
        measured: Measured,
        shown: Shown,
        owner: str | None,
        event: gr.EventData,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Enlarge a head of the ranking."""
        layer, head = measured.places[int(event._data["index"])]
        return self._heads.place(shown, owner, layer, head, request)

    def cell(
        self, shown: Shown, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Enlarge the head that was clicked in the overview."""
        layer, head = int(event._data["index"]), int(event._data["column"])
        return self._heads.place(shown, owner, layer, head, request)

    def attention_heads(
        self, text: str, kind: str, random: bool, request: gr.Request
    ) -> dict[str, Any]:
        """Score every head of the page's first model by what it does, (layers, heads)."""
        question = ask(kind, "random" if random else "text", ORDERS[0], 0, "", "")
        source = self._ctx.source_of(None)
        maps = self._read((source, text, 0), question.reading, None, request)
        scores = compute_head_kinds(maps).scores[question.kind]
        return {"scores": [[None if np.isnan(x) else x for x in row] for row in scores.tolist()]}

    def _kept(self, measured: Measured, reading: Reading, kind: str) -> HeadKinds | None:
        """Scores of all kinds are kept: changing the kind reads and measures nothing again."""
        kept = self._ctx.results.get(measured.find(reading, kind))
        return kept if isinstance(kept, HeadKinds) else None

    def _keep(self, measured: Measured, at: Reading, kind: str, found: HeadKinds) -> Measured:
        entry = (at, kind, self._ctx.results.put(found))
        return replace(measured, kept=(entry, *measured.kept[:3]))

    def _maps(
        self, reading: Reading, kind: str, shown: Shown, owner: str | None, request: gr.Request
    ) -> AttentionMaps:
        if kind == "text" and reading == (shown.source, shown.text, shown.first):
            return self._heads.maps(shown, owner, request)
        return self._read(reading, kind, owner, request)

    def _read(
        self, reading: Reading, kind: str, owner: str | None, request: gr.Request
    ) -> AttentionMaps:
        source, text, first = reading
        with self._reader.open(source, owner, request) as (_, loaded):
            turn = self._ctx.slots.turn
            if kind == "random":
                return compute_random_maps(loaded, turn=turn)
            return compute_attention(loaded, text, first=first, turn=turn)

    def _measure(
        self, maps: AttentionMaps, stopped: Callable[[], bool], request: gr.Request
    ) -> Iterator[str | HeadKinds]:
        """Now and then how far it is, as a sentence; at the end the scores."""
        locale, say = locale_of(request), self._ctx.words.say
        told_at = time.monotonic()
        found = None
        for found in stream_head_kinds(maps, stopped=stopped):
            if time.monotonic() - told_at > PROGRESS_S:
                told_at = time.monotonic()
                yield say(
                    locale, "attention.measuring", layer=found.n_measured, layers=maps.n_layers
                )
        assert found is not None, "a model has at least one layer"
        yield found

    def _view(
        self,
        question: Question,
        readings: list[Reading],
        found: list[NDArray[np.float64]],
        measured: Measured,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        locale, say = locale_of(request), self._ctx.words.say
        scores = found[0] if len(found) == 1 else subtract_common(*found)
        is_share = question.kind in SHARES and not question.compares
        most = 1.0 if is_share else float(np.nan_to_num(np.abs(scores)).max())
        by = -np.abs(scores) if question.order == "smallest" else np.abs(scores)
        kept = np.where(np.abs(scores) >= question.least * most, by, np.nan)
        ranked = () if question.compares and is_same(scores) else rank_heads(kept, MOST_RANKED)
        rows, columns = names_of_heads(scores.shape)
        name = say(locale, f"attention.kind.{question.kind}")
        title = say(locale, "attention.kind_difference", kind=name) if question.compares else name
        drawer = Numbers(
            tensor="blocks.*.attn.pattern",
            cells=scores,
            rows=rows,
            columns=columns,
            function=compute_head_kinds,
            test=TEST_FILE,
            python=make_kinds_snippet(
                question.kind, *readings, is_random=question.reading == "random"
            ),
            png="lab-overview-map",
        )
        return (
            self._said(question, readings, found, locale),
            draw_map(
                self._ctx,
                scores,
                rows,
                title,
                columns=columns,
                most=most,
                signed=question.compares,
            ),
            {"bars": make_head_bars(ranked, scores), "max": most, "digits": 4},
            *fill_drawer(self._ctx, drawer),
            replace(measured, at=readings[0], places=tuple((h.layer, h.head) for h in ranked)),
        )

    def _said(
        self,
        question: Question,
        readings: list[Reading],
        found: list[NDArray[np.float64]],
        locale: str,
    ) -> str:
        say = self._ctx.words.say
        parts = [say(locale, f"attention.kind_info.{question.kind}")]
        if np.isnan(found[0]).all():
            parts.append(say(locale, "attention.kind_nothing"))
        if question.compares:
            names = [f"{source} · “{_quote(text)}”" for source, text, _ in readings]
            parts.append(say(locale, "attention.compared", first=names[0], second=names[1]))
            if found[0].shape != found[1].shape:
                parts.append(say(locale, "attention.compared_common"))
            if is_same(subtract_common(*found)):
                parts.append(say(locale, "attention.compared_same"))
        return " ".join(parts)


def _quote(text: str) -> str:
    return text if len(text) <= QUOTED else text[:QUOTED] + "…"
