"""Translation: after each token of the target, predict the next one, having read the source.

    loss = - mean over targets of log p(next piece | source, pieces before it)              in nats

Vaswani et al. 2017 (arXiv 1706.03762), section 3; without its label smoothing, so that the loss is
that of all other objectives. The target goes in shifted by one: a start in front, without its end.

    source     4 0 7           target in      ▷ four hundred seven
                               learned          four hundred seven ■

The measure is the share of held-out sources whose whole translation, written greedily, is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from explorer.datasets.translations import END_ID, PAD_ID, START_ID, Pair, ToyTask, draw_pairs
from explorer.datasets.translations import get_task as get_toy_task
from explorer.errors import JobError
from explorer.training.objectives.objective import IGNORED, SOURCE, Batch, Objective, TrainingData
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import RunFolder
from models.cache import KVCache
from models.encoder_decoder import EncoderDecoder
from models.trace import Trace

if TYPE_CHECKING:
    from explorer.training.translation_config import TranslationConfig


@dataclass(frozen=True)
class PairExamples:
    """Pairs as examples.

    Args:
        sources: Ids of each source.
        targets: Ids of each target, without start and end.
    """

    sources: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]

    @property
    def n_examples(self) -> int:
        """Pairs."""
        return len(self.sources)

    @property
    def n_tokens(self) -> int:
        """Tokens of all targets, each with its end."""
        return sum(len(target) + 1 for target in self.targets)

    def batch(self, chosen: np.ndarray | Sequence[int]) -> Batch:
        """Put pairs together."""
        places = [int(i) for i in chosen]
        return collate_pairs([self.sources[i] for i in places], [self.targets[i] for i in places])


def collate_pairs(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """Fill both sides up on the right to their longest.

    Args:
        sources: Ids of each source.
        targets: Ids of each target, without start and end.
    """
    ids, valid = fill_up([(START_ID, *target) for target in targets])
    learned, _ = fill_up([(*target, END_ID) for target in targets])
    read, is_read = fill_up(sources)
    return Batch(
        ids,
        learned.masked_fill(~valid, IGNORED),
        valid,
        more={SOURCE: Batch(read, torch.full_like(read, IGNORED), is_read)},
    )


def fill_up(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Rows of unequal length as one tensor (B, T), and where it holds them (B, T)."""
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), PAD_ID)
    valid = torch.zeros(len(rows), longest, dtype=torch.bool)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
        valid[place, : len(row)] = True
    return ids, valid


def open_data(run: RunFolder, config: RunConfig) -> TrainingData:
    """Draw the pairs of both parts; they follow from the configuration alone.

    Raises:
        JobError: The configuration says nothing of them.
        ConfigError: There is no such task.
        DataError: The task has not so many pairs.
    """
    settings = get_translation(config)
    task, n_training = get_toy_task(settings.task), settings.n_training
    pairs = draw_pairs(task, n_training + settings.n_validation, config.seed)
    return TrainingData(cut_pairs(task, pairs[:n_training]), cut_pairs(task, pairs[n_training:]))


def cut_pairs(task: ToyTask, pairs: Sequence[Pair]) -> PairExamples:
    """Pairs as pieces of their task."""
    return PairExamples(
        tuple(tuple(task.cut(pair.source)) for pair in pairs),
        tuple(tuple(task.cut(pair.target)) for pair in pairs),
    )


def get_translation(config: RunConfig) -> TranslationConfig:
    """What the run translates.

    Raises:
        JobError: The configuration says nothing of it.
    """
    if config.translation is None:
        raise JobError(
            f"objective={config.objective!r} needs an encoder and pairs; start the run from the "
            "Blocks tab",
            code="run-config",
            run="",
            problem="translation is missing",
        )
    return config.translation


def compute_loss_sum(
    model: nn.Module,
    batch: Batch,
    generator: torch.Generator | None,
    recompute: bool,
    trace: Trace | None = None,
) -> Tensor:
    """Cross-entropy of all targets, added up, in nats; see `LossFunction`."""
    source = batch.more[SOURCE]
    logits = model(
        source.ids, batch.ids, source.valid, batch.valid, trace=trace, generator=generator
    )
    return functional.cross_entropy(
        logits.flatten(0, 1).float(),
        batch.targets.flatten(),
        ignore_index=IGNORED,
        reduction="sum",
    )


def compute_scores(model: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
    """Whether each source was translated without a mistake: (B,) 0 or 1."""
    source, wanted = batch.more[SOURCE], batch.targets
    written = write_greedily(cast(EncoderDecoder, model), source.ids, source.valid, wanted.shape[1])
    is_right = (written == wanted) | (wanted == IGNORED)
    return {"exact_match": is_right.all(dim=1).float()}


def write_greedily(
    model: EncoderDecoder, source: Tensor, source_valid: Tensor | None, n_tokens: int
) -> Tensor:
    """The most probable next token again and again, for all rows at once.

    Rows go on after their end; whoever reads them stops there.

    Args:
        model: The model.
        source: (B, S) what is read.
        source_valid: (B, S) False marks padding.
        n_tokens: Tokens to write, T.

    Returns:
        (B, T) ids, without the start.
    """
    memory = model.encode(source, source_valid)
    cache = KVCache(
        model.config.decoder, len(source), n_tokens, dtype=model.dtype, device=model.device
    )
    new = torch.full((len(source), 1), START_ID, device=source.device)
    written = []
    for _ in range(n_tokens):
        new = model.decode(new, memory, cache=cache)[:, -1:].argmax(dim=-1)
        written.append(new)
    return torch.cat(written, dim=1)


OBJECTIVE = Objective("translation", open_data, compute_loss_sum, compute_scores)
