"""Better and worse answer token by token: what policy and reference find of each.

    log p(token | question, answer so far)     in nats, under the tuned model and under the base

Their sums are the log-probabilities in the losses of preferences (preference_losses.py); the
difference of the two models, times beta, is the reward that DPO gives a token without saying so
(Rafailov et al. 2024, arXiv 2404.12358, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.datasets.examples import Example
from explorer.tokens import TokenUnit, units_of

if TYPE_CHECKING:
    from explorer.training.tuning_config import TuningConfig
    from explorer.tuning_scores import Turn
    from models.loading import LoadedModel
    from models.tokenizers import Tokenizer


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerTokens:
    """An answer under two models.

    Args:
        units: Its tokens, in units that people see; the end token is the last.
        policy: Log-probability of each token under the tuned model, in nats.
        reference: The same under the base.
    """

    units: tuple[TokenUnit, ...]
    policy: np.ndarray
    reference: np.ndarray

    @property
    def gains(self) -> np.ndarray:
        """How much likelier each token has become, in nats."""
        found: np.ndarray = self.policy - self.reference
        return found


def read_answer_tokens(
    loaded: LoadedModel, example: Example, answer: str, tuning: TuningConfig, *, turn: Turn
) -> tuple[list[int], np.ndarray]:
    """Tokens of an answer, and the log-probability that a model gives each.

    Args:
        loaded: Any model.
        example: The question.
        answer: An answer to it.
        tuning: Says in which template it is asked.
        turn: Entered for the pass.
    """
    import torch

    from explorer.training.answer_rows import RowWriter

    room = min(tuning.row_limit, loaded.config.context_length)
    writer = RowWriter(loaded.tokenizer, tuning.template, loaded.chat, room)
    row = writer.write_row(example.prompt, answer, example.row)
    ids = torch.tensor([row.ids], device=loaded.model.device)
    with torch.no_grad(), turn():
        logs = loaded.model(ids[:, :-1])[0].float().log_softmax(dim=-1)
    found = logs.gather(1, ids[0, 1:, None])[:, 0].cpu().numpy()
    learned = np.array(row.learned[1:])
    return [i for i, on in zip(row.ids, row.learned, strict=True) if on], found[learned]


def join_models(
    policy: tuple[list[int], np.ndarray],
    reference: tuple[list[int], np.ndarray],
    tokenizer: Tokenizer,
) -> AnswerTokens:
    """The same answer as two models see it.

    Args:
        policy: What `read_answer_tokens` found with the tuned model.
        reference: The same with the base.
        tokenizer: Of both, for the texts of the tokens.
    """
    ids, logs = policy
    return AnswerTokens(units=tuple(units_of(tokenizer, ids)), policy=logs, reference=reference[1])
