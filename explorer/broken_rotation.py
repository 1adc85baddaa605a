"""A model read with another rotation than its own: what breaks, position by position.

    pairing     neighbours are rotated in weights stored as split halves
    linear      every position divided by a factor, in place of the model's own frequencies
    dynamic     a base that grows with the text: meant for texts beyond the trained length
    yarn        low frequencies divided, high ones kept: meant for the same
    windows     the scaling of full layers on window layers too, which never look that far

Weights stay as they are; only the angles differ. The loss of each token tells from where on the
model is lost (Press et al. 2022, arXiv 2108.12409, figure 1, shows such curves beyond the trained
length).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError
from models.config import FULL, WINDOW, ModelConfig
from models.rope_config import (
    DynamicNtkScaling,
    LinearScaling,
    RopeConfig,
    RopeScaling,
    YarnScaling,
)

if TYPE_CHECKING:
    from torch import Tensor

    from models.decoder import Decoder
    from models.loading import LoadedModel
    from models.trace import Trace

WAYS = ("pairing", "linear", "dynamic", "yarn", "windows")
LEAST_TOKENS = 4
# Facts and questions; what is written after the last one shows whether the model found the fact.
FIRST_TEXT = (
    "It is a sunny afternoon. Tina is on the farm. Oliver has six sandwiches. Oliver is sitting in "
    "the field. Dan put on a green belt this morning. Oliver's best friend is Tina.\n"
    "Who has six sandwiches? Oliver has six sandwiches.\n"
    "Who is wearing a green belt? Dan is wearing a green belt.\n"
    "Where is Tina?"
)


@dataclass(frozen=True, kw_only=True)
class BrokenSettings:
    """How the text is read.

    Args:
        way: In place of the model's own rotation.
        factor: Of `linear`, `dynamic` and `yarn`.
        text: What is read; it is repeated until there are enough tokens.
        n_tokens: So many are read, the last of them.
        n_new: Tokens that are written after them.
    """

    way: str = field(default="pairing", metadata={"choices": WAYS, "dial": True})
    factor: float = field(default=2.0, metadata={"least": 1.0, "most": 16.0, "step": 0.5})
    text: str = field(default=FIRST_TEXT, metadata={"text": True})
    n_tokens: int = field(default=128, metadata={"least": 8, "most": 1_024, "step": 8})
    n_new: int = field(default=12, metadata={"least": 0, "most": 32, "step": 1})


@dataclass(frozen=True, kw_only=True, eq=False)
class BrokenReading:
    """Both readings of a text.

    Args:
        own: (T - 1,) loss of each token but the first with the model's own rotation, in nats.
        broken: (T - 1,) with the other.
        own_text: What the model writes after it, greedily.
        broken_text: The same with the other rotation.
        trained_length: Tokens that the model was made for.
    """

    own: NDArray[np.float32]
    broken: NDArray[np.float32]
    own_text: str
    broken_text: str
    trained_length: int

    @property
    def perplexities(self) -> tuple[float, float]:
        """Exp of the mean loss: own, broken."""
        return float(np.exp(self.own.mean())), float(np.exp(self.broken.mean()))

    @property
    def perplexities_beyond(self) -> tuple[float, float] | None:
        """The same of the tokens beyond the trained length; None where there are none."""
        own, broken = self.own[self.trained_length - 1 :], self.broken[self.trained_length - 1 :]
        return (float(np.exp(own.mean())), float(np.exp(broken.mean()))) if len(own) else None


def compute_broken_reading(
    loaded: LoadedModel,
    settings: BrokenSettings,
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> BrokenReading:
    """Read a text with the model's own rotation and with another.

    Args:
        loaded: A model with rotary positions.
        settings: How.
        turn: Entered for each forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: The model does not rotate, has no windows, or there is no text.
    """
    check_way(loaded, settings.way)
    ids = _repeat(loaded, settings.text, settings.n_tokens)
    own = _Reader(loaded.model, None, turn)
    model = with_rope(loaded.model, broken_rope(loaded.config, settings))
    pairing = settings.way == "pairing"
    broken = _Reader(model, _neighbours(loaded.config) if pairing else None, turn)
    decode = loaded.tokenizer.decode
    return BrokenReading(
        own=own.losses(ids),
        broken=broken.losses(ids),
        own_text=decode(own.write(ids, settings.n_new)),
        broken_text=decode(broken.write(ids, settings.n_new)),
        trained_length=loaded.config.context_length,
    )


def check_way(loaded: LoadedModel, way: str) -> None:
    """Refuse what this model cannot be read with.

    Raises:
        ConfigError: It does not rotate, it has no window layers, or there is no such way.
    """
    config, name = loaded.config, loaded.info.name
    if way not in WAYS:
        known = ", ".join(WAYS)
        raise ConfigError(
            f"way={way!r} is unknown; choose {known}",
            code="run-choice",
            name="way",
            found=way,
            known=known,
        )
    if config.positions != "rope" or config.mla is not None:
        raise ConfigError(
            f"{name} does not rotate its queries and keys; choose a Llama, Qwen, Gemma or Olmo",
            code="rope-missing",
            model=name,
        )
    if way == "windows" and (WINDOW not in config.layer_types or FULL not in config.rope):
        raise ConfigError(
            f"{name} has no window layers; choose a Gemma or an Olmo 3",
            code="rope-no-windows",
            model=name,
        )


def broken_rope(config: ModelConfig, settings: BrokenSettings) -> ModelConfig:
    """The configuration with the other rotation.

    Args:
        config: The model's own.
        settings: How.
    """
    if settings.way == "pairing":
        return config
    if settings.way == "windows":
        full = config.rope[FULL].scaling or _yarn(config, settings)
        ropes = {kind: replace(rope, scaling=full) for kind, rope in config.rope.items()}
        return replace(config, rope=ropes)
    scaling = _scaling(config, settings)
    ropes = {kind: replace(rope, scaling=scaling) for kind, rope in config.rope.items()}
    return replace(config, rope=ropes)


def _scaling(config: ModelConfig, settings: BrokenSettings) -> RopeScaling:
    if settings.way == "linear":
        return LinearScaling(factor=settings.factor)
    if settings.way == "dynamic":
        return DynamicNtkScaling(factor=settings.factor, original_context=config.context_length)
    return _yarn(config, settings)


def _yarn(config: ModelConfig, settings: BrokenSettings) -> YarnScaling:
    return YarnScaling(factor=settings.factor, original_context=config.context_length)


def with_rope(model: Decoder, config: ModelConfig) -> Decoder:
    """The same weights under another configuration; the model itself is left alone.

    Args:
        model: The model.
        config: Its own but for the rotation.
    """
    other = copy.copy(model)  # shares all weights: nothing is copied but the object
    other.config = config
    return other


def _neighbours(config: ModelConfig) -> Callable[[str, Tensor], Tensor]:
    """An edit of rotated queries or keys: turned back, and rotated with the wrong pairing."""
    import torch

    from models.rope import rope_tables, rotate

    def turn_again(rope: RopeConfig, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[2], device=x.device).expand(x.shape[0], -1)
        cosines, sines = rope_tables(rope, x.shape[-1], places)
        size = cosines.square() + sines.square()
        plain = rotate(x, cosines / size, -sines / size)
        order = torch.cat([torch.arange(0, x.shape[-1], 2), torch.arange(1, x.shape[-1], 2)])
        order = order.to(x.device)
        return rotate(plain[..., order], cosines, sines)[..., order.argsort()]

    return lambda kind, x: turn_again(config.rope[kind], x)  # type: ignore[index]


class _Reader:
    """Reads and writes with one rotation."""

    def __init__(
        self,
        model: Decoder,
        edit: Callable[[str, Tensor], Tensor] | None,
        turn: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._model, self._edit, self._turn = model, edit, turn

    def _trace(self) -> Trace | None:
        from models.trace import Trace

        edit = self._edit
        if edit is None:
            return None

        def of(kind: str) -> Callable[[Tensor], Tensor]:
            return lambda x: edit(kind, x)

        kinds = self._model.config.layer_types
        return Trace(
            edits={
                f"blocks.{i}.attn.{name}": of(kind) for i, kind in enumerate(kinds) for name in "qk"
            }
        )

    def losses(self, ids: list[int]) -> NDArray[np.float32]:
        """Loss of each token but the first, in nats."""
        import torch
        from torch.nn import functional

        row = torch.tensor([ids], device=self._model.device)
        with self._turn(), torch.inference_mode():
            logits = self._model(row, trace=self._trace())[0, :-1].float()
            losses = functional.cross_entropy(logits, row[0, 1:], reduction="none")
        return np.array(losses.cpu().numpy())

    def write(self, ids: list[int], n_new: int) -> list[int]:
        """The most probable next tokens, one by one; read anew each time, as edits see all."""
        import torch

        read = list(ids)
        for _ in range(n_new):
            row = torch.tensor([read], device=self._model.device)
            with self._turn(), torch.inference_mode():
                logits = self._model(row, trace=self._trace(), last_only=True)
            read.append(int(logits[0, -1].argmax()))
        return read[len(ids) :]


def _repeat(loaded: LoadedModel, text: str, n_tokens: int) -> list[int]:
    if not text:
        raise ConfigError("there is no text; type some", code="text-empty")
    wanted = max(n_tokens, LEAST_TOKENS)
    ids = loaded.tokenizer.encode(text)
    while len(ids) < wanted:
        text = f"{text}\n\n{text}"
        ids = loaded.tokenizer.encode(text)
    return list(ids[-wanted:])  # its end: what is written goes on from there
