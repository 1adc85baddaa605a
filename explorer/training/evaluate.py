"""Losses and samples of a model in training, which leave its random states untouched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import nn

from explorer.training.objectives.objective import Batch, Examples, LossFunction, Scores
from models.decoder import Decoder
from models.generation import generate
from models.sampling import SamplingConfig
from models.tokenizers import Tokenizer


def compute_mean_loss(
    model: nn.Module,
    examples: Examples,
    compute_loss_sum: LossFunction,
    *,
    batch_size: int,
    most_batches: int | None,
) -> float:
    """Mean loss over tokens, in nats, with dropout off.

    The same examples are read each time, so that two evaluations can be compared: the first of the
    part, or all of it.

    Args:
        model: The model.
        examples: A part of the data.
        compute_loss_sum: The loss of the objective.
        batch_size: Examples of a pass.
        most_batches: Batches that are read; None is all.
    """
    total, n_targets = 0.0, 0
    with torch.no_grad():
        for batch in _batches(model, examples, batch_size, most_batches):
            total += float(compute_loss_sum(model, batch, None, False))
            n_targets += batch.count_targets()
    return total / n_targets if n_targets else float("nan")


def compute_mean_scores(
    model: nn.Module,
    examples: Examples,
    compute_scores: Scores,
    *,
    batch_size: int,
    most_batches: int | None,
) -> Mapping[str, float]:
    """Mean of each score over rows, with dropout off.

    Args:
        model: The model.
        examples: A part of the data.
        compute_scores: The scores of the objective.
        batch_size: Examples of a pass.
        most_batches: Batches that are read; None is all.
    """
    found: dict[str, list[torch.Tensor]] = {}
    with torch.no_grad():
        for batch in _batches(model, examples, batch_size, most_batches):
            for name, values in compute_scores(model, batch).items():
                found.setdefault(name, []).append(values)
    return {name: float(torch.cat(values).mean()) for name, values in found.items()}


def _batches(
    model: nn.Module, examples: Examples, batch_size: int, most_batches: int | None
) -> Iterator[Batch]:
    """The first batches of a part, where the model is."""
    n_batches = -(-examples.n_examples // batch_size)
    if most_batches is not None:
        n_batches = min(n_batches, most_batches)
    device = next(model.parameters()).device
    for start in range(0, n_batches * batch_size, batch_size):
        end = min(start + batch_size, examples.n_examples)
        yield examples.batch(np.arange(start, end)).to(device)


def write_sample(
    model: Decoder,
    tokenizer: Tokenizer,
    prompt: str,
    *,
    n_tokens: int,
    temperature: float,
    seed: int,
    special: bool = False,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> str:
    """Let the model go on from a prompt.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        prompt: Its end is kept where it is longer than the context.
        n_tokens: Tokens to write, fewer where the context ends.
        temperature: Of the draws; 0 takes the likeliest token.
        seed: Of the draws.
        special: Whether special tokens in the prompt count as such, as those of a chat template do.
        turn: Entered for each forward pass; where several share a device, it makes them wait.

    Returns:
        What it wrote, without the prompt.
    """
    ids = tokenizer.encode(prompt, special) or [tokenizer.eos_id or 0]
    room = max(1, model.config.context_length - n_tokens)
    ids = ids[-room:]
    written: list[int] = []
    with torch.no_grad():
        for token in generate(
            model,
            ids,
            max_new_tokens=n_tokens,
            sampling=SamplingConfig(temperature=temperature),
            generator=torch.Generator(model.device).manual_seed(seed),
            stop_ids=() if tokenizer.eos_id is None else (tokenizer.eos_id,),
            n_alternatives=0,
            turn=turn,
        ):
            written.append(token.id)
    if written and written[-1] == tokenizer.eos_id:
        written.pop()
    return tokenizer.decode(ids + written).removeprefix(tokenizer.decode(ids))
