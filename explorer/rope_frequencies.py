"""Frequencies and wavelengths of rotary positions, plain and scaled, of any configuration.

    frequency(i)  = base ** (-2 i / d_head)          radians a token, pair i
    wavelength(i) = 2 pi / frequency(i)              tokens for one whole turn

Su et al. 2021 (arXiv 2104.09864), section 3.2.2; the scalings are those of `models/rope.py`. Only
the d_head / 2 frequencies are computed, never a table over positions, so that a context of ten
million tokens costs nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError
from models.config import ModelConfig
from models.registry import get_preset, presets
from models.rope_config import (
    DynamicNtkScaling,
    LinearScaling,
    Llama3Scaling,
    RopeConfig,
    RopeScaling,
    YarnScaling,
)

ScalingKind = Literal["none", "linear", "dynamic", "llama3", "yarn"]
Region = Literal["kept", "blended", "divided"]
MOST_D_HEAD = 8_192  # sixteen times the widest published head
MOST_BASE = 1e30  # beyond it float32 has no frequencies left
MOST_TOKENS = 10**12
SAME = 1e-6  # relative; float32 frequencies differ by less when nothing was done to them


@dataclass(frozen=True, kw_only=True)
class RopeSettings:
    """A rotation, with every parameter of every scaling.

    Args:
        base: Base of the frequencies.
        d_head: Numbers of a query or key that are rotated.
        scaling: Which scaling; the parameters of the others count for nothing.
        factor: Low frequencies are divided by it, or the base grows with it.
        original_context: Tokens of pre-training.
        length: Tokens that are to be read now.
        low_frequency_factor: Of `llama3`: wavelengths above original_context / this are divided.
        high_frequency_factor: Of `llama3`: wavelengths below original_context / this are kept.
        beta_fast: Of `yarn`: pairs with more turns over the original context are kept.
        beta_slow: Of `yarn`: pairs with fewer turns are divided.
        attention_factor: Of `yarn`: on queries and keys; 0 stands for 0.1 ln(factor) + 1.
        truncate: Of `yarn`: whether the borders of the blend are whole pairs.
    """

    base: float = 500_000.0
    d_head: int = 64
    scaling: str = field(
        default="llama3", metadata={"choices": get_args(ScalingKind), "dial": True}
    )
    factor: float = field(default=32.0, metadata={"least": 0.5, "most": 64.0, "step": 0.5})
    original_context: int = 8_192
    length: int = 131_072
    low_frequency_factor: float = field(
        default=1.0, metadata={"least": 0.25, "most": 16.0, "step": 0.25}
    )
    high_frequency_factor: float = field(
        default=4.0, metadata={"least": 0.5, "most": 64.0, "step": 0.5}
    )
    beta_fast: float = field(default=32.0, metadata={"least": 1.0, "most": 128.0, "step": 1.0})
    beta_slow: float = field(default=1.0, metadata={"least": 0.25, "most": 32.0, "step": 0.25})
    attention_factor: float = field(default=0.0, metadata={"least": 0.0, "most": 2.0, "step": 0.01})
    truncate: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class RopeFrequencies:
    """What a scaling does to each pair.

    Args:
        plain: (pairs,) radians a token without scaling.
        scaled: (pairs,) radians a token with it.
        regions: For each pair what was done to it.
        attention_factor: On turned queries and on turned keys; scores carry its square.
    """

    plain: NDArray[np.float64]
    scaled: NDArray[np.float64]
    regions: tuple[Region, ...]
    attention_factor: float

    @property
    def plain_wavelengths(self) -> NDArray[np.float64]:
        """(pairs,) tokens a turn without scaling."""
        return 2 * np.pi / self.plain

    @property
    def scaled_wavelengths(self) -> NDArray[np.float64]:
        """(pairs,) tokens a turn with it."""
        return 2 * np.pi / self.scaled

    def pairs_of(self, region: Region) -> tuple[int, ...]:
        """Numbers of the pairs of one region."""
        return tuple(i for i, found in enumerate(self.regions) if found == region)


def compute_rope_frequencies(settings: RopeSettings) -> RopeFrequencies:
    """Compute the frequency of each pair, plain and scaled.

    Args:
        settings: The rotation.

    Raises:
        ConfigError: A value that no rotation has: an odd head, a base below 1, a factor below 1.
    """
    from models.rope import inverse_frequencies

    check_rope_settings(settings)
    rope = to_rope_config(settings)
    plain = inverse_frequencies(replace(rope, scaling=None), settings.d_head).double().numpy()
    scaled = inverse_frequencies(rope, settings.d_head, settings.length).double().numpy()
    yarn = rope.scaling if isinstance(rope.scaling, YarnScaling) else None
    return RopeFrequencies(
        plain=plain,
        scaled=scaled,
        regions=tuple(_region(ratio, settings.factor) for ratio in scaled / plain),
        attention_factor=1.0 if yarn is None else yarn.query_key_factor,
    )


def _region(ratio: float, factor: float) -> Region:
    if abs(ratio - 1) < SAME:
        return "kept"
    return "divided" if abs(ratio * factor - 1) < SAME * 10 else "blended"


def to_rope_config(settings: RopeSettings) -> RopeConfig:
    """The configuration of that rotation.

    Raises:
        ConfigError: Its parameters do not go together.
    """
    return RopeConfig(theta=float(settings.base), scaling=_scaling_of(settings))


def _scaling_of(settings: RopeSettings) -> RopeScaling | None:
    original = settings.original_context
    if settings.scaling == "linear":
        return LinearScaling(factor=settings.factor)
    if settings.scaling == "dynamic":
        return DynamicNtkScaling(factor=settings.factor, original_context=original)
    if settings.scaling == "llama3":
        return Llama3Scaling(
            factor=settings.factor,
            low_frequency_factor=settings.low_frequency_factor,
            high_frequency_factor=settings.high_frequency_factor,
            original_context=original,
        )
    if settings.scaling == "yarn":
        return YarnScaling(
            factor=settings.factor,
            original_context=original,
            beta_fast=settings.beta_fast,
            beta_slow=settings.beta_slow,
            attention_factor=settings.attention_factor or None,
            truncate=settings.truncate,
        )
    return None


# ------------------------------------------------------------------------------------ checks
def check_rope_settings(settings: RopeSettings) -> None:
    """Refuse what no rotation can be made of.

    Raises:
        ConfigError: Says which value, and what to choose.
    """
    check_width(settings.d_head)
    check_base(settings.base)
    for name in ("original_context", "length"):
        _check_tokens(name, getattr(settings, name))
    if settings.scaling not in get_args(ScalingKind):
        known = ", ".join(get_args(ScalingKind))
        raise ConfigError(
            f"scaling={settings.scaling!r} is unknown; choose {known}",
            code="run-choice",
            name="scaling",
            found=settings.scaling,
            known=known,
        )
    if settings.scaling == "none":
        return
    if not settings.factor >= 1:
        raise ConfigError(
            f"factor={settings.factor:g} would make the context shorter; choose at least 1, "
            "which changes nothing",
            code="rope-factor",
            found=f"{settings.factor:g}",
        )
    _check_borders(settings)


def check_width(d_head: object) -> None:
    """Refuse a head that cannot be cut into pairs.

    Raises:
        ConfigError: It is odd, below 2, above `MOST_D_HEAD` or no whole number.
    """
    if isinstance(d_head, int) and not d_head % 2 and 2 <= d_head <= MOST_D_HEAD:
        return
    raise ConfigError(
        f"d_head={d_head!r} cannot be cut into pairs; choose an even number from 2 to "
        f"{MOST_D_HEAD}, 64 and 128 are usual",
        code="rope-width",
        found=d_head,
        most=MOST_D_HEAD,
    )


def check_base(base: float) -> None:
    """Refuse a base without falling frequencies.

    Raises:
        ConfigError: It is not above 1, or above 1e30.
    """
    if 1 < base <= MOST_BASE:  # NaN is not, either
        return
    raise ConfigError(
        f"base={base:g} gives no falling frequencies; choose a number above 1 and up to "
        f"{MOST_BASE:g}, 10000 and 500000 are usual",
        code="rope-base",
        found=f"{base:g}",
    )


def _check_tokens(name: str, count: object) -> None:
    if isinstance(count, int) and 1 <= count <= MOST_TOKENS:
        return
    raise ConfigError(
        f"{name}={count!r} is no number of tokens; choose a whole number from 1 to {MOST_TOKENS}",
        code="rope-tokens",
        name=name,
        found=count,
    )


def _check_borders(settings: RopeSettings) -> None:
    """The border of what is kept has to lie on the right side of that of what is divided."""
    pairs = {
        "llama3": ("low_frequency_factor", "high_frequency_factor"),
        "yarn": ("beta_slow", "beta_fast"),
    }
    if settings.scaling not in pairs:
        return
    low, high = pairs[settings.scaling]
    below, above = getattr(settings, low), getattr(settings, high)
    if not below < above:
        raise ConfigError(
            f"{low}={below:g} has to be below {high}={above:g}; lower the first or raise the other",
            code="rope-borders",
            low=low,
            below=f"{below:g}",
            high=high,
            above=f"{above:g}",
        )


# ------------------------------------------------------------------------------------ presets
def rope_presets() -> Mapping[str, RopeSettings]:
    """The rotations of all presets of real models, from their configurations.

    A model whose layer types rotate differently has an entry for each: "gemma3-4b, full".
    """
    return {
        label: found
        for name, config in presets().items()
        for label, found in rope_settings_of(config, name).items()
    }


def rope_settings_of(config: ModelConfig, name: str) -> Mapping[str, RopeSettings]:
    """The rotations of one model; empty when it has none.

    Args:
        config: The model.
        name: What to call it.
    """
    differ = len(set(config.rope.values())) > 1
    ropes = config.rope if differ else dict(list(config.rope.items())[:1])
    return {
        f"{name}, {layer_type}" if differ else name: to_rope_settings(
            rope, config.rotary_width, config.context_length
        )
        for layer_type, rope in ropes.items()
    }


def get_rope_preset(label: str) -> RopeSettings:
    """The rotation of a preset, as `rope_presets` names it.

    Raises:
        ConfigError: There is none of that name.
    """
    found = rope_presets()
    if label not in found:
        get_preset(label)  # an unknown name is refused with the closest ones
        raise ConfigError(f"{label!r} has no rotary positions; choose another model")
    return found[label]


def to_rope_settings(rope: RopeConfig, d_head: int, context: int) -> RopeSettings:
    """The settings that describe a configuration.

    Args:
        rope: Base and scaling.
        d_head: Numbers that are rotated.
        context: Tokens that the model is made for.
    """
    scaling = rope.scaling
    first = RopeSettings(
        base=rope.theta, d_head=d_head, scaling="none", length=context, original_context=context
    )
    if isinstance(scaling, LinearScaling):
        original = max(1, math.floor(context / scaling.factor))
        return replace(first, scaling="linear", factor=scaling.factor, original_context=original)
    if isinstance(scaling, DynamicNtkScaling):
        first = replace(first, scaling="dynamic")
    if isinstance(scaling, Llama3Scaling):
        first = replace(
            first,
            scaling="llama3",
            low_frequency_factor=scaling.low_frequency_factor,
            high_frequency_factor=scaling.high_frequency_factor,
        )
    if isinstance(scaling, YarnScaling):
        first = replace(
            first,
            scaling="yarn",
            beta_fast=scaling.beta_fast,
            beta_slow=scaling.beta_slow,
            attention_factor=scaling.attention_factor or 0.0,
            truncate=scaling.truncate,
        )
    if scaling is None:
        return first
    return replace(first, factor=scaling.factor, original_context=scaling.original_context)
