"""Words and numbers typed by hand, in the place of what a model says.

closer 4.51          one a line, or between commas: a word and its logit
"""

from __future__ import annotations

import math

import numpy as np

from explorer.errors import ConfigError
from explorer.next_token import NextLogits

MOST_WORDS = 200


def parse_logits(text: str) -> NextLogits:
    """Take words and numbers typed by hand: `closer 4.51`, one a line or between commas.

    Raises:
        ConfigError: A line is no word and a number, there are fewer than two or too many, or no
            number is finite.
    """
    pairs = [_parse_pair(piece) for line in text.splitlines() for piece in line.split(",")]
    given = [pair for pair in pairs if pair is not None]
    if not 2 <= len(given) <= MOST_WORDS:
        raise ConfigError(
            f"{len(given)} words with a number were found; give 2 to {MOST_WORDS}, one a line",
            code="logits-count",
            found=len(given),
            most=MOST_WORDS,
        )
    words, numbers = zip(*given, strict=True)
    if not any(math.isfinite(number) for number in numbers):
        raise ConfigError(
            "no logit is finite, so that no token has a probability; give at least one number",
            code="logits-all-removed",
        )
    order = np.argsort(-np.array(numbers), kind="stable").tolist()
    return NextLogits(
        model_name="",
        ids=(),
        logits=np.array(numbers, dtype=np.float32),
        candidate_ids=tuple(order),
        candidate_labels=tuple(words[i] for i in order),
    )


def _parse_pair(piece: str) -> tuple[str, float] | None:
    if not piece.strip():
        return None
    word, _, number = piece.strip().replace("=", " ").replace("\t", " ").rpartition(" ")
    try:
        value = float(number)
        if not word.strip() or math.isnan(value) or value == math.inf:
            raise ValueError
    except ValueError:
        raise ConfigError(
            f"{piece.strip()[:60]!r} is not a word and a number; write it as: closer 4.51",
            code="logits-line",
            found=piece.strip()[:60],
        ) from None
    return word.strip(), value
