"""Which rotation: base and, for contexts longer than those trained on, how frequencies are scaled.

Each scaling is a type of its own with just its parameters; what it does to the frequencies is in
`models/rope.py`.
"""

import math
from dataclasses import dataclass
from typing import Any, NoReturn

from models.errors import ConfigError


def _require_factor(owner: str, factor: float) -> None:
    if not factor >= 1:
        raise ConfigError(f"{owner}: factor={factor!r} must be at least 1; 1 changes nothing")


class FrozenTable(dict[Any, Any]):
    """A mapping that stays as it was made, and that can be copied and stored like a dict."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a configuration cannot be changed; make another with dataclasses.replace")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = _refuse
    __ior__ = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[Any, Any]]]:
        return type(self), (dict(self),)


@dataclass(frozen=True, kw_only=True)
class LinearScaling:
    """Position interpolation (Chen et al. 2023, arXiv 2306.15595): every frequency / factor."""

    factor: float

    def __post_init__(self) -> None:
        _require_factor("LinearScaling", self.factor)


@dataclass(frozen=True, kw_only=True)
class DynamicNtkScaling:
    """A base that grows with the text (bloc97 and emozilla 2023, described in arXiv 2309.00071).

    The table changes as the text grows, so a text read whole and the same text read token by token
    through a cache differ by design: cached keys were turned by an earlier table.

    Args:
        factor: How fast the base grows.
        original_context: Up to this many tokens nothing changes.
    """

    factor: float
    original_context: int

    def __post_init__(self) -> None:
        _require_factor("DynamicNtkScaling", self.factor)


@dataclass(frozen=True, kw_only=True)
class Llama3Scaling:
    """Llama 3.1's rescaling (Grattafiori et al. 2024, arXiv 2407.21783, section 3.2).

    Args:
        factor: Low frequencies are divided by it.
        low_frequency_factor: Wavelengths above original_context / this are divided.
        high_frequency_factor: Wavelengths below original_context / this are kept.
        original_context: Context of pre-training.
    """

    factor: float
    low_frequency_factor: float
    high_frequency_factor: float
    original_context: int

    def __post_init__(self) -> None:
        _require_factor("Llama3Scaling", self.factor)
        if not self.low_frequency_factor < self.high_frequency_factor:
            raise ConfigError(
                f"Llama3Scaling: low_frequency_factor={self.low_frequency_factor!r} must be below "
                f"high_frequency_factor={self.high_frequency_factor!r}; 1 and 4 are usual"
            )


@dataclass(frozen=True, kw_only=True)
class YarnScaling:
    """YaRN (Peng et al. 2023, arXiv 2309.00071): interpolate low frequencies, keep high ones.

    Args:
        factor: Low frequencies are divided by it.
        original_context: Context of pre-training.
        beta_fast: Pairs that turn more often than this over the original context are kept.
        beta_slow: Pairs that turn less often than this are divided.
        attention_factor: Factor on queries and keys; None is 0.1 ln(factor) + 1 (eq. 22).
        truncate: Whether the borders of the blend are rounded to whole pairs.
    """

    factor: float
    original_context: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    truncate: bool = True

    def __post_init__(self) -> None:
        _require_factor("YarnScaling", self.factor)
        if not self.beta_slow < self.beta_fast:
            raise ConfigError(
                f"YarnScaling: beta_slow={self.beta_slow!r} must be below "
                f"beta_fast={self.beta_fast!r}; 1 and 32 are usual"
            )

    @property
    def query_key_factor(self) -> float:
        """The attention factor in force."""
        if self.attention_factor is not None:
            return self.attention_factor
        return 0.1 * math.log(self.factor) + 1.0


RopeScaling = LinearScaling | DynamicNtkScaling | Llama3Scaling | YarnScaling


@dataclass(frozen=True, kw_only=True)
class RopeConfig:
    """Rotary position embedding (Su et al. 2021, arXiv 2104.09864).

    Args:
        theta: Base of the frequencies: pair i turns by theta ** (-2i / d_head) radians a token.
            10,000 in the paper, 500,000 in Llama 3, 100,000 in SmolLM2.
        scaling: How frequencies are changed for longer contexts; None leaves them.
    """

    theta: float = 10_000.0
    scaling: RopeScaling | None = None

    def __post_init__(self) -> None:
        if not self.theta > 1:
            raise ConfigError(f"RopeConfig: theta={self.theta!r} must be above 1; 10000 is usual")
