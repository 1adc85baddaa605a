"""How many layers, heads, tokens and so on there are to choose from in a loaded model.

Controls of layers and heads end where the model ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from explorer.one_pass_lines import list_steps
from explorer.weights import find_tensors

if TYPE_CHECKING:
    from models.loading import LoadedModel


def _count_tokens(loaded: LoadedModel, text: str) -> int:
    tokenizer = loaded.tokenizer
    has_front = tokenizer.adds_bos and tokenizer.bos_id is not None
    return len(tokenizer.encode(text)) + int(has_front)


COUNTS: Mapping[str, Callable[[LoadedModel, str], int]] = {
    "layers": lambda loaded, _: loaded.config.n_layers,
    "heads": lambda loaded, _: loaded.config.attention.n_heads,
    "pairs": lambda loaded, _: loaded.config.rotary_width // 2,
    "tokens": _count_tokens,
    "text tokens": lambda loaded, text: len(loaded.tokenizer.encode(text)),
    "tensors": lambda loaded, search: len(find_tensors(loaded, search)),
    "steps": lambda loaded, _: len(list_steps(loaded.config, 0)),
}


def count_choices(loaded: LoadedModel, names: tuple[str, ...], text: str = "") -> dict[str, int]:
    """Count what can be chosen, at least one of each.

    Args:
        loaded: Any decoder.
        names: Keys of `COUNTS`.
        text: What is read, whose tokens are counted, or searched for.
    """
    return {name: max(1, COUNTS[name](loaded, text)) for name in names}
