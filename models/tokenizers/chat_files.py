"""Finds the chat template that a model brings.

chat_template.jinja     the template itself (transformers 5)
tokenizer_config.json   "chat_template": text, or a list of {"name", "template"}
chat_template.json      the same key, in folders of models that also see images
GGUF                    the key tokenizer.chat_template
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from models.gguf_file import GgufFile
from models.tokenizers.chat import ChatTemplate
from models.tokenizers.chat_format import ChatFormat, choose_chat_format
from models.tokenizers.reading import damaged_file, read_json_object, read_text
from models.tokenizers.tokenizer import Tokenizer


def load_chat_template(folder: Path, tokenizer: Tokenizer) -> ChatTemplate | None:
    """Load the chat template of a Hugging Face folder.

    Args:
        folder: The model's folder.
        tokenizer: Its tokenizer.

    Returns:
        The template, or None for a model that has none (it only continues text).

    Raises:
        TokenizerError: A file that should hold it is damaged.
    """
    jinja = folder / "chat_template.jinja"
    if jinja.is_file():
        return ChatTemplate(read_text(jinja), tokenizer)
    for name in ("tokenizer_config.json", "chat_template.json"):
        path = folder / name
        if path.is_file():
            source = _choose_default(read_json_object(path).get("chat_template"), path)
            if source is not None:
                return ChatTemplate(source, tokenizer)
    return None


def gguf_chat_template(gguf: GgufFile, tokenizer: Tokenizer) -> ChatTemplate | None:
    """Read the chat template of a GGUF file.

    Args:
        gguf: The open file.
        tokenizer: Its tokenizer.

    Returns:
        The template, or None for a model that has none.

    Raises:
        TokenizerError: The entry is no text.
    """
    source = _choose_default(gguf.metadata.get("tokenizer.chat_template"), gguf.path)
    return None if source is None else ChatTemplate(source, tokenizer)


def default_chat_template(
    formats: Sequence[ChatFormat],
    tokenizer: Tokenizer,
    *,
    names: Iterable[str],
    stop_ids: frozenset[int],
) -> ChatTemplate | None:
    """The well-known format of an instruct model whose files bring no template.

    Args:
        formats: Those of its family.
        tokenizer: Its tokenizer.
        names: What the model is called, by its folder, repository or file.
        stop_ids: Tokens that its files name as the end of an answer.

    Returns:
        The template, with `format_name` and `stop_ids` set; None for what counts as a base model
        (chat_format.py has the rule).
    """
    found = choose_chat_format(formats, tokenizer, names=names, stop_ids=stop_ids)
    if found is None:
        return None
    return ChatTemplate(
        found.template,
        tokenizer,
        format_name=found.name,
        stop_ids=found.end_ids(tokenizer),
    )


def _choose_default(entry: object, path: Path) -> str | None:
    """The template, or of several the one named "default"."""
    if entry is None or isinstance(entry, str):
        return entry
    if isinstance(entry, list):
        for item in entry:
            if isinstance(item, Mapping) and item.get("name") == "default":
                return _choose_default(item.get("template"), path)
        raise damaged_file(path, f"none of its {len(entry)} chat templates is named 'default'")
    raise damaged_file(path, f"its chat_template is a {type(entry).__name__}, not text")
