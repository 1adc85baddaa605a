"""Llama 3's `tokenizer.model`: 128,000 ranks in a `.tiktoken` file, and 256 special tokens.

The file holds the ranks only. The special tokens follow them, ids 128000 to 128255; the few that
have a use stand between reserved ones, which are numbered in order:

    id        Llama 3                            Llama 3.1 and 3.2
    128000    <|begin_of_text|>                  the same
    128001    <|end_of_text|>                    the same
    128002    <|reserved_special_token_0|>       the same
    128003    <|reserved_special_token_1|>       the same
    128004    <|reserved_special_token_2|>       <|finetune_right_pad_id|>
    128005    <|reserved_special_token_3|>       <|reserved_special_token_2|>
    128006    <|start_header_id|>                the same
    128007    <|end_header_id|>                  the same
    128008    <|reserved_special_token_4|>       <|eom_id|>, end of a message that goes on
    128009    <|eot_id|>, end of turn            the same
    128010    <|reserved_special_token_5|>       <|python_tag|>
    128011... <|reserved_special_token_6|>...    <|reserved_special_token_3|>...

Source: *The Llama 3 Herd of Models* (2024), arXiv 2407.21783, section 3.2; the tokenizers released
with Llama 3 and 3.1.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from models.tokenizers.reading import read_json_object

N_SPECIAL = 256
_LLAMA3: Mapping[int, str] = MappingProxyType(
    {
        0: "<|begin_of_text|>",
        1: "<|end_of_text|>",
        6: "<|start_header_id|>",
        7: "<|end_header_id|>",
        9: "<|eot_id|>",
    }
)
_LLAMA31: Mapping[int, str] = MappingProxyType(
    {**_LLAMA3, 4: "<|finetune_right_pad_id|>", 8: "<|eom_id|>", 10: "<|python_tag|>"}
)


def llama3_special_tokens(n_ranks: int, folder: Path) -> dict[str, int]:
    """The special tokens that follow the ranks.

    Args:
        n_ranks: How many ranks there are: the first special token's id.
        folder: The model's folder; Llama 3.1 and 3.2 are told by their stretched rotation in
            params.json or config.json.

    Returns:
        Text -> id, 256 of them.

    Raises:
        TokenizerError: One of these files is damaged.
    """
    named = _LLAMA31 if _stretches_rotation(folder) else _LLAMA3
    texts: list[str] = []
    reserved = 0
    for place in range(N_SPECIAL):
        if place in named:
            texts.append(named[place])
        else:
            texts.append(f"<|reserved_special_token_{reserved}|>")
            reserved += 1
    return {text: n_ranks + place for place, text in enumerate(texts)}


def _stretches_rotation(folder: Path) -> bool:
    keys = {"params.json": ("use_scaled_rope",), "config.json": ("rope_scaling",)}
    for name, wanted in keys.items():
        if (folder / name).is_file():
            found = read_json_object(folder / name)
            parameters = found.get("rope_parameters")  # transformers 5
            kind = parameters.get("rope_type") if isinstance(parameters, dict) else None
            if any(found.get(key) for key in wanted) or kind == "llama3":
                return True
    return False
