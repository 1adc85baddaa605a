"""Multi-head latent attention: against formulas, against transformers, and with itself."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from models import KVCache, Trace, build_decoder, count_parameters
from models.config import AttentionConfig, RopeConfig
from models.errors import ConfigError
from models.forward_pass import start_pass
from models.mla_config import MlaConfig

HEADS = AttentionConfig(n_heads=6, n_kv_heads=6, d_head=10)
DEEPSEEK = MlaConfig(
    kv_lora_rank=13, q_lora_rank=17, qk_rope_head_dim=4, v_head_dim=7, latent_norm=True
)
FORMS = {
    "plain": MlaConfig(),
    "deepseek": DEEPSEEK,
    "queries from the stream": replace(DEEPSEEK, q_lora_rank=None),
    "windows": DEEPSEEK,
    "biases": replace(DEEPSEEK, latent_norm=False),
}


def _seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=FORMS)
def mla_config(request, llama_config, gpt_config):
    if request.param == "plain":
        return replace(gpt_config, attention=HEADS, mla=MlaConfig(), tied_head=False)
    config = replace(llama_config, attention=HEADS, mla=FORMS[request.param])
    if request.param == "windows":
        rope = {"full": RopeConfig(), "window": RopeConfig(theta=777.0)}
        heads = replace(HEADS, window=5)
        config = replace(
            config, attention=heads, rope=rope, layer_types=("window", "full", "window")
        )
    if request.param == "biases":
        config = replace(config, attention=replace(HEADS, qkv_bias=True, out_bias=True))
    return config


@pytest.fixture
def mla_model(mla_config):
    law = replace(mla_config, initialisation="torch_default")
    return build_decoder(law, _seeded(5)).requires_grad_(False)


@pytest.fixture
def long_ids():
    return torch.randint(0, 97, (2, 60), generator=_seeded(6))


def _close(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_token_by_token_absorbed_equals_whole_expanded(mla_model, long_ids):
    whole = mla_model(long_ids)
    cache = KVCache(mla_model.config, 2, 60, rewind=0)
    steps = [mla_model(long_ids[:, i : i + 1], cache=cache) for i in range(60)]
    _close(torch.cat(steps, 1), whole)


def test_chunks_through_the_cache_equal_whole(mla_model, long_ids):
    cache = KVCache(mla_model.config, 2, 60, rewind=0)
    chunks = long_ids.split([5, 1, 11, 1, 1, 30, 2, 9], dim=1)
    steps = [mla_model(chunk, cache=cache) for chunk in chunks]
    _close(torch.cat(steps, 1), mla_model(long_ids))


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_equals_unpadded(mla_model, long_ids, cached, side):
    valid = torch.ones(2, 60, dtype=torch.bool)
    place = slice(23, None) if side == "left" else slice(None, 37)
    valid[1] = False
    valid[1, place] = True
    padded = long_ids.clone()
    padded[1] = 3
    padded[1, place] = long_ids[1, :37]
    cache = KVCache(mla_model.config, 2, 61, rewind=0) if cached else None
    found = mla_model(padded, valid=valid, cache=cache)
    _close(found[0], mla_model(long_ids)[0])
    _close(found[1, place], mla_model(long_ids[1:, :37])[0])
    if cache is not None:
        following = mla_model(long_ids[:, 37:38], cache=cache)
        _close(following[1, 0], mla_model(long_ids[1:, :38])[0, -1])


def test_absorbed_equals_expanded_on_the_same_queries(mla_model, long_ids):
    run = start_pass(mla_model.config, long_ids, valid=None, cache=None, trace=None, generator=None)
    x = torch.randn(2, 60, 44, generator=_seeded(7))
    for block in mla_model.blocks:
        layer = block.attn
        q = layer._queries(x, run)
        latent, key = layer._latents(x, "blocks.0.attn", run)
        k, v = layer.expand(latent, key)
        expanded = layer.kernel.attend(q, k, v, name="blocks.0.attn", run=run)
        absorbed = layer.attend_absorbed(q, latent, key, name="blocks.0.attn", run=run)
        assert float(expanded.abs().max()) > 0.1
        _close(absorbed, expanded)


def test_the_plain_form_equals_its_formula(gpt_config):
    """One latent a token, keys and values read from it, nothing rotated."""
    config = replace(gpt_config, attention=HEADS, mla=MlaConfig(), initialisation="torch_default")
    layer = build_decoder(config, _seeded(5)).requires_grad_(False).blocks[0].attn
    assert layer.latent_proj.out_features == 16  # max(16, 44 // 8)
    x = torch.randn(1, 9, 44, generator=_seeded(8)).double()
    weights = {name: p.double() for name, p in layer.named_parameters()}
    latent = x[0] @ weights["latent_proj.weight"].T
    heads = []
    for h in range(6):
        rows = slice(10 * h, 10 * h + 10)
        q = x[0] @ weights["q_proj.weight"][rows].T
        k = latent @ weights["k_proj.weight"][rows].T
        v = latent @ weights["v_proj.weight"][rows].T
        read = []
        for t in range(9):
            weight = torch.exp(k[: t + 1] @ q[t] / math.sqrt(10))
            read.append((weight / weight.sum()) @ v[: t + 1])
        heads.append(torch.stack(read))
    expected = torch.cat(heads, dim=1) @ weights["o_proj.weight"].T
    ids = torch.zeros(1, 9, dtype=torch.int64)
    run = start_pass(config, ids, valid=None, cache=None, trace=None, generator=None)
    _close(layer(x.float(), layer=0, run=run)[0], expected.float())


def test_the_cache_keeps_the_latent_and_the_shared_key_only(mla_config, mla_model, long_ids):
    mla, n_bytes = mla_config.mla, 4
    kept = 2 * 3 * 61 * (mla.latent_width(44) + mla.qk_rope_head_dim) * n_bytes
    cache = KVCache(mla_config, 2, 61, rewind=0)
    if "window" in mla_config.layer_types:
        kept = kept // 61 // 3 * (61 + 5 + 5)
    assert cache.nbytes == kept
    assert kept < KVCache(replace(mla_config, mla=None), 2, 61, rewind=0).nbytes / 4
    for chunk in long_ids.split(20, dim=1):  # what is kept does not grow
        mla_model(chunk, cache=cache)
    assert cache.nbytes == kept


def test_counts_equal_those_of_the_tensors(mla_config, mla_model):
    count = count_parameters(mla_config)
    assert count.unique == sum(p.numel() for p in mla_model.parameters())
    norms = sum(p.numel() for name, p in mla_model.named_parameters() if "norm" in name)
    assert count.parts["norms"] == norms


def test_trace_names_and_shapes(mla_config, mla_model, ids):
    trace = Trace(record=("blocks.1.attn.*",))
    _close(mla_model(ids, trace=trace), mla_model(ids))
    mla = mla_config.mla
    value_width = mla.v_head_dim or 10
    shapes = {n.removeprefix("blocks.1.attn."): tuple(trace[n].shape) for n in trace.names()}
    assert shapes == {
        "q": (2, 6, 7, 10),
        "k": (2, 6, 7, 10),
        "v": (2, 6, 7, value_width),
        "latent": (2, 7, mla.latent_width(44)),
        "scores": (2, 6, 7, 7),
        "mask": (2, 1, 7, 7),
        "pattern": (2, 6, 7, 7),
        "z": (2, 6, 7, value_width),
    }  # fmt: skip


def test_scores_are_the_same_absorbed_and_expanded(mla_model, long_ids):
    whole = Trace(record=("blocks.*.attn.scores", "blocks.*.attn.pattern", "blocks.*.attn.z"))
    mla_model(long_ids[:, :21], trace=whole)
    cache = KVCache(mla_model.config, 2, 60, rewind=0)
    mla_model(long_ids[:, :20], cache=cache)
    last = Trace(record=("blocks.*.attn.scores", "blocks.*.attn.pattern", "blocks.*.attn.z"))
    mla_model(long_ids[:, 20:21], cache=cache, trace=last)
    for layer in range(3):
        for part in ("pattern", "z"):
            name = f"blocks.{layer}.attn.{part}"
            _close(last[name][:, :, 0], whole[name][:, :, 20])
        reach = 5 if mla_model.config.layer_types[layer] == "window" else 21
        name = f"blocks.{layer}.attn.scores"
        _close(last[name][:, :, 0, -reach:], whole[name][:, :, 20, -reach:])


def test_edits_of_keys_and_values_take_effect_with_and_without_cache(mla_model, long_ids):
    edits = {"blocks.1.attn.k": lambda k: 2 * k, "blocks.2.attn.v": lambda v: 3 * v}
    expected = mla_model(long_ids, trace=Trace(edits=edits))
    assert not torch.allclose(expected, mla_model(long_ids), atol=1e-3)
    cache = KVCache(mla_model.config, 2, 60, rewind=0)
    _close(mla_model(long_ids, cache=cache, trace=Trace(edits=edits)), expected)
    step, again = (KVCache(mla_model.config, 2, 60, rewind=0) for _ in range(2))
    for cache in (step, again):
        mla_model(long_ids[:, :30], cache=cache)
    edited = mla_model(long_ids[:, 30:31], cache=step, trace=Trace(edits=edits))
    plain = mla_model(long_ids[:, 30:31], cache=again)
    assert not torch.allclose(edited, plain, atol=1e-3)


def test_trains(mla_config, ids):
    model = build_decoder(mla_config, _seeded(5))
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(40):
        loss = functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"attention": replace(HEADS, n_kv_heads=3)}, "choose n_kv_heads=6"),
        ({"attention": replace(HEADS, qk_norm="head")}, "choose 'none'"),
        ({"mla": MlaConfig()}, "0 with 'learned'"),
        ({"mla": MlaConfig(qk_rope_head_dim=10)}, "half is usual"),
        ({"positions": "learned", "rope": {}}, "0 with 'learned'"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, remedy, llama_config):
    good = replace(llama_config, attention=HEADS, mla=DEEPSEEK)
    with pytest.raises(ConfigError, match=remedy):
        replace(good, **changes)


@pytest.mark.parametrize("width", [{"qk_rope_head_dim": 3}, {"kv_lora_rank": 0}])
def test_impossible_widths_are_refused(width):
    with pytest.raises(ConfigError, match="at least"):
        MlaConfig(**width)


# --------------------------------------------------------------------------- transformers
def _to_halves(rows, n_heads, width, rotary):
    """The last `rotary` rows of each head from neighbours to split halves; see models/rope.py."""
    heads = rows.unflatten(0, (n_heads, width)).clone()
    heads[:, -rotary:] = torch.cat([heads[:, -rotary::2], heads[:, 1 - rotary :: 2]], dim=1)
    return heads.flatten(0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("q_lora_rank", [17, None])
@pytest.mark.parametrize("interleaved", [True, False])
def test_a_layer_equals_deepseek_v3_of_transformers(q_lora_rank, interleaved, llama_config):
    from transformers import DeepseekV3Config
    from transformers.models.deepseek_v3 import modeling_deepseek_v3 as theirs

    values = DeepseekV3Config(
        hidden_size=44, num_attention_heads=6, num_key_value_heads=6, q_lora_rank=q_lora_rank,
        kv_lora_rank=13, qk_rope_head_dim=4, qk_nope_head_dim=6, v_head_dim=7,
        rope_parameters={"rope_type": "default", "rope_theta": 777.0},
        rope_interleave=interleaved, attention_bias=q_lora_rank is not None,
        attn_implementation="eager",
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(3)
        reference = theirs.DeepseekV3Attention(values, 0).requires_grad_(False).eval()
        for name, parameter in reference.named_parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3 + ("norm" in name))
        x = torch.randn(2, 30, 44)
    bias = q_lora_rank is not None
    config = replace(
        llama_config,
        attention=replace(HEADS, qkv_bias=bias, out_bias=bias),
        norm=replace(llama_config.norm, eps=1e-6),
        mla=replace(DEEPSEEK, q_lora_rank=q_lora_rank),
        rope={"full": RopeConfig(theta=777.0)},
    )
    layer = build_decoder(config, _seeded(1)).requires_grad_(False).blocks[0].attn
    layer.load_state_dict(_translated(reference, bias, interleaved))
    positions = torch.arange(30)[None].expand(2, -1)
    blocked = torch.full((30, 30), float("-inf")).triu(1)[None, None]
    tables = theirs.DeepseekV3RotaryEmbedding(values)(x, positions)
    expected = reference(x, tables, blocked)[0]
    ids = torch.zeros(2, 30, dtype=torch.int64)
    run = start_pass(config, ids, valid=None, cache=None, trace=None, generator=None)
    _close(layer(x, layer=0, run=run), expected)


def _translated(reference, bias, interleaved):
    """Their tensors under our names, rotary rows as split halves."""
    state, is_low = reference.state_dict(), "q_a_proj.weight" in reference.state_dict()
    q = state["q_b_proj.weight" if is_low else "q_proj.weight"]
    kv = state["kv_b_proj.weight"].unflatten(0, (6, 13))
    down = state["kv_a_proj_with_mqa.weight"]
    ours = {
        "latent_proj.weight": down[:13],
        "k_rotary_proj.weight": _to_halves(down[13:], 1, 4, 4) if interleaved else down[13:],
        "latent_norm.weight": state["kv_a_layernorm.weight"],
        "q_proj.weight": _to_halves(q, 6, 10, 4) if interleaved else q,
        "k_proj.weight": kv[:, :6].flatten(0, 1),
        "v_proj.weight": kv[:, 6:].flatten(0, 1),
        "o_proj.weight": state["o_proj.weight"],
    }
    if is_low:
        ours["q_latent_proj.weight"] = state["q_a_proj.weight"]
        ours["q_latent_norm.weight"] = state["q_a_layernorm.weight"]
    if bias:
        down_bias = state["kv_a_proj_with_mqa.bias"]
        rotary = _to_halves(down_bias[13:], 1, 4, 4) if interleaved else down_bias[13:]
        ours |= {"latent_proj.bias": down_bias[:13], "k_rotary_proj.bias": rotary}
        ours |= {"q_latent_proj.bias": state["q_a_proj.bias"], "o_proj.bias": state["o_proj.bias"]}
    return ours
