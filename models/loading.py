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
from torch import Tensor

from models.checkpoints import GgufCheckpoint, SafetensorsCheckpoint
from models.config import ModelConfig
from models.decoder import Decoder
from models.errors import ConfigError, TokenizerError
from models.family import Family
from models.gguf_file import GgufFile
from models.json_files import read_json
from models.quantize import (
    Int8Rows,
    count_stored,
    name_stored,
    quantize_rows,
    replace_with_int8,
)
from models.registry import find_family, find_gguf_family, find_state_dict_family
from models.sources import Origin, ResolvedSource, resolve_source
from models.state_dict_file import StateDictFile, check_single_shard, read_settings_beside
from models.tokenizers import (
    ChatTemplate,
    Tokenizer,
    default_chat_template,
    fit_tokenizer,
    gguf_chat_template,
    load_chat_template,
    load_gguf_tokenizer,
    load_tokenizer,
)
from models.weight_checks import CheckedCheckpoint
from models.weight_rules import Checkpoint, RuleTable, load_weights

DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int8": torch.int8,  # of matrices; the rest is float32 (see models/quantize.py)
}


@dataclass(frozen=True)
class ModelInfo:
    """What the page says about a loaded model.

    Args:
        id: The source string.
        name: As shown.
        family: Name of the family.
        n_parameters: Stored numbers; a tied head counts once.
        n_bytes: Memory of the weights that are its own.
        dtype: Their type.
        origin: Where the files came from.
        base_name: The model whose memory it stands on; "" where all weights are its own.
        n_base_bytes: Memory of that model's weights.
    """

    id: str
    name: str
    family: str
    n_parameters: int
    n_bytes: int
    dtype: str
    origin: Origin
    base_name: str = ""
    n_base_bytes: int = 0


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
            raise self.tokenizer_or_error.anew()
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
    state_dict: StateDictFile | None = None

    @property
    def folder(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    def checkpoint(self) -> Checkpoint:
        if self.state_dict:
            return self.state_dict
        return GgufCheckpoint(self.gguf) if self.gguf else SafetensorsCheckpoint(self.path)

    def tokenizer(self) -> Tokenizer:
        return fit_tokenizer(self._own_tokenizer(), self.config.vocab_size)

    def _own_tokenizer(self) -> Tokenizer:
        if self.gguf:
            return load_gguf_tokenizer(self.gguf)
        try:
            return load_tokenizer(self.folder)
        except TokenizerError as error:
            usual = self._usual_tokenizer() if error.code == "tokenizer-missing" else None
            if usual is None:
                raise
            return usual

    def _usual_tokenizer(self) -> Tokenizer | None:
        layout = self.family.state_dict if self.state_dict else None
        if layout is None or layout.usual_tokenizer is None:
            return None
        return layout.usual_tokenizer(self.config)

    def chat(self, tokenizer: Tokenizer, name: str) -> ChatTemplate | None:
        if self.gguf:
            own = gguf_chat_template(self.gguf, tokenizer)
        else:
            own = load_chat_template(self.folder, tokenizer)
        return own or default_chat_template(
            self.family.chat_formats,
            tokenizer,
            names=(name, tokenizer.name),
            stop_ids=self.stop_ids | _end_of(tokenizer),
        )


def load_model(
    source: str | Path | ResolvedSource,
    dtype: str = "float32",
    device: torch.device | str = "cpu",
) -> LoadedModel:
    """Load a model for reading and generating.

    Args:
        source: Folder, .gguf or .pth file, Hub id or catalogue name.
        dtype: float32, bfloat16, float16, or int8 for matrices in 8 bits.
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
    where = _device(device)
    files = _open_files(source)
    model = _fill(files, DTYPES[dtype], where)
    tokenizer = _tokenizer_or_error(files)
    usable = None if isinstance(tokenizer, TokenizerError) else tokenizer
    chat = None if usable is None else files.chat(usable, source.name)
    return LoadedModel(
        model=model,
        config=files.config,
        chat=chat,
        stop_ids=files.stop_ids | _end_of(usable) | (chat.stop_ids if chat else frozenset()),
        info=ModelInfo(
            id=source.id,
            name=source.name,
            family=files.family.name,
            n_parameters=count_stored(model),
            n_bytes=sum(w.nbytes for w in model.parameters()),
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


def load_tokenizer_of(source: ResolvedSource) -> Tokenizer:
    """The tokenizer alone.

    Raises:
        TokenizerError: There is none, it cannot be read, or it is not of this model.
        ConfigError: A family or part that we do not have.
        WeightError: The file that holds the configuration is missing or damaged.
    """
    return _open_files(source).tokenizer()


def _open_files(source: ResolvedSource) -> _Files:
    if source.kind == "gguf":
        return _open_gguf(source.path)
    if source.kind == "pth":
        return _open_state_dict(source.path)
    values = read_json(source.path / "config.json")
    family = find_family(values)
    assert family.config_from_hf is not None  # find_family matched one of its model_types
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
    config = layout.config_from_file(gguf)
    keys = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")
    found = [gguf.metadata.get(key) for key in keys]
    stops = frozenset(i for i in found if isinstance(i, int))
    return _Files(config, family, layout.rules(config), stops, path, gguf)


def _open_state_dict(path: Path) -> _Files:
    check_single_shard(path)
    file = StateDictFile(path)
    family = find_state_dict_family(file.names())
    layout = family.state_dict
    assert layout is not None  # find_state_dict_family matched its marker
    config = layout.config_from_file(file, read_settings_beside(path))
    return _Files(config, family, layout.rules(config), frozenset(), path, None, file)


def _stop_ids(values: Mapping[str, Any]) -> frozenset[int]:
    """`eos_token_id` is absent, null, a number or a list of them."""
    found = values.get("eos_token_id")
    found = found if isinstance(found, list) else [found]
    return frozenset(i for i in found if isinstance(i, int) and not isinstance(i, bool))


def _end_of(tokenizer: Tokenizer | None) -> frozenset[int]:
    if tokenizer is None or tokenizer.eos_id is None:
        return frozenset()
    return frozenset({tokenizer.eos_id})


def _device(name: torch.device | str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device {name!r} is unknown; choose cpu, cuda or mps") from None
    here = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.mps.is_available()}
    if not here.get(device.type, False):
        raise ConfigError(f"this machine has no device {str(device)!r} for torch; choose cpu")
    return device


def _fill(files: _Files, dtype: torch.dtype, device: torch.device) -> Decoder:
    with torch.device("meta"):
        model = Decoder(files.config)
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    in_8_bits = replace_with_int8(model) if dtype == torch.int8 else frozenset()
    float_dtype = torch.float32 if in_8_bits else dtype

    def convert(name: str, tensor: Tensor) -> Tensor | Int8Rows:
        if name in in_8_bits and tensor.ndim == 2:
            return quantize_rows(tensor.to(device))
        return tensor.to(device=device, dtype=float_dtype)

    checkpoint = CheckedCheckpoint(files.checkpoint(), float_dtype)
    weights = load_weights(files.rules, checkpoint, shapes, files.config, convert)
    state = [name_stored(name, tensor) for name, tensor in weights.items()]
    model.load_state_dict({k: v for entries in state for k, v in entries.items()}, assign=True)
    # all weights are there already; an empty buffer, as that of a missing norm, is not among them
    return model.to(device=device, dtype=float_dtype).requires_grad_(False)


def _tokenizer_or_error(files: _Files) -> Tokenizer | TokenizerError:
    """A model without a tokenizer still opens: its shapes and weights can be looked at."""
    try:
        return files.tokenizer()
    except TokenizerError as error:
        return error
