"""Tokens on their way through the layers: a flat picture of the residual stream.

    stream x (L + 1, T, D) ─► length 1 each ─► centred ─► first two principal components
    cosine of layer l to the end  =  x_l · x_L / (|x_l| |x_L|)

Principal component analysis (Pearson 1901) by a singular value decomposition. Lengths grow a
hundredfold through the layers, and the first token's most of all: without scaling the picture would
show lengths only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.tokens import labels_of_units, units_of

if TYPE_CHECKING:
    from models.loading import LoadedModel

MOST_TOKENS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualSpace:
    """A text in the plane that shows most of its ways.

    Args:
        model_name: Which model.
        labels: One for each token.
        stages: "embed", then the number of each layer.
        points: (stages, T, 2).
        explained: Share of the variance along each of the two axes.
        cosines: (stages, T), of each stage to the last.
        lengths: (stages, T), before scaling.
    """

    model_name: str
    labels: tuple[str, ...]
    stages: tuple[str, ...]
    points: NDArray[np.float32]
    explained: tuple[float, float]
    cosines: NDArray[np.float32]
    lengths: NDArray[np.float32]


def compute_residual_space(
    loaded: LoadedModel,
    ids: Sequence[int],
    *,
    scaled: bool = True,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> ResidualSpace:
    """Lay the stream of every token after every layer into a plane.

    Args:
        loaded: Any decoder with its tokenizer.
        ids: The text.
        scaled: Whether every vector is made of length 1 first.
        turn: Entered for the forward pass; where several share a device, it makes them wait.

    Raises:
        ContextError: The text is too long for the model.
    """
    import torch

    from models.trace import Trace

    n_layers = loaded.config.n_layers
    names = ["blocks.0.resid_pre", *(f"blocks.{i}.resid_post" for i in range(n_layers))]
    trace = Trace(record=tuple(names))
    with turn(), torch.inference_mode():
        row = torch.tensor([list(ids)], device=loaded.model.device)
        loaded.model(row, trace=trace, last_only=True)
        streams = torch.stack([trace[name][0] for name in names]).float().cpu()
        lengths = streams.norm(dim=-1)
        unit = streams / lengths.clamp(min=1e-12)[..., None]
        cloud = (unit if scaled else streams).flatten(0, 1)
        centred = cloud - cloud.mean(dim=0)
        # the D x D covariance has the same axes, and is small however many points there are
        values, axes = torch.linalg.eigh(centred.T @ centred)
        points = centred @ axes[:, [-1, -2]]
    whole = float(values.clamp(min=0).sum()) or 1.0
    return ResidualSpace(
        model_name=loaded.info.name,
        labels=labels_of_units(units_of(loaded.tokenizer, ids)),
        stages=("embed", *map(str, range(n_layers))),
        points=points.unflatten(0, streams.shape[:2]).numpy(),
        explained=(float(values[-1]) / whole, float(values[-2]) / whole),
        cosines=(unit * unit[-1]).sum(dim=-1).numpy(),
        lengths=lengths.numpy(),
    )
