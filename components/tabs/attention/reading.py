"""What the panels of the lab share: the model that the visitor chose, and live measurements."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.context import AppContext
from components.tabs.attention.drawer import NextTokens
from components.text import Words

FIRST_TEXT = "When Mary and John went to the store, John gave a drink to"


@dataclass(frozen=True)
class Reader:
    """Opens the visitor's model.

    Args:
        ctx: The page's context.
    """

    ctx: AppContext

    @contextmanager
    def open(
        self, model_id: str | None, owner: str | None, request: gr.Request
    ) -> Iterator[tuple[str, Any]]:
        """The source of the model, and the model, held while it is used.

        Args:
            model_id: Value of the page's `model_id`.
            owner: Value of the page's `owner`.
            request: The request.
        """
        source = self.ctx.source_of(model_id)
        with self.ctx.store.lease(source, self.ctx.owner_of(owner, request)) as loaded:
            yield source, loaded


def index_of(picker: dict[str, int] | None) -> int:
    """Value of a picker, 0 before it has one."""
    return int((picker or {}).get("index", 0))


def within(index: int, count: int) -> dict[str, int]:
    """Value of a picker whose range has changed: the index is moved into it."""
    return {"index": min(max(index, 0), count - 1), "count": count}


def make_probability_bars(found: NextTokens, words: Words, locale: str) -> dict[str, Any]:
    """Value of a bar list: probabilities now, and what they were beside the token.

    Args:
        found: Next tokens with their probabilities.
        words: The sentences of the page.
        locale: The reader's language.
    """
    tokens, before, after = found.tokens, found.before, found.after
    order = sorted(range(len(tokens)), key=lambda i: -max(before[i], after[i]))
    return {
        "bars": [
            {
                "label": tokens[i],
                "value": after[i],
                "note": words.say(locale, "attention.lab_was", before=say_share(before[i])),
            }
            for i in order
        ],
        "unit": "%",
    }


def number_or_none(number: float) -> float | None:
    """What stands for a number in JSON, which has no NaN."""
    return number if math.isfinite(number) else None


def say_share(share: float) -> str:
    """A share as the page writes it."""
    return f"{100 * share:.1f} %"


def work_id(request: gr.Request, name: str) -> str:
    """Id of a piece of work of this visitor's page, for its Stop button."""
    return f"lab-{name}-{request.session_hash}"
