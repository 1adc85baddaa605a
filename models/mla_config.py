"""Which multi-head latent attention: the widths of its latents, and whether positions come in.

The computation is in `models/mla.py`. Names are those of DeepSeek's configurations, under which
papers and checkpoints give these numbers; `qk_nope_head_dim` is what is left of a head:
`AttentionConfig.d_head` - `qk_rope_head_dim`.
"""

from dataclasses import dataclass

from models.errors import ConfigError

LEAST_LATENT = 16  # of the plain form, whatever the model's width
MODEL_WIDTHS_PER_LATENT = 8


@dataclass(frozen=True, kw_only=True)
class MlaConfig:
    """Multi-head latent attention (DeepSeek-V2 2024, arXiv 2405.04434, section 2.1).

    As it stands, the plain form: keys and values are read from one latent vector a token, no
    positions inside; it goes with learned positions. DeepSeek's form has `qk_rope_head_dim` above
    0 and `latent_norm`.

    Args:
        kv_lora_rank: Width of the latent that is cached; None is max(16, d_model / 8).
        q_lora_rank: Width of a second latent that queries are read from; None reads them from the
            stream.
        qk_rope_head_dim: Numbers of each query, and of the one key that all heads share, that are
            rotated by position ("decoupled RoPE", section 2.1.3).
        v_head_dim: Width of a value; None is d_head.
        latent_norm: Normalise the latents.
        latent_norm_eps: Epsilon of these norms; None is that of the stream's.
        neighbouring_pairs: The rotated numbers lie as (x0 y0 x1 y1 ...), as DeepSeek's own weights
            have them (`rope_interleave`), not as halves (x0 x1 ... y0 y1 ...).
    """

    kv_lora_rank: int | None = None
    q_lora_rank: int | None = None
    qk_rope_head_dim: int = 0
    v_head_dim: int | None = None
    latent_norm: bool = False
    latent_norm_eps: float | None = None
    neighbouring_pairs: bool = False

    def __post_init__(self) -> None:
        for name in ("kv_lora_rank", "q_lora_rank", "v_head_dim"):
            width = getattr(self, name)
            if width is not None and width < 1:
                raise ConfigError(f"MlaConfig: {name}={width!r} must be at least 1, or None")
        if self.qk_rope_head_dim < 0 or self.qk_rope_head_dim % 2:
            raise ConfigError(
                f"MlaConfig: qk_rope_head_dim={self.qk_rope_head_dim!r} must be even (rope turns "
                "pairs of numbers) and at least 0"
            )

    def latent_width(self, d_model: int) -> int:
        """Width of the cached latent in a model of that width."""
        if self.kv_lora_rank is not None:
            return self.kv_lora_rank
        return max(LEAST_LATENT, d_model // MODEL_WIDTHS_PER_LATENT)
