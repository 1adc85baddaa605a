"""The weights of `torch.nn.Transformer` in our encoder-decoder: recorded logits, and back."""

import math
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from models import KVCache
from models.config import AttentionConfig
from models.encoder_decoder_config import ENCODER_DECODERS, EncoderDecoderConfig
from models.errors import WeightError
from models.families.transformer_2017 import load_from_pytorch, save_for_pytorch
from models.initialise import build_encoder_decoder

TINY = ENCODER_DECODERS["transformer-tiny"]
SIDE = replace(
    TINY.encoder,
    vocab_size=89,
    d_model=24,
    layer_types=("full",) * 3,
    attention=AttentionConfig(n_heads=6, n_kv_heads=6, d_head=4, qkv_bias=True, out_bias=True),
    ffn=replace(TINY.encoder.ffn, d_ff=40),
    embedding_scale=math.sqrt(24),
)
CONFIG = EncoderDecoderConfig(
    encoder=SIDE,
    decoder=replace(SIDE, vocab_size=97, layer_types=("full",) * 2, tied_head=False),
    shared_embedding=False,
)


@pytest.fixture
def recorded(golden_folder):
    folder = golden_folder / "encoder_decoder"
    return load_file(folder / "model.safetensors"), load_file(folder / "expected.safetensors")


def _close(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_logits_equal_the_recorded_ones_whole_and_token_by_token(recorded):
    weights, expected = recorded
    model = load_from_pytorch(CONFIG, weights).requires_grad_(False)
    source, target, valid = (expected[name] for name in ("source", "target", "source_valid"))
    assert float(expected["logits"].abs().max()) > 1
    _close(model(source, target, valid), expected["logits"])
    memory = model.encode(source, valid)
    cache = KVCache(CONFIG.decoder, 2, 7)
    steps = [model.decode(target[:, i : i + 1], memory, cache=cache) for i in range(7)]
    _close(torch.cat(steps, 1), expected["logits"])


def test_weights_go_back_to_the_same_names_and_numbers(recorded):
    weights, _ = recorded
    back = save_for_pytorch(load_from_pytorch(CONFIG, weights))
    assert back.keys() == weights.keys()
    for name, tensor in weights.items():
        torch.testing.assert_close(back[name], tensor.float(), atol=0, rtol=0)


def test_shared_embeddings_are_written_once():
    shared = EncoderDecoderConfig(
        encoder=SIDE, decoder=replace(SIDE, tied_head=True), shared_embedding=True
    )
    model = build_encoder_decoder(shared, torch.Generator().manual_seed(1))
    saved = save_for_pytorch(model)
    assert {n for n in saved if "layers" not in n} == {"source_embed.weight"}
    back = load_from_pytorch(shared, saved)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(back.get_parameter(name), parameter, atol=0, rtol=0)


def test_the_recorded_file_names_the_versions_that_made_it(golden_folder):
    for name in ("encoder_decoder", "mla_plain"):
        with safe_open(golden_folder / name / "expected.safetensors", "pt") as file:
            assert set(file.metadata()) == {"torch", "safetensors"}


def test_weights_that_do_not_fit_are_refused(recorded):
    weights, _ = recorded
    with pytest.raises(WeightError, match=r"encoder.norm.weight"):
        load_from_pytorch(CONFIG, {**weights, "encoder.norm.weight": torch.ones(24)})
    del weights["decoder.layers.1.multihead_attn.in_proj_bias"]
    with pytest.raises(WeightError, match=r"decoder_blocks.1.cross_attn"):
        load_from_pytorch(CONFIG, weights)
