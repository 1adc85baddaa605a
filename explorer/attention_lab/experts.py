"""Experts: which ones each token takes, how they share the load, what one of them is worth.

    router      p = softmax(W x), the k largest of them           (`models/moe.py`)
    load        share of all choices that an expert got; 1 / E each when it is even

An expert is switched off by taking minus infinity for its router logit: the next best one is
chosen in its place, and the probabilities of the others grow (Shazeer et al. 2017, arXiv
1701.06538, eq. 5, which keeps all but the top k out in the same way).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.attention_lab.ablation import encode
from explorer.attention_maps import check_index, check_read
from explorer.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from models.loading import LoadedModel
    from models.trace import Trace

Turn = Callable[[], AbstractContextManager[object]]

MOST_TOKENS = 128
N_TOP = 8
ROUNDS = 7


@dataclass(frozen=True, kw_only=True)
class ExpertChoices:
    """The experts of one text.

    Args:
        labels: Of the tokens.
        probabilities: For each layer (T, E), the router's, after softmax.
        chosen: For each layer (T, k).
        weights: For each layer (T, k).
        load: (L, E), share of all choices; rows sum to 1.
        load_without: The same with one expert off, or as it is when none is.
        tokens: The likeliest next tokens of both passes, together.
        before: Their probabilities.
        after: With one expert off; the same as before when none is.
        loss: Mean over the text, in nats; NaN for a single token.
        loss_without: With the expert off.
    """

    labels: tuple[str, ...]
    probabilities: tuple[NDArray[np.float32], ...]
    chosen: tuple[NDArray[np.int64], ...]
    weights: tuple[NDArray[np.float32], ...]
    load: NDArray[np.float64]
    load_without: NDArray[np.float64]
    tokens: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    loss: float
    loss_without: float

    @property
    def n_experts(self) -> int:
        """In each layer."""
        return int(self.load.shape[1])


@dataclass(frozen=True, kw_only=True)
class LayerSettings:
    """Size of the layers that are compared.

    Args:
        d_model: Width of the stream.
        d_expert: Inner width of an expert.
        n_experts: Experts.
        n_active: Of them at work for each token.
        n_tokens: Tokens that the layer reads at once.
        seed: Of weights and inputs.
    """

    d_model: int = field(default=128, metadata={"least": 16, "most": 1_024, "step": 16})
    d_expert: int = field(default=128, metadata={"least": 16, "most": 2_048, "step": 16})
    n_experts: int = field(default=8, metadata={"least": 2, "most": 64, "step": 1})
    n_active: int = field(default=2, metadata={"least": 1, "most": 16, "step": 1})
    n_tokens: int = field(default=128, metadata={"least": 1, "most": 1_024, "step": 1})
    seed: int = field(default=0, metadata={"least": 0, "most": 99_999, "step": 1})

    @property
    def at_work(self) -> int:
        """Experts of a token: no more than there are."""
        return min(self.n_active, self.n_experts)


@dataclass(frozen=True, kw_only=True)
class LayerCost:
    """One layer: what it holds, what it uses, how long it takes here.

    Args:
        name: `moe`, `dense_active` (as much work), or `dense_total` (as many weights).
        n_parameters: That must be in memory.
        n_active: That one token uses.
        n_bytes: Of the weights, as they are in memory.
        forward_s: First quartile, median and third quartile of a forward pass, in seconds.
    """

    name: str
    n_parameters: int
    n_active: int
    n_bytes: int
    forward_s: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class PublishedExperts:
    """Weights of a published model with experts, and what a token uses of them."""

    name: str
    n_parameters: int
    n_active: int


def compute_experts(
    loaded: LoadedModel,
    text: str,
    *,
    layer: int = 0,
    expert: int | None = None,
    turn: Turn = nullcontext,
) -> ExpertChoices:
    """Read a text, and again with one expert switched off.

    Args:
        loaded: A model with experts.
        text: At most `MOST_TOKENS` tokens.
        layer: Where an expert is switched off.
        expert: Which one; None switches none off.
        turn: Entered for each forward pass.

    Raises:
        ConfigError: No text, no experts in this model, or no such layer or expert.
        ContextError: The text is too long.
        WeightError: The model computes NaN; says in which layer first.
    """
    import torch

    from models.trace import Trace

    _check(loaded, layer, expert)
    ids = encode(loaded, text, MOST_TOKENS)
    row = torch.tensor([ids], device=loaded.model.device)
    trace = Trace(record=("blocks.*.router.*",))
    with turn(), torch.inference_mode():
        plain = loaded.model(row, trace=trace)[0].float().log_softmax(-1)
    check_read(loaded, ids, plain, turn=turn)
    without, trace_without = plain, trace
    if expert is not None:
        edits = {f"blocks.{layer}.router.logits": _switch_off(expert)}
        trace_without = Trace(record=("blocks.*.router.ids",), edits=edits)
        with turn(), torch.inference_mode():
            without = loaded.model(row, trace=trace_without)[0].float().log_softmax(-1)
    n_layers = loaded.config.n_layers
    logits = _recorded(trace, "logits", n_layers)
    chosen = _recorded(trace, "ids", n_layers)
    n_experts = logits[0].shape[-1]
    top = [*plain[-1].topk(min(N_TOP, plain.shape[-1])).indices.tolist()]
    return ExpertChoices(
        labels=tuple(loaded.tokenizer.decode([i]) for i in ids),
        probabilities=tuple(x.float().softmax(-1).numpy() for x in logits),
        chosen=tuple(ids_.numpy() for ids_ in chosen),
        weights=tuple(w.float().numpy() for w in _recorded(trace, "weights", n_layers)),
        load=_loads(chosen, n_experts),
        load_without=_loads(_recorded(trace_without, "ids", n_layers), n_experts),
        tokens=tuple(loaded.tokenizer.decode([i]) for i in top),
        before=tuple(plain[-1][top].exp().tolist()),
        after=tuple(without[-1][top].exp().tolist()),
        loss=_loss(plain, ids),
        loss_without=_loss(without, ids),
    )


def measure_layers(settings: LayerSettings, *, turn: Turn = nullcontext) -> tuple[LayerCost, ...]:
    """A layer with experts, beside dense ones with as much work and with as many weights.

    Args:
        settings: Sizes; more experts at work than there are count as all of them.
        turn: Entered for each pass.
    """
    import torch

    from models.config import FfnConfig, MoeConfig
    from models.ffn import FeedForward
    from models.moe import MixtureOfExperts

    n_active = settings.at_work
    expert = FfnConfig(d_ff=settings.d_expert, activation="silu", gated=True)
    moe = MoeConfig(
        n_experts=settings.n_experts,
        n_active=n_active,
        d_ff=settings.d_expert,
        normalise_weights=True,
    )
    generator = torch.Generator().manual_seed(settings.seed)
    layers: dict[str, torch.nn.Module] = {
        "moe": MixtureOfExperts(moe, expert, d_model=settings.d_model),
        "dense_active": FeedForward(
            replace(expert, d_ff=n_active * settings.d_expert), d_model=settings.d_model
        ),
        "dense_total": FeedForward(
            replace(expert, d_ff=settings.n_experts * settings.d_expert), d_model=settings.d_model
        ),
    }
    with torch.no_grad():
        for layer in layers.values():
            for weight in layer.parameters():
                weight.normal_(0.0, settings.d_model**-0.5, generator=generator)
    x = torch.randn(1, settings.n_tokens, settings.d_model, generator=generator)
    times = _measure(layers, x, turn)
    of_one = 3 * settings.d_model * settings.d_expert
    router = settings.d_model * settings.n_experts
    return tuple(
        LayerCost(
            name=name,
            n_parameters=sum(p.numel() for p in layer.parameters()),
            n_active=n_active * of_one + router
            if name == "moe"
            else sum(p.numel() for p in layer.parameters()),
            n_bytes=sum(p.nbytes for p in layer.parameters()),
            forward_s=times[name],
        )
        for name, layer in layers.items()
    )


def _measure(
    layers: dict[str, torch.nn.Module], x: torch.Tensor, turn: Turn
) -> dict[str, tuple[float, float, float]]:
    """Each in turn, so that a slow moment touches all; the first round warms up."""
    import torch

    from models.config import AttentionConfig
    from models.forward_pass import ForwardPass

    run = ForwardPass(
        n_tokens=x.shape[1],
        device=x.device,
        positions=torch.arange(x.shape[1])[None],
        valid=None,
        window=AttentionConfig(n_heads=1, n_kv_heads=1, d_head=1).window,
        rotations={},
    )
    seconds: dict[str, list[float]] = {name: [] for name in layers}
    for _ in range(ROUNDS + 1):
        for name, layer in layers.items():
            with turn(), torch.inference_mode():
                started_at = time.perf_counter()
                layer(x, name="blocks.0.ffn", run=run)
                seconds[name].append(time.perf_counter() - started_at)
    quartiles = {name: np.quantile(s[1:], [0.25, 0.5, 0.75]) for name, s in seconds.items()}
    return {name: (float(q[0]), float(q[1]), float(q[2])) for name, q in quartiles.items()}


def find_published_experts() -> tuple[PublishedExperts, ...]:
    """Published models with experts: weights in memory, weights at work for a token."""
    from models.counting import count_parameters
    from models.registry import presets

    found = []
    for name, config in presets().items():
        if config.moe is None:
            continue
        total = count_parameters(config).unique
        of_one = count_parameters(replace(config, moe=replace(config.moe, n_experts=1, n_active=1)))
        two = count_parameters(replace(config, moe=replace(config.moe, n_experts=2, n_active=1)))
        router = config.n_layers * config.d_model
        expert = two.unique - of_one.unique - router  # of all layers together
        idle = (config.moe.n_experts - config.moe.n_active) * expert
        found.append(PublishedExperts(name=name, n_parameters=total, n_active=total - idle))
    return tuple(found)


def _switch_off(expert: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def edit(logits: torch.Tensor) -> torch.Tensor:
        logits[..., expert] = float("-inf")
        return logits

    return edit


def _recorded(trace: Trace, name: str, n_layers: int) -> list[torch.Tensor]:
    """What the router of each layer gave for the one row of the pass."""
    return [trace[f"blocks.{i}.router.{name}"][0].cpu() for i in range(n_layers)]


def _loads(chosen: Sequence[torch.Tensor], n_experts: int) -> NDArray[np.float64]:
    """(L, E), share of the choices of each layer."""
    counts = [np.bincount(ids.numpy().ravel(), minlength=n_experts) / ids.numel() for ids in chosen]
    return np.stack(counts)


def _loss(log_probabilities: torch.Tensor, ids: list[int]) -> float:
    if len(ids) < 2:
        return float("nan")
    rows = range(len(ids) - 1)
    return -float(log_probabilities[list(rows), ids[1:]].double().mean())


def _check(loaded: LoadedModel, layer: int, expert: int | None) -> None:
    moe = loaded.config.moe
    if moe is None:
        raise ConfigError(
            f"{loaded.info.name} has no experts: each layer has one feed-forward of width "
            f"{loaded.config.ffn.d_ff}; open a model with experts, such as a run of the style "
            "'mixture of experts' of the Pretrain tab",
            code="lab-no-experts",
            model=loaded.info.name,
            width=loaded.config.ffn.d_ff,
        )
    check_index("layer", layer, loaded.config.n_layers)
    if expert is not None and not 0 <= expert < moe.n_experts:
        raise ConfigError(
            f"there is no expert {expert}; choose 0 to {moe.n_experts - 1}",
            code="index-range-expert",
            index=expert,
            last=moe.n_experts - 1,
        )
    if expert is not None and moe.n_active >= moe.n_experts:
        raise ConfigError(
            f"all {moe.n_experts} experts are at work for each token, so none can stand in for "
            "another; choose a model with more experts than it uses",
            code="lab-experts-all",
            experts=moe.n_experts,
        )
