"""From a model to a folder that `load_model` opens, and `transformers` too where it has the layout.

    Decoder ─► layout (models/saving_layout.py) ─► config.json
           └─► parameters, by the layout's rules ─► model.safetensors
    tokenizer ─► tokenizer.json, tokenizer_config.json, generation_config.json (who ends a text)

A tied head is stored once. Files are written whole and flushed to the disk, but one after the
other: who needs all or nothing writes into a folder aside and renames it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from models.decoder import Decoder
from models.errors import ConfigError, WeightError
from models.loading import DTYPES
from models.saving_layout import SavingLayout, choose_saving_layout
from models.tokenizers import ChatTemplate, Tokenizer, fit_tokenizer, save_tokenizer
from models.weight_checks import check_numbers
from models.weight_files import SINGLE_WEIGHT_FILE
from models.weight_rules import plan_assignments, save_weights

STORAGE_TYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, kw_only=True)
class SavedModel:
    """What lies in the folder.

    Args:
        folder: Where.
        model_type: `model_type` of its config.json: the layout.
        opens_in_transformers: Whether `AutoModelForCausalLM.from_pretrained` opens it.
        dtype: Type of the stored numbers.
        size_bytes: Size of the weights file.
    """

    folder: Path
    model_type: str
    opens_in_transformers: bool
    dtype: str
    size_bytes: int


def save_model(
    folder: Path,
    model: Decoder,
    *,
    tokenizer: Tokenizer | None = None,
    chat: ChatTemplate | None = None,
    dtype: str = "float32",
) -> SavedModel:
    """Write a model into a folder; its files that are there already are replaced.

    Args:
        folder: Where to; made if it is not there.
        model: Any decoder with weights in floating point.
        tokenizer: Written beside it.
        chat: Its chat template, written beside the tokenizer.
        dtype: How numbers are stored: float32, bfloat16 or float16.

    Raises:
        ConfigError: Another dtype, or a value beyond those that a file may ask for.
        WeightError: Weights are NaN, infinite, too large for float16 or in 8 bits, or the folder
            cannot be written (a full disk).
        TokenizerError: A tokenizer that is not of this model, or of a kind that cannot be written.
    """
    if dtype not in STORAGE_TYPES:
        raise ConfigError(
            f"dtype {dtype!r} is none that weights are stored in; choose {', '.join(STORAGE_TYPES)}"
        )
    layout = choose_saving_layout(model.config)
    tensors = _collect_weights(model, layout, DTYPES[dtype])
    if tokenizer is not None:
        tokenizer = fit_tokenizer(tokenizer, model.config.vocab_size)
    try:
        _write_files(folder, layout, tensors, tokenizer, chat, dtype)
    except (OSError, SafetensorError) as error:
        raise WeightError(
            f"the model cannot be written to {folder.name}: {error}; free some space on its disk, "
            "or choose a folder that you may write to",
            code="model-not-written",
            folder=folder.name,
            problem=str(error),
        ) from error
    return SavedModel(
        folder=folder,
        model_type=layout.model_type,
        opens_in_transformers=layout.family.opens_in_transformers,
        dtype=dtype,
        size_bytes=(folder / SINGLE_WEIGHT_FILE).stat().st_size,
    )


def _collect_weights(model: Decoder, layout: SavingLayout, dtype: torch.dtype) -> dict[str, Tensor]:
    """The layout's names -> tensors; together they fill every parameter exactly once."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    with torch.device("meta"):
        expected = {name for name, _ in Decoder(model.config).named_parameters()}
    if parameters.keys() != expected:
        other = ", ".join(sorted(parameters.keys() ^ expected)[:3])
        raise WeightError(
            f"the model has other parameters than its configuration ({other}); weights in 8 bits "
            "and adapters are not saved as a model: load it in float32, merge adapters first"
        )
    for name, tensor in parameters.items():
        check_numbers(name, tensor, dtype)
    table = layout.family.rules(model.config)
    saved = save_weights(table, parameters, model.config)
    plan_assignments(table, saved, expected)  # a part without a rule would be missing
    return {name: tensor.to("cpu", dtype).contiguous() for name, tensor in saved.items()}


def _write_files(
    folder: Path,
    layout: SavingLayout,
    tensors: Mapping[str, Tensor],
    tokenizer: Tokenizer | None,
    chat: ChatTemplate | None,
    dtype: str,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer is not None:
        save_tokenizer(tokenizer, folder, chat=chat)
    ids = _special_ids(tokenizer)
    # null says that there is none: absent, `transformers` takes the ids of the family's first model
    _write_json(folder / "config.json", {**layout.values, "torch_dtype": dtype, **ids})
    generation = folder / "generation_config.json"
    if ids["eos_token_id"] is None:
        generation.unlink(missing_ok=True)
    else:
        _write_json(generation, {key: value for key, value in ids.items() if value is not None})
    save_file(dict(tensors), folder / SINGLE_WEIGHT_FILE, metadata={"format": "pt"})
    for path in folder.iterdir():
        if path.is_file():
            _flush_to_disk(path)


def _special_ids(tokenizer: Tokenizer | None) -> dict[str, int | None]:
    roles = ("bos_token_id", "eos_token_id", "pad_token_id")
    if tokenizer is None:
        return dict.fromkeys(roles)
    return dict(zip(roles, (tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id), strict=True))


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _flush_to_disk(path: Path) -> None:
    with path.open("rb+") as file:  # some systems flush only what is open for writing
        os.fsync(file.fileno())
