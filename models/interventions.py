"""Changes of a forward pass: scale a head, silence a layer, put in what another text said there.

    z_h        ◄─ HeadScale     attn_out, ffn_out  ◄─ SublayerScale
    any name   ◄─ Patch         (values of another pass, at chosen tokens)
    any name   ◄─ Steer         (a vector added, at chosen tokens or all)

Each is a value that says *what* is changed; `Interventions` turns several of them into the edits of
a `Trace`, so that there is no second mechanism and nothing stays on the model:

    changes = Interventions(changes=(HeadScale(layer=3, head=1, factor=0.0),))
    changes.check(model.config)
    logits = model(ids, trace=Trace(edits=changes.edits()))

With a factor of 0 a head is switched off (zero ablation; Michel et al. 2019, arXiv 1905.10650, eq.
3, whose mask variable is the factor). Patching is the interchange of Vig et al. 2020
(arXiv 2004.12265) and Meng et al. 2022 (arXiv 2202.05262, section 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from models.config import ModelConfig
from models.errors import ConfigError
from models.trace import Edit

Sublayer = Literal["attn", "ffn"]


class Intervention(Protocol):
    """One change of one named activation."""

    @property
    def name(self) -> str:
        """The activation that it changes, as in `models/trace.py`."""

    def apply(self, tensor: Tensor) -> Tensor:
        """The activation with the change; may change the tensor that it is given."""

    def check(self, config: ModelConfig) -> None:
        """Refuse what this model has not.

        Raises:
            ConfigError: No such layer or head.
        """


@dataclass(frozen=True, kw_only=True)
class HeadScale:
    """Multiplies what one query head read, before the output projection.

    Args:
        layer: From 0.
        head: Query head, from 0.
        factor: 0 switches it off, 1 changes nothing.
    """

    layer: int
    head: int
    factor: float

    @property
    def name(self) -> str:
        """`blocks.L.attn.z`."""
        return f"blocks.{self.layer}.attn.z"

    def apply(self, tensor: Tensor) -> Tensor:
        """Scale (B, H, T, d) at this head."""
        tensor[:, self.head] *= self.factor
        return tensor

    def check(self, config: ModelConfig) -> None:
        """Refuse a layer or head that the model has not."""
        _check_index("layer", self.layer, config.n_layers)
        _check_index("head", self.head, config.attention.n_heads)


@dataclass(frozen=True, kw_only=True)
class SublayerScale:
    """Multiplies all that attention or feed-forward of one layer adds to the stream.

    Args:
        layer: From 0.
        sublayer: `attn` or `ffn`.
        factor: 0 switches it off, 1 changes nothing.
    """

    layer: int
    sublayer: Sublayer
    factor: float

    @property
    def name(self) -> str:
        """`blocks.L.attn_out` or `blocks.L.ffn_out`."""
        return f"blocks.{self.layer}.{self.sublayer}_out"

    def apply(self, tensor: Tensor) -> Tensor:
        """Scale (B, T, D)."""
        return tensor * self.factor

    def check(self, config: ModelConfig) -> None:
        """Refuse a layer that the model has not."""
        _check_index("layer", self.layer, config.n_layers)


@dataclass(frozen=True, kw_only=True, eq=False)
class Patch:
    """Puts in what the same activation was in another pass.

    Args:
        name: Of the activation.
        value: Of another pass, of the activation's own shape, or of a batch of 1.
        positions: Tokens to replace, from 0; None replaces all.
        head: Of an activation with heads, (B, H, T, d), the one to replace; None replaces all.
    """

    name: str
    value: Tensor
    positions: Sequence[int] | None = None
    head: int | None = None

    def apply(self, tensor: Tensor) -> Tensor:
        """Replace the chosen tokens, counted on the axis before the last."""
        value = self.value.to(tensor).expand_as(tensor)
        tokens = range(tensor.shape[-2]) if self.positions is None else self.positions
        index = torch.tensor(list(tokens), dtype=torch.long, device=tensor.device)
        if self.head is None:
            tensor[..., index, :] = value[..., index, :]
        else:
            tensor[:, self.head, index] = value[:, self.head, index]
        return tensor

    def check(self, config: ModelConfig) -> None:
        """Refuse a head that the model has not; a wrong name is refused by the trace."""
        if self.head is not None:
            _check_index("head", self.head, config.attention.n_heads)


@dataclass(frozen=True, kw_only=True, eq=False)
class Steer:
    """Adds a vector to the stream (Turner et al. 2023, arXiv 2308.10248).

    Args:
        name: Of an activation (B, T, D), such as `blocks.5.resid_pre`.
        vector: (D,).
        strength: Multiplies the vector.
        positions: Tokens to add it to, from 0; None adds it to all.
    """

    name: str
    vector: Tensor
    strength: float = 1.0
    positions: Sequence[int] | None = None

    def apply(self, tensor: Tensor) -> Tensor:
        """Add to the chosen tokens."""
        added = self.strength * self.vector.to(tensor)
        if self.positions is None:
            return tensor + added
        tensor[:, list(self.positions)] += added
        return tensor

    def check(self, config: ModelConfig) -> None:
        """Refuse a vector that is not as wide as the stream."""
        if tuple(self.vector.shape) != (config.d_model,):
            raise ConfigError(
                f"a vector of {tuple(self.vector.shape)} cannot be added to a stream of width "
                f"{config.d_model}; take one from a stream of this model"
            )


@dataclass(frozen=True, kw_only=True)
class Interventions:
    """Several changes of one pass, applied in their order.

    Args:
        changes: What to change; none leaves the pass as it is.
    """

    changes: tuple[Intervention, ...] = ()

    def check(self, config: ModelConfig) -> None:
        """Refuse what this model has not.

        Raises:
            ConfigError: No such layer or head, or a vector of another width.
        """
        for change in self.changes:
            change.check(config)

    def edits(self) -> dict[str, Edit]:
        """For `Trace(edits=...)`: for each activation that is changed, what to do with it."""
        by_name: dict[str, list[Intervention]] = {}
        for change in self.changes:
            by_name.setdefault(change.name, []).append(change)
        return {name: _one_after_another(changes) for name, changes in by_name.items()}


def _one_after_another(changes: Sequence[Intervention]) -> Edit:
    def edit(tensor: Tensor) -> Tensor:
        for change in changes:
            tensor = change.apply(tensor)
        return tensor

    return edit


def _check_index(what: Literal["layer", "head"], index: int, n: int) -> None:
    if not 0 <= index < n:
        raise ConfigError(
            f"there is no {what} {index}; choose 0 to {n - 1}",
            code=f"index-range-{what}",
            index=index,
            last=n - 1,
        )
