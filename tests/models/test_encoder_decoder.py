"""The 2017 Transformer: against torch.nn.Transformer, against its formula, and decoding."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

from models import KVCache, Trace
from models.beam import BeamConfig
from models.config import AttentionConfig, FfnConfig
from models.encoder_decoder import generate_target, search_target
from models.encoder_decoder_config import (
    ENCODER_DECODERS,
    EncoderDecoderConfig,
)
from models.errors import ConfigError
from models.initialise import build_encoder_decoder
from models.positions import sinusoidal_positions
from models.trace import TraceError

TINY = ENCODER_DECODERS["transformer-tiny"]
ENCODER = replace(
    TINY.encoder,
    vocab_size=89,
    d_model=60,
    layer_types=("full",) * 3,
    attention=AttentionConfig(n_heads=6, n_kv_heads=6, d_head=10, qkv_bias=True, out_bias=True),
    ffn=FfnConfig(d_ff=52, activation="relu", gated=False, bias=True),
    embedding_scale=math.sqrt(60),
    initialisation="torch_default",
)
SEPARATE = EncoderDecoderConfig(
    encoder=ENCODER,
    decoder=replace(ENCODER, vocab_size=97, layer_types=("full",) * 2, tied_head=False),
    shared_embedding=False,
)
SHARED = EncoderDecoderConfig(
    encoder=ENCODER, decoder=replace(ENCODER, tied_head=True), shared_embedding=True
)


def _seeded(seed):
    return torch.Generator().manual_seed(seed)


def _close(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.fixture(params=[SEPARATE, SHARED], ids=["separate", "shared"])
def pair_config(request):
    return request.param


@pytest.fixture
def pair(pair_config):
    """Random weights, biases and norms included, so that a wrong part shows."""
    model = build_encoder_decoder(pair_config, _seeded(5)).requires_grad_(False)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter += 0.3 * torch.randn(parameter.shape, generator=_seeded(len(name)))
        if "embed" in name:
            parameter *= 0.2
    return model


@pytest.fixture
def source():
    return torch.randint(0, 89, (2, 11), generator=_seeded(6))


@pytest.fixture
def target():
    return torch.randint(0, 89, (2, 7), generator=_seeded(7))


# ------------------------------------------------------------------------- references
def _packed(ours):
    names = ("q_proj", "k_proj", "v_proj")
    return {
        "in_proj_weight": torch.cat([getattr(ours, n).weight for n in names]),
        "in_proj_bias": torch.cat([getattr(ours, n).bias for n in names]),
        "out_proj.weight": ours.o_proj.weight,
        "out_proj.bias": ours.o_proj.bias,
    }


def _pytorch_twin(model):
    config = model.config
    theirs = nn.Transformer(
        60, 6, len(model.encoder_blocks), len(model.decoder_blocks), 52, 0.0, batch_first=True
    ).eval()
    theirs.encoder.norm = theirs.decoder.norm = None  # not in the paper
    theirs.encoder.use_nested_tensor = False  # warns
    assert config.encoder.norm.eps == theirs.encoder.layers[0].norm1.eps
    for blocks, layers in (
        (model.encoder_blocks, theirs.encoder.layers),
        (model.decoder_blocks, theirs.decoder.layers),
    ):
        for block, layer in zip(blocks, layers, strict=True):
            layer.self_attn.load_state_dict(_packed(block.attn))
            layer.linear1.load_state_dict(block.ffn.up_proj.state_dict())
            layer.linear2.load_state_dict(block.ffn.down_proj.state_dict())
            norms = [block.attn_norm, block.ffn_norm]
            if block.reads_memory:
                layer.multihead_attn.load_state_dict(_packed(block.cross_attn))
                norms.insert(1, block.cross_attn_norm)
            for i, norm in enumerate(norms, 1):
                getattr(layer, f"norm{i}").load_state_dict(norm.state_dict())
    return theirs.requires_grad_(False)


def _embedded(embed, ids):
    waves = torch.zeros(ids.shape[1], 60)
    for n, i in itertools.product(range(ids.shape[1]), range(30)):
        waves[n, 2 * i] = math.sin(n / 10_000 ** (2 * i / 60))
        waves[n, 2 * i + 1] = math.cos(n / 10_000 ** (2 * i / 60))
    return embed(ids) * math.sqrt(60) + waves


@pytest.mark.parametrize("padded", [False, True])
def test_logits_equal_those_of_pytorch_with_the_same_weights(pair, source, target, padded):
    source_valid = target_valid = None
    if padded:
        source_valid = torch.arange(11)[None] < torch.tensor([[11], [6]])
        target_valid = torch.arange(7)[None] < torch.tensor([[4], [7]])
    theirs = _pytorch_twin(pair)
    shared = pair.config.shared_embedding
    target_embed = pair.source_embed if shared else pair.target_embed
    hidden = theirs(
        _embedded(pair.source_embed, source),
        _embedded(target_embed, target),
        tgt_mask=torch.ones(7, 7, dtype=torch.bool).triu(1),  # theirs: True = blocked
        src_key_padding_mask=None if source_valid is None else ~source_valid,
        memory_key_padding_mask=None if source_valid is None else ~source_valid,
        tgt_key_padding_mask=None if target_valid is None else ~target_valid,
    )
    head = target_embed.weight if pair.config.decoder.tied_head else pair.head.weight
    found = pair(source, target, source_valid, target_valid)
    where = torch.ones_like(target, dtype=torch.bool) if target_valid is None else target_valid
    assert float(found.abs().max()) > 0.5
    _close(found[where], (hidden @ head.T)[where])


def _formula_norm(x, norm):
    deviation = (x - x.mean(-1, keepdim=True)) / (
        x.var(-1, unbiased=False, keepdim=True) + 1e-5
    ).sqrt()
    return deviation * norm.weight.double() + norm.bias.double()  # fmt: skip


def _formula_attention(layer, x, memory, allowed):
    """Head by head, query by query: softmax(q k / sqrt(d)) v over the allowed keys."""
    q, k, v = (
        inputs @ part.weight.double().T + part.bias.double()
        for inputs, part in ((x, layer.q_proj), (memory, layer.k_proj), (memory, layer.v_proj))
    )
    read = torch.zeros(len(x), 60, dtype=torch.float64)
    for head, t in itertools.product(range(6), range(len(x))):
        part, keys = slice(10 * head, 10 * head + 10), allowed(t)
        weight = torch.exp(k[keys, part] @ q[t, part] / math.sqrt(10))
        read[t, part] = (weight / weight.sum()) @ v[keys, part]
    return read @ layer.o_proj.weight.double().T + layer.o_proj.bias.double()


def _formula_block(block, x, memory, allowed):
    x = _formula_norm(x + _formula_attention(block.attn, x, x, allowed), block.attn_norm)
    if memory is not None:
        everything = list(range(len(memory)))
        read = _formula_attention(block.cross_attn, x, memory, lambda _: everything)
        x = _formula_norm(x + read, block.cross_attn_norm)
    up, down = block.ffn.up_proj, block.ffn.down_proj
    inner = (x @ up.weight.double().T + up.bias.double()).clamp(min=0)
    out = inner @ down.weight.double().T + down.bias.double()
    return _formula_norm(x + out, block.ffn_norm)


def test_logits_equal_the_formula_of_the_paper(pair, source, target):
    memory = _embedded(pair.source_embed, source)[0].double()
    for block in pair.encoder_blocks:
        memory = _formula_block(block, memory, None, lambda _: list(range(11)))
    embed = pair.source_embed if pair.config.shared_embedding else pair.target_embed
    x = _embedded(embed, target)[0].double()
    for block in pair.decoder_blocks:
        x = _formula_block(block, x, memory, lambda t: list(range(t + 1)))
    head = embed.weight if pair.config.decoder.tied_head else pair.head.weight
    _close(pair(source, target)[0], (x @ head.double().T).float())


def test_sinusoids_equal_their_formula_far_out():
    positions = torch.tensor([[0, 1, 511, 5_000]])
    found = sinusoidal_positions(positions, 44)[0]
    for row, n in enumerate([0, 1, 511, 5_000]):
        for i in range(22):
            angle = n / 10_000 ** (2 * i / 44)
            assert float(found[row, 2 * i]) == pytest.approx(math.sin(angle), abs=1e-3)
            assert float(found[row, 2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-3)


# ------------------------------------------------------------------------- its own ways
def test_token_by_token_through_the_cache_equals_whole(pair, source, target):
    whole = pair(source, target)
    memory = pair.encode(source)
    assert len(memory.keys_values) == len(pair.decoder_blocks)
    cache = KVCache(pair.config.decoder, 2, 7)
    steps = [pair.decode(target[:, i : i + 1], memory, cache=cache) for i in range(7)]
    _close(torch.cat(steps, 1), whole)
    _close(pair.decode(target, replace(memory, keys_values=())), whole)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_equals_unpadded(pair, source, target, side):
    place = slice(None, 6) if side == "right" else slice(5, None)
    valid = torch.ones(2, 11, dtype=torch.bool)
    valid[1] = False
    valid[1, place] = True
    padded = source.clone()
    padded[1] = 3
    padded[1, place] = source[1, :6]
    found = pair(padded, target, source_valid=valid)
    _close(found[0], pair(source, target)[0])
    _close(found[1], pair(source[1:, :6], target[1:])[0])
    for trace in (None, Trace(record=("*.pattern",))):  # both kernels, with no key at all
        nothing = pair(padded, target, source_valid=torch.zeros_like(valid), trace=trace)
        assert nothing.isfinite().all()


def test_eager_kernel_equals_the_fused_one(pair, source, target):
    valid = torch.arange(11)[None] < torch.tensor([[11], [6]])
    trace = Trace(record=("*.pattern",))
    _close(pair(source, target, valid, trace=trace), pair(source, target, valid))
    cross = trace["decoder.blocks.1.cross_attn.pattern"]
    assert cross.shape == (2, 6, 7, 11)
    _close(cross.sum(-1), torch.ones(2, 6, 7))
    assert (cross[1, ..., 6:] == 0).all()
    assert (trace["encoder.blocks.0.attn.pattern"][0] > 0).all()  # sees before and after


def test_names_and_shapes_of_the_trace(pair, source, target):
    trace = Trace(record=("*",))
    pair(source, target, trace=trace)
    attention = ("q", "k", "v", "scores", "mask", "pattern", "z")
    stream = ("resid_pre", "attn_out", "resid_mid", "ffn.pre", "ffn.post", "ffn_out", "resid_post")
    expected = {"encoder.embed", "decoder.embed", "logits"}
    for side, n_layers in (("encoder", 3), ("decoder", len(pair.decoder_blocks))):
        for at in (f"{side}.blocks.{i}" for i in range(n_layers)):
            expected |= {f"{at}.{name}" for name in stream}
            expected |= {f"{at}.attn.{name}" for name in attention}
            if side == "decoder":
                expected |= {f"{at}.cross_attn.{name}" for name in attention}
                expected |= {f"{at}.cross_attn_out", f"{at}.resid_cross"}
    assert set(trace.names()) == expected
    assert trace["decoder.blocks.0.cross_attn.k"].shape == (2, 6, 11, 10)
    assert trace["decoder.blocks.0.cross_attn.q"].shape == (2, 6, 7, 10)
    assert trace["decoder.blocks.0.cross_attn.mask"].shape == (2, 1, 7, 11)
    for at, out in (("resid_mid", "cross_attn_out"), ("resid_cross", "ffn_out")):
        block = pair.decoder_blocks[1]
        norm = block.cross_attn_norm if out == "cross_attn_out" else block.ffn_norm
        after = {"cross_attn_out": "resid_cross", "ffn_out": "resid_post"}[out]
        name = "decoder.blocks.1."
        _close(norm(trace[name + at] + trace[name + out]), trace[name + after])


def test_an_edit_of_cross_attention_takes_effect(pair, source, target):
    def first_token_only(mask):
        edited = torch.zeros_like(mask)
        edited[..., 0] = True
        return edited

    trace = Trace(
        ("decoder.blocks.0.cross_attn.pattern",),
        {"decoder.blocks.*.cross_attn.mask": first_token_only},
    )
    found = pair(source, target, trace=trace)
    assert (trace["decoder.blocks.0.cross_attn.pattern"][..., 0] == 1).all()
    assert not torch.allclose(found, pair(source, target), atol=1e-3)
    with pytest.raises(TraceError, match="close to it"):
        pair(source, target, trace=Trace(record=("encoder.blocks.0.cross_attn.q",)))


def test_greedy_equals_the_argmax_of_whole_passes(pair, source):
    ids = source[0].tolist()
    found = list(generate_target(pair, ids, start_id=1, max_new_tokens=20))
    written = [1]
    for id_ in found:
        logits = pair(source[:1], torch.tensor([written]))
        assert int(logits[0, -1].argmax()) == id_
        written.append(id_)
    stop = found[4]
    stopped = list(generate_target(pair, ids, start_id=1, stop_ids={stop}, max_new_tokens=20))
    assert stopped == found[: found.index(stop) + 1]


@pytest.mark.slow
def test_beams_find_the_best_of_everything():
    side = replace(ENCODER, vocab_size=5)
    config = EncoderDecoderConfig(
        encoder=ENCODER, decoder=replace(side, tied_head=False), shared_embedding=False
    )
    model = build_encoder_decoder(config, _seeded(5)).requires_grad_(False)
    source = torch.randint(0, 89, (1, 9), generator=_seeded(6))
    wide = BeamConfig(n_beams=125, max_new_tokens=3, length_penalty=0.6)
    result = search_target(model, source[0].tolist(), wide, start_id=0)
    everything = {}
    for ids in itertools.product(range(5), repeat=3):
        table = model(source, torch.tensor([[0, *ids]]))[0].log_softmax(-1)
        everything[ids] = sum(float(table[i, id_]) for i, id_ in enumerate(ids)) / 3**0.6
    best = sorted(everything, key=everything.get, reverse=True)
    assert [beam.ids for beam in result.beams[:20]] == best[:20]
    assert result.beams[0].score == pytest.approx(everything[best[0]], abs=1e-5)


@pytest.mark.slow
def test_it_learns_to_reverse():
    """Cross-attention must find its way: every source holds other tokens."""
    side = replace(TINY.encoder, vocab_size=12)
    config = replace(TINY, encoder=side, decoder=side)
    model = build_encoder_decoder(config, _seeded(5))
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    draws = _seeded(8)
    for step in range(800):  # few are enough; the order of sums decides how few
        source = torch.randint(2, 12, (32, 4), generator=draws)
        target = source.flip(1)
        shifted = torch.cat([torch.ones(32, 1, dtype=torch.int64), target[:, :-1]], dim=1)
        loss = functional.cross_entropy(model(source, shifted).flatten(0, 1), target.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step > 20 and loss.item() < 0.02:
            break
    assert loss.item() < 0.1
    found = list(generate_target(model, [7, 2, 9, 4], start_id=1, max_new_tokens=4))
    assert found == [4, 9, 2, 7]


def test_odd_widths_have_no_sinusoids():
    with pytest.raises(ConfigError, match="choose 62"):
        replace(ENCODER, d_model=61)


def test_nothing_to_read_is_refused(pair, source, target):
    with pytest.raises(ConfigError, match="at least one token"):
        pair(source[:, :0], target)
    with pytest.raises(ConfigError, match="one target for each source"):
        pair(source[:1], target)
    with pytest.raises(ConfigError, match="pass memory"):
        pair.decoder_blocks[0](torch.zeros(1, 1, 60), _lonely_run(pair))


def _lonely_run(pair):
    from models.forward_pass import start_pass

    ids = torch.zeros(1, 1, dtype=torch.int64)
    return start_pass(pair.config.decoder, ids, valid=None, cache=None, trace=None, generator=None)


def test_a_decoder_alone_can_have_sinusoids_too():
    from models import build_decoder

    model = build_decoder(ENCODER, _seeded(5)).requires_grad_(False)
    ids = torch.randint(0, 89, (1, 9), generator=_seeded(6))
    trace = Trace(record=("embed",))
    whole = model(ids, trace=trace)
    _close(trace["embed"], _embedded(model.embed, ids))
    cache = KVCache(ENCODER, 1, 9)
    steps = [model(ids[:, i : i + 1], cache=cache) for i in range(9)]
    _close(torch.cat(steps, 1) / whole.abs().max(), whole / whole.abs().max())
