"""The 2017 Transformer's weights under the names of `torch.nn.Transformer`, and back.

Vaswani et al. 2017, arXiv 1706.03762. PyTorch's module holds the two stacks; embeddings and the
output layer stand beside it, and are called here

    source_embed.weight   target_embed.weight (none when shared)   head.weight (none when tied)

Its layers keep queries, keys and values in one matrix, and number their norms: 1 follows
self-attention, the last one the feed-forward; the decoder's 2 follows cross-attention. A norm after
each stack, which PyTorch adds by default, is not in the paper, and no rule takes it.

Presets are in `models/encoder_decoder_config.py`; there is no config.json to read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from models.config import ModelConfig
from models.encoder_decoder_config import EncoderDecoderConfig
from models.weight_rules import SPLIT_QKV, RuleTable, WeightRule, load_weights, save_weights

if TYPE_CHECKING:
    from torch import Tensor

    from models.encoder_decoder import EncoderDecoder


def rules(config: EncoderDecoderConfig) -> RuleTable:
    """All rows, for both stacks."""
    rows = [WeightRule("source_embed.weight", "source_embed.weight")]
    if not config.shared_embedding:
        rows.append(WeightRule("target_embed.weight", "target_embed.weight"))
    if not config.decoder.tied_head:
        rows.append(WeightRule("head.weight", "head.weight"))
    encoder_norms = ("attn_norm", "ffn_norm")
    decoder_norms = ("attn_norm", "cross_attn_norm", "ffn_norm")
    attentions = {"self_attn": "attn", "multihead_attn": "cross_attn"}
    for kind in ("weight", "bias"):
        rows += _stack_rules("encoder", kind, {"self_attn": "attn"}, encoder_norms)
        rows += _stack_rules("decoder", kind, attentions, decoder_norms)
    return RuleTable(tuple(rows))


def _stack_rules(
    stack: str, kind: str, attentions: Mapping[str, str], norms: tuple[str, ...]
) -> list[WeightRule]:
    """Rows of the weights or of the biases of one stack."""
    theirs, ours = f"{stack}.layers.{{i}}", f"{stack}_blocks.{{i}}"
    parts = {"linear1": "ffn.up_proj", "linear2": "ffn.down_proj"}
    parts |= {f"{their}.out_proj": f"{our}.o_proj" for their, our in attentions.items()}
    parts |= {f"norm{number}": norm for number, norm in enumerate(norms, start=1)}
    rows = [WeightRule(f"{theirs}.{t}.{kind}", f"{ours}.{o}.{kind}") for t, o in parts.items()]
    for their, our in attentions.items():
        qkv = tuple(f"{ours}.{our}.{part}_proj.{kind}" for part in "qkv")
        rows.append(WeightRule(f"{theirs}.{their}.in_proj_{kind}", qkv, (SPLIT_QKV,)))
    return rows


class _InMemory:
    """Tensors that are there already, as `load_weights` reads a file."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors

    def names(self) -> tuple[str, ...]:
        return tuple(self._tensors)

    def tensor(self, name: str) -> Tensor:
        return self._tensors[name]


def load_from_pytorch(
    config: EncoderDecoderConfig, tensors: Mapping[str, Tensor]
) -> EncoderDecoder:
    """A model with the weights of a `torch.nn.Transformer`, in float32.

    Args:
        config: What it is; heads and widths of both stacks.
        tensors: Its state dict, and the embeddings under the names above.

    Raises:
        WeightError: Names or shapes do not fit; lists them.
    """
    import torch

    from models.encoder_decoder import EncoderDecoder

    with torch.device("meta"):
        model = EncoderDecoder(config)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    state = load_weights(
        rules(config), _InMemory(tensors), shapes, config.decoder, lambda _, t: t.float()
    )
    model.load_state_dict(state, assign=True)
    return model


def save_for_pytorch(model: EncoderDecoder) -> dict[str, Tensor]:
    """The inverse: our parameters under PyTorch's names."""
    both = (model.config.encoder, model.config.decoder)
    deeper: ModelConfig = max(both, key=lambda side: side.n_layers)
    return save_weights(rules(model.config), dict(model.named_parameters()), deeper)
