"""Build the starter model: write its world, cut it, train on it, score it, pack it.

    python -m explorer.starter.build FOLDER

makes FOLDER/runs (the two runs of the recipe, runs like any other; started again it goes on from
the last checkpoint) and FOLDER/starter: model.safetensors in 16 bits, config.json, tokenizer.json,
README.md (its card) and scores.json. The same seed gives the same text everywhere, and the same
scores up to the last bits of another machine's sums.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.cpu_share import TRAINING_SPINS, set_waiting
from explorer.starter.documents import (
    CHARACTERS_PER_TOKEN,
    generate_documents,
    take_characters,
)
from explorer.starter.recipe import (
    COPYING_SEED,
    COPYING_TOKENS,
    ROWS_SHARE,
    SEED,
    SEPARATOR,
    TOKENIZER_CHARACTERS,
    VALIDATION_TOKENS,
    WORLD_TOKENS,
    copying_run,
    starter_run,
)
from explorer.starter.records import Document
from explorer.starter.rows import ROW_PIECES, find_pieces, write_rows
from models.registry import get_preset

if TYPE_CHECKING:
    from explorer.training.run_config import RunConfig
    from explorer.training.run_folder import RunFolder
    from models.tokenizers import Tokenizer

RUN_LINK, COPYING_LINK = "run.txt", "copying.txt"
# A trial shows that everything works; its vocabulary and scores mean little.
TRIAL_QUESTIONS = 3
TRIAL_CHARACTERS = 400_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Build it, as the command line says.

    Args:
        arguments: The words after the program's name; those of this process when None.

    Returns:
        0; 1 when the training failed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m explorer.starter.build", description="Build the starter model."
    )
    parser.add_argument("folder", type=Path, help="where to build")
    parser.add_argument(
        "--steps", type=int, help="optimiser steps, for a trial (default: the whole recipe)"
    )
    options = parser.parse_args(arguments)
    set_waiting(os.environ, TRAINING_SPINS)  # before torch
    from explorer.starter.packing import pack_starter
    from explorer.starter.scoring import N_QUESTIONS

    steps = options.steps
    world = find_or_make_run(options.folder / RUN_LINK, lambda: make_world_run(steps))
    if not train_run(world):
        return 1
    copying = find_or_make_run(
        options.folder / COPYING_LINK, lambda: make_copying_run(world, steps)
    )
    if not train_run(copying):
        return 1
    target = options.folder / "starter"
    pack_starter(
        world, copying, target, n_questions=N_QUESTIONS if steps is None else TRIAL_QUESTIONS
    )
    print(f"built in {target}", flush=True)
    return 0


def train_run(run: RunFolder) -> bool:
    """Train to the end, or on to it, and print evaluations; False when the training failed."""
    from explorer.training.events import Evaluated, Failed
    from explorer.training.loop import train

    for event in train(run.path):
        if isinstance(event, Evaluated | Failed):
            print(event, flush=True)
        if isinstance(event, Failed):
            return False
    return True


@dataclass(frozen=True, kw_only=True)
class Ingredients:
    """What a run is made of.

    Args:
        config: Its configuration.
        text: What it reads.
        validation_text: What it is evaluated on.
        tokenizer: Cuts both.
        begins_from: The checkpoint that it begins from; None is nothing.
    """

    config: RunConfig
    text: str
    validation_text: str
    tokenizer: Tokenizer
    begins_from: Path | None = None


def find_or_make_run(link: Path, make: Callable[[], Ingredients]) -> RunFolder:
    """The run of an earlier call in the same folder, or a new one.

    Args:
        link: Small file beside the folder of runs that names the run.
        make: Gives what a new one is made of.
    """
    from explorer.training.initial_weights import write_initial
    from explorer.training.prepare import RunText, make_run
    from explorer.training.run_folder import RunFolder
    from models.loading import load_model

    runs = link.parent / "runs"
    if link.exists():
        return RunFolder(runs / link.read_text(encoding="utf-8").strip())
    begun = time.perf_counter()
    of = make()
    content = RunText(text=of.text, validation_text=of.validation_text, special=True)
    *_, run = make_run(runs, content, of.tokenizer, lambda *_: of.config, {"owner": ""})
    assert isinstance(run, RunFolder)
    if of.begins_from is not None:
        write_initial(run, load_model(of.begins_from), of.begins_from)
    link.write_text(run.id, encoding="utf-8")
    print(f"{link.stem}: text written and cut in {time.perf_counter() - begun:.0f} s", flush=True)
    return run


def make_world_run(n_steps: int | None) -> Ingredients:
    """Write the world, and learn its vocabulary.

    Args:
        n_steps: Optimiser steps; None is the whole recipe.
    """
    config = starter_run(n_steps)
    trial = n_steps is not None
    n_tokens = 2 * config.n_steps * config.data.tokens_per_step if trial else WORLD_TOKENS
    return Ingredients(
        config=config,
        text=write_world("training", n_tokens),
        validation_text=write_world("validation", VALIDATION_TOKENS),
        tokenizer=train_starter_tokenizer(TRIAL_CHARACTERS if trial else TOKENIZER_CHARACTERS),
    )


def make_copying_run(first: RunFolder, n_steps: int | None) -> Ingredients:
    """More of the world, with rows between its documents.

    Args:
        first: The finished run that it begins from.
        n_steps: Optimiser steps; None is the whole recipe.
    """
    from models.loading import load_model

    config = copying_run(n_steps)
    before = first.checkpoint(first.checkpoint_steps()[-1])
    tokenizer = load_model(before).tokenizer
    n_tokens = 2 * config.n_steps * config.data.tokens_per_step
    return Ingredients(
        config=config,
        text=write_world_and_rows(tokenizer, COPYING_TOKENS if n_steps is None else n_tokens),
        validation_text=write_world("validation", VALIDATION_TOKENS),
        tokenizer=tokenizer,
        begins_from=before,
    )


def write_world_and_rows(tokenizer: Tokenizer, n_tokens: float) -> str:
    """Documents of the world that the first run has not read, and rows among them.

    Args:
        tokenizer: Of the starter; rows are of its pieces.
        n_tokens: About how many.
    """
    documents = generate_documents(COPYING_SEED)
    rows = write_rows(SEED, find_pieces(tokenizer))
    written = {"world": 0.0, "rows": 0.0}
    pieces = []
    while sum(written.values()) < n_tokens:
        if written["rows"] * (1 - ROWS_SHARE) < written["world"] * ROWS_SHARE:
            pieces.append(next(rows))
            written["rows"] += ROW_PIECES + 1
        else:
            document = next(documents)
            pieces.append(document.text)
            written["world"] += count_tokens(document)
    return "".join(piece + SEPARATOR for piece in pieces)


def write_world(split: str, n_tokens: float, language: str = "both") -> str:
    """Documents of about so many tokens, with a separator after each.

    Args:
        split: training, validation or held_out.
        n_tokens: About how many.
        language: en, zh or both.
    """
    documents = generate_documents(SEED, split=split, language=language)
    return "".join(_take(documents, n_tokens))


def train_starter_tokenizer(n_characters: int = TOKENIZER_CHARACTERS) -> Tokenizer:
    """The vocabulary, from the beginning of the training text.

    Args:
        n_characters: How much of it.
    """
    from models.tokenizers.bpe_trainer import train_bpe

    beginning = take_characters(generate_documents(SEED), n_characters)
    texts = [document.text for document in beginning]
    vocabulary = train_bpe(
        texts, vocab_size=get_preset("starter").vocab_size, special_tokens=(SEPARATOR,)
    )
    return vocabulary.to_tokenizer("starter")


def _take(documents: Iterable[Document], n_tokens: float) -> Iterator[str]:
    written = 0.0
    for document in documents:
        if written >= n_tokens:
            return
        yield document.text + SEPARATOR
        written += count_tokens(document)


def count_tokens(document: Document) -> float:
    """About how many tokens it has, with its separator."""
    return len(document.text) / CHARACTERS_PER_TOKEN[document.language] + 1


if __name__ == "__main__":
    sys.exit(main())
