"""What the panel "heads" shows, as values of the kit's views."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.kit.number_matrix import MOST_TABLE_ROWS
from components.text import Words
from components.token_units import make_units
from explorer.attention_maps import (
    AttentionMaps,
    compute_patterns,
    compute_scores,
    find_strongest_keys,
)
from explorer.snippets import source_file_of


@dataclass(frozen=True)
class Shown:
    """What the panel shows, and under which ids the page fetches it.

    Args:
        result_id: The text's queries and keys; "" before a text was read.
        source: The model that read it.
        text: The text.
        layer: The layer shown; -1 before one was chosen.
        head: The head enlarged.
        query: The token whose row is looked at; -1 is the last.
        first: Place in a long text of the first token that is read.
        asked: The place that the address asked for, once it was gone to.
        stack_id: Published thumbnails of the layer.
        matrix_id: Published weights of the head.
    """

    result_id: str = ""
    source: str = ""
    text: str = ""
    layer: int = -1
    head: int = 0
    query: int = -1
    first: int = 0
    asked: str = ""
    stack_id: str = ""
    matrix_id: str = ""


@dataclass(frozen=True)
class AttentionWords:
    """Sentences of the tab in the reader's language.

    Args:
        words: The sentences of the page.
        locale: The reader's language.
    """

    words: Words
    locale: str

    def say(self, key: str, **values: object) -> str:
        """The sentence `attention.<key>`."""
        return self.words.say(self.locale, f"attention.{key}", **values)

    def counts(self, maps: AttentionMaps) -> str:
        """How many tokens were read, and how many were left out."""
        n_read = len(maps.ids)
        if maps.n_left_out:
            return self.say(
                "counts_cut",
                first=f"{maps.first:,}",
                last=f"{maps.first + n_read - 1:,}",
                total=f"{n_read + maps.n_left_out:,}",
                most=f"{n_read:,}",
            )
        return self.say("counts", tokens=f"{n_read:,}", model=maps.model_name)


def make_chips(maps: AttentionMaps) -> dict[str, Any]:
    """The value of the chips; the weights on them change alone."""
    return {
        "units": make_units(maps.units),
        "more": maps.n_left_out,
        "total": len(maps.ids) + maps.n_left_out,
    }


def make_grid(shown: Shown, maps: AttentionMaps) -> dict[str, Any]:
    """The value of the head grid; heads that share keys and values stand together."""
    group = maps.n_heads // maps.n_kv_heads
    side = maps.thumbnail_side
    return {
        "stack": shown.stack_id,
        "n": maps.n_heads,
        "size": [side, side],
        "labels": [f"h{head}" for head in range(maps.n_heads)],
        "selected": shown.head,
        "causal": maps.attention.causal,
        "groups": [group] * maps.n_kv_heads if group > 1 else None,
    }


def make_map(shown: Shown, maps: AttentionMaps, words: AttentionWords) -> dict[str, Any]:
    """The value of the large map."""
    return {
        "matrix": shown.matrix_id,
        "rows": list(maps.labels),
        "causal": maps.attention.causal,
        "title": words.say("head", head=shown.head),
        "max": 1,
    }


def make_facts(shown: Shown, maps: AttentionMaps) -> dict[str, Any]:
    """Where the numbers come from."""
    n_tokens = len(maps.ids)
    return {
        "tensor": f"blocks.{shown.layer}.attn.pattern",
        "shape": [maps.n_heads, n_tokens, n_tokens],
        "dtype": str(maps.queries[shown.layer].dtype),
        "file": source_file_of(compute_patterns),
        "test": "tests/explorer/test_attention_maps.py",
    }


def make_table(
    shown: Shown, maps: AttentionMaps, row: NDArray[np.float32], words: AttentionWords
) -> dict[str, Any]:
    """The row of the chosen token: the keys that it reads most, with score and weight."""
    scores = compute_scores(maps, shown.layer, shown.head, shown.query)
    keys = find_strongest_keys(maps, row, most=MOST_TABLE_ROWS)
    query = maps.labels[shown.query]
    return {
        "corner": words.say("column_query", position=shown.query, token=query),
        "rows": [key.label for key in keys],
        "cols": [words.say(f"column_{name}") for name in ("position", "score", "weight")],
        "cells": [[str(k.position), float(scores[k.position]), k.weight] for k in keys],
        "digits": 4,
    }
