"""Texts that come with the app, to train on without looking for one first.

They are written by `assets/samples/make_samples.py`: stories of one small village, in a grammar
that a model of under a million parameters learns within a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent.parent / "assets" / "samples"


@dataclass(frozen=True, kw_only=True)
class SampleText:
    """One text.

    Args:
        path: Its file, UTF-8.
        prompts: Beginnings for the model to go on from while it learns.
    """

    path: Path
    prompts: tuple[str, ...]


SAMPLE_TEXTS: Mapping[str, SampleText] = {
    "village": SampleText(
        path=FOLDER / "village.txt",
        prompts=("Ada lives near the", "Who has the red ball?"),
    ),
    "village-zh": SampleText(
        path=FOLDER / "village-zh.txt",
        prompts=("小明有一个", "红色的球是谁的？"),
    ),
}
