"""GPT models as the code of the book "Build a Large Language Model (From Scratch)" saves them.

Raschka 2024, chapters 4 and 5: GPT-2's architecture with its parts under other names, with or
without biases on queries, keys and values, and with a head of its own. `torch.save` keeps the names
and shapes of the tensors and nothing else. All sizes are read from the shapes, except for the
number of heads: eight heads of 64 and four of 128 have the same shapes. It is, in this order,

    1. what `name.json` beside `name.pth` says: {"n_heads": 12}; the book's own configuration
       written as JSON is fine, too
    2. d_model / 64, if the width is one of GPT-2's four, which the book's large models have
    3. asked for
"""

from collections.abc import Mapping

from models.config import FULL, AttentionConfig, DropoutConfig, FfnConfig, ModelConfig, NormConfig
from models.errors import ConfigError, WeightError
from models.family import Family, Settings, Shape, StateDict, StateDictFormat
from models.tokenizers import Tokenizer
from models.tokenizers.packed_gpt2 import load_packed_gpt2_tokenizer
from models.weight_rules import RuleTable, WeightRule

# Radford et al. 2019: the widths of all four sizes, and of their heads.
GPT2_WIDTHS = frozenset({768, 1_024, 1_280, 1_600})
GPT2_D_HEAD = 64
GPT2_VOCABULARY = 50_257
SETTINGS_EXAMPLE = '{"n_heads": 12}'
MARKER = "trf_blocks.0.att.W_query.weight"


def config_from_file(file: StateDict, settings: Settings) -> ModelConfig:
    """Read the shapes, and the number of heads from the settings where those hold it.

    Raises:
        ConfigError: The number of heads is nowhere, or does not divide the width.
        WeightError: A tensor that tells a size is missing.
    """
    shapes = file.shapes
    vocab_size, d_model = _matrix(shapes, "tok_emb.weight")
    n_layers = sum(name.endswith(".att.W_query.weight") for name in shapes)
    n_heads = _find_n_heads(d_model, settings)
    rate = settings.number("drop_rate", 0.0)
    return ModelConfig(
        vocab_size=vocab_size,
        context_length=_matrix(shapes, "pos_emb.weight")[0],
        d_model=d_model,
        layer_types=(FULL,) * n_layers,
        attention=AttentionConfig(
            n_heads=n_heads,
            n_kv_heads=n_heads,
            d_head=d_model // n_heads,
            qkv_bias="trf_blocks.0.att.W_query.bias" in shapes,
            out_bias=True,
        ),
        ffn=FfnConfig(
            d_ff=_matrix(shapes, "trf_blocks.0.ff.layers.0.weight")[0],
            activation="gelu_tanh",
            gated=False,
            bias=True,
        ),
        norm=NormConfig(kind="layernorm", eps=1e-5),
        positions="learned",
        # the book copies GPT-2's embedding into the head; then there is only one to keep
        tied_head="out_head.weight" not in shapes
        or file.equal("out_head.weight", "tok_emb.weight"),
        dropout=DropoutConfig(embedding=rate, attention=rate, residual=rate),
        initialisation="torch_default",
    )


def _matrix(shapes: Mapping[str, Shape], name: str) -> Shape:
    shape = shapes.get(name, ())
    if len(shape) != 2:
        found = f"is of shape {shape}" if name in shapes else "is missing"
        raise WeightError(
            f"{name} {found}, expected a matrix; save the whole model with "
            "torch.save(model.state_dict(), path)",
            code="pth-tensor-missing",
            name=name,
        )
    return shape


def _find_n_heads(d_model: int, settings: Settings) -> int:
    if "n_heads" in settings.values:
        n_heads = settings.whole("n_heads")
        if n_heads < 1 or d_model % n_heads:
            raise ConfigError(
                f"{settings.where} has n_heads={n_heads}, which does not divide the model's width "
                f"{d_model}; write the number that the model was made with",
                code="heads-wrong",
                file=settings.where,
                found=n_heads,
                width=d_model,
            )
        return n_heads
    if d_model in GPT2_WIDTHS:
        return d_model // GPT2_D_HEAD
    raise ConfigError(
        f"the number of heads is not in the weights, and the width {d_model} is none of GPT-2's, "
        f"whose heads are known; put a file {settings.where} beside the weights with the number "
        f"that the model was made with, such as {SETTINGS_EXAMPLE}",
        code="heads-unknown",
        file=settings.where,
        width=d_model,
        example=SETTINGS_EXAMPLE,
    )


def rules(config: ModelConfig) -> RuleTable:
    """Names of the book's `GPTModel`."""
    theirs, ours = "trf_blocks.{i}", "blocks.{i}"
    parts = {
        "att.W_query": "attn.q_proj",
        "att.W_key": "attn.k_proj",
        "att.W_value": "attn.v_proj",
        "att.out_proj": "attn.o_proj",
        "ff.layers.0": "ffn.up_proj",
        "ff.layers.2": "ffn.down_proj",
    }
    norms = {"norm1": "attn_norm", "norm2": "ffn_norm"}
    rows = [
        WeightRule("tok_emb.weight", "embed.weight"),
        WeightRule("pos_emb.weight", "position_embed.weight"),
        WeightRule("out_head.weight", () if config.tied_head else "head.weight"),
        WeightRule(f"{theirs}.att.mask", ()),  # the causal mask, kept as a buffer
        WeightRule("final_norm.scale", "final_norm.weight"),
        WeightRule("final_norm.shift", "final_norm.bias"),
    ]
    for their_part, our_part in parts.items():
        for kind in ("weight", "bias"):
            rows.append(WeightRule(f"{theirs}.{their_part}.{kind}", f"{ours}.{our_part}.{kind}"))
    for their_norm, our_norm in norms.items():
        rows.append(WeightRule(f"{theirs}.{their_norm}.scale", f"{ours}.{our_norm}.weight"))
        rows.append(WeightRule(f"{theirs}.{their_norm}.shift", f"{ours}.{our_norm}.bias"))
    return RuleTable(tuple(rows))


def usual_tokenizer(config: ModelConfig) -> Tokenizer | None:
    """GPT-2's tokenizer, if the model has its vocabulary and the offline pack is installed.

    Raises:
        TokenizerError: Its files are damaged.
    """
    if config.vocab_size != GPT2_VOCABULARY:
        return None
    return load_packed_gpt2_tokenizer()


FAMILY = Family(
    name="Book GPT",
    source="Raschka 2024, Build a Large Language Model (From Scratch)",
    model_types=(),
    presets={},
    config_from_hf=None,
    rules=rules,
    state_dict=StateDictFormat(MARKER, config_from_file, rules, usual_tokenizer),
)
