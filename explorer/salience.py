"""Which tokens of the prompt made the model say this token: three measures of the same question.

The quantity is f = ln p(chosen token | prompt), in nats; e_i is the embedding of token i.

    gradient × input        e_i · ∂f/∂e_i                        Shrikumar et al. 2016, 1605.01713
    integrated gradients    (e_i - b) · ∫₀¹ ∂f/∂e_i (b + α (e - b)) dα
                                                                Sundararajan et al. 2017, 1703.01365
    leave one out           f(prompt) - f(prompt without token i)

Integrated gradients are complete: over all tokens they sum to f(e) - f(b). The baseline b has the
mean of all embeddings in the place of every token, with positions as they are: a token that says
nothing, of ordinary size. (A baseline of zeros would be no token at all: the first norm makes of
any small vector one of full size.) The integral is a Gauss-Legendre sum, refined until it is
complete.

Leaving a token out changes what stands beside what, and its gradient does not: where the two agree
the answer is firm.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError
from explorer.lens_targets import Target, find_target, own_answer, place_in
from explorer.tokens import TokenUnit, labels_of_units, units_of

if TYPE_CHECKING:
    from models.loading import LoadedModel

Method = Literal["gradient", "integrated", "leave_one_out"]
METHODS: tuple[Method, ...] = ("gradient", "integrated", "leave_one_out")
COMPLETE = 0.02  # of f(e) - f(b): then the integral is fine enough
FIRST_STEPS, MOST_STEPS = 16, 128
ROWS_AT_ONCE, TOKENS_AT_ONCE = 4, 1_024
PROBE_TOKENS = 128  # read first, to say what a pass over all of them will cost
# A pass with its gradient, in passes without: one back through activations, one through weights
# is not needed.
BACKWARD_PASSES = 2.0
# Above so many tokens in a batch the activations of all layers are gigabytes: those of a block are
# computed again on the way back, for one more pass.
MOST_KEPT_TOKENS = 1_024


@dataclass(frozen=True, kw_only=True)
class SalienceSettings:
    """How to measure.

    Args:
        method: Which of the three.
    """

    method: Method = "gradient"


@dataclass(frozen=True, kw_only=True, eq=False)
class Salience:
    """How much each token of the prompt speaks for the chosen one.

    Args:
        model_name: Which model.
        ids: The text up to the position.
        labels: One for each token.
        units: The text in units that people see as one character or word.
        position: After which token.
        target: The chosen token.
        method: How it was measured.
        scores: (T,) nats; above 0 speaks for the chosen token, below 0 against it.
        f_input: ln p of the chosen token.
        f_baseline: ln p with the baseline; NaN where the method has none.
        n_steps: Points of the integral; 0 without one.
    """

    model_name: str
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    units: tuple[TokenUnit, ...]
    position: int
    target: Target
    method: Method
    scores: NDArray[np.float64]
    f_input: float
    f_baseline: float
    n_steps: int

    @property
    def incompleteness(self) -> float:
        """Share of f(e) - f(b) by which the sum misses it; NaN without a baseline."""
        whole = self.f_input - self.f_baseline
        return abs(float(self.scores.sum()) - whole) / max(abs(whole), 1e-9)


@dataclass(frozen=True, kw_only=True)
class SalienceStep:
    """How far the measuring has come.

    Args:
        done: Rows that were read.
        total: Rows as known now.
        seconds_left: As estimated from one pass on this machine.
        result: What was found, in the last step.
    """

    done: int
    total: int
    seconds_left: float
    result: Salience | None = None


def stream_salience(
    loaded: LoadedModel,
    ids: Sequence[int],
    settings: SalienceSettings | None = None,
    *,
    position: int = -1,
    target: str = "",
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[SalienceStep]:
    """Measure how much each token speaks for the chosen one; the first step estimates the time.

    Args:
        loaded: Any decoder with its tokenizer.
        ids: The text; what stands after the position is not read.
        settings: Which method.
        position: After which token; negative counts from the end.
        target: The chosen word; "" takes the model's own answer.
        turn: Entered for each pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: No such position or method, or a text of one token with `leave_one_out`.
        ContextError: The text is too long for the model.
    """
    method = (settings or SalienceSettings()).method
    position = place_in(position, len(ids))
    ids = list(ids[: position + 1])
    _check_method(method, len(ids))
    measure = _Measure(loaded, ids, turn)
    rows = {"gradient": 1, "integrated": FIRST_STEPS, "leave_one_out": len(ids)}[method]
    row_passes = 1.0 if method == "leave_one_out" else measure.gradient_passes
    pass_s = measure.time_pass()
    yield SalienceStep(done=0, total=rows, seconds_left=pass_s * (1 + row_passes * rows))
    followed = measure.follow(target)
    work = {
        "gradient": measure.gradient,
        "integrated": measure.integrated,
        "leave_one_out": measure.leave_one_out,
    }[method]
    started = time.perf_counter()
    for done, total, found in work(followed.id):
        if found is None:
            row_s = (time.perf_counter() - started) / done
            yield SalienceStep(done=done, total=total, seconds_left=row_s * (total - done))
            continue
        scores, f_baseline, n_steps = found
        units = units_of(loaded.tokenizer, ids)
        result = Salience(
            model_name=loaded.info.name,
            ids=tuple(ids),
            labels=labels_of_units(units),
            units=units,
            position=position,
            target=followed,
            method=method,
            scores=scores,
            f_input=measure.f_input,
            f_baseline=f_baseline,
            n_steps=n_steps,
        )
        yield SalienceStep(done=total, total=total, seconds_left=0.0, result=result)


def _check_method(method: str, n_tokens: int) -> None:
    if method not in METHODS:
        raise ConfigError(f"method={method!r} is unknown; choose {', '.join(METHODS)}")
    if method == "leave_one_out" and n_tokens < 2:
        raise ConfigError(
            "without its only token the prompt is empty; type more",
            code="text-too-short",
            found=n_tokens,
        )


def compute_salience(
    loaded: LoadedModel, text: str, method: Method, *, position: int = -1, target: str = ""
) -> Salience:
    """How much each token of a text speaks for the chosen one.

    Args:
        loaded: Any decoder with its tokenizer.
        text: The prompt.
        method: `gradient`, `integrated` or `leave_one_out`.
        position: As for `stream_salience`.
        target: As there.

    Raises:
        ConfigError: As there.
        ContextError: As there.
    """
    from explorer.prompts import read_prompt

    ids = read_prompt(loaded, text)
    settings = SalienceSettings(method=method)
    *_, last = stream_salience(loaded, ids, settings, position=position, target=target)
    assert last.result is not None
    return last.result


_Found = tuple[NDArray[np.float64], float, int]
_Progress = Iterator[tuple[int, int, _Found | None]]


class _Measure:
    """One prompt and its embeddings."""

    def __init__(self, loaded: LoadedModel, ids: list[int], turn: Callable[[], Any]) -> None:
        self._loaded, self._ids, self._turn = loaded, ids, turn
        self._at_once = max(1, min(ROWS_AT_ONCE, TOKENS_AT_ONCE // len(ids)))
        self._recompute = self._at_once * len(ids) > MOST_KEPT_TOKENS
        self._embedded: Any = None
        self.f_input = math.nan

    @property
    def gradient_passes(self) -> float:
        """What a row with its gradient costs, in passes without."""
        return 1 + BACKWARD_PASSES + self._recompute

    def _read(self) -> tuple[Any, Any]:
        """Ln p of every next token (V,), and the embeddings (T, D)."""
        import torch

        from models.trace import Trace

        trace, model = Trace(record=("embed",)), self._loaded.model
        with self._turn(), torch.no_grad():
            row = torch.tensor([self._ids], device=model.device)
            logits = model(row, trace=trace, last_only=True)[0, -1]
        return logits.float().log_softmax(dim=-1), trace["embed"][0]

    def time_pass(self) -> float:
        """Seconds that a pass over the prompt takes here, from one over its beginning."""
        import torch

        ids = self._ids[:PROBE_TOKENS]
        with self._turn(), torch.no_grad():
            started = time.perf_counter()
            row = torch.tensor([ids], device=self._loaded.model.device)
            self._loaded.model(row, last_only=True)
            return (time.perf_counter() - started) * len(self._ids) / len(ids)

    def follow(self, word: str) -> Target:
        """Read the whole prompt once; the chosen token."""
        said, self._embedded = self._read()
        own = int(said.argmax())
        target = find_target(self._loaded, word) if word else own_answer(self._loaded, own)
        self.f_input = float(said[target.id])
        return target

    def gradient(self, target: int) -> _Progress:
        """Embedding times gradient."""
        _, gradients = self._slopes(self._embedded[None], target)
        scores = (gradients[0] * self._embedded.double()).sum(dim=-1)
        yield 1, 1, (scores.cpu().numpy(), math.nan, 0)

    def integrated(self, target: int) -> _Progress:
        """Mean gradient along the way from the baseline, times the way; finer until complete."""
        baseline = self._baseline()
        way = (self._embedded - baseline).double()
        values, _ = self._slopes(baseline[None], target)
        f_baseline, done, n_steps = float(values[0]), 0, FIRST_STEPS
        while True:
            places, weights = np.polynomial.legendre.leggauss(n_steps)
            total = way.new_zeros(way.shape)
            for start in range(0, n_steps, self._at_once):
                part = slice(start, start + self._at_once)
                shares = baseline.new_tensor((places[part] + 1) / 2)[:, None, None]
                _, gradients = self._slopes(baseline + shares * way.to(baseline.dtype), target)
                total += (gradients * total.new_tensor(weights[part] / 2)[:, None, None]).sum(0)
                done += len(gradients)
                yield done, max(done, n_steps), None
            scores = (total * way).sum(dim=-1).cpu().numpy()
            whole = self.f_input - f_baseline
            if abs(scores.sum() - whole) <= COMPLETE / 2 * abs(whole) or n_steps >= MOST_STEPS:
                yield done, done, (scores, f_baseline, n_steps)
                return
            n_steps *= 2

    def leave_one_out(self, target: int) -> _Progress:
        """What is lost of ln p without each token."""
        import torch

        n_tokens, found = len(self._ids), list[float]()
        for start in range(0, n_tokens, self._at_once):
            places = range(start, min(start + self._at_once, n_tokens))
            rows = [self._ids[:i] + self._ids[i + 1 :] for i in places]
            with self._turn(), torch.no_grad():
                batch = torch.tensor(rows, device=self._loaded.model.device)
                logits = self._loaded.model(batch, last_only=True)[:, -1].float()
            said = logits.log_softmax(dim=-1)[:, target]
            found += (self.f_input - said.double()).tolist()
            yield len(found), n_tokens, None
        yield n_tokens, n_tokens, (np.array(found), math.nan, 0)

    def _baseline(self) -> Any:
        """(T, D): the mean of all embeddings in place of each token's own."""
        import torch

        model = self._loaded.model
        with torch.no_grad():
            own = model.embed(torch.tensor(self._ids, device=model.device))
            mean = model.embed.weight.float().mean(dim=0).to(own.dtype)
            return self._embedded - (own - mean) * self._loaded.config.embedding_scale

    def _slopes(self, embedded: Any, target: int) -> tuple[Any, Any]:
        """F (n,) and its gradients (n, T, D) in float64 at several embeddings of the prompt."""
        import torch

        from models.trace import Trace

        model = self._loaded.model
        with self._turn(), torch.enable_grad():
            leaf = embedded.detach().clone().requires_grad_()
            ids = torch.tensor([self._ids], device=model.device).expand(len(leaf), -1)
            trace = Trace(edits={"embed": lambda _: leaf})
            logits = model(ids, trace=trace, last_only=True, recompute=self._recompute)
            said = logits[:, -1].float().log_softmax(dim=-1)[:, target]
            (gradients,) = torch.autograd.grad(said.sum(), leaf)
        return said.detach().double(), gradients.double()
