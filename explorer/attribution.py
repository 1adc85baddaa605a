"""Direct logit attribution: what each part of the model adds to one logit.

    logit of w = u_w · norm(x),    x = embedding + Σ attention outputs + Σ feed-forward outputs

The final norm divides by one number, the size of x. With that number held at its value in this pass
the logit is a sum over the parts (Elhage et al. 2021, *A Mathematical Framework for Transformer
Circuits*, "additive structure"):

    part c adds     RMSNorm     c · (g ⊙ u_w) / rms(x)
                    LayerNorm   (c - mean(c)) · (g ⊙ u_w) / std(x),   and once   b · u_w

An attention output is a sum over heads, W_O's columns of that head times its z, and a feed-forward
output one over its neurons. Where a norm stands after a sublayer (Gemma, Olmo 2 and 3), its divisor
is held in the same way. A soft cap on the logits is no sum: parts add up to the logit before it.

What is *direct* here is only the last step: a part that other layers read from counts for what it
writes to the stream itself, not for what the others made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError
from explorer.lens_targets import Target, find_target, own_answer, place_in
from explorer.tokens import TokenUnit, label_of, labels_of_units, units_of

if TYPE_CHECKING:
    from models.loading import LoadedModel

MOST_TOKENS = 512
N_NEURONS = 10
N_WORDS = 5


@dataclass(frozen=True, kw_only=True)
class Neuron:
    """One neuron of a feed-forward layer.

    Args:
        layer: Its layer.
        index: Its place in the layer.
        activation: What enters the down projection.
        contribution: What it adds to the logit.
        promotes: Tokens whose logits it raises most, at the sign of its activation.
    """

    layer: int
    index: int
    activation: float
    contribution: float
    promotes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Attribution:
    """What the parts add to one logit at one position.

    Args:
        model_name: Which model.
        ids: The text.
        labels: One for each token.
        units: The text in units that people see as one character or word.
        position: After which token.
        target: The token whose logit it is.
        logit: As the model says it.
        logit_before_cap: What the parts add up to; the same where logits are not capped.
        embedding: What token (and learned position) embedding add.
        heads: (L, H).
        attention_bias: (L,), of the output projection and the norm after it.
        feed_forward: (L,).
        constant: The bias of the final norm; 0 without one.
        stream_norms: (L + 1,), length of the stream at this position, from the embedding on.
        neurons: Those that add most, over all layers; none with experts.
    """

    model_name: str
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    units: tuple[TokenUnit, ...]
    position: int
    target: Target
    logit: float
    logit_before_cap: float
    embedding: float
    heads: NDArray[np.float64]
    attention_bias: NDArray[np.float64]
    feed_forward: NDArray[np.float64]
    constant: float
    stream_norms: NDArray[np.float64]
    neurons: tuple[Neuron, ...]

    @property
    def attention(self) -> NDArray[np.float64]:
        """(L,), all heads of a layer and its bias."""
        return self.heads.sum(axis=1) + self.attention_bias

    @property
    def total(self) -> float:
        """The sum of all parts: the logit before any cap."""
        layers = float(self.attention.sum() + self.feed_forward.sum())
        return self.embedding + layers + self.constant


def compute_attribution(
    loaded: LoadedModel,
    ids: Sequence[int],
    *,
    position: int = -1,
    target: str = "",
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Attribution:
    """Split one logit into what each part of the model adds.

    Args:
        loaded: Any decoder with its tokenizer.
        ids: The text.
        position: After which token; negative counts from the end.
        target: Whose logit; "" takes the model's own answer.
        turn: Entered for the forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: No such position, or a model whose stream is no sum.
        ContextError: The text is too long for the model.
    """
    import torch

    config = loaded.config
    _check_stream(loaded)
    position = place_in(position, len(ids))
    with turn(), torch.inference_mode():
        seen = _Pass(loaded, list(ids), position)
        own = int(seen.logits.argmax())
        followed = find_target(loaded, target) if target else own_answer(loaded, own)
        direction, constant = seen.read_direction(followed.id)
        heads, biases = zip(
            *(seen.split_attention(i, direction) for i in range(config.n_layers)), strict=True
        )
        forward = [
            float(seen.at(f"blocks.{i}.ffn_out") @ direction) for i in range(config.n_layers)
        ]
        neurons = () if config.moe is not None else seen.find_neurons(direction)
    units = units_of(loaded.tokenizer, ids)
    return Attribution(
        model_name=loaded.info.name,
        ids=tuple(ids),
        labels=labels_of_units(units),
        units=units,
        position=position,
        target=followed,
        logit=float(seen.logits[followed.id]),
        logit_before_cap=float(seen.final @ direction) + constant,
        embedding=float(seen.at("embed") @ direction),
        heads=np.stack(heads),
        attention_bias=np.array(biases),
        feed_forward=np.array(forward),
        constant=constant,
        stream_norms=seen.stream_norms(),
        neurons=neurons,
    )


def _check_stream(loaded: LoadedModel) -> None:
    config = loaded.config
    if not config.residual or config.norm_position == "post_residual":
        raise ConfigError(
            "the stream of this model is normalised or replaced in every layer, so that no part "
            "keeps what it added; choose a model with residual connections and norms beside them",
            code="attribution-no-sum",
        )


class _Pass:
    """One recorded pass, looked at in one position, in float64: sums of many small numbers."""

    def __init__(self, loaded: LoadedModel, ids: list[int], position: int) -> None:
        import torch

        from models.trace import Trace

        self._loaded, self._position = loaded, position
        record = ["embed", "blocks.*.attn.z", "blocks.*.attn_out", "blocks.*.ffn_out"]
        record += ["blocks.*.resid_post"]
        if loaded.config.moe is None:
            record.append("blocks.*.ffn.post")
        self._trace = Trace(record=tuple(record))
        row = torch.tensor([ids], device=loaded.model.device)
        logits = loaded.model(row, trace=self._trace)
        self.logits = logits[0, position].double()
        self.final = self.at(f"blocks.{loaded.config.n_layers - 1}.resid_post")

    def at(self, name: str) -> Any:
        """A recorded vector at the position."""
        return self._trace[name][0, self._position].double()

    def stream_norms(self) -> NDArray[np.float64]:
        """Length of the stream after the embedding and after each layer."""
        layers = (self.at(f"blocks.{i}.resid_post") for i in range(self._loaded.config.n_layers))
        return np.array([float(x.norm()) for x in (self.at("embed"), *layers)])

    def read_direction(self, token: int) -> tuple[Any, float]:
        """(D,) that the stream is multiplied with to give this token's logit, and what is added."""
        model = self._loaded.model
        output = model.embed if self._loaded.config.tied_head else model.head
        return _through_norm(model.final_norm, self.final, output.weight[token].double())

    def split_attention(self, layer: int, direction: Any) -> tuple[NDArray[np.float64], float]:
        """What each head of a layer adds (H,), and the bias."""
        attn: Any = self._loaded.model.blocks[layer].attn
        z = self._trace[f"blocks.{layer}.attn.z"][0, :, self._position].double()
        weight = attn.o_proj.weight.double()
        out = weight @ z.flatten()
        bias = 0.0
        if attn.o_proj.bias is not None:
            out = out + attn.o_proj.bias.double()
        direction, constant = self._before_post_norm(layer, "attn", out, direction)
        if attn.o_proj.bias is not None:
            bias = float(attn.o_proj.bias.double() @ direction)
        read = (weight.T @ direction).unflatten(0, z.shape)
        return (read * z).sum(dim=-1).cpu().numpy(), bias + constant

    def find_neurons(self, direction: Any) -> tuple[Neuron, ...]:
        """The neurons of all layers that add most, in either direction."""
        import torch

        contributions, activations = [], []
        blocks: Any = self._loaded.model.blocks
        for layer, block in enumerate(blocks):
            post = self.at(f"blocks.{layer}.ffn.post")
            down = block.ffn.down_proj
            weight = down.weight.double()
            out = weight @ post if down.bias is None else weight @ post + down.bias.double()
            into, _ = self._before_post_norm(layer, "ffn", out, direction)
            contributions.append(post * (weight.T @ into))
            activations.append(post)
        table, posts = torch.stack(contributions), torch.stack(activations)
        best = table.abs().flatten().topk(min(N_NEURONS, table.numel())).indices.tolist()
        places = [divmod(place, table.shape[1]) for place in best]
        return tuple(
            self._describe(i, j, float(posts[i, j]), float(table[i, j])) for i, j in places
        )

    def _describe(self, layer: int, index: int, activation: float, added: float) -> Neuron:
        model: Any = self._loaded.model
        column = model.blocks[layer].ffn.down_proj.weight[:, index].double()
        if activation < 0:
            column = -column
        scale, _ = _through_norm(model.final_norm, self.final, column.new_ones(len(column)))
        output = model.embed if self._loaded.config.tied_head else model.head
        raised = output.weight @ (column * scale).to(output.weight.dtype)
        words = raised.topk(N_WORDS).indices.tolist()
        return Neuron(
            layer=layer,
            index=index,
            activation=activation,
            contribution=added,
            promotes=tuple(label_of(self._loaded.tokenizer, token) for token in words),
        )

    def _before_post_norm(
        self, layer: int, sublayer: str, out: Any, direction: Any
    ) -> tuple[Any, float]:
        """The direction as it reads a sublayer's output in front of the norm after it."""
        block: Any = self._loaded.model.blocks[layer]
        if self._loaded.config.norm_position == "post_sublayer":
            norm = block.attn_norm if sublayer == "attn" else block.ffn_norm
        elif self._loaded.config.norm_position == "sandwich":
            norm = block.attn_post_norm if sublayer == "attn" else block.ffn_post_norm
        else:
            return direction, 0.0
        return _through_norm(norm, out, direction)


def _through_norm(norm: Any, x: Any, direction: Any) -> tuple[Any, float]:
    """(D,) and a constant with norm(x) · direction = x · result + constant, its divisor held."""
    from models.norms import LayerNorm, NoNorm, UnitOffsetRMSNorm

    if isinstance(norm, NoNorm):
        return direction, 0.0
    weight = norm.weight.double()
    if isinstance(norm, LayerNorm):
        scaled = weight * direction / (x.var(unbiased=False) + norm.eps).sqrt()
        return scaled - scaled.mean(), float(norm.bias.double() @ direction)
    if isinstance(norm, UnitOffsetRMSNorm):
        weight = 1 + weight
    return weight * direction / (x.square().mean() + norm.eps).sqrt(), 0.0
