"""Loads the tokenizer of a Hugging Face folder.

    tokenizer.json            the whole tokenizer: vocabulary, merges, cutting into words, decoding
    tokenizer_config.json     which tokens begin and end a text, whether the first is put in front
    special_tokens_map.json   the same, in older folders
    vocab.json, merges.txt    GPT-2's form, also named encoder.json and vocab.bpe

A token is named by its text, or (older form) by an object whose `content` is its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from models.errors import TokenizerError
from models.tokenizers.library_tokenizer import LibraryTokenizer, TokenWriting
from models.tokenizers.rank_files import load_gpt2_folder
from models.tokenizers.reading import damaged_file, read_json_object
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
    if (folder / "tokenizer.model").is_file():
        raise TokenizerError(
            f"{folder.name} has its vocabulary only as tokenizer.model, which is not supported "
            f"yet. Make a tokenizer.json of it with transformers: "
            f"AutoTokenizer.from_pretrained(folder).save_pretrained(folder).",
            code="tokenizer-sentencepiece",
            file=f"{folder.name}/tokenizer.model",
        )
    raise TokenizerError(
        f"{folder.name} holds no tokenizer. Add its tokenizer.json (or vocab.json and merges.txt) "
        f"to the folder.",
        code="tokenizer-missing",
        folder=folder.name,
    )


def _load_tokenizer_json(folder: Path) -> LibraryTokenizer:
    import tokenizers

    path = folder / "tokenizer.json"
    description = read_json_object(path)
    writing, strips_first_space = _read_writing(description, path)
    try:
        library = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more precise
        raise damaged_file(path, str(error)) from error
    settings = _read_settings(folder)
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


def _read_settings(folder: Path) -> dict[str, object]:
    """The two settings files as one; tokenizer_config.json wins."""
    settings: dict[str, object] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            found = read_json_object(folder / name)
            settings |= {key: value for key, value in found.items() if value is not None}
    return settings


def _find_named(
    library: tokenizers.Tokenizer, settings: Mapping[str, object], key: str, folder: Path
) -> int | None:
    """The id of the token that the settings name, or None when they name none."""
    named = settings.get(key)
    text = named.get("content") if isinstance(named, dict) else named
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
    steps = list(_flatten(description.get("decoder"), "decoders"))
    kinds = {str(step.get("type")) for step in steps}
    if not steps:
        before = _flatten(description.get("pre_tokenizer"), "pretokenizers")
        kinds = {str(step.get("type")) for step in before} & {"ByteLevel"}
    if "ByteLevel" in kinds:
        return "byte_level", False
    if kinds and kinds <= {"Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}:
        return "metaspace", any(map(_strips_space, steps))
    raise TokenizerError(
        f"{path} decodes by {', '.join(sorted(kinds)) or 'nothing'}; supported are byte-level and "
        f"sentencepiece-like vocabularies. Choose a model that generates text, such as a Llama, "
        f"Qwen, Gemma or GPT-2.",
        code="tokenizer-unsupported",
        file=path.name,
        found=", ".join(sorted(kinds)) or "-",
        known="ByteLevel, Metaspace, ByteFallback",
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
