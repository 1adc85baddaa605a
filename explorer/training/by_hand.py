r"""Loss, gradient and one AdamW step on a net so small that every number can be written down.

    x (2) ── W1 (3 x 2) ──► a ── tanh ──► h (3) ── W2 (3 x 3) ──► z ── softmax ──► p ──► loss

    z     = W2 tanh(W1 x)                     scores of three possible next tokens
    p     = exp(z) / sum exp(z)
    loss  = -ln p[target]
    dz    = p - onehot(target)                dW2 = dz h^T
    da    = (W2^T dz) * (1 - h^2)             dW1 = da x^T
    m     = beta1 m + (1 - beta1) g           v   = beta2 v + (1 - beta2) g^2
    W     = W - rate decay W - rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)

The last lines are AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101, algorithm 2) at its first
step, t = 1, from m = v = 0. Gradients are computed in three ways: by the formulas above, by torch's
autograd, and by moving each weight a little to both sides (central differences):

    dloss/dw  ~  (loss(w + d) - loss(w - d)) / (2 d)          error of order d^2
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from models.errors import ConfigError

N_INPUTS, N_HIDDEN, N_TOKENS = 2, 3, 3
# In float64: larger and the curve bends, smaller and digits cancel; 1e-5 is near the best.
DIFFERENCE = 1e-5
MOST_WEIGHT = 1e6
MOST_SHOWN = 20  # characters of what was typed, in an error

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TinySettings:
    """The step to take.

    Args:
        learning_rate: Length of the step.
        beta1: Decay of the mean of gradients.
        beta2: Decay of the mean of their squares.
        weight_decay: Share of a weight that is taken away, times the learning rate.
    """

    learning_rate: float = field(default=0.1, metadata={"least": 0.0, "most": 10.0, "step": 0.01})
    beta1: float = field(default=0.9, metadata={"least": 0.0, "most": 0.999, "step": 0.001})
    beta2: float = field(default=0.95, metadata={"least": 0.0, "most": 0.999, "step": 0.001})
    weight_decay: float = field(default=0.1, metadata={"least": 0.0, "most": 1.0, "step": 0.01})


EPS = 1e-8


@dataclass(frozen=True, kw_only=True, eq=False)
class TinyNet:
    """The net and what it reads.

    Args:
        x: Two inputs, shape (2,).
        w1: Weights into the hidden layer, shape (3, 2).
        w2: Weights to the scores, shape (3, 3).
        target: The token that comes next, 0 to 2.
    """

    x: Matrix
    w1: Matrix
    w2: Matrix
    target: int


FIRST_NET = TinyNet(
    x=np.array([1.0, -0.5]),
    w1=np.array([[0.2, -0.4], [0.7, 0.1], [-0.3, 0.5]]),
    w2=np.array([[0.3, -0.2, 0.1], [-0.5, 0.4, 0.2], [0.1, 0.6, -0.3]]),
    target=2,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Gradients:
    """The slope of the loss along each weight.

    Args:
        w1: Shape (3, 2).
        w2: Shape (3, 3).
    """

    w1: Matrix
    w2: Matrix


@dataclass(frozen=True, kw_only=True, eq=False)
class TinyStep:
    """One step, with all that lies between.

    Args:
        net: Before the step.
        hidden: tanh(W1 x).
        scores: z.
        probabilities: p.
        loss: In nats.
        by_formula: Gradients by the formulas.
        by_autograd: Those of torch.
        by_differences: Those of central differences.
        first_moments: m of W1 and W2 after the step.
        second_moments: v of W1 and W2.
        after: The net after the step.
        loss_after: Its loss.
    """

    net: TinyNet
    hidden: Matrix
    scores: Matrix
    probabilities: Matrix
    loss: float
    by_formula: Gradients
    by_autograd: Gradients
    by_differences: Gradients
    first_moments: Gradients
    second_moments: Gradients
    after: TinyNet
    loss_after: float

    @property
    def largest_difference(self) -> float:
        """Between any two of the three ways to the gradients."""
        ways = (self.by_autograd, self.by_differences)
        return max(
            float(np.abs(getattr(self.by_formula, name) - getattr(way, name)).max())
            for way in ways
            for name in ("w1", "w2")
        )


def parse_matrix(name: str, text: str, shape: tuple[int, ...]) -> Matrix:
    """Read numbers as they are typed: a row a line, numbers between spaces or commas.

    Args:
        name: What to call it in errors.
        text: The numbers.
        shape: Rows and columns wanted; one number for a single row.

    Raises:
        ConfigError: Something is no number, or there are too few or too many.
    """
    lines = [line.replace(",", " ").split() for line in text.splitlines() if line.strip()]
    rows, columns = (1, shape[0]) if len(shape) == 1 else shape
    numbers = [[_parse_number(name, word) for word in line] for line in lines]
    if [len(line) for line in numbers] != [columns] * rows:
        found = " + ".join(str(len(line)) for line in numbers) or "0"
        raise ConfigError(
            f"{name} takes {rows} lines of {columns} numbers, and has {found}; write it like "
            "0.2 -0.4",
            code="by-hand-shape",
            name=name,
            rows=rows,
            columns=columns,
            found=found,
        )
    return np.array(numbers, dtype=np.float64).reshape(shape)


def _parse_number(name: str, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not abs(number) <= MOST_WEIGHT:  # NaN is not, either
        raise ConfigError(
            f"{word[:MOST_SHOWN]!r} in {name} is no number from {-MOST_WEIGHT:,.0f} to "
            f"{MOST_WEIGHT:,.0f}; write numbers like 0.2 -0.4",
            code="by-hand-number",
            name=name,
            found=word[:MOST_SHOWN],
            most=f"{MOST_WEIGHT:,.0f}",
        )
    return number


def parse_target(text: str | None) -> int:
    """Read which token comes next.

    Raises:
        ConfigError: It is none of the tokens.
    """
    known = [str(i) for i in range(N_TOKENS)]
    if text not in known:
        raise _no_such_target(text)
    return known.index(text)


def _no_such_target(found: object) -> ConfigError:
    shown = str(found)[:MOST_SHOWN]
    return ConfigError(
        f"target={shown} is none of the {N_TOKENS} tokens; choose 0 to {N_TOKENS - 1}",
        code="by-hand-target",
        found=shown,
        last=N_TOKENS - 1,
    )


def take_tiny_step(net: TinyNet, settings: TinySettings) -> TinyStep:
    """Compute loss and gradients of the net, and its first step of AdamW.

    Raises:
        ConfigError: The target is none of the tokens.
    """
    if net.target not in range(N_TOKENS):
        raise _no_such_target(net.target)
    hidden, scores, probabilities = _forward(net)
    gradients = _differentiate_by_formula(net, hidden, probabilities)
    first = _scale(gradients, 1 - settings.beta1)
    second = Gradients(
        w1=(1 - settings.beta2) * gradients.w1**2, w2=(1 - settings.beta2) * gradients.w2**2
    )
    after = TinyNet(
        x=net.x,
        w1=_update(net.w1, first.w1, second.w1, settings),
        w2=_update(net.w2, first.w2, second.w2, settings),
        target=net.target,
    )
    return TinyStep(
        net=net,
        hidden=hidden,
        scores=scores,
        probabilities=probabilities,
        loss=compute_loss(net),
        by_formula=gradients,
        by_autograd=_differentiate_by_autograd(net),
        by_differences=_differentiate_by_differences(net),
        first_moments=first,
        second_moments=second,
        after=after,
        loss_after=compute_loss(after),
    )


def compute_loss(net: TinyNet) -> float:
    """-ln p[target], in nats."""
    scores = _forward(net)[1]
    return float(_log_sum_exp(scores) - scores[net.target])


def _log_sum_exp(scores: Matrix) -> float:
    """The largest is taken out first, so that no exp overflows."""
    largest = float(scores.max())
    return largest + math.log(float(np.exp(scores - largest).sum()))


def _forward(net: TinyNet) -> tuple[Matrix, Matrix, Matrix]:
    hidden = np.tanh(net.w1 @ net.x)
    scores = net.w2 @ hidden
    return hidden, scores, np.exp(scores - _log_sum_exp(scores))


def _differentiate_by_formula(net: TinyNet, hidden: Matrix, probabilities: Matrix) -> Gradients:
    d_scores = probabilities - np.eye(N_TOKENS)[net.target]
    d_hidden = (net.w2.T @ d_scores) * (1 - hidden**2)
    return Gradients(w1=np.outer(d_hidden, net.x), w2=np.outer(d_scores, hidden))


def _differentiate_by_autograd(net: TinyNet) -> Gradients:
    import torch

    x = torch.from_numpy(net.x)
    w1, w2 = (torch.from_numpy(w).clone().requires_grad_() for w in (net.w1, net.w2))
    scores = w2 @ torch.tanh(w1 @ x)
    loss = torch.nn.functional.cross_entropy(scores[None], torch.tensor([net.target]))
    d_w1, d_w2 = torch.autograd.grad(loss, (w1, w2))
    return Gradients(w1=d_w1.numpy(), w2=d_w2.numpy())


def _differentiate_by_differences(net: TinyNet) -> Gradients:
    return Gradients(w1=_move_each(net, "w1"), w2=_move_each(net, "w2"))


def _move_each(net: TinyNet, name: str) -> Matrix:
    weights = getattr(net, name)
    slopes = np.zeros_like(weights)
    for place in np.ndindex(weights.shape):
        losses = []
        for sign in (1, -1):
            moved = weights.copy()
            moved[place] += sign * DIFFERENCE
            parts = {"x": net.x, "w1": net.w1, "w2": net.w2, name: moved}
            losses.append(compute_loss(TinyNet(**parts, target=net.target)))
        slopes[place] = (losses[0] - losses[1]) / (2 * DIFFERENCE)
    return slopes


def _scale(gradients: Gradients, factor: float) -> Gradients:
    return Gradients(w1=factor * gradients.w1, w2=factor * gradients.w2)


def _update(weights: Matrix, m: Matrix, v: Matrix, settings: TinySettings) -> Matrix:
    """The first step: t = 1, so the corrections undo what the zeros of the start did."""
    m_hat, v_hat = m / (1 - settings.beta1), v / (1 - settings.beta2)
    kept = weights * (1 - settings.learning_rate * settings.weight_decay)
    return kept - settings.learning_rate * m_hat / (np.sqrt(v_hat) + EPS)
