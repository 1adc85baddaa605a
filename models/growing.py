"""Gives a model rows for new tokens: the old rows stay, bit for bit.

    embedding (V, D)  ->  (V + n, D)     head (V, D)  ->  (V + n, D), or tied to the embedding as
                                         before

What a new row starts from:

    mean    the mean of all old rows, so that the new token is likely as an average one is (Hewitt
            2021, "Initializing New Word Embeddings for Pretrained Language Models"); without its
            noise, so that the numbers can be checked
    normal  drawn from N(0, s), s as large as the spread of the old rows
    zero    zeros: a logit of 0, which may be larger than all others

Everything else is shared with the old model and takes no memory again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from models.decoder import Decoder
from models.errors import ConfigError
from models.lora import MergedWeights

NewRows = Literal["mean", "normal", "zero"]


def grow_vocabulary(
    model: Decoder, vocab_size: int, *, rows: NewRows, generator: torch.Generator
) -> Decoder:
    """Make a model with a larger vocabulary; the old one stays as it is.

    Args:
        model: A decoder whose weights are floats.
        vocab_size: Rows of the new one; as many as the old one has, or more.
        rows: What new rows start from.
        generator: Draws them where they are random.

    Returns:
        The larger decoder; it shares all other weights with `model`.

    Raises:
        ConfigError: Fewer rows than there are, an unknown start, or weights in 8 bits.
    """
    if vocab_size < model.config.vocab_size:
        raise ConfigError(
            f"vocab_size={vocab_size} would drop rows of {model.config.vocab_size}; choose as many "
            "or more",
            code="grow-smaller",
            asked=vocab_size,
            found=model.config.vocab_size,
        )
    if rows not in get_args(NewRows):
        known = ", ".join(get_args(NewRows))
        raise ConfigError(
            f"rows={rows!r} is unknown; choose {known}",
            code="run-choice",
            name="rows",
            found=rows,
            known=known,
        )
    if not isinstance(model.embed, nn.Embedding):
        raise ConfigError(
            "the weights of this model are in 8 bits; open it in float32 to give it more rows",
            code="grow-int8",
        )
    with torch.device("meta"):
        grown = Decoder(replace(model.config, vocab_size=vocab_size))
    weights = dict(MergedWeights(model))
    for name in ("embed.weight", "head.weight"):
        if name in weights:
            weights[name] = _grow(weights[name], vocab_size, rows, generator)
    grown.load_state_dict(weights, assign=True)
    return grown.requires_grad_(False).eval()


def _grow(weight: Tensor, n_rows: int, rows: NewRows, generator: torch.Generator) -> Tensor:
    """The old rows and the new ones below them."""
    n_new = n_rows - len(weight)
    if rows == "mean":
        new = weight.mean(dim=0, keepdim=True, dtype=torch.float32).expand(n_new, -1)
    elif rows == "normal":
        shape = (n_new, weight.shape[1])
        new = torch.randn(shape, generator=generator).to(weight.device) * weight.float().std()
    else:
        new = torch.zeros(n_new, weight.shape[1], device=weight.device)
    return torch.cat([weight, new.to(weight.dtype)])
