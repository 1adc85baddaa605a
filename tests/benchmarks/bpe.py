"""Seconds to train byte pair encoding on 1 MB to 4,096 tokens, beside two others.

    GLASSBOX_DATA=<folder with the public data sets> python tests/benchmarks/bpe.py

Texts: the instruction and message data sets together, and sources of Python's standard library,
which repeat themselves less. Peers: the trainer of `tokenizers` (Rust), whose merges must be the
same, and the plain algorithm that teaching code uses, which counts all pairs of the whole text
again at each step. Of the plain one, the first 20 merges are timed and multiplied: later ones are
somewhat faster, as the text has become shorter. Recorded results are in results.md.
"""

import json
import os
import sysconfig
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from models.tokenizers import train_bpe

VOCAB_SIZE = 4096
N_CHARACTERS = 1_000_000
N_PLAIN_MERGES = 20
DATA_FILES = ("instruction-data-with-preference.json", "SMSSpamCollection.tsv",
              "instruction-data.json")  # fmt: skip


def read_data_sets():
    folder = Path(os.environ["GLASSBOX_DATA"])
    return "".join((folder / name).read_text(encoding="utf-8") for name in DATA_FILES)


def read_python_sources():
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return "".join(file.read_text(encoding="utf-8") for file in files)


def merge_plainly(text, n_merges):
    """The seconds of the first merges of the plain algorithm."""
    ids = list(text.encode())
    started_at = time.perf_counter()
    for new in range(256, 256 + n_merges):
        counts = Counter(pairwise(ids))
        pair = max(counts, key=counts.__getitem__)
        joined, i = [], 0
        while i < len(ids):
            if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
                joined.append(new)
                i += 2
            else:
                joined.append(ids[i])
                i += 1
        ids = joined
    return time.perf_counter() - started_at


def train_library(text):
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    library.train_from_iterator([text], trainer)
    return [tuple(merge) for merge in json.loads(library.to_str())["model"]["merges"]]


def main():
    for name, text in (("data sets", read_data_sets()), ("sources", read_python_sources())):
        text = text[:N_CHARACTERS]
        started_at = time.perf_counter()
        vocabulary = train_bpe(text, vocab_size=VOCAB_SIZE)
        ours_s = time.perf_counter() - started_at
        started_at = time.perf_counter()
        theirs = train_library(text)
        library_s = time.perf_counter() - started_at
        plain_s = merge_plainly(text, N_PLAIN_MERGES)
        whole_s = plain_s / N_PLAIN_MERGES * len(vocabulary.merges)
        print(
            f"{name}: {len(text):,} characters, {len(vocabulary.merges):,} merges, "
            f"the same as the library's: {list(vocabulary.merges) == theirs}\n"
            f"  ours {ours_s:.2f} s (limit: 20), tokenizers {library_s:.2f} s "
            f"({ours_s / library_s:.1f} times its time)\n"
            f"  plain: {plain_s:.1f} s for {N_PLAIN_MERGES} merges, so {whole_s:,.0f} s in all "
            f"({whole_s / ours_s:,.0f} times ours)"
        )


if __name__ == "__main__":
    main()
