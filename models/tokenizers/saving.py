"""Writes a tokenizer into a checkpoint folder, for us, `tokenizers` and `transformers` to read.

tokenizer.json           vocabulary, merges, cutting into words, decoding, special tokens
tokenizer_config.json    which tokens begin and end a text, whether the first is put in front
chat_template.jinja      how a conversation becomes one text, for models that have one
"""

from __future__ import annotations

import json
from pathlib import Path

from models.errors import TokenizerError
from models.tokenizers.chat import ChatTemplate
from models.tokenizers.library_tokenizer import LibraryTokenizer
from models.tokenizers.rank_export import write_ranks
from models.tokenizers.rank_files import RankTokenizer
from models.tokenizers.tokenizer import Tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, *, chat: ChatTemplate | None = None) -> None:
    """Write a tokenizer's files; those that are there are replaced.

    Args:
        tokenizer: From a tokenizer.json, GPT-2's files, ranks, a byte-level GGUF, or trained here.
        folder: Where to; made if it is not there.
        chat: The chat template to put beside it.

    Raises:
        TokenizerError: It is a SentencePiece vocabulary, which is not written here.
    """
    content = write_tokenizer_json(tokenizer)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(content, encoding="utf-8")
    settings = json.dumps(_make_settings(tokenizer), ensure_ascii=False, indent=2)
    (folder / "tokenizer_config.json").write_text(settings + "\n", encoding="utf-8")
    if chat is not None:
        (folder / "chat_template.jinja").write_text(chat.source, encoding="utf-8")


def write_tokenizer_json(tokenizer: Tokenizer) -> str:
    """Write a tokenizer as the content of a tokenizer.json.

    Args:
        tokenizer: As for `save_tokenizer`.

    Returns:
        The content.

    Raises:
        TokenizerError: It is a SentencePiece vocabulary, which is not written here.
    """
    if isinstance(tokenizer, LibraryTokenizer):
        return tokenizer.to_json()
    if isinstance(tokenizer, RankTokenizer):
        return write_ranks(tokenizer)
    raise TokenizerError(
        f"{tokenizer.name} is a SentencePiece vocabulary, which is not written as tokenizer.json; "
        f"copy the tokenizer.model of its model into the folder instead",
        code="tokenizer-not-written",
        tokenizer=tokenizer.name,
    )


def _make_settings(tokenizer: Tokenizer) -> dict[str, object]:
    named = {
        "bos_token": tokenizer.bos_id,
        "eos_token": tokenizer.eos_id,
        "pad_token": tokenizer.pad_id,
    }
    return {
        # The class that takes tokenizer.json as it is, whatever the model.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": tokenizer.adds_bos,
        "clean_up_tokenization_spaces": False,
        **{
            role: tokenizer.token_bytes(i).decode("utf-8", "replace")
            for role, i in named.items()
            if i is not None
        },
    }
