"""A trained encoder-decoder on the disk, and how it is read again.

    step-00000100/translator.safetensors     weights, under the names of `torch.nn.Transformer`
    step-00000100/translator.json            both stacks, and how they share embeddings

So a `torch.nn.Transformer` of the same sizes takes the weights as they are (see
`models/families/transformer_2017.py` for the three names beside it).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from explorer.datasets.translations import END_ID, START_ID
from explorer.training.translation_config import TRANSLATOR_FILE
from models.config_json import dataclass_from_json, dataclass_to_json
from models.encoder_decoder import EncoderDecoder, generate_target
from models.encoder_decoder_config import EncoderDecoderConfig
from models.errors import ConfigError, WeightError
from models.families.transformer_2017 import load_from_pytorch, save_for_pytorch

WEIGHTS_FILE = "translator.safetensors"


def save_translator(folder: Path, model: EncoderDecoder) -> None:
    """Write a model into a folder.

    Args:
        folder: Where to; it exists.
        model: Any encoder-decoder.

    Raises:
        OSError: It cannot be written.
    """
    tensors = {
        name: tensor.detach().to("cpu", torch.float32).contiguous()
        for name, tensor in save_for_pytorch(model).items()
    }
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    text = json.dumps(dataclass_to_json(model.config), indent=2, allow_nan=False)
    (folder / TRANSLATOR_FILE).write_text(text + "\n", encoding="utf-8")


def is_translator(folder: Path) -> bool:
    """Whether a folder holds an encoder-decoder."""
    return (folder / TRANSLATOR_FILE).exists()


def load_translator(folder: Path) -> EncoderDecoder:
    """Read what `save_translator` wrote; on the CPU, in float32.

    Raises:
        WeightError: A file is missing or damaged, or the two do not belong together.
    """
    try:
        values = json.loads((folder / TRANSLATOR_FILE).read_bytes())
        config = dataclass_from_json(EncoderDecoderConfig, values, TRANSLATOR_FILE)
        tensors = load_file(folder / WEIGHTS_FILE)
        return load_from_pytorch(config, tensors).requires_grad_(False)
    except (OSError, ValueError, ConfigError, SafetensorError) as error:
        raise WeightError(
            f"{folder.name} holds no encoder-decoder that can be used ({error}); choose another "
            "checkpoint, or train again",
            code="translation-damaged",
            folder=folder.name,
            problem=str(error),
        ) from None


def translate_greedily(model: EncoderDecoder, source: Sequence[int]) -> list[int]:
    """The most probable target of one source, without its start and its end.

    Args:
        model: The model.
        source: Ids of the source.
    """
    length = model.config.decoder.context_length
    written = generate_target(
        model, source, start_id=START_ID, stop_ids={END_ID}, max_new_tokens=length
    )
    return [id_ for id_ in written if id_ != END_ID]
