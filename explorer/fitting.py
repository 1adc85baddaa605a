"""Whether a model fits into memory, before anything of its weights is read or downloaded.

    |------------- weights -------------|- largest matrix while reading, or one text -|   available
                                        |                                             |
                 too large, if this is beyond          tight, if this is              fits

A text needs the keys and values of its tokens and one row of logits. Everything is counted from the
configuration (models/costs.py): of a folder, the header of a GGUF file, or a preset.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from models.config import ModelConfig

Verdict = Literal["fits", "tight", "too large"]
TEXT_TOKENS = 2_048  # a long chat; of models that read less, all that they read
_FLOAT_BYTES = 4  # a matrix passes through float32 while it is read, logits are float32


@dataclass(frozen=True)
class FitEstimate:
    """What a model needs beside what there is.

    Args:
        verdict: `too large`: not even the weights have room. `tight`: they have, but reading them
            or a long text may not.
        weight_bytes: Of the weights alone.
        needs_bytes: With what reading them or a text of `TEXT_TOKENS` takes besides.
        available_bytes: Memory that there is for it.
    """

    verdict: Verdict
    weight_bytes: int
    needs_bytes: int
    available_bytes: int

    def as_loaded(self) -> "FitEstimate":
        """The same of a model that is in memory: it fits, whatever room there is for more."""
        available = max(self.available_bytes, self.needs_bytes)
        return replace(self, verdict="fits", available_bytes=available)


def estimate_fit(config: "ModelConfig", dtype: str, available_bytes: int) -> FitEstimate:
    """Compare what a model needs with the memory that there is.

    Args:
        config: The model.
        dtype: Number format of its weights, such as `int8`.
        available_bytes: Memory that there is for it.

    Raises:
        ConfigError: The format is unknown.
    """
    from models.costs import count_cache_bytes, count_weight_bytes

    weights = count_weight_bytes(config, dtype)
    n_tokens = min(TEXT_TOKENS, config.context_length)
    text = count_cache_bytes(config, n_tokens, dtype).total + config.vocab_size * _FLOAT_BYTES
    needs = weights + max(text, _largest_matrix(config) * _FLOAT_BYTES)
    verdict: Verdict = "fits"
    if needs > available_bytes:
        verdict = "tight" if weights <= available_bytes else "too large"
    return FitEstimate(verdict, weights, needs, available_bytes)


def find_config(source: str) -> "ModelConfig | None":
    """The configuration of a source, as far as it is known with no network.

    Args:
        source: Name of a preset, catalogue id, folder, file, or Hub id in the local cache.

    Returns:
        None for what would have to be fetched.

    Raises:
        ExplorerError: The files are there and cannot be used.
    """
    from models.registry import CATALOGUE, presets
    from models.sources import find_local

    known = presets()
    if source in known:
        return known[source]
    if source in CATALOGUE:
        return known[CATALOGUE[source].preset]
    local = find_local(source)
    if local is None:
        return None
    from models.loading import load_config  # late: it needs torch, presets do not

    return load_config(local)


def _largest_matrix(config: "ModelConfig") -> int:
    """Numbers of the embedding or of one matrix of a feed-forward, whichever is more."""
    d_ff = config.ffn.d_ff if config.moe is None else config.moe.d_ff
    return config.d_model * max(config.vocab_size, d_ff)
