"""What a run trains that is no fresh decoder: a model tuned further, or an encoder-decoder.

    initial/ ─► decoder ─► freeze ─► (+ adapters) ─► (+ head of classes) ─► learner

And back: a checkpoint holds a plain model that opens like any other, with adapters merged, and
beside it what the plain model has no place for.

    step-00000100/adapter/                    the adapters alone, in PEFT's layout
    step-00000100/class_head.safetensors      score.weight (k, D)
    step-00000100/class_head.json             classes, and which state is read
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from explorer.training.answer_rows import ALPACA_CHAT, PHI3_CHAT
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import ADAPTER_FOLDER, RunFolder
from explorer.training.tuning_config import TuningConfig
from models.classifier import Classifier
from models.decoder import Decoder
from models.errors import ConfigError, JobError, WeightError
from models.initialise import build_encoder_decoder
from models.loading import LoadedModel, load_model
from models.lora import add_lora, lora_layers, merged_copy
from models.lora_files import save_adapter

if TYPE_CHECKING:
    from models.tokenizers import ChatTemplate, Tokenizer

HEAD_FILE = "class_head.safetensors"
HEAD_FACTS = "class_head.json"


def load_learner(run: RunFolder, config: RunConfig, device: torch.device) -> nn.Module | None:
    """The model of a run before its first step, where it is no fresh decoder; else None.

    Args:
        run: Its folder, with the weights it begins from.
        config: Its configuration.
        device: Where the weights go.

    Raises:
        JobError: The weights are missing or damaged.
        ConfigError: There is nothing to train.
    """
    generator = torch.Generator().manual_seed(config.seed)
    if config.translation is not None:
        both = config.translation.both_stacks(config.model)
        return build_encoder_decoder(both, generator, device=device)
    if config.tuning is None:
        return None
    try:
        decoder = load_model(run.initial_folder, device=device).model
    except (WeightError, ConfigError, OSError) as error:
        raise JobError(
            f"the weights that run {run.id} begins from cannot be used ({error}); start a new run",
            code="run-file",
            run=run.id,
            file=run.initial_folder.name,
            problem=str(error),
        ) from None
    return make_learner(decoder, config.tuning, generator)


def make_learner(decoder: Decoder, tuning: TuningConfig, generator: torch.Generator) -> nn.Module:
    """Freeze a model but for what is trained, and put on it what is new; changes the model.

    Args:
        decoder: The model it begins from.
        tuning: What is trained.
        generator: Draws what is new.

    Raises:
        ConfigError: There is nothing to train.
    """
    decoder.requires_grad_(tuning.trains == "all")
    if tuning.trains == "last_block":
        decoder.blocks[-1].requires_grad_(True)
        decoder.final_norm.requires_grad_(True)
    if tuning.lora is not None:
        add_lora(decoder, tuning.lora, generator)
    if tuning.labels:
        return Classifier(decoder, len(tuning.labels), tuning.pooling, generator)
    if tuning.trains == "head":
        problem = "without classes there is no new head to train; train the last block or all"
        raise ConfigError(problem, code="run-setting", problem=problem)
    return decoder


def decoder_of(model: nn.Module) -> Decoder:
    """The decoder inside a learner."""
    found = model.decoder if isinstance(model, Classifier) else model
    return cast(Decoder, found)


def plain_decoder(model: nn.Module) -> Decoder:
    """The decoder with adapters merged, as it is saved; the weights are not copied."""
    return merged_copy(decoder_of(model))


def write_learner_files(folder: Path, model: nn.Module, tuning: TuningConfig) -> None:
    """Write what the plain model has no place for.

    Args:
        folder: Of the checkpoint.
        model: The learner.
        tuning: What is trained.

    Raises:
        OSError: It cannot be written.
    """
    decoder = decoder_of(model)
    if tuning.lora is not None and _has_layout(decoder):
        head = model.score.weight if isinstance(model, Classifier) else None
        name = tuning.base_name
        save_adapter(folder / ADAPTER_FOLDER, decoder, tuning.lora, base=name, class_head=head)
    if isinstance(model, Classifier):
        weight = model.score.weight.detach().to("cpu", torch.float32).contiguous()
        save_file({"score.weight": weight}, folder / HEAD_FILE, metadata={"format": "pt"})
        facts = {"labels": list(tuning.labels), "pooling": tuning.pooling}
        (folder / HEAD_FACTS).write_text(
            json.dumps(facts, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def _has_layout(decoder: Decoder) -> bool:
    """Whether PEFT has a place for the adapters; GPT-2's joined matrices have none."""
    from models.lora_files import their_layers

    try:
        their_layers(decoder, tuple(name for name, _ in lora_layers(decoder)))
    except ConfigError as error:
        if error.code != "lora-no-layout":
            raise
        return False
    return True


@dataclass(frozen=True)
class LoadedClassifier:
    """A classifier as a checkpoint holds it.

    Args:
        model: Decoder and head.
        labels: Classes, in the order of the head's rows.
        tokenizer: Cuts texts.
    """

    model: Classifier
    labels: tuple[str, ...]
    tokenizer: Tokenizer


def load_class_head(folder: Path, loaded: LoadedModel) -> LoadedClassifier:
    """Put the head of a checkpoint on its model.

    Args:
        folder: Of the checkpoint.
        loaded: Its model.

    Raises:
        WeightError: The checkpoint has no head, or a damaged one.
    """
    try:
        facts = json.loads((folder / HEAD_FACTS).read_bytes())
        weight = load_file(folder / HEAD_FILE)["score.weight"]
        labels, pooling = tuple(map(str, facts["labels"])), facts["pooling"]
        head = Classifier(loaded.model, len(labels), pooling, torch.Generator().manual_seed(0))
        with torch.no_grad():
            head.score.weight.copy_(weight)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise WeightError(
            f"{folder.name} has no head of classes that can be used ({error}); choose a checkpoint "
            "of a classification",
            code="tune-no-head",
            folder=folder.name,
            problem=str(error),
        ) from None
    return LoadedClassifier(head.requires_grad_(False), labels, loaded.tokenizer)


def chat_of(
    run: RunFolder, tokenizer: Tokenizer | None, tuning: TuningConfig | None
) -> ChatTemplate | None:
    """The chat template that goes with a checkpoint: a tuned model is asked as it was taught."""
    from models.tokenizers import ChatTemplate, load_chat_template

    if tokenizer is None or tuning is None:
        return None
    own = load_chat_template(run.tokenizer_folder, tokenizer)
    if tuning.labels or tuning.template == "chat":
        return own
    return ChatTemplate(ALPACA_CHAT if tuning.template == "alpaca" else PHI3_CHAT, tokenizer)
