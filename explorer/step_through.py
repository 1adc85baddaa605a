"""Writing one token at a time, with a way back: what the model saw before any token of a text.

    prompt  t₁  t₂  t₃ …          a walk: the prompt, and the tokens that were chosen so far
             ▲
             └ looked at: what was chosen here, from which probabilities, read from where

Any token can be replaced by another; what came after it is then dropped and written anew. The
dice are the same at every place: token number n is drawn with the n-th throw of the seed's
generator, so that a walk without replacements is the very text that `generate` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError, ContextError
from explorer.next_token import NextLogits, SamplingSettings, make_sampling, name_logits
from explorer.prompts import read_prompt
from explorer.thoughts import CLOSES, begins_inside, split_thoughts
from explorer.tokens import TokenUnit, label_of, units_of

if TYPE_CHECKING:
    from models.loading import LoadedModel

MOST_TOKENS = 256
N_LENS = 3
PROMPT_TAIL = 16  # tokens, among which a template may open a thought


@dataclass(frozen=True, kw_only=True)
class Walk:
    """A text on its way.

    Args:
        prompt: Ids that were given.
        written: Ids that were chosen.
        at: Which of them is looked at; `len(written)` is the one that is not chosen yet.
        ended: Whether the model has ended the text.
    """

    prompt: tuple[int, ...]
    written: tuple[int, ...] = ()
    at: int = 0
    ended: bool = False

    @property
    def ids(self) -> tuple[int, ...]:
        """All tokens."""
        return (*self.prompt, *self.written)

    def go_to(self, at: int) -> Walk:
        """Look at another token; the text stays."""
        return replace(self, at=min(max(at, 0), len(self.written)))

    def rewind(self) -> Walk:
        """Drop the token that is looked at and all after it."""
        return replace(self, written=self.written[: self.at], ended=False)

    def force(self, token: int, stop_ids: Sequence[int] = ()) -> Walk:
        """Put a token where one is looked at, drop what came after, and look at the next."""
        written = (*self.written[: self.at], token)
        return replace(self, written=written, at=len(written), ended=token in stop_ids)


@dataclass(frozen=True, kw_only=True, eq=False)
class Look:
    """What there was before the token that is looked at.

    Args:
        given: The logits from which it was, or will be, chosen.
        units: The whole text in units that people see as one character or word.
        probabilities: Of every token, the model's own; NaN where none was foreseen.
        attention: (T,), how much the place reads of each token, mean over heads of a layer; 0
            after it.
        layer: That layer.
        lens_labels: For each stage the likeliest tokens.
        lens_probabilities: (stages, k).
        stages: "embed", then the number of each layer.
        chosen: Text of the token that stands there; "" before it is chosen.
        cache_bytes: Keys and values of all tokens before it.
        position: Its place in the whole text.
        part: Of a model that thinks first, whether the place is in its thoughts or in the answer;
            None where nothing was thought.
    """

    given: NextLogits
    units: tuple[TokenUnit, ...]
    probabilities: NDArray[np.float64]
    attention: NDArray[np.float32]
    layer: int
    lens_labels: tuple[tuple[str, ...], ...]
    lens_probabilities: NDArray[np.float32]
    stages: tuple[str, ...]
    chosen: str
    cache_bytes: int
    position: int
    part: Literal["thought", "answer"] | None


def begin_walk(loaded: LoadedModel, text: str, *, chat: bool = False) -> Walk:
    """Start at the end of a prompt.

    Args:
        loaded: Any model with its tokenizer.
        text: The prompt.
        chat: Whether it is a message that the model answers.

    Raises:
        ConfigError: There is no text.
        ContextError: The text is too long.
    """
    return Walk(prompt=tuple(read_prompt(loaded, text, chat=chat, most_tokens=MOST_TOKENS)))


def choose_next(look: Look, walk: Walk, settings: SamplingSettings) -> int:
    """The token that the dials and the dice choose at the place that is looked at.

    Args:
        look: What there was before it.
        walk: The text; its place decides which throw of the dice counts.
        settings: The dials and the seed.

    Raises:
        ConfigError: Impossible settings.
    """
    import torch

    from explorer.next_token import compute_steps
    from models.sampling import choose

    config = make_sampling(settings)
    generator = torch.Generator().manual_seed(settings.seed)
    scores = compute_steps(look.given.logits, look.given.ids, config)["pick"]
    for _ in range(walk.at):  # the throws of the tokens before
        choose(scores, config.greedy, generator)
    return choose(scores, config.greedy, generator)


def look_at(
    loaded: LoadedModel,
    walk: Walk,
    *,
    layer: int = -1,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Look:
    """Read the whole text once and tell what there was before the token that is looked at.

    Args:
        loaded: Any model with its tokenizer.
        walk: The text and the place.
        layer: Whose attention; -1 is the middle one.
        turn: Entered for the forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: There is no such layer.
        ContextError: The text is longer than the model, or this page, reads.
    """
    import torch

    from models.trace import Trace

    n_layers, ids = loaded.config.n_layers, walk.ids
    layer = n_layers // 2 if layer < 0 else layer
    _check_place(loaded, layer, len(ids))
    place = len(walk.prompt) + walk.at - 1
    streams = ["blocks.0.resid_pre", *(f"blocks.{i}.resid_post" for i in range(n_layers))]
    trace = Trace(record=(*streams, f"blocks.{layer}.attn.pattern"))
    with turn(), torch.inference_mode():
        logits = loaded.model(torch.tensor([ids], device=loaded.model.device), trace=trace)[0]
        probabilities = _of_each(logits, ids)
        there = torch.cat([trace[name][:, place : place + 1] for name in streams])
        lens = loaded.model.unembed(there)[:, 0].float().softmax(dim=-1)
        pattern = trace[f"blocks.{layer}.attn.pattern"][0, :, place].float().mean(dim=0)
    best = lens.topk(min(N_LENS, lens.shape[-1]), dim=-1)
    tokenizer = loaded.tokenizer
    return Look(
        given=name_logits(loaded, ids[: place + 1], logits[place].float().cpu()),
        units=units_of(tokenizer, ids),
        probabilities=probabilities,
        attention=pattern.cpu().numpy(),
        layer=layer,
        lens_labels=tuple(tuple(label_of(tokenizer, i) for i in r) for r in best.indices.tolist()),
        lens_probabilities=best.values.cpu().numpy(),
        stages=("embed", *map(str, range(n_layers))),
        chosen=label_of(tokenizer, ids[place + 1]) if place + 1 < len(ids) else "",
        cache_bytes=_count_cache(loaded, place + 1),
        position=place + 1,
        part=_find_part(loaded, walk),
    )


def _check_place(loaded: LoadedModel, layer: int, n_tokens: int) -> None:
    n_layers = loaded.config.n_layers
    if layer >= n_layers:
        raise ConfigError(
            f"there is no layer {layer}; choose 0 to {n_layers - 1}",
            code="index-range-layer",
            index=layer,
            last=n_layers - 1,
        )
    limit = min(loaded.config.context_length, 2 * MOST_TOKENS)
    if n_tokens > limit:
        raise ContextError(
            f"the text has {n_tokens} tokens, and at most {limit} are read here; go back",
            code="context-too-long",
            asked=n_tokens,
            limit=limit,
        )


def _of_each(logits: Any, ids: Sequence[int]) -> NDArray[np.float64]:
    import torch

    found = np.full(len(ids), np.nan)
    if len(ids) > 1:
        came = torch.tensor(ids[1:], device=logits.device)[:, None]
        said = logits[:-1].float()
        found[1:] = (said.gather(1, came)[:, 0] - said.logsumexp(dim=-1)).exp().cpu().numpy()
    return found


def _find_part(loaded: LoadedModel, walk: Walk) -> Literal["thought", "answer"] | None:
    decode = loaded.tokenizer.decode
    inside = begins_inside(decode(walk.prompt[-PROMPT_TAIL:]))
    before = decode(walk.written[: walk.at])
    if split_thoughts(before, starts_inside=inside).is_open:
        return "thought"
    return "answer" if inside or CLOSES in before else None


def _count_cache(loaded: LoadedModel, n_tokens: int) -> int:
    from models.cache import KVCache

    return int(KVCache(loaded.config, 1, n_tokens, dtype=loaded.model.dtype).nbytes)
