"""Low-rank adapters: a frozen matrix and a small correction that is learned beside it.

    y = W x + (alpha / r) B A x          A (r, in) drawn, B (out, r) zeros: the first step changes
                                         nothing; merged: W + (alpha / r) B A

Hu et al. 2021 (arXiv 2106.09685), section 4.1. A is drawn as `nn.Linear` draws its weights, which
is what the authors' code and PEFT do.

Many adapters can stand on one base: `share_base` gives another decoder whose weights are the same
memory, and `add_lora` puts the adapters into that one. What was tuned twice adds two corrections to
a matrix; they are one of the ranks' sum (`add_lora_of`):

    s1 B1 A1 + s2 B2 A2 = [s1 B1, s2 B2] [A1; A2]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.config import ModelConfig
from models.decoder import Decoder
from models.errors import ConfigError
from models.lora_config import LoraConfig


class LoraLinear(nn.Module):
    """A linear layer with an adapter beside it.

    Args:
        base: The layer, which is no longer trained.
        lora_a: A, (r, in).
        lora_b: B, (out, r).
        scale: alpha / r.
    """

    def __init__(self, base: nn.Linear, lora_a: Tensor, lora_b: Tensor, scale: float) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = scale
        self.lora_a = nn.Parameter(lora_a)
        self.lora_b = nn.Parameter(lora_b)
        self.is_merged = False

    @property
    def weight(self) -> Tensor:
        """The matrix that base and adapter stand for, made anew, (out, in)."""
        return self.base.weight if self.is_merged else self.base.weight + self.correction()

    @property
    def bias(self) -> Tensor | None:
        """The base's; an adapter has none."""
        return self.base.bias

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output with the correction; merged, the layer has it already."""
        if self.is_merged:
            return self.base(x)
        return self.base(x) + self.scale * ((x @ self.lora_a.T) @ self.lora_b.T)

    def correction(self) -> Tensor:
        """What the adapter adds to the matrix, (out, in)."""
        return self.scale * (self.lora_b @ self.lora_a)


@dataclass(frozen=True)
class LoraSize:
    """How small an adapter is.

    Args:
        n_adapter: Numbers in the adapters.
        n_base: Numbers in the base.
    """

    n_adapter: int
    n_base: int

    @property
    def share(self) -> float:
        """Share of all numbers that is trained."""
        return self.n_adapter / (self.n_adapter + self.n_base)


def add_lora(model: Decoder, config: LoraConfig, generator: torch.Generator) -> tuple[str, ...]:
    """Put adapters beside the chosen layers and freeze everything else; changes the model.

    Args:
        model: Its weights stay where they are.
        config: Rank, scale, and which layers.
        generator: Draws the adapters.

    Returns:
        Names of the layers that got one.

    Raises:
        ConfigError: The model has none of these layers, or adapters already.
    """
    if any(isinstance(module, LoraLinear) for module in model.modules()):
        raise ConfigError("the model has adapters already; merge them or take another copy of it")
    found = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name.rpartition(".")[2] in config.targets
    ]
    if not found:
        wanted = ", ".join(config.targets)
        raise ConfigError(
            f"the model has none of the layers {wanted}; choose among {_known(model)}",
            code="lora-no-target",
            wanted=wanted,
            known=_known(model),
        )
    model.requires_grad_(False)
    for name in found:
        parent, _, last = name.rpartition(".")
        owner = model.get_submodule(parent)
        base = getattr(owner, last)
        setattr(owner, last, _draw_adapter(base, config, generator))
    return tuple(found)


def _draw_adapter(base: nn.Linear, config: LoraConfig, generator: torch.Generator) -> LoraLinear:
    first = torch.empty(config.rank, base.in_features, dtype=torch.float32)
    nn.init.kaiming_uniform_(first, a=math.sqrt(5), generator=generator)
    second = base.weight.new_zeros(base.out_features, config.rank)
    return LoraLinear(base, first.to(base.weight), second, config.scale)


def add_lora_of(model: Decoder, earlier: Decoder) -> None:
    """Add the corrections of another model to this one's; changes the model.

    Args:
        model: A decoder, with adapters or without.
        earlier: One on the same base; its adapters are copied where this model has some, too.
    """
    for name, first in lora_layers(earlier):
        parent, _, last = name.rpartition(".")
        owner = model.get_submodule(parent)
        layer = getattr(owner, last)
        if isinstance(layer, LoraLinear):
            a = torch.cat([first.lora_a.detach(), layer.lora_a.detach()])
            b = torch.cat(
                [first.scale * first.lora_b.detach(), layer.scale * layer.lora_b.detach()], dim=1
            )
            setattr(owner, last, LoraLinear(layer.base, a, b, 1.0))
        else:
            pair = first.lora_a.detach(), first.lora_b.detach()
            setattr(owner, last, LoraLinear(layer, *pair, first.scale))
    model.requires_grad_(False)


def _known(model: Decoder) -> str:
    names = (n for n, m in model.blocks.named_modules() if isinstance(m, nn.Linear))
    return ", ".join(sorted({name.rpartition(".")[2] for name in names}))


def lora_layers(model: nn.Module) -> Iterator[tuple[str, LoraLinear]]:
    """Names of the layers with adapters, as the base calls them, and the layers."""
    for name, module in model.named_modules():
        if isinstance(module, LoraLinear):
            yield name, module


def merge_lora(model: nn.Module) -> None:
    """Add the corrections to the matrices, so that the pass costs what the base's does."""
    with torch.no_grad():
        for _, layer in lora_layers(model):
            if not layer.is_merged:
                # a sum of its own: the base's memory may be shared with other models
                layer.base.weight = _frozen(layer.base.weight + layer.correction())
                layer.is_merged = True


def unmerge_lora(model: nn.Module) -> None:
    """Take the corrections out of the matrices again."""
    with torch.no_grad():
        for _, layer in lora_layers(model):
            if layer.is_merged:
                layer.base.weight = _frozen(layer.base.weight - layer.correction())
                layer.is_merged = False


def _frozen(tensor: Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)


def share_base(model: Decoder, config: ModelConfig | None = None) -> Decoder:
    """Another decoder whose weights are the memory of this one; adapters are not taken along.

    Args:
        model: The one whose memory is shared.
        config: Of the other one, where it differs in what has no weights; None is the same.

    Raises:
        RuntimeError: The other one would have other weights.
    """
    with torch.device("meta"):
        other = Decoder(config or model.config)
    other.load_state_dict(base_weights(model), assign=True)
    return other.requires_grad_(False)


def base_weights(model: nn.Module) -> dict[str, Tensor]:
    """Weights under the names that they have without adapters; those of adapters are left out."""
    return {
        name.replace(".base.", "."): parameter.detach()
        for name, parameter in model.named_parameters()
        if not name.endswith((".lora_a", ".lora_b"))
    }


class MergedWeights(Mapping[str, Tensor]):
    """Weights of a model under the names that it has without adapters, corrections added.

    A matrix with an adapter is made anew each time it is asked for, so that looking through a model
    takes the memory of one matrix.

    Args:
        model: With adapters or without.
    """

    def __init__(self, model: nn.Module) -> None:
        self._layers = {f"{name}.weight": layer for name, layer in lora_layers(model)}
        self._others = {
            name.replace(".base.", "."): tensor
            for name, tensor in model.state_dict().items()
            if not name.endswith((".lora_a", ".lora_b"))
        }

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._layers:
            return self._others[name]
        with torch.no_grad():
            return self._layers[name].weight

    def __iter__(self) -> Iterator[str]:
        return iter(self._others)

    def __len__(self) -> int:
        return len(self._others)


def merged_copy(model: Decoder) -> Decoder:
    """A plain decoder with the corrections added; what has no adapter is shared memory.

    A model without adapters is returned as it is.
    """
    if not any(True for _ in lora_layers(model)):
        return model
    with torch.device("meta"):
        plain = Decoder(model.config)
    plain.load_state_dict(MergedWeights(model), assign=True)
    return plain.requires_grad_(False)


def count_lora(model: nn.Module) -> LoraSize:
    """Numbers in the adapters and in the base."""
    n_adapter = sum(p.lora_a.numel() + p.lora_b.numel() for _, p in lora_layers(model))
    n_base = sum(tensor.numel() for tensor in base_weights(model).values())
    return LoraSize(n_adapter, n_base)
