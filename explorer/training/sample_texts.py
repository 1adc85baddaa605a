"""Texts that come with the app, to train on without looking for one first.

The village is written by `assets/samples/make_samples.py`: stories in a grammar that a model of
under a million parameters learns within a minute. The world is that of the starter model
(`explorer/starter`), written anew each time from its seed: much more of it, in two languages, for
models of some millions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent.parent / "assets" / "samples"


# Of the generated world: some hundred thousand tokens, written in a second or two.
WORLD_CHARACTERS = 2_000_000


@dataclass(frozen=True, kw_only=True)
class SampleText:
    """One text.

    Args:
        read: Gives it.
        prompts: Beginnings for the model to go on from while it learns.
        path: Its file, UTF-8; None for one that is written when it is needed.
    """

    read: Callable[[], str]
    prompts: tuple[str, ...]
    path: Path | None = None


def _from_file(name: str, *prompts: str) -> SampleText:
    path = FOLDER / name
    return SampleText(read=lambda: path.read_text(encoding="utf-8"), prompts=prompts, path=path)


def write_world() -> str:
    """The beginning of the world that the starter model was trained on."""
    from explorer.starter.documents import generate_documents, take_characters
    from explorer.starter.recipe import SEED

    documents = take_characters(generate_documents(SEED), WORLD_CHARACTERS)
    return "\n\n".join(document.text for document in documents)


SAMPLE_TEXTS: Mapping[str, SampleText] = {
    "village": _from_file("village.txt", "Ada lives near the", "Who has the red ball?"),
    "village-zh": _from_file("village-zh.txt", "小明有一个", "红色的球是谁的？"),
    "world": SampleText(read=write_world, prompts=("Once upon a time", "小明有一只")),
}
