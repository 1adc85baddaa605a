"""Norms in front, behind and nowhere: activations and gradients of each layer, at first and later.

A small GPT is built three times from one seed, and reads the same bytes. Shown for each layer are
the root mean square of the stream behind it, and the norm of the gradient of its weights: at the
start, or after some steps of AdamW (Xiong et al. 2020, arXiv 2002.04745, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError
from models.config import (
    FULL,
    AttentionConfig,
    FfnConfig,
    Initialisation,
    ModelConfig,
    NormConfig,
)

if TYPE_CHECKING:
    from torch import Tensor

    from models.decoder import Decoder

KINDS = ("pre", "post", "none")
LAWS: tuple[str, ...] = get_args(Initialisation)
TEXT = "the cat sat on the mat, and the mat sat under the cat; the dog ran after the cat. " * 2
N_ROWS, N_TOKENS = 4, 32


@dataclass(frozen=True, kw_only=True)
class NormPositionSettings:
    """The three models.

    Args:
        depth: Blocks.
        n_steps: Steps of training before they are looked at.
        learning_rate: Of AdamW.
        law: Of the initial weights.
        seed: Of the initial weights.
    """

    depth: int = field(default=12, metadata={"least": 1, "most": 24, "step": 1})
    n_steps: int = field(default=0, metadata={"least": 0, "most": 30, "step": 1})
    learning_rate: float = field(
        default=0.001, metadata={"least": 0.0001, "most": 0.05, "step": 0.0001}
    )
    law: str = field(default="normal_scaled", metadata={"choices": LAWS, "dial": True})
    seed: int = field(default=123, metadata={"least": 0, "most": 9_999, "step": 1})


@dataclass(frozen=True, kw_only=True, eq=False)
class NormPositionCurves:
    """What one model shows.

    Args:
        stream: (depth,) root mean square of the stream behind each block.
        gradients: (depth,) norm of the gradient of each block's weights.
        losses: (n_steps + 1,) in nats.
    """

    stream: NDArray[np.float64]
    gradients: NDArray[np.float64]
    losses: NDArray[np.float64]


def compute_norm_positions(
    settings: NormPositionSettings,
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Mapping[str, NormPositionCurves]:
    """Build, train a little, and look at the three models.

    Args:
        settings: What to build.
        turn: Entered for each step; where several share a device, it makes them wait.

    Raises:
        ConfigError: An unknown law.
    """
    if settings.law not in LAWS:
        known = ", ".join(LAWS)
        raise ConfigError(
            f"law={settings.law!r} is unknown; choose {known}",
            code="run-choice",
            name="law",
            found=settings.law,
            known=known,
        )
    return {kind: _look(settings, kind, turn) for kind in KINDS}


def build_config(settings: NormPositionSettings, kind: str) -> ModelConfig:
    """The configuration of one of the three.

    Args:
        settings: Depth and law.
        kind: One of `KINDS`.
    """
    config = ModelConfig(
        vocab_size=128,  # ASCII
        context_length=N_TOKENS,
        d_model=32,
        layer_types=(FULL,) * settings.depth,
        attention=AttentionConfig(n_heads=2, n_kv_heads=2, d_head=16),
        ffn=FfnConfig(d_ff=64, activation="gelu_tanh", gated=False),
        norm=NormConfig(kind="none" if kind == "none" else "layernorm"),
        positions="learned",
        norm_position="post_residual" if kind == "post" else "pre",
        tied_head=True,
    )
    return replace(config, initialisation=settings.law)  # type: ignore[arg-type]


def _look(
    settings: NormPositionSettings, kind: str, turn: Callable[[], AbstractContextManager[object]]
) -> NormPositionCurves:
    import torch

    from models.initialise import build_decoder

    generator = torch.Generator().manual_seed(settings.seed)
    model = build_decoder(build_config(settings, kind), generator)
    ids = torch.tensor(list(TEXT.encode()))[: N_ROWS * (N_TOKENS + 1)].view(N_ROWS, -1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate)
    losses = []
    for step in range(settings.n_steps + 1):
        with turn():
            optimiser.zero_grad()
            loss = _loss(model, ids)
            loss.backward()
            losses.append(float(loss.detach()))
            if step < settings.n_steps:
                optimiser.step()
    return NormPositionCurves(
        stream=_stream_sizes(model, ids),
        gradients=np.array([_gradient_norm(block) for block in model.blocks]),
        losses=np.array(losses),
    )


def _loss(model: Decoder, ids: Tensor) -> Tensor:
    from torch.nn import functional

    logits = model(ids[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def _stream_sizes(model: Decoder, ids: Tensor) -> NDArray[np.float64]:
    import torch

    from models.trace import Trace

    trace = Trace(record=("blocks.*.resid_post",))
    with torch.no_grad():
        model(ids[:, :-1], trace=trace)
    streams = [trace[f"blocks.{i}.resid_post"] for i in range(len(model.blocks))]
    return np.array([float(stream.double().square().mean().sqrt()) for stream in streams])


def _gradient_norm(block: object) -> float:
    gradients = [p.grad for p in block.parameters() if p.grad is not None]  # type: ignore[attr-defined]
    return float(sum(float(g.double().square().sum()) for g in gradients)) ** 0.5
