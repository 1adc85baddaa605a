"""Prints documents of the generated world: `python -m explorer.starter.sample --n 5`."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence

from explorer.starter.documents import LANGUAGES, SPLITS, generate_documents, generate_questions


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what the command line asks for.

    Args:
        arguments: Words of the command line; those of the process by default.
    """
    parser = argparse.ArgumentParser(prog="python -m explorer.starter.sample", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of all that is drawn")
    parser.add_argument("--n", type=int, default=5, help="how many")
    parser.add_argument("--language", choices=LANGUAGES, default="en")
    parser.add_argument("--split", choices=SPLITS, default="training")
    parser.add_argument("--questions", action="store_true", help="questions instead of documents")
    options = parser.parse_args(arguments)
    if options.questions:
        for entry in generate_questions(
            options.seed, options.n, language=options.language, split=options.split
        ):
            print(f"{entry.prompt}\n  -> {entry.continuation}\n")
        return
    documents = generate_documents(options.seed, split=options.split, language=options.language)
    for document in itertools.islice(documents, options.n):
        print(f"--- {document.kind}, {document.language}\n{document.text}\n")


if __name__ == "__main__":
    main()
