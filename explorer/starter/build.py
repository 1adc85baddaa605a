"""Build the starter model: write its world, cut it, train on it, score it, pack it.

    python -m explorer.starter.build FOLDER

makes FOLDER/run (a run like any other; started again it goes on from its last checkpoint) and
FOLDER/starter: model.safetensors in 16 bits, config.json, tokenizer.json, README.md (its card) and
scores.json. The same seed gives the same text everywhere, and the same scores up to the last bits
of another machine's sums.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.starter.documents import (
    CHARACTERS_PER_TOKEN,
    generate_documents,
    take_characters,
)
from explorer.starter.recipe import (
    SEED,
    SEPARATOR,
    TOKENIZER_CHARACTERS,
    VALIDATION_TOKENS,
    WORLD_TOKENS,
    starter_run,
)
from explorer.starter.records import Document
from models.registry import get_preset

if TYPE_CHECKING:
    from explorer.training.run_folder import RunFolder
    from models.tokenizers import Tokenizer

RUN_LINK = "run.txt"
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
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch; see app.py
    from explorer.starter.packing import pack_starter
    from explorer.starter.scoring import N_QUESTIONS
    from explorer.training.events import Evaluated, Failed
    from explorer.training.loop import train

    run = find_or_make_run(options.folder, options.steps)
    for event in train(run.path):
        if isinstance(event, Evaluated | Failed):
            print(event, flush=True)
        if isinstance(event, Failed):
            return 1
    target = options.folder / "starter"
    pack_starter(run, target, n_questions=TRIAL_QUESTIONS if options.steps else N_QUESTIONS)
    print(f"built in {target}", flush=True)
    return 0


def find_or_make_run(folder: Path, n_steps: int | None) -> RunFolder:
    """The run of an earlier call in the same folder, or a new one.

    Args:
        folder: Where it is built.
        n_steps: Optimiser steps; None is the whole recipe.
    """
    from explorer.training.run_folder import RunFolder

    link = folder / RUN_LINK
    if link.exists():
        return RunFolder(folder / "runs" / link.read_text(encoding="utf-8").strip())
    run = make_starter_run(folder / "runs", n_steps)
    link.write_text(run.id, encoding="utf-8")
    return run


def make_starter_run(runs: Path, n_steps: int | None) -> RunFolder:
    """Write the world and cut it.

    Args:
        runs: Where runs are kept.
        n_steps: Optimiser steps; None is the whole recipe.
    """
    from explorer.training.prepare import RunText, make_run
    from explorer.training.run_folder import RunFolder

    config = starter_run(n_steps)
    begun = time.perf_counter()
    n_tokens = WORLD_TOKENS if n_steps is None else 2 * n_steps * config.data.tokens_per_step
    content = RunText(
        text=write_world("training", n_tokens),
        validation_text=write_world("validation", VALIDATION_TOKENS),
        special=True,
    )
    tokenizer = train_starter_tokenizer(
        TOKENIZER_CHARACTERS if n_steps is None else TRIAL_CHARACTERS
    )
    for step in make_run(runs, content, tokenizer, lambda *_: config, {"owner": ""}):
        if isinstance(step, RunFolder):
            print(f"world written and cut in {time.perf_counter() - begun:.0f} s", flush=True)
            return step
    raise AssertionError("make_run ends with the run")


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
        written += len(document.text) / CHARACTERS_PER_TOKEN[document.language] + 1


if __name__ == "__main__":
    sys.exit(main())
