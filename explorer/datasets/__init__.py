"""Texts that models are trained on: read, cut into tokens, cut into windows, put into batches.

    file --read_text--> text --split_text--> training, validation          text.py
    text --tokenize_text--> ids --TokenWindows--> inputs, targets          text.py, windows.py
    number of windows --draw_epoch_order--> order --batches_of--> batches  windows.py
    sample --find_copied_spans--> copied from the training text            verbatim.py

Nothing here needs torch, but for the random order of an epoch.
"""

from explorer.datasets.text import read_text, split_text, tokenize_text
from explorer.datasets.verbatim import CopiedSpan, VerbatimIndex, find_copied_spans
from explorer.datasets.windows import TokenWindows, batches_of, draw_epoch_order

__all__ = [
    "CopiedSpan",
    "TokenWindows",
    "VerbatimIndex",
    "batches_of",
    "draw_epoch_order",
    "find_copied_spans",
    "read_text",
    "split_text",
    "tokenize_text",
]
