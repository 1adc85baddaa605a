"""From files to a model that answers.

source ─► files ─► configuration ─► empty Decoder ("meta", no memory) ─► weights by the rules
               └─► tokenizer, chat template, stop ids
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from models.checkpoints import GgufCheckpoint, SafetensorsCheckpoint, read_json
from models.config import ModelConfig
from models.decoder import Decoder
from models.errors import ConfigError, TokenizerError
from models.family import Family
from models.gguf_file import GgufFile
from models.registry import find_family, find_gguf_family
from models.sources import Origin, ResolvedSource, resolve_source
from models.tokenizers import (
    ChatTemplate,
    Tokenizer,
    gguf_chat_template,
    load_chat_template,
    load_gguf_tokenizer,
    load_tokenizer,
)
from models.weight_rules import Checkpoint, RuleTable, load_weights

DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True)
class ModelInfo:
    """What the page says about a loaded model.

    Args:
        id: The source string.
        name: As shown.
        family: Name of the family.
        n_parameters: Stored numbers; a tied head counts once.
        n_bytes: Memory of the weights.
        dtype: Their type.
        origin: Where the files came from.
    """

    id: str
    name: str
    family: str
    n_parameters: int
    n_bytes: int
    dtype: str
    origin: Origin


@dataclass(frozen=True)
class LoadedModel:
    """A model with everything needed to talk to it.

    Args:
        model: The decoder; its weights ask for no gradients.
        config: Its configuration.
        chat: Its chat template, or None for a base model.
        stop_ids: Tokens that end an answer.
        info: For the page.
        tokenizer_or_error: The tokenizer, or why there is none.
    """

    model: Decoder
    config: ModelConfig
    chat: ChatTemplate | None
    stop_ids: frozenset[int]
    info: ModelInfo
    tokenizer_or_error: Tokenizer | TokenizerError

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer.

        Raises:
            TokenizerError: The files hold none, or one that is not of this model.
        """
        if isinstance(self.tokenizer_or_error, TokenizerError):
            raise self.tokenizer_or_error
        return self.tokenizer_or_error


@dataclass(frozen=True)
class _Files:
    """A model's files, opened: everything that reading them needs, whatever their kind."""

    config: ModelConfig
    family: Family
    rules: RuleTable
    stop_ids: frozenset[int]
    path: Path
    gguf: GgufFile | None

    def checkpoint(self) -> Checkpoint:
        return GgufCheckpoint(self.gguf) if self.gguf else SafetensorsCheckpoint(self.path)

    def tokenizer(self) -> Tokenizer:
        return load_gguf_tokenizer(self.gguf) if self.gguf else load_tokenizer(self.path)

    def chat(self, tokenizer: Tokenizer) -> ChatTemplate | None:
        if self.gguf:
            return gguf_chat_template(self.gguf, tokenizer)
        return load_chat_template(self.path, tokenizer)


def load_model(
    source: str | Path | ResolvedSource,
    dtype: str = "float32",
    device: torch.device | str = "cpu",
) -> LoadedModel:
    """Load a model for reading and generating.

    Args:
        source: Folder, .gguf file, Hub id or catalogue name.
        dtype: float32, bfloat16 or float16.
        device: Where the weights go.

    Raises:
        SourceError: The files cannot be found or fetched.
        ConfigError: A family, part or dtype that we do not have.
        WeightError: Files that are damaged or do not fit each other.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"dtype {dtype!r} is unknown; choose {', '.join(DTYPES)}")
    if not isinstance(source, ResolvedSource):
        source = resolve_source(str(source))
    files = _open_files(source)
    model = _fill(files, DTYPES[dtype], torch.device(device))
    tokenizer = _tokenizer_or_error(files)
    usable = None if isinstance(tokenizer, TokenizerError) else tokenizer
    weights = list(model.parameters())
    return LoadedModel(
        model=model,
        config=files.config,
        chat=None if usable is None else files.chat(usable),
        stop_ids=files.stop_ids | _end_of(usable),
        info=ModelInfo(
            id=source.id,
            name=source.name,
            family=files.family.name,
            n_parameters=sum(w.numel() for w in weights),
            n_bytes=sum(w.nbytes for w in weights),
            dtype=dtype,
            origin=source.origin,
        ),
        tokenizer_or_error=tokenizer,
    )


def load_config(source: ResolvedSource) -> ModelConfig:
    """The configuration alone.

    Raises:
        ConfigError: A family or part that we do not have.
        WeightError: The file that holds it is missing or damaged.
    """
    return _open_files(source).config


def _open_files(source: ResolvedSource) -> _Files:
    if source.kind == "gguf":
        return _open_gguf(source.path)
    values = read_json(source.path / "config.json")
    family = find_family(values)
    config = family.config_from_hf(values)
    stops = _stop_ids(values)
    if (source.path / "generation_config.json").exists():
        stops |= _stop_ids(read_json(source.path / "generation_config.json"))
    return _Files(config, family, family.rules(config), stops, source.path, gguf=None)


def _open_gguf(path: Path) -> _Files:
    gguf = GgufFile(path)
    family = find_gguf_family(gguf.architecture)
    layout = family.gguf
    assert layout is not None  # find_gguf_family matched its architecture
    shapes = {name: tensor.shape for name, tensor in gguf.tensors.items()}
    config = layout.config_from_metadata(gguf.metadata, shapes)
    keys = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")
    found = [gguf.metadata.get(key) for key in keys]
    stops = frozenset(i for i in found if isinstance(i, int))
    return _Files(config, family, layout.rules(config), stops, path, gguf)


def _stop_ids(values: Mapping[str, Any]) -> frozenset[int]:
    """`eos_token_id` is absent, null, a number or a list of them."""
    found = values.get("eos_token_id")
    found = found if isinstance(found, list) else [found]
    return frozenset(i for i in found if isinstance(i, int) and not isinstance(i, bool))


def _end_of(tokenizer: Tokenizer | None) -> frozenset[int]:
    if tokenizer is None or tokenizer.eos_id is None:
        return frozenset()
    return frozenset({tokenizer.eos_id})


def _fill(files: _Files, dtype: torch.dtype, device: torch.device) -> Decoder:
    with torch.device("meta"):
        model = Decoder(files.config)
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    weights = load_weights(
        files.rules,
        files.checkpoint(),
        shapes,
        files.config,
        convert=lambda tensor: tensor.to(device=device, dtype=dtype),
    )
    model.load_state_dict(weights, assign=True)
    return model.requires_grad_(False)


def _tokenizer_or_error(files: _Files) -> Tokenizer | TokenizerError:
    """A model without a tokenizer still opens: its shapes and weights can be looked at."""
    try:
        tokenizer = files.tokenizer()
    except TokenizerError as error:
        return error
    if tokenizer.vocab_size > files.config.vocab_size:
        return TokenizerError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model only "
            f"{files.config.vocab_size}; use the tokenizer that belongs to the model",
            code="tokenizer-too-large",
            tokens=tokenizer.vocab_size,
            rows=files.config.vocab_size,
        )
    return tokenizer
