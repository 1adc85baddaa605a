"""Handlers of the panel "embeddings"."""

from dataclasses import astuple, dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.kit.plotly_panel import figure_message, plain
from components.tabs.tokens.drawer import Numbers, fill_drawer
from components.text import locale_of
from explorer.embeddings import (
    SHOWN_NUMBERS,
    InputVectors,
    Lookup,
    Neighbours,
    TokenMap,
    ToySetup,
    compute_input_vectors,
    compute_toy_lookup,
    find_neighbours,
    first_token,
    map_tokens,
    read_ids,
    read_map_tokens,
)
from explorer.tokenizer_lab.snippets import make_model_snippet

MOST_VECTORS = 12


@dataclass(frozen=True)
class Example:
    """What one of the examples types."""

    ids: str
    token: str
    map_words: str
    text: str
    setup: ToySetup


EXAMPLES = (
    Example(
        "2 3 5 1",
        " three",
        "one two three four five red blue green yellow cat dog bird fish",
        "the cat sat",
        ToySetup(),
    ),
    Example(
        "2 3 1",
        " dog",
        "cat dog horse cow sheep bird fish lion apple pear bread milk tea house street town",
        "a dog and a cat",
        ToySetup(n_rows=4, n_columns=5),
    ),
    Example(
        "0 1 2 3",
        " first",
        "first second third fourth last next before after early late new old",
        "dog bites man, man bites dog",
        ToySetup(n_rows=4, n_columns=4, seed=7),
    ),
)


class EmbeddingHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def example(self, event: gr.EventData) -> tuple[Any, ...]:
        """Type one of the examples."""
        chosen = EXAMPLES[int(event._data["index"])]
        typed = (chosen.ids, chosen.token, chosen.map_words, chosen.text)
        return *typed, *astuple(chosen.setup)

    def lookup(self, ids: str, request: gr.Request, settings: ToySetup) -> tuple[Any, ...]:
        """Look rows of a small matrix up, in both ways."""
        found, locale = compute_toy_lookup(read_ids(ids), settings), locale_of(request)
        equal = np.array_equal(found.product, found.rows)
        said = self._ctx.words.say(
            locale,
            "tokens.embed.lookup_said",
            equal=self._ctx.words.say(locale, "tokens.yes" if equal else "tokens.no"),
        )
        return said, *self._toy_tables(found, locale)

    def neighbours(
        self, token: str, model_id: str | None, owner: str | None, request: gr.Request
    ) -> tuple[str, dict[str, Any]]:
        """The tokens whose rows are nearest to that of a token."""
        found = self._near(token, model_id, owner, request)
        said = self._ctx.words.say(
            locale_of(request),
            "tokens.embed.neighbours_said",
            token=found.label,
            id=found.id,
            norm=f"{found.norm:.3f}",
            model=self._ctx.source_of(model_id),
        )
        bars = [
            {"label": label, "value": round(float(cosine), 6), "note": str(i)}
            for label, cosine, i in zip(found.labels, found.cosines, found.ids, strict=True)
        ]
        return said, {"bars": bars, "unit": "", "digits": 4, "max": 1}

    def pick(self, bars: dict[str, Any], token: str, event: gr.EventData) -> str:
        """Go on to a neighbour."""
        listed, index = (bars or {}).get("bars", []), int(event._data["index"])
        return f"#{listed[index]['note']}" if index < len(listed) else token

    def map(
        self, typed: str, model_id: str | None, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """Put tokens on a plane."""
        ctx, locale, source = self._ctx, locale_of(request), self._ctx.source_of(model_id)
        with ctx.store.lease(source, ctx.owner_of(owner, request)) as loaded:
            ids = read_map_tokens(loaded.tokenizer, typed)
            found = map_tokens(loaded, ids)
            shape = [loaded.config.vocab_size, loaded.config.d_model]
        drawer = fill_drawer(
            ctx,
            self._map_table(found, locale),
            tensor="embed.weight",
            shape=shape,
            dtype="float32",
            function=map_tokens,
            snippet=make_model_snippet(source, map_tokens, repr(list(ids)), ["found.points"]),
            png="embed-map",
        )
        first, second = (f"{share:.0%}" for share in found.explained)
        said = ctx.words.say(
            locale, "tokens.embed.map_said", n=len(found.ids), first=first, second=second
        )
        return said, figure_message(self._draw(found, locale)), *drawer

    def vectors(
        self, text: str, model_id: str | None, owner: str | None, request: gr.Request
    ) -> tuple[str, dict[str, Any]]:
        """Token, position and their sum, for the first tokens of a text."""
        ctx, locale = self._ctx, locale_of(request)
        with ctx.store.lease(ctx.source_of(model_id), ctx.owner_of(owner, request)) as loaded:
            ids = loaded.tokenizer.encode(text)[:MOST_VECTORS]
            found = compute_input_vectors(loaded, ids, turn=ctx.slots.turn)
        said = ctx.words.say(locale, f"tokens.embed.kind_{found.kind}", scale=f"{found.scale:g}")
        return said, self._vector_table(found, locale)

    def look_up(self, ids: str, *, settings: ToySetup) -> dict[str, Any]:
        """Rows of a small random matrix, looked up and as one-hot times matrix."""
        found = compute_toy_lookup(read_ids(ids), settings)
        return {
            "matrix": found.matrix.tolist(),
            "one_hot": found.one_hot.tolist(),
            "product": found.product.tolist(),
            "rows": found.rows.tolist(),
        }

    def list_neighbours(self, token: str, request: gr.Request) -> dict[str, Any]:
        """Nearest tokens, by the embedding of the page's first model; #17 is the token of id 17."""
        found = self._near(token, None, None, request)
        return {
            "id": found.id,
            "ids": list(found.ids),
            "labels": list(found.labels),
            "cosines": found.cosines.tolist(),
        }

    def _near(
        self, token: str, model_id: str | None, owner: str | None, request: gr.Request
    ) -> Neighbours:
        ctx = self._ctx
        with ctx.store.lease(ctx.source_of(model_id), ctx.owner_of(owner, request)) as loaded:
            return find_neighbours(loaded, first_token(loaded.tokenizer, token))

    # ------------------------------------------------------------------------------- in words
    def _toy_tables(self, found: Lookup, locale: str) -> list[dict[str, Any]]:
        say = self._ctx.words.say
        tokens = [f"id {i}" for i in found.ids]
        rows = [str(i) for i in range(len(found.matrix))]
        columns = [str(i) for i in range(found.matrix.shape[1])]
        parts = (
            ("one_hot", tokens, rows, found.one_hot, 0),
            ("matrix", rows, columns, found.matrix, 4),
            ("product", tokens, columns, found.product, 4),
        )
        return [
            {
                **Numbers(
                    corner=say(locale, f"tokens.embed.{name}"),
                    rows=labels,
                    columns=heads,
                    cells=numbers.tolist(),
                    digits=digits,
                ).as_value(),
                "shade": float(np.abs(numbers).max()),
            }
            for name, labels, heads, numbers, digits in parts
        ]

    def _map_table(self, found: TokenMap, locale: str) -> Numbers:
        say = self._ctx.words.say
        columns = [say(locale, "tokens.column_id"), "1", "2"]
        cells = [[i, *map(float, point)] for i, point in zip(found.ids, found.points, strict=True)]
        return Numbers(
            corner=say(locale, "tokens.column_token"),
            rows=found.labels,
            columns=columns,
            cells=cells,
            digits=4,
        )

    def _draw(self, found: TokenMap, locale: str) -> Any:
        import plotly.graph_objects as go  # late: a second, which no start of the page needs

        say = self._ctx.words.say
        names = [plain(label) for label in found.labels]
        figure = go.Figure(
            go.Scatter(
                x=found.points[:, 0].tolist(),
                y=found.points[:, 1].tolist(),
                mode="markers+text",
                text=names,
                hovertext=[f"{name} (id {i})" for name, i in zip(names, found.ids, strict=True)],
                hoverinfo="text",
            )
        )
        titles = (say(locale, f"tokens.embed.axis_{i}") for i in (1, 2))
        figure.update_layout(
            hovermode="closest",
            showlegend=False,
            meta={"places": True},
            **{f"{axis}axis_title": title for axis, title in zip("xy", titles, strict=True)},
        )
        return figure

    def _vector_table(self, found: InputVectors, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        rows, cells = [], []
        named = (("token", found.tokens), ("position", found.positions), ("input", found.inputs))
        for place, label in enumerate(found.labels):
            for name, numbers in named:
                rows.append(f"{place} {label} {say(locale, f'tokens.embed.part_{name}')}")
                cells.append(numbers[place, :SHOWN_NUMBERS].tolist())
        return Numbers(
            corner="",
            rows=rows,
            columns=[str(i) for i in range(min(SHOWN_NUMBERS, found.tokens.shape[1]))],
            cells=cells,
            digits=4,
        ).as_value()
