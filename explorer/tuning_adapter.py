"""An adapter beside its matrices, merged into them, and taken out again: what each costs and says.

    base      W x                            apart    W' - (alpha / r) B A, read as it stands
    beside    W x + (alpha / r) B A x        merged   W' = W + (alpha / r) B A

A checkpoint holds W', so that it opens like any other model, and the adapter alone beside it. Here
W is found again as W' - (alpha / r) B A, in numbers of finite precision: how far that is from the
base is measured, not assumed (Hu et al. 2021, arXiv 2106.09685, section 4.1).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from explorer.errors import ConfigError, JobError
from explorer.memory import give_back_memory
from explorer.training.run_folder import ADAPTER_FOLDER

if TYPE_CHECKING:
    from explorer.training.tuning_config import TuningConfig
    from explorer.tuning_scores import Turn
    from models.classifier import Classifier
    from models.decoder import Decoder
    from models.loading import LoadedModel, ModelInfo
    from models.lora_config import LoraConfig

    Reader = Decoder | Classifier

StateName = Literal["base", "beside", "merged", "apart"]
MOST_TOKENS = 256
MOST_CHOICES = 8
ROUNDS = 8  # passes timed for each state


@dataclass(frozen=True, kw_only=True, eq=False)
class AdapterState:
    """The model in one of its states, after it has read the text.

    Args:
        name: Which state.
        logits: Of the next token, or of the classes.
        seconds: Fastest of a few passes: other work on the machine only ever adds to it.
        n_numbers: Weights that a pass reads.
    """

    name: StateName
    logits: np.ndarray
    seconds: float
    n_numbers: int

    def distance(self, other: AdapterState) -> float:
        """Largest difference of a logit."""
        return float(np.abs(self.logits - other.logits).max())


@dataclass(frozen=True, kw_only=True)
class AdapterReport:
    """What an adapter is and does.

    Args:
        rank: r.
        alpha: The correction is scaled by alpha / r.
        layers: Names of the matrices with an adapter.
        n_adapter: Numbers in it.
        n_base: Numbers of the model without it.
        states: In the order of `StateName`.
        choices: Likeliest next tokens, or the classes, with the adapter at the asked strength, and
            their probabilities.
        memory: How the checkpoint is open: on the memory of its base, or with all its weights.
    """

    rank: int
    alpha: float
    layers: tuple[str, ...]
    n_adapter: int
    n_base: int
    states: tuple[AdapterState, ...]
    choices: tuple[tuple[str, float], ...]
    memory: ModelInfo


def inspect_adapter(
    base: LoadedModel,
    tuned: LoadedModel,
    folder: Path,
    tuning: TuningConfig,
    text: str,
    *,
    strength: float,
    turn: Turn,
) -> AdapterReport:
    """Read a text with the adapter beside the matrices, merged, and taken out.

    Args:
        base: The model that the run began from.
        tuned: The checkpoint, merged as it is saved, or on the base's memory with its adapter
            beside; its weights are not changed.
        folder: Of the checkpoint.
        tuning: What was trained.
        text: Any text; its last `MOST_TOKENS` tokens are read.
        strength: Factor of the adapter for `choices`: 0 is the base, 1 as it was trained.
        turn: Entered for each state.

    Raises:
        JobError: The run trained no adapter, or its files have no place for it.
        WeightError: The adapter's files are damaged.
        ConfigError: There is no text.
    """
    adapter = require_adapter(folder, tuning)
    ids = tuned.tokenizer.encode(text)[-min(MOST_TOKENS, tuned.config.context_length) :]
    if not ids:
        raise ConfigError("there is no text; type one", code="text-empty")
    try:
        return _inspect(base, tuned, folder, adapter, tuning, ids, strength, turn)
    finally:
        give_back_memory()  # merged matrices: as much as the model


def _inspect(
    base: LoadedModel,
    tuned: LoadedModel,
    folder: Path,
    adapter: Path,
    tuning: TuningConfig,
    ids: Sequence[int],
    strength: float,
    turn: Turn,
) -> AdapterReport:
    from models.lora import count_lora, lora_layers, merge_lora, unmerge_lora

    with turn():
        model, config = _take_apart(tuned, adapter)
    size = count_lora(model)
    n_beside = size.n_base + size.n_adapter
    reader = _put_head(folder, tuning, tuned, model)
    states = [_read("base", _put_head(folder, tuning, base, base.model), ids, size.n_base, turn)]
    states.append(_read("beside", reader, ids, n_beside, turn))
    _set_strength(model, config.scale * strength)
    choices = _likeliest(_logits(reader, ids, turn), tuning, tuned)
    _set_strength(model, config.scale)
    merge_lora(model)
    states.append(_read("merged", reader, ids, size.n_base, turn))
    unmerge_lora(model)
    _set_strength(model, 0.0)
    merge_lora(model)  # nothing is added: the matrices alone, as a plain model has them
    states.append(_read("apart", reader, ids, size.n_base, turn))
    return AdapterReport(
        rank=config.rank,
        alpha=config.alpha,
        layers=tuple(name for name, _ in lora_layers(model)),
        n_adapter=size.n_adapter,
        n_base=size.n_base,
        states=tuple(states),
        choices=choices,
        memory=tuned.info,
    )


def require_adapter(folder: Path, tuning: TuningConfig | None) -> Path:
    """The folder of a checkpoint's adapter.

    Args:
        folder: Of the checkpoint.
        tuning: What was trained.

    Raises:
        JobError: The run trained no adapter, or its files have no place for it.
    """
    if tuning is None or tuning.lora is None:
        raise JobError(
            "this run trained the weights themselves and has no adapter; choose a run that was "
            "trained with LoRA",
            code="tune-no-adapter",
        )
    if not (folder / ADAPTER_FOLDER).is_dir():
        raise JobError(
            "files of this kind of model keep several matrices as one, so the adapter has no place "
            "in PEFT's layout and was saved merged only; choose a run of another model",
            code="tune-adapter-merged",
        )
    return folder / ADAPTER_FOLDER


def _take_apart(tuned: LoadedModel, adapter: Path) -> tuple[Decoder, LoraConfig]:
    """The checkpoint's model with its adapter beside the matrices, and what the adapter is."""
    from models.lora import lora_layers, merged_copy, share_base, unmerge_lora
    from models.lora_files import load_adapter

    model = share_base(merged_copy(tuned.model))
    config = load_adapter(adapter, model)
    for _, layer in lora_layers(model):
        layer.is_merged = True  # the checkpoint's matrices hold it already
    unmerge_lora(model)
    return model, config


def _put_head(folder: Path, tuning: TuningConfig, loaded: LoadedModel, model: Decoder) -> Reader:
    """The decoder, for classes with the head that the checkpoint holds."""
    from explorer.training.learner import load_class_head

    if not tuning.labels:
        return model
    return load_class_head(folder, replace(loaded, model=model)).model


def _set_strength(model: Decoder, scale: float) -> None:
    from models.lora import lora_layers

    for _, layer in lora_layers(model):
        layer.scale = scale


def _logits(reader: Reader, ids: Sequence[int], turn: Turn) -> np.ndarray:
    """Logits after the last token, in float32: of the vocabulary, or of the classes."""
    import torch

    with turn(), torch.inference_mode():
        logits = reader(torch.tensor([list(ids)], device=reader.device))
        found: np.ndarray = logits.reshape(-1, logits.shape[-1])[-1].float().cpu().numpy()
    return found


def _read(
    name: StateName, reader: Reader, ids: Sequence[int], n_numbers: int, turn: Turn
) -> AdapterState:
    logits, times = _logits(reader, ids, turn), []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        _logits(reader, ids, turn)
        times.append(time.perf_counter() - begun)
    return AdapterState(name=name, logits=logits, seconds=min(times), n_numbers=n_numbers)


def _likeliest(
    logits: np.ndarray, tuning: TuningConfig, loaded: LoadedModel
) -> tuple[tuple[str, float], ...]:
    shifted = np.exp(logits.astype(np.float64) - logits.max())
    shares = shifted / shifted.sum()
    order = np.argsort(-shares, kind="stable")[:MOST_CHOICES].tolist()
    if tuning.labels:
        return tuple((tuning.labels[i], float(shares[i])) for i in range(len(tuning.labels)))
    return tuple((loaded.tokenizer.decode([i]), float(shares[i])) for i in order)
