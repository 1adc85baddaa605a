"""Handlers of the panel "heads": read a text once, then look at its layers, heads and tokens."""

from dataclasses import replace
from typing import Any

import gradio as gr
import numpy as np
from numpy.typing import NDArray

from components.context import AppContext
from components.kit.views import update_view
from components.tabs.attention.views import (
    AttentionWords,
    Shown,
    make_chips,
    make_facts,
    make_grid,
    make_map,
    make_table,
)
from components.text import locale_of
from components.token_units import last_token_of, sum_over_units, unit_of_token
from explorer.attention_maps import (
    AttentionMaps,
    check_index,
    compute_attention,
    compute_patterns,
    compute_thumbnails,
)
from explorer.snippets import make_attention_snippet

FIRST_TEXT = "When Mary and John went to the store, John gave a drink to Mary. 玛丽说 thanks! 🦙"
# What the examples type; not words of the page, so the same in every language.
EXAMPLE_TEXTS = (
    "When Mary and John went to the store, John gave a drink to",
    "The blue cat sat on the warm mat. The blue cat sat on the warm mat.",
    "def area(width, height):\n    return width * height\n\nprint(area(3, 4))",
)


def parse_place(place: str) -> str:
    """Take "layer.head.token", as it stands in addresses.

    Raises:
        ValueError: It is something else.
    """
    layer, head, query = (int(number) for number in place.split("."))
    return f"{layer}.{head}.{query}"


class HeadsHandlers:
    """Handlers of the panel's events; all but two return the values of `Parts.outputs`.

    `example` types a text, and `attention` is for programs.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def example(self, event: gr.EventData) -> str:
        """Type one of the examples."""
        return EXAMPLE_TEXTS[int(event._data["index"])]

    def text(
        self,
        shown: Shown,
        asked: str,
        text: str,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Read the text; stay at the layer and head of the text before, or go where asked."""
        if not text:
            return empty_views(replace(shown, text=""))
        if asked and asked != shown.asked:
            layer, head, query = (int(number) for number in asked.split("."))
            shown = replace(shown, layer=layer, head=head, query=query, asked=asked)
        else:
            shown = replace(shown, query=-1)
        source = self._ctx.source_of(model_id)
        if text != shown.text:
            shown = replace(shown, first=0)
        maps = self._read(source, text, owner, request, shown.first)
        result_id = self._ctx.results.put(maps)
        # another text has other pictures: those of the one before are not its own
        shown = replace(shown, source=source, text=text, result_id=result_id, stack_id="")
        return self._view(shown, maps, request)

    def window(
        self, shown: Shown, first: float | None, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """Read a long text from another token on."""
        moved = replace(shown, first=max(int(first or 0), 0), stack_id="", result_id="")
        if not moved.text:
            return empty_views(moved)
        maps = self._read(moved.source, moved.text, owner, request, moved.first)
        moved = replace(moved, result_id=self._ctx.results.put(maps), first=maps.first)
        return self._view(moved, maps, request)

    def layer(
        self, shown: Shown, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Show another layer."""
        return self._move(replace(shown, layer=_index(event), stack_id=""), owner, request)

    def head(
        self, shown: Shown, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Enlarge another head."""
        return self._move(replace(shown, head=_index(event), matrix_id=""), owner, request)

    def place(
        self, shown: Shown, owner: str | None, layer: int, head: int, request: gr.Request
    ) -> tuple[Any, ...]:
        """Go to a head of any layer."""
        moved = replace(shown, layer=layer, head=head, stack_id="")
        return self._move(moved, owner, request)

    def query(
        self, shown: Shown, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Look at the row of another token."""
        maps = self.maps(shown, owner, request)
        return self._view(replace(shown, query=_index(event)), maps, request, row_only=True)

    def unit(
        self, shown: Shown, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Look at the row of a chip: of its last token."""
        maps = self.maps(shown, owner, request)
        query = last_token_of(maps.units, _index(event))
        return self._view(replace(shown, query=query), maps, request, row_only=True)

    def attention(self, text: str, layer: int, head: int, request: gr.Request) -> dict[str, Any]:
        """Attention weights of one head of the page's first model; row i reads from 0 to i."""
        maps = self._read(self._ctx.source_of(None), text, None, request)
        patterns = compute_patterns(maps, layer)
        check_index("head", head, maps.n_heads)
        return {
            "labels": list(maps.labels),
            "left_out": maps.n_left_out,
            "weights": patterns[head].tolist(),
        }

    def _read(
        self, source: str, text: str, owner: str | None, request: gr.Request, first: int = 0
    ) -> AttentionMaps:
        ctx = self._ctx
        with ctx.store.lease(source, ctx.owner_of(owner, request)) as loaded:
            return compute_attention(loaded, text, first=first, turn=ctx.slots.turn)

    def maps(self, shown: Shown, owner: str | None, request: gr.Request) -> AttentionMaps:
        """The text's queries and keys; read again when they had to make room for others."""
        kept = self._ctx.results.get(shown.result_id)
        if isinstance(kept, AttentionMaps):
            return kept
        return self._read(shown.source, shown.text, owner, request, shown.first)

    def _move(self, shown: Shown, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        return self._view(shown, self.maps(shown, owner, request), request)

    def _view(
        self, shown: Shown, maps: AttentionMaps, request: gr.Request, *, row_only: bool = False
    ) -> tuple[Any, ...]:
        """Values for `Parts.outputs`; where only the row changed, of what depends on the row."""
        shown = _within(shown, maps)
        patterns = compute_patterns(maps, shown.layer)
        published = self._publish(shown, maps, patterns)
        row_only = row_only and published == shown  # what had to go meanwhile is sent again
        shown, words = published, AttentionWords(self._ctx.words, locale_of(request))
        row = patterns[shown.head, shown.query]
        chips = {} if row_only else {"value": make_chips(maps)}
        big = {} if row_only else {"value": make_map(shown, maps, words)}
        snippet = make_attention_snippet(
            shown.source, shown.text, shown.layer, shown.head, shown.query
        )
        return (
            gr.skip() if row_only else words.counts(maps),
            {"index": shown.layer, "count": maps.n_layers},
            gr.skip() if row_only else words.say("heads_of_layer", layer=shown.layer),
            update_view(
                **chips,
                weights=sum_over_units(maps.units, row.tolist()),
                selected=unit_of_token(maps.units, shown.query),
            ),
            gr.skip() if row_only else make_grid(shown, maps),
            update_view(**big, selected=shown.query),
            {"index": shown.query, "count": len(maps.ids)},
            gr.skip() if row_only else make_facts(shown, maps),
            make_table(shown, maps, row, words),
            {
                "csv": shown.matrix_id,
                "html": shown.matrix_id,
                "png": "attention-map",
                "python": snippet,
            },
            f"{shown.layer}.{shown.head}.{shown.query}",
            shown,
        )

    def _publish(self, shown: Shown, maps: AttentionMaps, patterns: NDArray[np.float32]) -> Shown:
        """Put thumbnails and map where the page fetches them, unless they are there still."""
        routes = self._ctx.routes
        if routes.find(shown.stack_id) is None:  # another layer: another map as well
            stack_id = routes.publish_stack(compute_thumbnails(patterns))
            shown = replace(shown, stack_id=stack_id, matrix_id="")
        if routes.find(shown.matrix_id) is None:
            matrix_id = routes.publish(
                patterns[shown.head], row_labels=maps.labels, column_labels=maps.labels
            )
            shown = replace(shown, matrix_id=matrix_id)
        return shown


def empty_views(shown: Any) -> tuple[Any, ...]:
    """Values for `Parts.outputs` while there is no text: empty views, which say what will come."""
    return (
        "",
        gr.skip(),
        "",
        update_view(value={"units": [], "more": 0, "total": 0}, weights=[], selected=-1),
        None,
        None,
        {"index": 0, "count": 0},
        None,
        None,
        {"csv": None, "png": None, "python": None},
        "",
        shown,
    )


def _index(event: gr.EventData) -> int:
    return int(event._data["index"])


def _within(shown: Shown, maps: AttentionMaps) -> Shown:
    """Move layer, head and token into the ranges of this model and text."""
    layer = maps.n_layers // 2 if shown.layer < 0 else min(shown.layer, maps.n_layers - 1)
    last = len(maps.ids) - 1
    return replace(
        shown,
        layer=layer,
        head=min(max(shown.head, 0), maps.n_heads - 1),
        query=last if shown.query < 0 else min(shown.query, last),
    )
