"""The steps of a pass for any configuration: which there are, their formulas and their lines.

Written from values of the configuration, as the model itself is (models/block.py), so that every
family has its own list. The lines use the model's own modules and functions; a test runs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from models.config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class StepLine:
    """One step.

    Args:
        key: Of its name in the words.
        tap: Name in the trace; "" where it is computed from another step.
        after: Key of that step.
        formula: As a line of text.
        code: Lines of PyTorch.
        variable: That holds the result.
    """

    key: str
    tap: str
    formula: str
    code: tuple[str, ...]
    variable: str
    after: str = ""


def list_steps(config: ModelConfig, layer: int) -> tuple[StepLine, ...]:
    """The steps of a pass, with one block in full.

    Args:
        config: The model.
        layer: The block.
    """
    return (
        _embedding(config),
        _stream_before(layer),
        *_attention_sublayer(config, layer),
        *_feed_forward_sublayer(config, layer),
        *_output(config, layer),
    )


def _embedding(config: ModelConfig) -> StepLine:
    code, formula = ["x = model.embed(ids)"], "x = E[token]"
    if config.embedding_scale != 1.0:
        code.append("x = x * torch.tensor(model.config.embedding_scale, dtype=x.dtype)")
        formula += " · s"
    if config.positions == "learned":
        code.append("x = x + model.position_embed(run.positions)")
        formula += " + P[n]"
    if config.positions == "sinusoidal":
        code.append("x = x + sinusoidal_positions(run.positions, model.config.d_model)")
        formula += " + PE(n)"
    return StepLine(key="embed", tap="embed", formula=formula, code=tuple(code), variable="x")


def _stream_before(layer: int) -> StepLine:
    return StepLine(
        key="resid_pre",
        tap=f"blocks.{layer}.resid_pre",
        formula="x = block(… block(x))",
        code=(
            f"for block in model.blocks[:{layer}]:",
            "    x = block(x, run)",
            f"block = model.blocks[{layer}]",
        ),
        variable="x",
    )


def _norm_before(config: ModelConfig, name: str, stream: str) -> Iterator[StepLine]:
    """What the sublayer reads: the stream, or the stream normalised."""
    if config.norm_position in {"pre", "sandwich"}:
        formula = {
            "layernorm": "h = w (x − mean) / √(var + ε) + b",
            "rmsnorm": "h = w x / √(mean x² + ε)",
            "none": "h = x",
        }[config.norm.kind]
        yield StepLine(
            key=f"{name}_norm",
            tap="",
            after=stream,
            formula=formula,
            code=(f"h = block.{name}_norm(x)",),
            variable="h",
        )


def _attention_sublayer(config: ModelConfig, layer: int) -> Iterator[StepLine]:
    prefix = f"blocks.{layer}"
    normed = tuple(_norm_before(config, "attn", "resid_pre"))
    yield from normed
    reads = "h" if normed else "x"
    if config.mla is None:
        yield from _heads(config, layer, reads)
        out = ["out = block.attn.o_proj(z.transpose(1, 2).flatten(2))"]
    else:
        out = [f"out = block.attn({reads}, layer={layer}, run=run)"]
    formula = "out = z Wo" if config.mla is None else "out = attention with latents"
    yield from _added(config, "attn", out, formula, f"{prefix}.attn_out", f"{prefix}.resid_mid")


def _added(
    config: ModelConfig, name: str, out: list[str], formula: str, tap: str, stream: str
) -> Iterator[StepLine]:
    """What a sublayer adds, and the stream after it."""
    if config.norm_position == "post_sublayer":
        out, formula = [*out, f"out = block.{name}_norm(out)"], f"{formula}, normalised"
    if config.norm_position == "sandwich":
        out, formula = [*out, f"out = block.{name}_post_norm(out)"], f"{formula}, normalised"
    yield StepLine(key=f"{name}_out", tap=tap, formula=formula, code=tuple(out), variable="out")
    added = "x + out" if config.residual else "out"
    if config.norm_position == "post_residual":
        added = f"block.{name}_norm({added})"
    key = stream.rpartition(".")[2]
    yield StepLine(
        key=key, tap=stream, formula=f"x = {added}", code=(f"x = {added}",), variable="x"
    )


def _heads(config: ModelConfig, layer: int, reads: str) -> Iterator[StepLine]:
    heads, prefix = config.attention, f"blocks.{layer}.attn"
    kind = config.layer_types[layer]
    for name, count in (("q", heads.n_heads), ("k", heads.n_kv_heads), ("v", heads.n_kv_heads)):
        code = [f"{name} = block.attn.{name}_proj({reads})"]
        formula = f"{name} = {reads} W{name}"
        turned = name != "v"
        if turned and heads.qk_norm == "full":
            code.append(f"{name} = block.attn.{name}_norm({name})")
            formula += ", normalised"
        code.append(f"{name} = {name}.unflatten(-1, ({count}, {heads.d_head})).transpose(1, 2)")
        if turned and heads.qk_norm == "head":
            code.append(f"{name} = block.attn.{name}_norm({name})")
            formula += ", normalised"
        if turned and config.positions == "rope":
            code.append(f"{name} = rotate({name}, *run.rotations[{kind!r}])")
            formula += ", turned by its position"
        yield StepLine(
            key=name, tap=f"{prefix}.{name}", formula=formula, code=tuple(code), variable=name
        )
    yield StepLine(
        key="scores",
        tap=f"{prefix}.scores",
        formula=f"scores = q kᵀ · {heads.score_scale:.6g}",
        code=("scores = attention_scores(q, k, model.config.attention)",),
        variable="scores",
    )
    yield StepLine(
        key="pattern",
        tap=f"{prefix}.pattern",
        formula="pattern = softmax(scores where the mask allows)",
        code=(f"pattern = attention_pattern(scores, run.mask({kind!r}))",),
        variable="pattern",
    )
    yield StepLine(
        key="z",
        tap=f"{prefix}.z",
        formula="z = pattern v",
        code=(f"z = pattern @ v.repeat_interleave({heads.group_size}, dim=1)",),
        variable="z",
    )


def _feed_forward_sublayer(config: ModelConfig, layer: int) -> Iterator[StepLine]:
    prefix = f"blocks.{layer}"
    normed = tuple(_norm_before(config, "ffn", "resid_mid"))
    yield from normed
    reads = "h" if normed else "x"
    if config.moe is None:
        yield from _plain_feed_forward(config, prefix, reads)
        out, formula = ["out = block.ffn.down_proj(post)"], "out = post Wdown"
    else:
        yield from _router(config, prefix, reads)
        out = [f'out = block.ffn({reads}, name="{prefix}.ffn", run=run)']
        formula = "out = Σ weight · expert(h)"
    yield from _added(config, "ffn", out, formula, f"{prefix}.ffn_out", f"{prefix}.resid_post")


def _plain_feed_forward(config: ModelConfig, prefix: str, reads: str) -> Iterator[StepLine]:
    gated = config.ffn.gated
    into = "gate_proj" if gated else "up_proj"
    yield StepLine(
        key="ffn_pre",
        tap=f"{prefix}.ffn.pre",
        formula=f"pre = {reads} W{into.removesuffix('_proj')}",
        code=(f"pre = block.ffn.{into}({reads})",),
        variable="pre",
    )
    times = f" * block.ffn.up_proj({reads})" if gated else ""
    yield StepLine(
        key="ffn_post",
        tap=f"{prefix}.ffn.post",
        formula=f"post = {config.ffn.activation}(pre)" + (f" ⊙ {reads} Wup" if gated else ""),
        code=(f"post = block.ffn.activation(pre){times}",),
        variable="post",
    )


def _router(config: ModelConfig, prefix: str, reads: str) -> Iterator[StepLine]:
    assert config.moe is not None, "asked for only where there are experts"
    yield StepLine(
        key="router",
        tap=f"{prefix}.router.logits",
        formula="logits = h Wr",
        code=(f"logits = block.ffn.router({reads})",),
        variable="logits",
    )
    code = [
        f"weights, chosen = logits.softmax(dim=-1, dtype=torch.float32).topk({config.moe.n_active})"
    ]
    if config.moe.normalise_weights:
        code.append("weights = weights / weights.sum(dim=-1, keepdim=True)")
    yield StepLine(
        key="router_weights",
        tap=f"{prefix}.router.weights",
        formula=f"weights = the {config.moe.n_active} largest of softmax(logits)",
        code=tuple(code),
        variable="weights",
    )


def _output(config: ModelConfig, layer: int) -> Iterator[StepLine]:
    last = config.n_layers - 1
    yield StepLine(
        key="last",
        tap=f"blocks.{last}.resid_post",
        formula="x = block(… block(x))",
        code=(f"for block in model.blocks[{layer + 1}:]:", "    x = block(x, run)"),
        variable="x",
    )
    yield StepLine(
        key="final_norm",
        tap="",
        after="last",
        formula="h = norm(x)",
        code=("h = model.final_norm(x)",),
        variable="h",
    )
    weight = "E" if config.tied_head else "Whead"
    cap = "" if config.logit_cap is None else f", capped at {config.logit_cap:g}"
    yield StepLine(
        key="logits",
        tap="logits",
        formula=f"logits = h {weight}{cap}",
        code=("logits = model.unembed(x)",),
        variable="logits",
    )
    yield StepLine(
        key="probabilities",
        tap="",
        after="logits",
        formula="p = softmax(logits)",
        code=("probabilities = logits.float().softmax(dim=-1)",),
        variable="probabilities",
    )


IMPORTS = (
    "import torch",
    "from models import load_model",
    "from models.attention import attention_pattern, attention_scores",
    "from models.forward_pass import start_pass",
    "from models.positions import sinusoidal_positions",
    "from models.rope import rotate",
)
START = ("run = start_pass(model.config, ids, valid=None, cache=None, trace=None, generator=None)",)


def make_pass_program(load: str, ids: tuple[int, ...], steps: tuple[StepLine, ...]) -> str:
    """All lines below each other, from the ids to the probabilities, as a program.

    Args:
        load: The call that loads the model.
        ids: The tokens.
        steps: What `list_steps` gave.
    """
    lines = [line for step in steps for line in step.code]
    return "\n".join(
        [
            *IMPORTS,
            "",
            f"model = {load}.model",
            f"ids = torch.tensor([{list(ids)!r}])",
            *START,
            "with torch.inference_mode():",
            *(f"    {line}" for line in lines),
            "print(probabilities[0, -1].topk(10))",
            "",
        ]
    )
