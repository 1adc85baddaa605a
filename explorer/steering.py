"""Steering: add the difference of two texts to the stream, and see the answer change.

    v  =  stream of "Love" after layer l, last token  -  stream of "Hate" after layer l, last token
    then, while the model writes:   stream after layer l  ◄─  stream + strength · v

Turner et al. 2023, *Steering Language Models With Activation Engineering* (arXiv 2308.10248),
section 3; here the difference at the last token, added to all tokens of the answer and its prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from explorer.continuations import WrittenToken, write_on
from explorer.errors import ConfigError
from explorer.next_token import SamplingSettings
from explorer.prompts import read_prompt

if TYPE_CHECKING:
    from models.loading import LoadedModel


@dataclass(frozen=True, kw_only=True)
class SteerSettings:
    """Where and how hard. The metadata of each field describes its control on the page.

    Args:
        layer: After which layer the vector is taken and added; -1 is the middle one.
        strength: Multiplies the difference; below 0 it points the other way.
        max_new_tokens: Length of the answer.
        temperature: 0 takes the most probable token.
        seed: Of the draws.
    """

    layer: int = field(default=-1, metadata={"least": -1, "most": 255, "step": 1})
    strength: float = field(default=4.0, metadata={"least": -20.0, "most": 20.0, "step": 0.5})
    max_new_tokens: int = field(default=24, metadata={"least": 1, "most": 64, "step": 1})
    temperature: float = field(default=0.0, metadata={"least": 0.0, "most": 2.0, "step": 0.05})
    seed: int = field(default=123, metadata={"least": 0, "most": 2**31 - 1, "step": 1})


@dataclass(frozen=True, kw_only=True)
class Steered:
    """Both answers so far.

    Args:
        plain: Tokens without the vector.
        steered: Tokens with it.
        plain_text: What they say.
        steered_text: What they say.
        layer: Where it was added.
        vector_length: Length of the difference.
        stream_length: Length of the stream at the prompt's last token there.
        finished: Whether both are complete.
    """

    plain: tuple[WrittenToken, ...]
    steered: tuple[WrittenToken, ...]
    plain_text: str
    steered_text: str
    layer: int
    vector_length: float
    stream_length: float
    finished: bool


def steering_vector(
    loaded: LoadedModel,
    towards: str,
    away: str,
    layer: int,
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Any:
    """The difference of two texts in the stream after a layer, at their last tokens, (D,).

    Args:
        loaded: Any decoder.
        towards: What the answer shall be more like.
        away: What it shall be less like.
        layer: From 0.
        turn: Entered for each forward pass.

    Raises:
        ConfigError: A text is empty.
        ContextError: A text is too long.
    """
    return _stream(loaded, read_prompt(loaded, towards), layer, turn) - _stream(
        loaded, read_prompt(loaded, away), layer, turn
    )


def _stream(loaded: LoadedModel, ids: list[int], layer: int, turn: Callable[[], Any]) -> Any:
    import torch

    from models.trace import Trace

    trace = Trace(record=(f"blocks.{layer}.resid_post",))
    with turn(), torch.inference_mode():
        row = torch.tensor([ids], device=loaded.model.device)
        loaded.model(row, trace=trace, last_only=True)
    return trace[f"blocks.{layer}.resid_post"][0, -1]


def stream_steering(
    loaded: LoadedModel,
    prompt: str,
    towards: str,
    away: str,
    settings: SteerSettings | None = None,
    *,
    chat: bool = False,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[Steered]:
    """Write two answers, one of them steered, token by token.

    Args:
        loaded: Any decoder with its tokenizer.
        prompt: What to go on with.
        towards: What the answer shall be more like.
        away: What it shall be less like.
        settings: Where, how hard, and how tokens are chosen.
        chat: Whether the prompt is a message that the model answers.
        turn: Entered for each forward pass; where several share a device, it makes them wait.

    Yields:
        Both answers, one token longer each time: first the plain one, then the other.

    Raises:
        ConfigError: A text is empty, or there is no such layer.
        ContextError: A text is too long.
    """
    from models.interventions import Interventions, Steer

    settings = settings or SteerSettings()
    n_layers = loaded.config.n_layers
    layer = n_layers // 2 if settings.layer == -1 else settings.layer
    if not 0 <= layer < n_layers:
        raise ConfigError(
            f"there is no layer {layer}; choose 0 to {n_layers - 1}",
            code="index-range-layer",
            index=layer,
            last=n_layers - 1,
        )
    ids = read_prompt(loaded, prompt, chat=chat)
    vector = steering_vector(loaded, towards, away, layer, turn=turn)
    there = float(_stream(loaded, ids, layer, turn).float().norm())
    steer = Steer(name=f"blocks.{layer}.resid_post", vector=vector, strength=settings.strength)
    found: list[list[WrittenToken]] = [[], []]
    dials = SamplingSettings(temperature=settings.temperature, seed=settings.seed)
    for which, changes in enumerate((None, Interventions(changes=(steer,)))):
        length = settings.max_new_tokens
        for token in write_on(
            loaded, ids, dials, max_new_tokens=length, turn=turn, changes=changes
        ):
            found[which].append(token)
            yield _both(loaded, found, layer, float(vector.float().norm()), there, False)
    yield _both(loaded, found, layer, float(vector.float().norm()), there, True)


def _both(
    loaded: LoadedModel,
    found: list[list[WrittenToken]],
    layer: int,
    vector_length: float,
    stream_length: float,
    finished: bool,
) -> Steered:
    texts = [loaded.tokenizer.decode([token.id for token in tokens]) for tokens in found]
    return Steered(
        plain=tuple(found[0]),
        steered=tuple(found[1]),
        plain_text=texts[0],
        steered_text=texts[1],
        layer=layer,
        vector_length=vector_length,
        stream_length=stream_length,
        finished=finished,
    )
