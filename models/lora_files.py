"""Adapters as PEFT lays them out on the disk, and back.

    adapter_config.json        {"peft_type": "LORA", "r": 8, "lora_alpha": 16, ...}
    adapter_model.safetensors  base_model.model.model.layers.0.self_attn.q_proj
                                   .lora_A.weight (r, in)    .lora_B.weight (out, r)
                             base_model.model.score.weight (k, D), of a classifier

Names are those that the base's own files have, found by its family's table of rules. Where a file
keeps several of our matrices as one (GPT-2's c_attn), an adapter of one of them has no place there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.decoder import Decoder
from models.errors import ConfigError, WeightError
from models.lora import LoraLinear, add_lora, lora_layers
from models.lora_config import LoraConfig
from models.saving_layout import choose_saving_layout
from models.weight_rules import plan_assignments, save_weights

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
_PREFIX = "base_model.model."
_HEAD = "score"


def save_adapter(
    folder: Path,
    model: Decoder,
    config: LoraConfig,
    *,
    base: str,
    class_head: Tensor | None = None,
) -> None:
    """Write the adapters of a model, alone.

    Args:
        folder: Where to; made if it is not there.
        model: A decoder with adapters.
        config: Theirs.
        base: Name or folder of the base, kept for whoever opens it.
        class_head: (k, D), the head of a classifier, which was trained with the adapters: the
            `score` of `transformers`' models for classes.

    Raises:
        ConfigError: The base's files keep one of the layers together with others.
        OSError: It cannot be written.
    """
    layers = dict(lora_layers(model))
    places = their_layers(model, tuple(layers))
    tensors: dict[str, Tensor] = {}
    for name, layer in layers.items():
        tensors[f"{_PREFIX}{places[name]}.lora_A.weight"] = _stored(layer.lora_a)
        tensors[f"{_PREFIX}{places[name]}.lora_B.weight"] = _stored(layer.lora_b)
    if class_head is not None:
        tensors[f"{_PREFIX}{_HEAD}.weight"] = _stored(class_head)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    values = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM" if class_head is None else "SEQ_CLS",
        "modules_to_save": None if class_head is None else [_HEAD],
        "base_model_name_or_path": base,
        "r": config.rank,
        "lora_alpha": config.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "target_modules": sorted({place.rpartition(".")[2] for place in places.values()}),
    }
    (folder / CONFIG_FILE).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def load_adapter(folder: Path, model: Decoder) -> LoraConfig:
    """Put saved adapters into a model; changes the model. A head of classes is left where it is.

    Args:
        folder: As `save_adapter` or PEFT wrote it.
        model: The base, without adapters.

    Returns:
        Rank, scale and layers.

    Raises:
        WeightError: The files are missing, damaged, or of another base.
        ConfigError: They ask for something that we do not have.
    """
    config = _read_config(folder)
    try:
        tensors = load_file(folder / WEIGHTS_FILE)
    except (OSError, SafetensorError) as error:
        raise _unreadable(folder, str(error)) from None
    add_lora(model, config, torch.Generator().manual_seed(0))
    layers = dict(lora_layers(model))
    places = their_layers(model, tuple(layers))
    wanted = {
        f"{_PREFIX}{places[name]}.lora_{part}.weight": (layer, part)
        for name, layer in layers.items()
        for part in ("A", "B")
    }
    tensors.pop(f"{_PREFIX}{_HEAD}.weight", None)
    if wanted.keys() != tensors.keys():
        other = ", ".join(sorted(wanted.keys() ^ tensors.keys())[:3])
        raise _unreadable(folder, f"it belongs to another base; different: {other}")
    with torch.no_grad():
        for key, (layer, part) in wanted.items():
            _copy(folder, key, tensors[key], layer, part)
    return config


def _copy(folder: Path, key: str, tensor: Tensor, layer: LoraLinear, part: str) -> None:
    target = layer.lora_a if part == "A" else layer.lora_b
    if tensor.shape != target.shape:
        raise _unreadable(folder, f"{key} is {tuple(tensor.shape)}, not {tuple(target.shape)}")
    target.copy_(tensor)


def their_layers(model: Decoder, names: tuple[str, ...]) -> Mapping[str, str]:
    """Our names of layers -> the names in the base's own files.

    Raises:
        ConfigError: The files keep one of the layers together with others, or in another layout.
    """
    config = model.config
    table = choose_saving_layout(config).family.rules(config)
    with torch.device("meta"):
        parameters = dict(Decoder(config).named_parameters())
        saved = save_weights(table, parameters, config)
    plan = plan_assignments(table, saved, parameters)
    places = {
        step.ours[0].removesuffix(".weight"): step.theirs.removesuffix(".weight")
        for step in plan
        if len(step.ours) == 1 and not step.layouts
    }
    missing = [name for name in names if name not in places]
    if missing:
        raise ConfigError(
            f"the base's files have no layer {missing[0]} of its own, so PEFT has no place for its "
            "adapter; merge the adapter and save the whole model",
            code="lora-no-layout",
            layer=missing[0],
        )
    return {name: places[name] for name in names}


def _read_config(folder: Path) -> LoraConfig:
    try:
        values = json.loads((folder / CONFIG_FILE).read_bytes())
        if values["peft_type"] != "LORA" or values.get("use_dora") or values.get("use_rslora"):
            raise ConfigError(f"{folder.name} holds adapters of another kind than plain LoRA")
        return LoraConfig(
            rank=int(values["r"]),
            alpha=float(values["lora_alpha"]),
            targets=tuple(values["target_modules"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(folder, f"{CONFIG_FILE}: {error!r}") from None


def _unreadable(folder: Path, problem: str) -> WeightError:
    return WeightError(
        f"the adapter in {folder.name} cannot be used ({problem}); take the folder as PEFT or this "
        "app wrote it, and the base that it was made for",
        code="lora-unreadable",
        problem=problem,
    )


def _stored(parameter: Tensor) -> Tensor:
    return parameter.detach().to("cpu", torch.float32).contiguous()
