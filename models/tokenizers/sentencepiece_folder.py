"""Loads the SentencePiece vocabulary of a folder: `tokenizer.model` and its settings files."""

from collections.abc import Mapping
from pathlib import Path

from models.tokenizers.reading import damaged_file
from models.tokenizers.sentencepiece_file import (
    PieceKind,
    SentencePieceModel,
    read_sentencepiece,
)
from models.tokenizers.sentencepiece_tokenizer import (
    AddedToken,
    SentencePieceTokenizer,
    SpaceScheme,
)
from models.tokenizers.settings import named_text, read_added_tokens, read_settings

# What every vocabulary has; the names of the trainer, and those that Gemma gives.
_PLAIN_CONTROL = frozenset({"<s>", "</s>", "<unk>", "<pad>", "<bos>", "<eos>"})
_USUAL_NAMES = {
    "bos_token": ("<s>", "<bos>"),
    "eos_token": ("</s>", "<eos>"),
    "pad_token": ("<pad>",),
}


def load_sentencepiece_folder(folder: Path) -> SentencePieceTokenizer:
    """Load `tokenizer.model` of a folder.

    Args:
        folder: A folder in Hugging Face's or Meta's layout.

    Returns:
        The tokenizer.

    Raises:
        TokenizerError: A file is damaged, or names tokens that the vocabulary lacks.
    """
    path = folder / "tokenizer.model"
    settings = read_settings(folder)
    added = read_added_tokens(folder, settings)
    try:
        model = read_sentencepiece(path.read_bytes())
        ids = _Ids(model, added)
        bos_id = _find_named(ids, settings, "bos_token", folder)
        return SentencePieceTokenizer(
            model,
            name=folder.name,
            added=added,
            spaces=_choose_spaces(model, settings),
            bos_id=bos_id,
            eos_id=_find_named(ids, settings, "eos_token", folder),
            pad_id=_find_named(ids, settings, "pad_token", folder),
            adds_bos=bool(settings.get("add_bos_token", True)) and bos_id is not None,
        )
    except (ValueError, OSError) as error:
        raise damaged_file(path, str(error)) from error


class _Ids:
    """Finds tokens by their text."""

    def __init__(self, model: SentencePieceModel, added: Mapping[int, AddedToken]) -> None:
        pieces = {piece.text: i for i, piece in enumerate(model.pieces)}
        self.all = pieces | {token.text: i for i, token in added.items()}
        # Gemma's `<s>` is a tag of HTML: the usual names count only as control tokens.
        self.control = {
            text: i for text, i in pieces.items() if model.pieces[i].kind == PieceKind.CONTROL
        }


def _find_named(ids: _Ids, settings: Mapping[str, object], key: str, folder: Path) -> int | None:
    """The token that the settings name; else the one of the usual name, if there is one."""
    text = named_text(settings, key)
    if text is None:
        return next((ids.control[name] for name in _USUAL_NAMES[key] if name in ids.control), None)
    token = ids.all.get(text) if isinstance(text, str) else None
    if token is None and key != "pad_token":  # padding is never needed to use a model
        raise damaged_file(
            folder / "tokenizer_config.json",
            f"its {key} {text!r} is not in the vocabulary of tokenizer.model",
        )
    return token


def _choose_spaces(model: SentencePieceModel, settings: Mapping[str, object]) -> SpaceScheme:
    """What the settings say; if nothing, what the publisher of such vocabularies does.

    Llama 2 and the first Mistral have no tokens for turns, and each text between <s> and </s> gets
    its space. Later Mistrals have `[INST]`, and their templates write the space themselves.
    """
    legacy = settings.get("legacy")
    if isinstance(legacy, bool):
        return "always" if legacy else "first"
    control = {piece.text for piece in model.pieces if piece.kind == PieceKind.CONTROL}
    return "first" if control - _PLAIN_CONTROL else "always"
