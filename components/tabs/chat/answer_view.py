"""What the page shows of an answer: chips, speed and context, the table, the snippet."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from components.context import AppContext
from components.kit.number_matrix import MOST_TABLE_ROWS
from components.token_units import MOST_CHIPS, make_units
from explorer.answer_units import AnswerUnit, compute_answer_units
from explorer.conversation import AnswerStep, AnswerToken, stream_answer
from explorer.snippets import source_file_of

# A chip takes about 0.3 kB on its way with five alternatives; the table and its CSV hold them all.
MOST_ALTERNATIVES = 5
NO_CHIPS = ""
NO_EXPORTS: dict[str, Any] = {"csv": None, "png": None, "python": None}


def make_chips(tokenizer: Any, tokens: Sequence[AnswerToken]) -> str:
    """Give the value of the chips: the JSON of one unit a line, so that only the new end travels.

    Args:
        tokenizer: The model's tokenizer.
        tokens: The answer so far.
    """
    shown = compute_answer_units(tokenizer, tokens)[:MOST_CHIPS]
    chips = [
        {**chip, **_chances(unit)}
        for chip, unit in zip(make_units([unit.unit for unit in shown]), shown, strict=True)
    ]
    return "".join(f"{json.dumps(chip, ensure_ascii=False)}\n" for chip in chips)


def _chances(unit: AnswerUnit) -> dict[str, Any]:
    # four digits: their bars are labelled with a tenth of a percent, and they are most of the bytes
    others = [[label, float(f"{p:.4g}")] for label, p in unit.alternatives[:MOST_ALTERNATIVES]]
    return {"p": float(f"{unit.probability:.6g}"), "rank": unit.rank, "alt": others}


def make_status(ctx: AppContext, locale: str, step: AnswerStep) -> dict[str, Any]:
    """Say how fast it goes, how full the context is and, at the end, why it ended.

    Args:
        ctx: The page's context.
        locale: The reader's language.
        step: The answer so far.
    """

    def say(key: str, **facts: object) -> str:
        return ctx.words.say(locale, f"chat.{key}", **facts)

    facts = []
    if step.tokens_per_s is not None:
        facts.append([say("speed"), say("speed_value", speed=f"{step.tokens_per_s:.1f}")])
    if step.first_token_s is not None:
        facts.append([say("first_token"), say("seconds", seconds=f"{step.first_token_s:.2f}")])
    n_answer = len(step.tokens)
    return {
        "phase": "writing" if step.finish is None else "done",
        "text": say(f"finish_{step.finish}" if step.finish else "writing"),
        "facts": facts,
        "prompt": step.n_prompt_tokens,
        "answer": n_answer,
        "limit": step.context_length,
        "meter": say(
            "meter",
            prompt=f"{step.n_prompt_tokens:,}",
            answer=f"{n_answer:,}",
            limit=f"{step.context_length:,}",
        ),
    }


def make_waiting(ctx: AppContext, locale: str, key: str, **facts: object) -> dict[str, Any]:
    """Say what is being waited for before the first token.

    Args:
        ctx: The page's context.
        locale: The reader's language.
        key: Of the sentence, in `chat.json`.
        **facts: Its placeholders.
    """
    return {"phase": "waiting", "text": ctx.words.say(locale, f"chat.{key}", **facts), "facts": []}


def make_facts(loaded: Any, step: AnswerStep) -> dict[str, Any]:
    """Say which tensor the probabilities come from, with one row for each token."""
    return {
        "tensor": "logits",
        "shape": [len(step.tokens), loaded.config.vocab_size],
        "dtype": str(loaded.model.dtype).removeprefix("torch."),
        "file": source_file_of(stream_answer),
        "test": "tests/components/test_chat_tab.py",
    }


def make_table(ctx: AppContext, locale: str, tokenizer: Any, step: AnswerStep) -> dict[str, Any]:
    """Give the first tokens as a table: the same numbers as the chips."""
    labels = _labels(tokenizer, step.tokens)
    columns = ("token", "id", "probability", "rank", "instead")
    return {
        "corner": ctx.words.say(locale, "chat.column_position"),
        "rows": [str(index) for index in range(len(labels[:MOST_TABLE_ROWS]))],
        "cols": [ctx.words.say(locale, f"chat.column_{name}") for name in columns],
        "cells": [
            # whole numbers as text: the table writes all its numbers with the same decimals
            [label, str(token.id), token.probability, str(token.rank), _instead(label, token)]
            for label, token in zip(labels[:MOST_TABLE_ROWS], step.tokens, strict=False)
        ],
        "digits": 4,
    }


def _labels(tokenizer: Any, tokens: Sequence[AnswerToken]) -> list[str]:
    from explorer.tokens import label_of

    return [label_of(tokenizer, token.id) for token in tokens]


def _instead(label: str, token: AnswerToken) -> str:
    """The best alternative and its probability."""
    others = [f"{text} {chance:.4f}" for text, chance in token.alternatives if text != label]
    return others[0] if others else ""


def make_exports(
    ctx: AppContext, locale: str, loaded: Any, snippet: str, step: AnswerStep
) -> dict[str, Any]:
    """Publish the numbers of all tokens as CSV, and give the snippet along."""
    if not step.tokens:
        return NO_EXPORTS
    rows = [[t.id, t.probability, t.rank, t.alternatives[0][1]] for t in step.tokens]
    columns = ("id", "probability", "rank", "first_choice")
    csv = ctx.routes.publish(
        np.array(rows, dtype=np.float32),
        row_labels=_labels(loaded.tokenizer, step.tokens),
        column_labels=[ctx.words.say(locale, f"chat.column_{name}") for name in columns],
    )
    return {"csv": csv, "png": None, "python": snippet}
