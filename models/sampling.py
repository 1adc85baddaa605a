"""From logits to the next token.

    logits ─► repetition penalty ─► temperature ─► top-k ─► top-p ─► min-p ─► softmax ─► draw

in the order of `transformers`, whose results these functions equal (tested). Each step is a
function of scores; a removed token has score -inf.

Sources: repetition penalty, Keskar et al. 2019 (arXiv 1909.05858), section 4.1; top-k, Fan et al.
2018 (arXiv 1805.04833); top-p (nucleus), Holtzman et al. 2019 (arXiv 1904.09751), section 3.1;
min-p, Nguyen et al. 2024 (arXiv 2407.01082), section 3.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.errors import ConfigError

REMOVED = float("-inf")
LOWEST_TEMPERATURE = 1e-4  # below it scores overflow; 0 is greedy and divides by nothing


@dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """How the next token is chosen.

    Args:
        temperature: Scores are divided by it; 0 takes the most probable token (greedy).
        top_k: Keep the k most probable; 0 keeps all.
        top_p: Keep the smallest set of most probable tokens whose probabilities reach it; 1 keeps
            all.
        min_p: Keep tokens at least this times as probable as the most probable; 0 keeps all.
        repetition_penalty: Above 1, scores of tokens already in the text are divided by it when
            positive and multiplied when negative; 1 changes nothing.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        for name, ok, meaning in (
            (
                "temperature",
                self.temperature == 0 or LOWEST_TEMPERATURE <= self.temperature <= 100,
                f"of 0, or between {LOWEST_TEMPERATURE} and 100",
            ),
            ("top_k", isinstance(self.top_k, int) and self.top_k >= 0, "that is whole, at least 0"),
            ("top_p", 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("min_p", 0 <= self.min_p <= 1, "between 0 and 1"),
            ("repetition_penalty", 0 < self.repetition_penalty <= 100, "above 0 and at most 100"),
        ):
            if not ok:
                raise ConfigError(
                    f"{name}={getattr(self, name)!r} is not possible; choose a value {meaning}",
                    code="sampling-range",
                    name=name,
                    value=getattr(self, name),
                )

    @property
    def greedy(self) -> bool:
        """Whether nothing is drawn."""
        return self.temperature == 0


def penalise_repetition(
    scores: Float[Tensor, "V"], seen: Int[Tensor, "n"], penalty: float
) -> Float[Tensor, "V"]:
    """Push down every token that is already in the text."""
    if penalty == 1 or seen.numel() == 0:
        return scores
    old = scores[seen]
    return scores.index_copy(0, seen, torch.where(old < 0, old * penalty, old / penalty))


def keep_top_k(scores: Float[Tensor, "V"], k: int) -> Float[Tensor, "V"]:
    """Remove all but the k highest; ties with the k-th stay."""
    if k == 0 or k >= scores.numel():
        return scores
    return scores.masked_fill(scores < scores.topk(k).values[-1], REMOVED)


def keep_top_p(scores: Float[Tensor, "V"], p: float) -> Float[Tensor, "V"]:
    """Keep the most probable tokens until their probabilities reach p; at least one stays."""
    if p >= 1:
        return scores
    ascending, order = scores.sort()
    tail = ascending.softmax(dim=-1).cumsum(dim=-1) <= 1 - p  # the improbable end, up to 1 - p
    tail[-1] = False
    return scores.masked_fill(torch.zeros_like(tail).scatter(0, order, tail), REMOVED)


def keep_min_p(scores: Float[Tensor, "V"], p: float) -> Float[Tensor, "V"]:
    """Remove tokens less than p times as probable as the most probable."""
    if p == 0:
        return scores
    probabilities = scores.softmax(dim=-1)
    return scores.masked_fill(probabilities < p * probabilities.max(), REMOVED)


def filtered_scores(
    logits: Float[Tensor, "V"], seen: Int[Tensor, "n"], config: SamplingConfig
) -> Float[Tensor, "V"]:
    """All steps in order; greedy applies the penalty alone.

    Args:
        logits: Of one position.
        seen: Distinct ids of the text so far, prompt included.
        config: The settings.
    """
    scores = penalise_repetition(logits.float(), seen, config.repetition_penalty)
    if config.greedy:
        return scores
    scores = keep_top_k(scores / config.temperature, config.top_k)
    return keep_min_p(keep_top_p(scores, config.top_p), config.min_p)


def choose(scores: Float[Tensor, "V"], greedy: bool, generator: torch.Generator | None) -> int:
    """The highest score, or one draw from their softmax.

    Args:
        scores: After all filters.
        greedy: Take the highest; of equals the first.
        generator: Source of the draw, on the scores' device; needed unless greedy.

    Raises:
        ConfigError: A draw was asked for without a generator.
    """
    if greedy:
        return int(scores.argmax())
    if generator is None:
        raise ConfigError(
            "drawing a token needs a torch.Generator; give one, or temperature=0 for the most "
            "probable token"
        )
    return int(torch.multinomial(scores.softmax(dim=-1), 1, generator=generator))
