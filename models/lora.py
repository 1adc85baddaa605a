"""Low-rank adapters: a frozen matrix and a small correction that is learned beside it.

    y = W x + (alpha / r) B A x          A (r, in) drawn, B (out, r) zeros: the first step changes
                                         nothing; merged: W + (alpha / r) B A

Hu et al. 2021 (arXiv 2106.09685), section 4.1. A is drawn as `nn.Linear` draws its weights, which
is what the authors' code and PEFT do.

Many adapters can stand on one base: `share_base` gives another decoder whose weights are the same
memory, and `add_lora` puts the adapters into that one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.decoder import Decoder
from models.errors import ConfigError
from models.lora_config import LoraConfig


class LoraLinear(nn.Module):
    """A linear layer with an adapter beside it.

    Args:
        base: The layer, which is no longer trained.
        config: Rank and scale.
        generator: Draws A.
    """

    def __init__(self, base: nn.Linear, config: LoraConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = config.scale
        weight = base.weight
        first = torch.empty(config.rank, base.in_features, dtype=torch.float32)
        nn.init.kaiming_uniform_(first, a=math.sqrt(5), generator=generator)
        self.lora_a = nn.Parameter(first.to(weight))
        self.lora_b = nn.Parameter(weight.new_zeros(base.out_features, config.rank))
        self.is_merged = False

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
        setattr(owner, last, LoraLinear(base, config, generator))
    return tuple(found)


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


def share_base(model: Decoder) -> Decoder:
    """Another decoder whose weights are the memory of this one; adapters are not taken along."""
    with torch.device("meta"):
        other = Decoder(model.config)
    other.load_state_dict(base_weights(model), assign=True)
    return other.requires_grad_(False)


def base_weights(model: nn.Module) -> dict[str, Tensor]:
    """Weights under the names that they have without adapters; those of adapters are left out."""
    return {
        name.replace(".base.", "."): parameter.detach()
        for name, parameter in model.named_parameters()
        if not name.endswith((".lora_a", ".lora_b"))
    }


def merged_copy(model: Decoder) -> Decoder:
    """A plain decoder with the corrections added; what has no adapter is shared memory."""
    weights = base_weights(model)
    with torch.no_grad():
        for name, layer in lora_layers(model):
            if not layer.is_merged:
                weights[f"{name}.weight"] = weights[f"{name}.weight"] + layer.correction()
    with torch.device("meta"):
        plain = Decoder(model.config)
    plain.load_state_dict(weights, assign=True)
    return plain.requires_grad_(False)


def count_lora(model: nn.Module) -> LoraSize:
    """Numbers in the adapters and in the base."""
    n_adapter = sum(p.lora_a.numel() + p.lora_b.numel() for _, p in lora_layers(model))
    n_base = sum(tensor.numel() for tensor in base_weights(model).values())
    return LoraSize(n_adapter, n_base)
