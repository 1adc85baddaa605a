"""Patching: the stream of one text put into another, layer by layer and token by token.

    restored    (d_patched - d_corrupt) / (d_clean - d_corrupt),   d = logit(answer) - logit(other)

The model runs on a text and gets, at one layer and token, what the stream was on another text (Meng
et al. 2022, arXiv 2202.05262, section 2.1). All tokens of a layer are one batch, and the pass
begins at that layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.attention_lab.ablation import SCAN_TOKENS, Turn, encode
from explorer.attention_maps import check_read
from explorer.errors import ConfigError, ContextError, Stopped, TokenizerError

if TYPE_CHECKING:
    import torch

    from models.loading import LoadedModel
    from models.trace import Trace


# Each differs in one word that decides how it goes on. The second is of the starter's small world.
PATCH_PAIRS = (
    (
        "When Mary and John went to the store, John gave a drink to",
        "When Mary and John went to the store, Mary gave a drink to",
    ),
    (
        'Ella and Luke ran home. Luke was tired. "Are you all right,',
        'Ella and Luke ran home. Ella was tired. "Are you all right,',
    ),
    (
        'Once upon a time there was a girl called Ella. "My name is',
        'Once upon a time there was a girl called Lily. "My name is',
    ),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class PatchResult:
    """How much of an answer comes back, by layer and token.

    Args:
        restored: (layers, T): 0 as the corrupt text, 1 as the clean one.
        labels: Of the corrupt text's tokens.
        clean_labels: Of the clean text's.
        answer: The token that the clean text makes likely.
        other: The token that the corrupt text makes likely.
        clean: Logit of the answer minus that of the other, on the clean text.
        corrupt: On the corrupt one.
    """

    restored: NDArray[np.float64]
    labels: tuple[str, ...]
    clean_labels: tuple[str, ...]
    answer: str
    other: str
    clean: float
    corrupt: float


def compute_patching(
    loaded: LoadedModel,
    clean: str,
    corrupt: str,
    *,
    turn: Turn = nullcontext,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[PatchResult]:
    """Put the stream of one text into another, layer by layer and token by token.

    Both texts must have the same number of tokens. The answer is what the clean text makes
    likeliest, the other what the corrupt text does.

    Args:
        loaded: Any decoder with its tokenizer.
        clean: The text whose answer is to come back.
        corrupt: The text into which the stream is put.
        turn: Entered for each forward pass.
        stopped: Asked before each layer.

    Yields:
        What is known after each layer; NaN where not tried yet.

    Raises:
        ConfigError: Texts of different lengths, or with the same answer.
        WeightError: The model computes NaN; says in which layer first.
        Stopped: `stopped()` became true.
    """
    import torch

    ids = [encode(loaded, text, SCAN_TOKENS) for text in (clean, corrupt)]
    _check_lengths(ids)
    traces, last = _read_both(loaded, ids, turn)
    answer, other = (int(logits.argmax()) for logits in last)
    _check_answers(answer, other)
    d_clean, d_corrupt = (float(logits[answer] - logits[other]) for logits in last)
    restored = np.full((loaded.config.n_layers, len(ids[0])), np.nan)
    say = loaded.tokenizer.decode
    told = PatchResult(
        restored=restored,
        labels=tuple(say([i]) for i in ids[1]),
        clean_labels=tuple(say([i]) for i in ids[0]),
        answer=say([answer]),
        other=say([other]),
        clean=d_clean,
        corrupt=d_corrupt,
    )
    for layer in range(loaded.config.n_layers):
        if stopped():
            raise Stopped("the patching was stopped")
        with turn(), torch.inference_mode():
            logits = _patched(loaded, layer, traces)
        difference = (logits[:, answer] - logits[:, other]).double().cpu().numpy()
        restored[layer] = (difference - d_corrupt) / (d_clean - d_corrupt)
        yield replace(told, restored=restored.copy())


def choose_pair(loaded: LoadedModel, *, turn: Turn = nullcontext) -> tuple[str, str]:
    """The first of `PATCH_PAIRS` that a model can be patched between; the very first if none is.

    Args:
        loaded: Any decoder with its tokenizer.
        turn: Entered for each forward pass.

    Raises:
        WeightError: The model computes NaN; says in which layer first.
    """
    for clean, corrupt in PATCH_PAIRS:
        try:
            ids = [encode(loaded, text, SCAN_TOKENS) for text in (clean, corrupt)]
            _check_lengths(ids)
        except (ConfigError, ContextError, TokenizerError):
            continue
        _, last = _read_both(loaded, ids, turn)
        if last[0].argmax() != last[1].argmax():
            return clean, corrupt
    return PATCH_PAIRS[0]


def _patched(loaded: LoadedModel, layer: int, traces: Sequence[Trace]) -> torch.Tensor:
    """Row t is the corrupt text with the clean stream at token t; logits after its last token."""
    import torch

    name = f"blocks.{layer}.resid_pre"
    clean, corrupt = (trace[name] for trace in traces)
    n = clean.shape[1]
    stream = corrupt.expand(n, -1, -1).clone()
    tokens = torch.arange(n, device=stream.device)
    stream[tokens, tokens] = clean[0]
    return loaded.model.continue_from(layer, stream)[:, -1].float()


def _read_both(
    loaded: LoadedModel, ids: Sequence[Sequence[int]], turn: Turn
) -> tuple[list[Trace], list[torch.Tensor]]:
    """The stream of both texts, and the logits after their last tokens."""
    import torch

    from models.trace import Trace

    traces = [Trace(record=("blocks.*.resid_pre",)) for _ in ids]
    last = []
    for row, trace in zip(ids, traces, strict=True):
        with turn(), torch.inference_mode():
            tokens = torch.tensor([row], device=loaded.model.device)
            last.append(loaded.model(tokens, trace=trace, last_only=True)[0, -1].float())
        check_read(loaded, row, last[-1], turn=turn)
    return traces, last


def _check_answers(answer: int, other: int) -> None:
    if answer == other:
        raise ConfigError(
            "both texts are continued with the same token, so there is nothing to bring back; "
            "change a word that decides the answer",
            code="lab-patch-same",
        )


def _check_lengths(ids: Sequence[Sequence[int]]) -> None:
    if len(ids[0]) != len(ids[1]):
        raise ConfigError(
            f"the texts have {len(ids[0])} and {len(ids[1])} tokens; patching puts token for "
            "token, so choose words that make them equally long",
            code="lab-patch-length",
            first=len(ids[0]),
            second=len(ids[1]),
        )
