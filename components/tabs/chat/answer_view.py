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
from explorer.tokens import label_of, units_of

# A chip takes about 0.3 kB on its way with five alternatives; the table and its CSV hold them all.
MOST_ALTERNATIVES = 5
NO_CHIPS = ""
NO_EXPORTS: dict[str, Any] = {"csv": None, "png": None, "python": None}


def make_prompt_chips(tokenizer: Any, ids: Sequence[int]) -> dict[str, Any]:
    """Give the value of the chips of a prompt: exactly what the model reads.

    Args:
        tokenizer: The model's tokenizer.
        ids: The prompt.
    """
    shown = ids[:MOST_CHIPS]
    return {
        "units": make_units(units_of(tokenizer, shown)),
        "more": len(ids) - len(shown),
        "total": len(ids),
    }


def make_chips(tokenizer: Any, tokens: Sequence[AnswerToken]) -> str:
    """Give the value of the chips: the JSON of one unit a line, so that only the new end travels.

    Args:
        tokenizer: The model's tokenizer.
        tokens: The answer so far.
    """
    # more would not be drawn, and cutting 10,000 tokens anew at each update would take a while
    shown = compute_answer_units(tokenizer, tokens[:MOST_CHIPS])
    chips = [
        {**chip, **_chances(unit)}
        for chip, unit in zip(make_units([unit.unit for unit in shown]), shown, strict=True)
    ]
    return "".join(f"{json.dumps(chip, ensure_ascii=False)}\n" for chip in chips)


def _chances(unit: AnswerUnit) -> dict[str, Any]:
    # four digits: their bars are labelled with a tenth of a percent, and they are most of the bytes
    others = [[label, float(f"{p:.4g}")] for label, p in unit.alternatives[:MOST_ALTERNATIVES]]
    return {"p": float(f"{unit.probability:.6g}"), "rank": unit.rank, "alt": others}


def make_note(ctx: AppContext, locale: str, key: str) -> dict[str, Any]:
    """A line under the conversation that says one sentence, and counts nothing.

    Args:
        ctx: The page's context.
        locale: The reader's language.
        key: Of the sentence, without `chat.`.
    """
    return {"phase": "done", "text": ctx.words.say(locale, f"chat.{key}"), "facts": []}


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
    if step.n_reused:
        facts.append([say("reused"), say("reused_value", n=f"{step.n_reused:,}")])
    n_answer = len(step.tokens)
    notes = [say(f"note_{note}") for note in step.prompt.notes]
    if step.prompt.n_dropped:
        notes.append(say("note_dropped", n=f"{step.prompt.n_dropped:,}"))
    if step.finish and step.text and not n_answer:
        notes.append(say("note_no_tokens"))
    return {
        "phase": "writing" if step.finish is None else "done",
        "text": say(f"finish_{step.finish}" if step.finish else "writing"),
        "facts": facts,
        "notes": notes,
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


def make_facts(loaded: Any, n_tokens: int) -> dict[str, Any]:
    """Say which tensor the probabilities come from, with one row for each token."""
    return {
        "tensor": "logits",
        "shape": [n_tokens, loaded.config.vocab_size],
        "dtype": str(loaded.model.dtype).removeprefix("torch."),
        "file": source_file_of(stream_answer),
        "test": "tests/explorer/test_answers.py",
    }


def make_table(
    ctx: AppContext, locale: str, tokenizer: Any, tokens: Sequence[AnswerToken]
) -> dict[str, Any]:
    """Give the first tokens as a table: the same numbers as the chips.

    Args:
        ctx: The page's context.
        locale: The reader's language.
        tokenizer: The model's tokenizer; None for a server's answer.
        tokens: The answer.
    """
    labels = make_labels(tokenizer, tokens)
    columns = ("token", "id", "probability", "rank", "entropy", "kept", "instead")
    return {
        "corner": ctx.words.say(locale, "chat.column_position"),
        "rows": [str(index) for index in range(len(labels[:MOST_TABLE_ROWS]))],
        "cols": [ctx.words.say(locale, f"chat.column_{name}") for name in columns],
        "cells": [
            # whole numbers as text: the table writes all its numbers with the same decimals
            [
                label,
                _known(None if token.id < 0 else token.id),
                token.probability,
                str(token.rank),
                _known(token.entropy_nats),
                _known(token.n_kept),
                _instead(label, token),
            ]
            for label, token in zip(labels[:MOST_TABLE_ROWS], tokens, strict=False)
        ],
        "digits": 4,
    }


def _known(number: float | None) -> float | str:
    """A whole number as text, another as it is, and a dash for what nobody told."""
    if number is None:
        return "–"
    return str(number) if isinstance(number, int) else number


def make_labels(tokenizer: Any, tokens: Sequence[AnswerToken]) -> list[str]:
    """Name the tokens of an answer so that everything in them can be seen.

    Args:
        tokenizer: The model's tokenizer; None for a server's answer.
        tokens: The answer.
    """
    return [token.text if token.id < 0 else label_of(tokenizer, token.id) for token in tokens]


def _instead(label: str, token: AnswerToken) -> str:
    """The best alternative and its probability."""
    others = [f"{text} {chance:.4f}" for text, chance in token.alternatives if text != label]
    return others[0] if others else ""


def make_csv(
    ctx: AppContext, locale: str, tokenizer: Any, tokens: Sequence[AnswerToken]
) -> str | None:
    """Publish the numbers of all tokens as CSV; its id, or None without tokens.

    Args:
        ctx: The page's context.
        locale: The reader's language.
        tokenizer: The model's tokenizer; None for a server's answer.
        tokens: The answer.
    """
    if not tokens:
        return None
    rows = [
        [
            token.id,
            token.probability,
            token.rank,
            token.alternatives[0][1] if token.alternatives else np.nan,
            np.nan if token.entropy_nats is None else token.entropy_nats,
            np.nan if token.n_kept is None else token.n_kept,
        ]
        for token in tokens
    ]
    columns = ("id", "probability", "rank", "first_choice", "entropy", "kept")
    return ctx.routes.publish(
        np.array(rows, dtype=np.float32),
        row_labels=make_labels(tokenizer, tokens),
        column_labels=[ctx.words.say(locale, f"chat.column_{name}") for name in columns],
    )


def make_choice(
    ctx: AppContext, locale: str, label: str, token: AnswerToken, *, choosable: bool
) -> dict[str, Any]:
    """Describe one token of an answer for the view that lets the reader choose another.

    Args:
        ctx: The page's context.
        locale: The reader's language.
        label: What it says.
        token: The token.
        choosable: Whether the answer can go on from another token.
    """

    def say(key: str) -> str:
        return ctx.words.say(locale, f"chat.{key}")

    facts = [
        [say("column_probability"), f"{100 * token.probability:.2f} %"],
        [say("column_rank"), f"{token.rank:,}"],
    ]
    if token.entropy_nats is not None:
        facts.append([say("column_entropy"), f"{token.entropy_nats:.3f}"])
    if token.n_kept is not None:
        facts.append([say("column_kept"), f"{token.n_kept:,}"])
    has_ids = bool(token.alternative_ids)
    ids = token.alternative_ids if has_ids else tuple(text for text, _ in token.alternatives)
    here = token.id if has_ids else token.text
    return {
        "token": label,
        "facts": facts,
        "before": [list(pair) for pair in token.alternatives],
        "after": [list(pair) for pair in token.kept],
        "at": ids.index(here) if here in ids else -1,
        "chosen": token.chosen,
        "choosable": choosable and has_ids,
        "reason": say("choice_none" if not token.alternatives else "choice_server"),
    }
