"""The logit lens of a whole text, layer by layer while it is being computed.

    stream after layer l at token t ─► final norm ─► output matrix ─► softmax     for every l and t

As `explorer/logit_lens.py` does for one position (*interpreting GPT: the logit lens*,
nostalgebraist 2020); the last layer's rows are the model's own answers. One pass records the
stream; each layer is then read on its own, so that the first rows are there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from explorer.lens_targets import Target, find_target, own_answer, place_in
from explorer.tokens import TokenUnit, label_of, labels_of_units, units_of

if TYPE_CHECKING:
    from models.loading import LoadedModel

MOST_TOKENS = 128
N_TOP = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class LensLayer:
    """What one layer would say after every token.

    Args:
        stage: "embed", or the number of the layer.
        top_labels: (T, k), the likeliest next tokens, best first.
        top_probabilities: (T, k).
        entropies_nats: (T,).
        target_ranks: (T,), place of the followed token, 0 is first.
        target_probabilities: (T,).
    """

    stage: str
    top_labels: tuple[tuple[str, ...], ...]
    top_probabilities: NDArray[np.float32]
    entropies_nats: NDArray[np.float32]
    target_ranks: NDArray[np.int64]
    target_probabilities: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class LensGrid:
    """The lens so far.

    Args:
        model_name: Which model.
        ids: The text.
        labels: One for each token.
        units: The text in units that people see as one character or word.
        position: The token that is looked at.
        target: The token that is followed.
        layers: Those that have been read, from the embedding on.
        n_stages: As many as there will be.
    """

    model_name: str
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    units: tuple[TokenUnit, ...]
    position: int
    target: Target
    layers: tuple[LensLayer, ...]
    n_stages: int


def stream_lens_grid(
    loaded: LoadedModel,
    ids: Sequence[int],
    *,
    position: int = -1,
    target: str = "",
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[LensGrid]:
    """Read the stream after every layer as distributions over the next token.

    Args:
        loaded: Any decoder with its tokenizer.
        ids: The text.
        position: The token that is looked at; negative counts from the end.
        target: A word to follow; "" follows the model's own answer at that position.
        turn: Entered for the pass and for each layer; where several share a device, it makes them
            wait.

    Yields:
        The lens, one layer longer each time.

    Raises:
        ConfigError: No such position.
        ContextError: The text is too long for the model.
    """
    import torch

    from models.trace import Trace

    position = place_in(position, len(ids))
    model, n_layers = loaded.model, loaded.config.n_layers
    names = ["blocks.0.resid_pre", *(f"blocks.{i}.resid_post" for i in range(n_layers))]
    trace = Trace(record=tuple(names))
    with turn(), torch.inference_mode():
        row = torch.tensor([list(ids)], device=model.device)
        model(row, trace=trace, last_only=True)
        last = trace[names[-1]][:, position : position + 1]
        own = int(model.unembed(last)[0, 0].argmax())
    followed = find_target(loaded, target) if target else own_answer(loaded, own)
    units = units_of(loaded.tokenizer, ids)
    layers: list[LensLayer] = []
    for stage, name in zip(("embed", *map(str, range(n_layers))), names, strict=True):
        with turn(), torch.inference_mode():
            layers.append(_read_layer(loaded, trace[name], stage, followed.id))
        yield LensGrid(
            model_name=loaded.info.name,
            ids=tuple(ids),
            labels=labels_of_units(units),
            units=units,
            position=position,
            target=followed,
            layers=tuple(layers),
            n_stages=len(names),
        )


def compute_lens_grid(
    loaded: LoadedModel, text: str, *, position: int = -1, target: str = ""
) -> LensGrid:
    """The whole lens of a text.

    Args:
        loaded: Any decoder with its tokenizer.
        text: What to read.
        position: As for `stream_lens_grid`.
        target: As there.

    Raises:
        ConfigError: No text, or no such position.
        ContextError: The text is too long.
    """
    from explorer.prompts import read_prompt

    ids = read_prompt(loaded, text, most_tokens=MOST_TOKENS)
    *_, last = stream_lens_grid(loaded, ids, position=position, target=target)
    return last


def _read_layer(loaded: LoadedModel, stream: Any, stage: str, target: int) -> LensLayer:
    import torch

    logits = loaded.model.unembed(stream)[0].float()
    log_total = logits.logsumexp(dim=-1)
    best = logits.topk(min(N_TOP, logits.shape[-1]), dim=-1)
    of_target = logits[:, target]
    # Σ p ln p = Σ p x - ln Σ e^x; the sum is one product, where entr() would make two copies
    mean = torch.einsum("tv,tv->t", (logits - log_total[:, None]).exp(), logits)
    names = {
        token: label_of(loaded.tokenizer, token) for token in set(best.indices.flatten().tolist())
    }
    return LensLayer(
        stage=stage,
        top_labels=tuple(tuple(names[i] for i in row) for row in best.indices.tolist()),
        top_probabilities=(best.values - log_total[:, None]).exp().cpu().numpy(),
        entropies_nats=(log_total - mean).cpu().numpy(),
        target_ranks=(logits > of_target[:, None]).sum(dim=-1).cpu().numpy(),
        target_probabilities=(of_target - log_total).exp().cpu().numpy(),
    )
