"""Configurations of encoder-decoders: sizes against the paper and the tensors, what is refused."""

from dataclasses import replace

import pytest
import torch

from models.encoder_decoder import EncoderDecoder
from models.encoder_decoder_config import (
    ENCODER_DECODERS,
    EncoderDecoderConfig,
    count_encoder_decoder,
)
from models.errors import ConfigError

TINY = ENCODER_DECODERS["transformer-tiny"]
SHARED = TINY
SEPARATE = EncoderDecoderConfig(
    encoder=replace(
        TINY.encoder,
        vocab_size=89,
        attention=replace(TINY.encoder.attention, qkv_bias=True, out_bias=True),
        layer_types=("full",) * 3,
    ),
    decoder=replace(TINY.decoder, vocab_size=97, tied_head=False),
    shared_embedding=False,
)


def test_the_base_model_has_the_size_of_the_paper():
    """Table 3: 65 million, with "about 37000" tokens; the sum of its matrices is 63.0 million."""
    count = count_encoder_decoder(ENCODER_DECODERS["transformer-base"])
    d, f = 512, 2_048
    encoder_block = 4 * d * d + 2 * d * f + f + d + 2 * 2 * d
    decoder_block = 8 * d * d + 2 * d * f + f + d + 3 * 2 * d
    assert count.unique == 37_000 * d + 6 * (encoder_block + decoder_block) == 63_045_632


@pytest.mark.parametrize(
    "config", [SEPARATE, SHARED, *ENCODER_DECODERS.values()], ids=["own", "shared", "base", "tiny"]
)
def test_counts_equal_those_of_the_tensors(config):
    with torch.device("meta"):
        model = EncoderDecoder(config)
    count = count_encoder_decoder(config)
    assert count.unique == sum(p.numel() for p in model.parameters()) == sum(count.parts.values())
    norms = sum(p.numel() for name, p in model.named_parameters() if "norm" in name)
    assert count.parts["norms"] == norms


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (lambda c: replace(c, decoder=replace(c.decoder, d_model=62)), "one d_model"),
        (lambda c: replace(c, encoder=replace(c.encoder, vocab_size=90)), "shared_embedding=False"),
        (lambda c: replace(c, decoder=replace(c.decoder, tied_head=False)), "tied_head=True"),
        (lambda c: replace(c, encoder=replace(c.encoder, norm_position="pre")), "post_residual"),
        (lambda c: replace(c, decoder=replace(c.decoder, positions="learned")), "sinusoidal"),
    ],
)
def test_what_does_not_go_together_is_refused(change, remedy):
    with pytest.raises(ConfigError, match=remedy):
        change(SHARED)
