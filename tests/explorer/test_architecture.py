"""Diagrams against built models, costs against published counts, edits against their remedies."""

import math

import pytest
import torch

from explorer.architecture import describe_architecture
from explorer.architecture_choices import (
    ArchitectureSettings,
    describe_chosen,
    find_differences,
)
from explorer.architecture_costs import compute_any_costs, compute_costs, count_activations
from explorer.config_edits import THEIR_NAMES, changeable_names, edit_config
from explorer.errors import ConfigError
from explorer.training.architectures import build_model_config
from models import get_preset
from models.config import MoeConfig
from models.decoder import Decoder
from models.encoder_decoder import EncoderDecoder
from models.encoder_decoder_config import ENCODER_DECODERS
from models.registry import presets
from models.trace import Trace

GIB = 2**30
STYLES = ("gpt", "llama", "qwen3", "gemma3", "olmo3", "moe", "mla", "window")


def expand(found, n_experts):
    """Every tensor that the parts name, layer by layer and expert by expert."""
    shapes = {}
    for part in found.parts:
        for name, shape in part.tensors.items():
            layers = len(found.layers[part.section]) if "{i}" in name else 1
            experts = n_experts if "{e}" in name else 1
            for i in range(layers):
                for e in range(experts):
                    shapes[name.replace("{i}", str(i)).replace("{e}", str(e))] = shape
    return shapes


def built_shapes(kind, config):
    with torch.device("meta"):
        model = kind(config)
    return {name: tuple(p.shape) for name, p in model.named_parameters()}


@pytest.mark.parametrize("style", STYLES)
def test_the_tensors_are_those_of_the_built_model(style):
    config = build_model_config(style, "tiny", vocab_size=97, context=16)
    n_experts = config.moe.n_experts if config.moe else 1
    found = describe_architecture(style, config)
    assert expand(found, n_experts) == built_shapes(Decoder, config)
    assert sum(part.n_parameters for part in found.parts) == found.count.unique


def test_the_tensors_of_two_stacks_are_those_of_the_built_model():
    config = ENCODER_DECODERS["transformer-tiny"]
    found = describe_architecture("transformer-tiny", config)
    assert expand(found, 1) == built_shapes(EncoderDecoder, config)
    kinds = [part.kind for part in found.parts if part.section == "block"]
    assert kinds.index("attention") < kinds.index("cross_attention") < kinds.index("ffn")
    assert sum(part.n_parameters for part in found.parts) == found.count.unique


def test_the_parts_of_every_preset_add_up_to_its_count():
    for name, config in presets().items():
        found = describe_architecture(name, config)
        assert sum(part.n_parameters for part in found.parts) == found.count.unique


@pytest.mark.parametrize(
    ("preset", "order"),
    [
        ("llama3-8b", "attn_norm attention rope add ffn_norm ffn add"),
        ("qwen3-30b-a3b", "attn_norm attention qk_norm rope add ffn_norm router experts add"),
        ("gpt2", "attn_norm attention add ffn_norm ffn add"),
        (
            "gemma3-4b",
            "attn_norm attention qk_norm rope rope attn_post_norm add "
            "ffn_norm ffn ffn_post_norm add",
        ),
        ("olmo3-7b", "attention qk_norm rope rope attn_norm add ffn ffn_norm add"),
    ],
)
def test_the_order_in_a_block_is_that_of_the_papers(preset, order):
    found = describe_architecture(preset, get_preset(preset))
    assert " ".join(p.kind for p in found.parts if p.section == "block") == order


def test_each_box_names_a_file_that_is_there():
    from explorer.snippets import PROJECT

    for name in ("gemma3-4b", "qwen3-30b-a3b", "gpt2"):
        for part in describe_architecture(name, get_preset(name)).parts:
            assert (PROJECT / part.file).is_file()
            assert part.formula


# ------------------------------------------------------------------------------------ costs
def test_costs_of_published_models():
    costs = compute_costs(get_preset("llama2-7b"), 4_096, 1)
    assert costs.parameters == 6_738_415_616
    assert round(costs.kept_bytes / GIB, 2) == 52.33  # masks and RoPE tables in every layer
    assert round(costs.gradient_bytes / GIB, 2) == round(2 * 4 * 6_738_415_616 / GIB, 2)
    assert costs.cache_bytes_per_token == 2 * 32 * 32 * 128 * 2
    assert compute_costs(get_preset("llama3-8b"), 8_192, 1).cache_bytes_per_token == 131_072
    qwen = compute_costs(get_preset("qwen3-30b-a3b"), 1, 1)
    assert qwen.active_operations < 0.25 * 2 * qwen.parameters  # 8 of 128 experts


def test_costs_of_two_stacks_are_those_of_a_built_model():
    """Operations as torch counts them in a pass of equal lengths; bytes of every parameter."""
    from torch.utils.flop_counter import FlopCounterMode

    from models.initialise import build_encoder_decoder

    config = ENCODER_DECODERS["transformer-tiny"]
    model = build_encoder_decoder(config, torch.Generator().manual_seed(3))
    ids, n = torch.arange(2, 9)[None], 7
    # looked at, attention is two plain products, which torch counts
    looked = Trace(
        record=tuple(
            f"{side}.blocks.*.{kind}.pattern"
            for side, kind in (("encoder", "attn"), ("decoder", "attn"), ("decoder", "cross_attn"))
        )
    )
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(ids, ids, trace=looked)
    costs = compute_any_costs(config, n, 1)
    assert n * (costs.active_operations + costs.attention_operations) == counter.get_total_flops()
    parameters = list(model.parameters())
    assert costs.weight_bytes["float32"] == sum(p.nbytes for p in parameters)
    matrices = [p for p in parameters if p.ndim == 2]
    vectors = sum(p.nbytes for p in parameters if p.ndim == 1)
    in_8_bits = sum(p.numel() + 4 * p.shape[0] for p in matrices)
    assert costs.weight_bytes["int8"] == in_8_bits + vectors
    assert costs.cache_bytes == 2 * n * 2 * 2 * 64 * 2  # k, v; 2 layers; width 64; bfloat16


def test_ten_million_tokens_are_counted_without_a_table():
    costs = compute_costs(get_preset("gemma3-4b"), 10_000_000, 1)
    full_layers = get_preset("gemma3-4b").layer_types.count("full")
    assert costs.cache_bytes > full_layers * 10_000_000 * 2 * 4 * 256 * 2


@pytest.mark.parametrize("style", ["gpt", "llama", "gemma3"])
def test_activations_are_near_what_torch_keeps(style):
    from torch.nn import functional

    from models.initialise import build_decoder

    config = build_model_config(style, "tiny", vocab_size=512, context=64)
    model = build_decoder(config, torch.Generator().manual_seed(1))
    parameters = {p.data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if tensor.data_ptr() not in parameters and tensor.is_floating_point():
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    ids = torch.randint(0, 512, (2, 64), generator=torch.Generator().manual_seed(2))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    assert loss.requires_grad
    estimate = 2 * 64 * count_activations(config) * 4
    # RMSNorm written out keeps more than one fused kernel would; the estimate is for the order
    assert 0.5 < estimate / sum(kept.values()) < 1.3


# ------------------------------------------------------------------------------------ choices
def test_differences_between_gpt2_xl_llama2_and_llama3():
    found = describe_chosen(ArchitectureSettings())
    rows = {(row.part, row.fact): row.values for row in find_differences(found)}
    assert rows["attention", "heads"] == ("MHA", "MHA", "GQA")
    assert rows["embedding", "vocab_size"] == ("50,257", "32,000", "128,256")
    assert rows["ffn", "activation"] == ("gelu_tanh", "silu", "silu")
    assert rows["learned", "context_length"] == ("1,024", "–", "–")
    assert rows["rope", "theta"] == ("–", "10,000", "500,000")
    assert rows["ffn_norm", "norm"] == ("layernorm", "rmsnorm", "rmsnorm")
    assert ("attention", "d_head") in rows


def test_what_if_changes_what_was_named():
    config = edit_config(get_preset("llama3.2-1b"), "n_heads=16, n_kv_heads=4\nd_head=128")
    assert (config.attention.n_heads, config.attention.n_kv_heads) == (16, 4)
    assert config.attention.d_head == 128
    assert edit_config(config, "n_layers=3, theta=10000, tied_head=false").n_layers == 3
    deep = edit_config(get_preset("gemma3-4b"), "n_layers=7")
    assert deep.layer_types == ("window",) * 5 + ("full", "window")
    experts = edit_config(get_preset("qwen3-30b-a3b"), "n_experts=16, expert_d_ff=100")
    assert experts.moe == MoeConfig(
        n_experts=16, n_active=8, d_ff=100, normalise_weights=experts.moe.normalise_weights
    )
    assert math.isclose(edit_config(config, "theta=1e6").rope["full"].theta, 1e6)
    assert edit_config(get_preset("gpt2"), "positions=rope").rope


def test_what_if_knows_the_names_that_hugging_face_uses():
    experts = get_preset("qwen3-30b-a3b")
    assert set(THEIR_NAMES.values()) <= changeable_names(experts).keys()
    ours = edit_config(experts, "d_head=64, n_kv_heads=8, n_layers=3, theta=5000")
    theirs = "head_dim=64, num_key_value_heads=8, num_hidden_layers=3, rope_theta=5000"
    assert edit_config(experts, theirs) == ours


def test_a_pasted_config_json_is_read():
    text = (
        '{"model_type": "llama", "vocab_size": 97, "hidden_size": 40, "num_hidden_layers": 3, '
        '"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 52, '
        '"max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu", "odd": 1}'
    )
    config = edit_config(get_preset("gpt2"), text)
    assert (config.d_model, config.n_layers, config.ffn.d_ff) == (40, 3, 52)


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ("n_heads=16, n_kv_heads=5", "choose 1, 2, 4, 8 or 16"),
        ("n_heads=8, n_kv_heads=16", "choose 1, 2, 4 or 8"),
        ("d_head=65", "choose 66"),
        ("theta=0", "above 1"),
        ("theta=-5", "above 1"),
        ("context_length=0", "at least 1"),
        ("n_head=16", "n_heads"),
        ("n_layers=0", "from 1 to"),
        ("n_heads", "name=value"),
        ("n_heads=many", "a number"),
        ("tied_head=3", "true or false"),
        ('{"model_type": "rwkv"}', "known are"),
        ("{broken", "paste the whole"),
    ],
)
def test_an_impossible_change_is_refused_with_a_remedy(changes, remedy):
    with pytest.raises(ConfigError, match=remedy):
        edit_config(get_preset("llama3.2-1b"), changes)
