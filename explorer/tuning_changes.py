"""What a fine-tuning changed: weights of each layer, attention of each head, words of the lens.

weights     ‖W' - W‖ / ‖W‖                 Frobenius norms of a matrix after and before
attention   mean over tokens of ½ Σ |p' - p|   total variation of a head's pattern, 0 to 1
lens        likeliest next token after each layer, before and after (the logit lens)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.errors import ConfigError

if TYPE_CHECKING:
    from explorer.logit_lens import LogitLens
    from explorer.tuning_scores import Turn
    from models.loading import LoadedModel

MOST_TOKENS = 256
_BLOCK = re.compile(r"blocks\.(\d+)\.(.+)\.weight")


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightChanges:
    """How far the weights of a model have gone.

    Args:
        parts: Matrices of a layer, such as `attn.q_proj`.
        layers: (layers, parts), relative change; NaN where a layer has no such part.
        others: Name -> relative change of what belongs to no layer.
        total: Relative change of all weights together.
    """

    parts: tuple[str, ...]
    layers: np.ndarray
    others: tuple[tuple[str, float], ...]
    total: float


def compare_weights(before: LoadedModel, after: LoadedModel) -> WeightChanges:
    """Compare two models of one architecture, matrix by matrix.

    Args:
        before: The base.
        after: What was made of it.

    Raises:
        ConfigError: They do not have the same weights.
    """
    from models.lora import MergedWeights

    old, new = MergedWeights(before.model), MergedWeights(after.model)
    if old.keys() != new.keys():
        raise _other_model()
    moved, sizes = {}, {}
    for name, tensor in old.items():
        first, second = tensor.detach().double(), new[name].detach().double()
        if first.shape != second.shape:
            raise _other_model()
        moved[name] = float((second.to(first.device) - first).norm())
        sizes[name] = float(first.norm())
    found = {name: _BLOCK.fullmatch(name) for name in old}
    parts = tuple(dict.fromkeys(m.group(2) for m in found.values() if m is not None))
    layers = np.full((before.config.n_layers, len(parts)), np.nan)
    for name, match in found.items():
        if match is not None:
            place = int(match.group(1)), parts.index(match.group(2))
            layers[place] = _share(moved[name], sizes[name])
    others = tuple(
        (name.removesuffix(".weight"), _share(moved[name], sizes[name]))
        for name, match in found.items()
        if match is None and name.endswith(".weight")
    )
    total = _share(
        float(np.linalg.norm(list(moved.values()))), float(np.linalg.norm(list(sizes.values())))
    )
    return WeightChanges(parts=parts, layers=layers, others=others, total=total)


def _other_model() -> ConfigError:
    return ConfigError(
        "the two models differ in more than their weights; choose a checkpoint and the model that "
        "it began from",
        code="tune-other-model",
    )


def _share(moved: float, size: float) -> float:
    return moved / size if size else float("nan")


@dataclass(frozen=True, kw_only=True, eq=False)
class PassChanges:
    """What two models make of one text.

    Args:
        ids: The text.
        attention: (layers, heads), how far each head's weights have moved, 0 to 1.
        before: What each layer of the base would say after the last token.
        after: The same of the other model.
    """

    ids: tuple[int, ...]
    attention: np.ndarray
    before: LogitLens
    after: LogitLens


def compare_passes(
    before: LoadedModel, after: LoadedModel, text: str, *, turn: Turn
) -> PassChanges:
    """Let two models read a text.

    Args:
        before: The base.
        after: What was made of it; it has the same tokenizer.
        text: Any text.
        turn: Entered for each pass.

    Raises:
        ConfigError: There is no text.
    """
    from explorer.logit_lens import compute_logit_lens

    most = min(MOST_TOKENS, before.config.context_length)
    ids = before.tokenizer.encode(text)[-most:]
    if not ids:
        raise ConfigError("there is no text; type one", code="text-empty")
    patterns = [_read_patterns(loaded, ids, turn) for loaded in (before, after)]
    return PassChanges(
        ids=tuple(ids),
        attention=measure_variation(*patterns),
        before=compute_logit_lens(before, ids, turn=turn),
        after=compute_logit_lens(after, ids, turn=turn),
    )


def measure_variation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Mean total variation of attention weights.

    Args:
        first: (layers, heads, T, T), each row adds up to 1.
        second: The same of another model.

    Returns:
        (layers, heads), from 0 (the same) to 1 (nothing in common).
    """
    distance: np.ndarray = np.abs(second - first).sum(axis=-1).mean(axis=-1) / 2
    return distance


def _read_patterns(loaded: LoadedModel, ids: Sequence[int], turn: Turn) -> np.ndarray:
    import torch

    from models.trace import Trace

    names = [f"blocks.{i}.attn.pattern" for i in range(loaded.config.n_layers)]
    trace = Trace(record=tuple(names))
    with turn(), torch.inference_mode():
        loaded.model(torch.tensor([list(ids)], device=loaded.model.device), trace=trace)
    return np.stack([trace[name][0].float().cpu().numpy() for name in names])
