"""How the next token is chosen, step by step: what each filter keeps, what it removes, and why.

    logits ─► repetition penalty ─► temperature ─► top-k ─► top-p ─► min-p ─► pick

The steps are the functions of `models/sampling.py`, taken one at a time in the order in which
`filtered_scores` takes them, which is that of `transformers`. Before the first step a token has the
probability softmax(logits); what is left after the last is drawn from softmax(scores).

Entropy is -Σ p ln p in nats, and perplexity its exponential: between how many equally likely tokens
the model hesitates (Shannon 1948, section 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from explorer.prompts import read_prompt
from explorer.tokens import label_of

if TYPE_CHECKING:
    from models.loading import LoadedModel
    from models.sampling import SamplingConfig

StageName = Literal["logits", "penalty", "temperature", "top_k", "top_p", "min_p", "pick"]
FILTERS: tuple[StageName, ...] = ("top_k", "top_p", "min_p")
MOST_CANDIDATES = 64  # labels that travel with the logits; a page draws fewer bars
MOST_PROMPT_TOKENS = 512


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """The dials. The metadata of each field describes its control on the page.

    Args:
        temperature: Scores are divided by it; 0 takes the most probable token.
        top_k: Keep the k most probable tokens; 0 keeps all.
        top_p: Keep the most probable tokens until their probabilities reach it.
        min_p: Keep tokens at least this times as probable as the first.
        repetition_penalty: Above 1, tokens already in the text become less probable.
        seed: Of all draws.
    """

    temperature: float = field(default=1.0, metadata={"least": 0.0, "most": 5.0, "step": 0.05})
    top_k: int = field(default=0, metadata={"least": 0, "most": 200, "step": 1})
    top_p: float = field(default=1.0, metadata={"least": 0.01, "most": 1.0, "step": 0.01})
    min_p: float = field(default=0.0, metadata={"least": 0.0, "most": 1.0, "step": 0.01})
    repetition_penalty: float = field(
        default=1.0, metadata={"least": 1.0, "most": 3.0, "step": 0.05}
    )
    seed: int = field(default=123, metadata={"least": 0, "most": 2**31 - 1, "step": 1})


@dataclass(frozen=True, kw_only=True, eq=False)
class NextLogits:
    """What a model says after a text, or numbers typed by hand.

    Args:
        model_name: Which model; "" for numbers typed by hand.
        ids: The text that was read.
        logits: (V,) float32, after its last token.
        candidate_ids: The highest of them, best first.
        candidate_labels: Their texts, with spaces that can be seen.
    """

    model_name: str
    ids: tuple[int, ...]
    logits: NDArray[np.float32]
    candidate_ids: tuple[int, ...]
    candidate_labels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step on the way from logits to a token.

    Args:
        name: Which.
        kept: Tokens that are left after it.
        removed: Tokens that it removed.
        removed_mass: What they had together, of the probability before this step, 0 to 1.
        bound: The probability before this step from which on a token stays; None where nothing is
            removed.
        entropy_nats: After it.
    """

    name: StageName
    kept: int
    removed: int
    removed_mass: float
    bound: float | None
    entropy_nats: float

    @property
    def perplexity(self) -> float:
        """Between how many equally likely tokens the choice would be as open."""
        return math.exp(self.entropy_nats)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One token on its way.

    Args:
        id: Its id.
        label: Its text.
        logit: As the model said it.
        probability: softmax of the logits.
        score: After penalty and temperature; with temperature 0 after the penalty alone.
        final: Its probability to be picked.
        removed_by: The filter that removed it, if one did.
        weighed: Its probability just before that filter, or before the pick.
        rank: Its place by score; 1 is the best.
        reached: The probabilities up to this token, best first, before top-p.
    """

    id: int
    label: str
    logit: float
    probability: float
    score: float
    final: float
    removed_by: StageName | None
    weighed: float
    rank: int
    reached: float


@dataclass(frozen=True, kw_only=True)
class NextToken:
    """The whole way of one choice.

    Args:
        stages: All steps, in order.
        candidates: The most probable tokens by the model's own logits, best first.
        n_tokens: Tokens that there are, V.
        greedy: Whether the best is taken and nothing drawn.
    """

    stages: tuple[Stage, ...]
    candidates: tuple[Candidate, ...]
    n_tokens: int
    greedy: bool

    @property
    def pick(self) -> Stage:
        """The last step."""
        return self.stages[-1]


def make_sampling(settings: SamplingSettings) -> SamplingConfig:
    """The settings as the model core takes them.

    Raises:
        ConfigError: One of them is impossible.
    """
    from models.sampling import SamplingConfig

    return SamplingConfig(
        temperature=settings.temperature,
        top_k=settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
    )


def compute_next_logits(
    loaded: LoadedModel,
    text: str,
    *,
    chat: bool = False,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> NextLogits:
    """Read a text and keep the logits after its last token.

    Args:
        loaded: Any model.
        text: The prompt.
        chat: Whether it is a message that the model answers.
        turn: Entered for the forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: There is no text.
        ContextError: The text is too long.
        TokenizerError: The model has no tokenizer.
    """
    import torch

    ids = read_prompt(loaded, text, chat=chat, most_tokens=MOST_PROMPT_TOKENS)
    with turn(), torch.inference_mode():
        row = torch.tensor([ids], device=loaded.model.device)
        logits = loaded.model(row, last_only=True)[0, -1].float().cpu()
    return name_logits(loaded, ids, logits)


def name_logits(loaded: LoadedModel, ids: Sequence[int], logits: Any) -> NextLogits:
    """Logits (V,) after a text, with the texts of the highest.

    Args:
        loaded: Whose they are.
        ids: The text before them.
        logits: A float32 tensor on the CPU.
    """
    best = logits.topk(min(MOST_CANDIDATES, logits.numel())).indices.tolist()
    return NextLogits(
        model_name=loaded.info.name,
        ids=tuple(ids),
        logits=logits.numpy(),
        candidate_ids=tuple(best),
        candidate_labels=tuple(label_of(loaded.tokenizer, token) for token in best),
    )


def trace_next_token(
    given: NextLogits, settings: SamplingSettings | None = None, *, most: int = 24
) -> NextToken:
    """Take every step of the choice and say what it did.

    Args:
        given: Logits and the text before them.
        settings: The dials; None changes nothing.
        most: Candidates to describe.

    Raises:
        ConfigError: Impossible settings.
    """
    config = make_sampling(settings or SamplingSettings())
    steps = compute_steps(given.logits, given.ids, config)
    shares = _share_out(steps)
    stages = _describe_stages(steps, shares)
    shown = list(zip(given.candidate_ids, given.candidate_labels, strict=True))[:most]
    describe = _Describer(steps, shares)
    return NextToken(
        stages=stages,
        candidates=tuple(describe(token, label) for token, label in shown),
        n_tokens=len(given.logits),
        greedy=config.greedy,
    )


def compute_steps(
    logits: NDArray[np.float32], ids: Sequence[int], config: SamplingConfig
) -> dict[StageName, Any]:
    """Scores (V,) after each step, as tensors; a removed token has -inf.

    The last step, `pick`, has what is drawn from: with temperature 0 the best token alone.

    Args:
        logits: Of one position.
        ids: The text so far; its tokens are those that the penalty pushes down.
        config: The settings.
    """
    import torch

    from models import sampling

    scores = torch.from_numpy(logits)
    seen = torch.tensor(sorted(set(ids)), dtype=torch.int64)
    penalised = sampling.penalise_repetition(scores, seen, config.repetition_penalty)
    if config.greedy:
        only = torch.full_like(penalised, sampling.REMOVED)
        best = int(penalised.argmax())
        only[best] = penalised[best]
        unchanged = dict.fromkeys(("temperature", *FILTERS), penalised)
        return {"logits": scores, "penalty": penalised, **unchanged, "pick": only}
    warmed = penalised / config.temperature
    top_k = sampling.keep_top_k(warmed, config.top_k)
    top_p = sampling.keep_top_p(top_k, config.top_p)
    min_p = sampling.keep_min_p(top_p, config.min_p)
    return {
        "logits": scores,
        "penalty": penalised,
        "temperature": warmed,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "pick": min_p,
    }


def _share_out(steps: dict[StageName, Any]) -> dict[StageName, Any]:
    """Probabilities (V,) after each step; a step that changes nothing has those of the last."""
    shares: dict[StageName, Any] = {}
    before = None
    for name, scores in steps.items():
        same = before is not None and scores is steps[before]
        shares[name] = shares[before] if same and before else scores.softmax(dim=-1)
        before = name
    return shares


def _describe_stages(
    steps: dict[StageName, Any], shares: dict[StageName, Any]
) -> tuple[Stage, ...]:
    import torch

    stages: list[Stage] = []
    for name, scores in steps.items():
        before = "logits" if not stages else stages[-1].name
        if stages and scores is steps[before]:
            last = stages[-1]
            stages.append(replace(last, name=name, removed=0, removed_mass=0.0, bound=None))
            continue
        was, alive = steps[before].isfinite(), scores.isfinite()
        gone = was & ~alive
        removed = int(gone.sum())
        # masks and whole sums: picking numbers out of 262,144 takes ten times as long
        least = shares[before].masked_fill(~alive, math.inf).min() if removed else None
        spread = torch.special.entr(shares[name]).sum(dtype=torch.float64)
        stages.append(
            Stage(
                name=name,
                kept=int(alive.sum()),
                removed=removed,
                removed_mass=float((shares[before] * gone).sum(dtype=torch.float64)),
                bound=None if least is None else float(least),
                entropy_nats=float(spread),
            )
        )
    return tuple(stages)


class _Describer:
    """Says of one token what happened to it."""

    def __init__(self, steps: dict[StageName, Any], shares: dict[StageName, Any]) -> None:
        self._steps, self._shares = steps, shares
        before_top_p = shares["top_k"][shares["top_k"] > 0]
        self._order = before_top_p.sort(descending=True).values.cumsum(dim=-1)
        self._scores = steps["temperature"]
        self._best = self._scores.topk(min(4 * MOST_CANDIDATES, len(self._scores))).values

    def __call__(self, token: int, label: str) -> Candidate:
        steps, shares = self._steps, self._shares
        names = list(steps)
        removed_by = next((n for n in FILTERS if not math.isfinite(float(steps[n][token]))), None)
        if not math.isfinite(float(steps["logits"][token])):
            removed_by = None  # it had no probability to begin with
        last = removed_by or "pick"
        weighed = shares[names[names.index(last) - 1]][token]
        score = steps["temperature"][token]
        place = self._place(score)
        return Candidate(
            id=token,
            label=label,
            logit=float(steps["logits"][token]),
            probability=float(shares["logits"][token]),
            score=float(score),
            final=float(shares["pick"][token]),
            removed_by=removed_by,
            weighed=float(weighed),
            rank=place + 1,
            reached=float(self._order[min(place, len(self._order) - 1)]),
        )

    def _place(self, score: Any) -> int:
        """How many tokens have a higher score; nearly always few."""
        place = int((self._best > score).sum())
        return place if place < len(self._best) else int((self._scores > score).sum())
