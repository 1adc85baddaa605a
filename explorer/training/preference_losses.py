"""Losses that learn from preferences: of two answers to a question, one is better.

    c, r    log-probability of the chosen and the rejected answer under the model that learns
    c₀, r₀  the same under the reference: the model before the first step
    β       how far from the reference the model may go for a preference (small: far)

    name    loss of a pair                                           source
    dpo     -ln σ(β ((c - c₀) - (r - r₀)))                          Rafailov 2023, 2305.18290, eq. 7
    ipo     ((c - c₀) - (r - r₀) - 1 / 2β)²      means over tokens   Azar 2023, 2310.12036, eq. 17
    simpo   -ln σ(β (c - r) - γ)                 means over tokens   Meng 2024, 2405.14734, eq. 6
    orpo    nll - β ln σ(odds(c) - odds(r))      means over tokens   Hong 2024, 2403.07691, eq. 6
    kto     ½ (1 - σ(β (c - c₀ - z))) + ½ (1 - σ(β (z - r + r₀)))     Ethayarajh 2024, 2402.01306

`odds(x)` is x - ln(1 - eˣ). KTO's z is how far the model has gone on the whole, max(0, mean of
(m - m₀)) over questions with the answer of another question, m. SimPO and ORPO need no reference.

DPO's log-probabilities are sums over the answer's tokens, in the paper and in TRL; a course
averages them, so that long answers count no more than short ones. `reduction` chooses;
where a mean stands above, it is one in any case, as in TRL 1.16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from explorer.training.tuning_config import TuningConfig


@dataclass(frozen=True, eq=False)
class AnswerLogProbs:
    """Log-probabilities of the answers of some questions, (B,) each, in nats.

    Args:
        chosen: Of the better answers, summed over their tokens.
        rejected: Of the worse answers.
        n_chosen: Tokens of the better answers.
        n_rejected: Tokens of the worse answers.
        reference_chosen: Under the reference.
        reference_rejected: Under the reference.
        whole_text: Mean log-probability of all tokens of question and better answer together, over
            all questions, a scalar; ORPO's first part.
        drift: How far the model is from the reference on answers of other questions, a scalar;
            KTO's z.
    """

    chosen: Tensor
    rejected: Tensor
    n_chosen: Tensor
    n_rejected: Tensor
    reference_chosen: Tensor
    reference_rejected: Tensor
    whole_text: Tensor
    drift: Tensor

    def means(self) -> tuple[Tensor, Tensor]:
        """Both answers, averaged over their tokens."""
        return self.chosen / self.n_chosen, self.rejected / self.n_rejected

    def gains(self, *, mean: bool) -> tuple[Tensor, Tensor]:
        """How much likelier each answer has become since the reference."""
        chosen = self.chosen - self.reference_chosen
        rejected = self.rejected - self.reference_rejected
        return (chosen / self.n_chosen, rejected / self.n_rejected) if mean else (chosen, rejected)


def compute_dpo(logs: AnswerLogProbs, tuning: TuningConfig) -> Tensor:
    """Direct preference optimisation, (B,)."""
    chosen, rejected = logs.gains(mean=tuning.reduction == "mean")
    return -functional.logsigmoid(tuning.beta * (chosen - rejected))


def compute_ipo(logs: AnswerLogProbs, tuning: TuningConfig) -> Tensor:
    """Identity preference optimisation, (B,): a margin that is wanted, and no more."""
    chosen, rejected = logs.gains(mean=True)
    return (chosen - rejected - 1 / (2 * tuning.beta)) ** 2


def compute_simpo(logs: AnswerLogProbs, tuning: TuningConfig) -> Tensor:
    """Simple preference optimisation, (B,): no reference, but a margin."""
    chosen, rejected = logs.means()
    return -functional.logsigmoid(tuning.beta * (chosen - rejected) - tuning.gamma)


def compute_orpo(logs: AnswerLogProbs, tuning: TuningConfig) -> Tensor:
    """Odds ratio preference optimisation, (B,): fine-tuning and preference at once."""
    chosen, rejected = logs.means()
    ratio = functional.logsigmoid(log_odds(chosen) - log_odds(rejected))
    return -logs.whole_text - tuning.beta * ratio


def log_odds(log_p: Tensor) -> Tensor:
    """ln(p / (1 - p)) of a log-probability; exact also where p is tiny or almost 1."""
    near_one = log_p > -0.6931  # ln(1/2): there the other form loses digits
    safe = torch.where(near_one, log_p, torch.full_like(log_p, -0.6931))
    other = torch.where(near_one, torch.full_like(log_p, -0.6931), log_p)
    rest = torch.where(near_one, torch.log(-torch.expm1(safe)), torch.log1p(-torch.exp(other)))
    return log_p - rest


def compute_kto(logs: AnswerLogProbs, tuning: TuningConfig) -> Tensor:
    """Kahneman-Tversky optimisation, (B,): each answer for itself is good or bad."""
    chosen, rejected = logs.gains(mean=False)
    good = 1 - torch.sigmoid(tuning.beta * (chosen - logs.drift))
    bad = 1 - torch.sigmoid(tuning.beta * (logs.drift - rejected))
    return (good + bad) / 2


PREFERENCE_LOSSES: Mapping[str, Callable[[AnswerLogProbs, TuningConfig], Tensor]] = {
    "dpo": compute_dpo,
    "ipo": compute_ipo,
    "simpo": compute_simpo,
    "orpo": compute_orpo,
    "kto": compute_kto,
}
