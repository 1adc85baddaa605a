"""Loads the tokenizer of a Hugging Face folder.

    tokenizer.json           the whole tokenizer: vocabulary, merges, cutting into words, decoding
    vocab.json, merges.txt   GPT-2's form, also named encoder.json and vocab.bpe
    tekken.json              ranks and a word pattern (Mistral since 2024)
    tokenizer.model          SentencePiece (Llama 2, Mistral, Gemma), or the ranks of Llama 3

The first of these that is there is taken. Small files beside it name special tokens: settings.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from models.errors import TokenizerError
from models.tokenizers.library_tokenizer import LibraryTokenizer, TokenWriting
from models.tokenizers.rank_files import load_gpt2_folder, load_llama3_tokenizer
from models.tokenizers.reading import check_merges, damaged_file, read_json_object
from models.tokenizers.sentencepiece_folder import load_sentencepiece_folder
from models.tokenizers.settings import named_text, read_settings
from models.tokenizers.tekken import TEKKEN_FILE, load_tekken
from models.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tokenizers


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load the tokenizer that lies in a folder.

    Args:
        folder: A folder in Hugging Face's layout.

    Returns:
        The tokenizer.

    Raises:
        TokenizerError: There is none, it is damaged, or it is of a kind that we cannot read.
    """
    if (folder / "tokenizer.json").is_file():
        return _load_tokenizer_json(folder)
    gpt2 = load_gpt2_folder(folder)
    if gpt2 is not None:
        return gpt2
    if (folder / TEKKEN_FILE).is_file():
        return load_tekken(folder / TEKKEN_FILE)
    if (folder / "tokenizer.model").is_file():
        if _holds_ranks(folder / "tokenizer.model"):
            return load_llama3_tokenizer(folder / "tokenizer.model")
        return load_sentencepiece_folder(folder)
    raise TokenizerError(
        f"{folder.name} holds no tokenizer. Add its tokenizer.json (or vocab.json and merges.txt, "
        f"tekken.json or tokenizer.model) to the folder.",
        code="tokenizer-missing",
        folder=folder.name,
    )


def _holds_ranks(path: Path) -> bool:
    """Llama 3 gave the name of a SentencePiece file to lines of base64 and a rank."""
    with path.open("rb") as file:
        return re.match(rb"[A-Za-z0-9+/]+=* \d+\r?\n", file.read(200)) is not None


def _load_tokenizer_json(folder: Path) -> LibraryTokenizer:
    import tokenizers

    path = folder / "tokenizer.json"
    description = read_json_object(path)
    writing, strips_first_space = _read_writing(description, path)
    check_merges(path, *_read_merges(description.get("model")))
    try:
        library = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more precise
        raise damaged_file(path, str(error)) from error
    settings = read_settings(folder)
    bos_id = _find_named(library, settings, "bos_token", folder)
    return LibraryTokenizer(
        library,
        name=folder.name,
        writing=writing,
        bos_id=bos_id,
        eos_id=_find_named(library, settings, "eos_token", folder),
        pad_id=_find_named(library, settings, "pad_token", folder),
        adds_bos=_adds_bos(library, settings, bos_id),
        strips_first_space=strips_first_space,
    )


def _read_merges(model: object) -> tuple[list[tuple[str, str]], Collection[str], str]:
    """Merges, vocabulary and prefix; those that have another form the library itself refuses."""
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict):
        return [], (), ""
    merges = model.get("merges")
    listed = merges if isinstance(merges, list) else []
    split = [m.split(" ") if isinstance(m, str) else m for m in listed]  # older files: one text
    pairs = [(m[0], m[1]) for m in split if isinstance(m, list) and _are_two_texts(m)]
    prefix = model.get("continuing_subword_prefix")
    return pairs, model["vocab"], prefix if isinstance(prefix, str) else ""


def _are_two_texts(values: Sequence[object]) -> bool:
    return len(values) == 2 and all(isinstance(value, str) for value in values)


def _find_named(
    library: tokenizers.Tokenizer, settings: Mapping[str, object], key: str, folder: Path
) -> int | None:
    """The id of the token that the settings name, or None when they name none."""
    text = named_text(settings, key)
    if text is None:
        return None
    token = library.token_to_id(text) if isinstance(text, str) else None
    if token is None and key != "pad_token":  # padding is never needed to use a model
        path = folder / "tokenizer_config.json"
        raise damaged_file(path, f"its {key} {text!r} is not in the vocabulary of tokenizer.json")
    return token


def _adds_bos(
    library: tokenizers.Tokenizer, settings: Mapping[str, object], bos_id: int | None
) -> bool:
    """What the settings say; if nothing, what the tokenizer itself does to a text."""
    stated = settings.get("add_bos_token")
    if bos_id is None or isinstance(stated, bool):
        return bool(stated) and bos_id is not None
    return library.encode("a", add_special_tokens=True).ids[:1] == [bos_id]


def _read_writing(description: Mapping[str, object], path: Path) -> tuple[TokenWriting, bool]:
    """How tokens are written, and whether decoding drops the first space."""
    model = description.get("model")
    kind = str(model.get("type")) if isinstance(model, dict) else ""
    if kind in ("WordPiece", "WordLevel"):  # the first says where a word goes on, the second never
        return "pieces", True
    steps = list(_flatten(description.get("decoder"), "decoders"))
    kinds = {str(step.get("type")) for step in steps}
    if not steps:
        before = _flatten(description.get("pre_tokenizer"), "pretokenizers")
        steps = [step for step in before if step.get("type") in ("ByteLevel", "Metaspace")]
        kinds = {str(step["type"]) for step in steps}
    if "ByteLevel" in kinds:
        return "byte_level", False
    if kinds == {"Fuse"}:
        return "plain", False
    if kinds and kinds <= {"Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}:
        return "metaspace", any(map(_strips_space, steps))
    found = f"{kind or 'no type'}, decoding by {', '.join(sorted(kinds)) or 'nothing'}"
    raise TokenizerError(
        f"{path} is of {found}; supported are byte-level and sentencepiece-like vocabularies, "
        "WordPiece and WordLevel. Choose another, such as that of a Llama, Qwen, Gemma or GPT-2.",
        code="tokenizer-unsupported",
        file=path.name,
        found=found,
        known="ByteLevel, Metaspace, ByteFallback, WordPiece, WordLevel",
    )


def _strips_space(step: Mapping[str, object]) -> bool:
    if step.get("type") == "Metaspace":  # older files say add_prefix_space instead of a scheme
        return bool(step.get("add_prefix_space", step.get("prepend_scheme", "always") != "never"))
    return step.get("type") == "Strip" and bool(step.get("start"))


def _flatten(step: object, inner: str) -> Iterator[dict[str, object]]:
    """A processing step, or those of a sequence."""
    if not isinstance(step, dict):
        return
    if step.get("type") != "Sequence":
        yield step
        return
    for part in step.get(inner, ()):
        yield from _flatten(part, inner)
