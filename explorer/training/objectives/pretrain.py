"""Pretraining: at every position of every window, predict the next token.

    loss = - mean over all positions of log p(next token | tokens before it)        in nats

Bengio et al. 2003 (JMLR 3), section 2; Radford et al. 2018 (GPT-1), equation 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from explorer.datasets.windows import TokenWindows
from explorer.training.objectives.objective import IGNORED, Batch, Objective, TrainingData
from explorer.training.prepare import check_windows
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import RunFolder
from models.errors import ConfigError, JobError
from models.trace import Trace


@dataclass(frozen=True)
class WindowExamples:
    """Windows of a text as examples.

    Args:
        windows: The windows.
    """

    windows: TokenWindows

    @property
    def n_examples(self) -> int:
        """Windows."""
        return self.windows.n_windows

    @property
    def n_tokens(self) -> int:
        """Tokens that the windows read, those that overlap more than once."""
        return self.windows.n_windows * self.windows.context

    def batch(self, chosen: np.ndarray | Sequence[int]) -> Batch:
        """Put windows together."""
        inputs, targets = self.windows.batch(chosen)
        return Batch(torch.from_numpy(inputs), torch.from_numpy(targets))


def open_data(run: RunFolder, config: RunConfig) -> TrainingData:
    """Map the tokens of both parts.

    Raises:
        JobError: A file is missing or damaged.
        ConfigError: A part is shorter than a window, a batch is larger than the training part, or
            the text has tokens that the model has not.
    """
    training = _open_part(run, config, "training")
    validation = _open_part(run, config, "validation")
    sizes = {"training": training.windows.ids.size, "validation": validation.windows.ids.size}
    check_windows(config.data, sizes)
    return TrainingData(training, validation)


def _open_part(run: RunFolder, config: RunConfig, part: str) -> WindowExamples:
    path = run.tokens_file("training" if part == "training" else "validation")
    try:
        ids = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise JobError(
            f"{path.name} of the run {run.title} cannot be read ({error}); start a new run",
            code="run-file",
            run=run.title,
            file=path.name,
            problem=str(error),
        ) from None
    highest = int(ids.max(initial=0))
    if highest >= config.model.vocab_size:
        problem = (
            f"the text has token {highest}, the model knows tokens up to "
            f"{config.model.vocab_size - 1}; its vocabulary has to be that of the tokenizer"
        )
        raise ConfigError(problem, code="run-setting", problem=problem)
    return WindowExamples(TokenWindows(ids, config.data.context, config.data.stride))


def compute_loss_sum(
    model: nn.Module,
    batch: Batch,
    generator: torch.Generator | None,
    recompute: bool,
    trace: Trace | None = None,
) -> Tensor:
    """Cross-entropy of all positions, added up, in nats; see `LossFunction`."""
    logits = model(batch.ids, batch.valid, trace=trace, generator=generator, recompute=recompute)
    return functional.cross_entropy(
        logits.flatten(0, 1).float(),  # softmax in bfloat16 would lose the small probabilities
        batch.targets.flatten(),
        ignore_index=IGNORED,
        reduction="sum",
    )


OBJECTIVE = Objective("pretrain", open_data, compute_loss_sum)
