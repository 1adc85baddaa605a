"""Parameters of multi-head latent attention, in closed form.

queries     D H d, or D Q + Q H d through a latent of Q
keys        D C to the latent of C, C H (d - r) from it, D r for the rotated key
values      C H v
output      H v D
norms       C and Q, where the latents are normalised
"""

from models.config import ModelConfig
from models.mla_config import MlaConfig


def mla_parameters(config: ModelConfig, mla: MlaConfig) -> int:
    """Of the projections of one layer, biases included."""
    heads, width = config.attention, config.d_model
    latent, rotary = mla.latent_width(width), mla.qk_rope_head_dim
    all_queries = heads.n_heads * heads.d_head
    all_values = heads.n_heads * (mla.v_head_dim or heads.d_head)
    first = all_queries if mla.q_lora_rank is None else mla.q_lora_rank  # read from the stream
    from_latents = 0 if mla.q_lora_rank is None else mla.q_lora_rank * all_queries
    from_latents += latent * (heads.n_heads * (heads.d_head - rotary) + all_values)
    from_stream = first + latent + rotary
    biases = from_stream * heads.qkv_bias + width * heads.out_bias
    return width * from_stream + from_latents + all_values * width + biases


def mla_normalised_widths(config: ModelConfig, mla: MlaConfig) -> tuple[int, ...]:
    """Widths of the vectors that one layer normalises."""
    if not mla.latent_norm:
        return ()
    latent = mla.latent_width(config.d_model)
    return (latent,) if mla.q_lora_rank is None else (latent, mla.q_lora_rank)
