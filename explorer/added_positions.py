"""Positions that are added to embeddings: sinusoidal and learned, and what they do to scores.

    PE(n, 2i) = sin(n / base^(2i/D))     PE(n, 2i+1) = cos(n / base^(2i/D))

Vaswani et al. 2017 (arXiv 1706.03762), section 3.5. The product of two sinusoidal positions is

    PE(n) . PE(m) = sum over i of cos((n - m) / base^(2i/D))

and depends on the distance alone. Added to embeddings, a score has four terms:

    (e_n + p_n) Wq . (e_m + p_m) Wk  =  e e  +  e p  +  p e  +  p p
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from explorer.attention_maps import check_index
from explorer.errors import ConfigError
from explorer.rope_frequencies import check_base
from explorer.tokens import label_of_bytes, units_of

if TYPE_CHECKING:
    from torch import Tensor

    from models.loading import LoadedModel

KINDS = ("sinusoidal", "learned")
TERMS = ("content-content", "content-position", "position-content", "position-position")
MOST_TOKENS = 64
TOKEN = {"least": -1, "most": MOST_TOKENS - 1, "step": 1, "counts": "text tokens"}


@dataclass(frozen=True, kw_only=True)
class AddedSettings:
    """Which positions.

    Args:
        kind: `sinusoidal`, or `learned`: those of the loaded model.
        n_positions: From 0.
        width: Of a sinusoidal vector; even.
        base: Of the sinusoids.
        position: Whose products with all others are drawn.
    """

    kind: str = field(default="sinusoidal", metadata={"choices": KINDS, "dial": True})
    n_positions: int = field(default=128, metadata={"least": 2, "most": 256, "step": 1})
    width: int = field(default=64, metadata={"least": 2, "most": 256, "step": 1})
    base: float = 10_000.0
    position: int = field(default=40, metadata={"least": 0, "most": 255, "step": 1})


@dataclass(frozen=True, kw_only=True, eq=False)
class AddedPositions:
    """Vectors of positions.

    Args:
        vectors: (positions, width).
        products: (positions,) of the chosen position with each.
        position: The chosen position.
    """

    vectors: NDArray[np.float32]
    products: NDArray[np.float32]
    position: int


def compute_added_positions(
    settings: AddedSettings, loaded: LoadedModel | None = None
) -> AddedPositions:
    """The vectors that are added, and their products.

    Args:
        settings: Which.
        loaded: The model, for learned positions.

    Raises:
        ConfigError: An odd width, a base without falling frequencies, or no learned positions.
    """
    if settings.kind == "learned":
        vectors = _learned(loaded)[: settings.n_positions]
    else:
        vectors = sinusoids(settings.n_positions, settings.width, settings.base)
    position = min(settings.position, len(vectors) - 1)
    return AddedPositions(vectors=vectors, products=vectors @ vectors[position], position=position)


def sinusoids(n_positions: int, width: int, base: float) -> NDArray[np.float32]:
    """Sinusoidal vectors of any base; at 10,000 those of `models/positions.py`.

    Raises:
        ConfigError: An odd width, or a base that is not above 1.
    """
    import torch

    from models.positions import BASE, sinusoidal_positions

    check_base(base)
    if width < 2 or width % 2:
        raise ConfigError(
            f"width={width} cannot hold pairs of sine and cosine; choose {width + 1}",
            code="positions-odd",
            width=width,
            other=width + 1,
        )
    places = torch.arange(n_positions)[None]
    if base == BASE:
        return sinusoidal_positions(places, width)[0].numpy()
    angles = places[0, :, None].double() * base ** -(torch.arange(0, width, 2).double() / width)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float().numpy()


def _learned(loaded: LoadedModel | None) -> NDArray[np.float32]:
    if loaded is None or loaded.config.positions != "learned":
        name = "no model" if loaded is None else loaded.info.name
        raise ConfigError(
            f"{name} has no learned positions; choose GPT-2, or train a GPT in the Pretrain tab",
            code="positions-not-learned",
            model=name,
        )
    return np.array(loaded.model.position_embed.weight.detach().float().cpu().numpy())


# ------------------------------------------------------------------------------- why, and terms
@dataclass(frozen=True, kw_only=True)
class SwapSettings:
    """Which two tokens change places.

    Args:
        text: What is read.
        first: One of them; -1 is the last token.
        second: The other.
        query: Whose score is taken apart.
        head: Of the first layer.
    """

    text: str = field(default="The dog bit the man", metadata={"text": True})
    first: int = field(default=1, metadata=TOKEN)
    second: int = field(default=-1, metadata=TOKEN)
    query: int = field(default=-1, metadata=TOKEN)
    head: int = field(default=0, metadata={"least": 0, "most": 127, "step": 1, "counts": "heads"})


@dataclass(frozen=True, kw_only=True, eq=False)
class Swap:
    """What swapping two tokens does to the first layer's attention.

    Args:
        labels: Of the tokens.
        without: (T,) size of the change of each token's output, followed to its new place, with no
            positions and no mask: rounding alone.
        with_them: (T,) the same with the model's positions.
        terms: Name -> (T,) part of the query's score with each key.
        scores: (T,) their sum, scaled.
        added_by: Which positions the terms are of.
    """

    labels: tuple[str, ...]
    without: NDArray[np.float32]
    with_them: NDArray[np.float32]
    terms: dict[str, NDArray[np.float32]]
    scores: NDArray[np.float32]
    added_by: str


def compute_swap(
    loaded: LoadedModel,
    settings: SwapSettings,
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Swap:
    """Swap two tokens, with and without positions, and take a score apart.

    Args:
        loaded: A decoder with queries and keys of its own.
        settings: What to swap.
        turn: Entered for the passes; where several share a device, it makes them wait.

    Raises:
        ConfigError: No such token or head, fewer than two tokens, or latent attention.
    """
    import torch

    if loaded.config.mla is not None:
        raise ConfigError(
            f"{loaded.info.name} has latent attention; choose another model",
            code="positions-latent",
            model=loaded.info.name,
        )
    ids = loaded.tokenizer.encode(settings.text)[:MOST_TOKENS]
    if len(ids) < 2:
        raise ConfigError("there is nothing to swap; type two words", code="text-empty")
    first, second, query = (
        _place(token, len(ids)) for token in (settings.first, settings.second, settings.query)
    )
    check_index("head", settings.head, loaded.config.attention.n_heads)
    order = list(range(len(ids)))
    order[first], order[second] = second, first
    row = torch.tensor([ids], device=loaded.model.device)
    with turn(), torch.inference_mode():
        changes = {kept: _change(loaded, row, order, positions=kept) for kept in (False, True)}
        terms, scale, added_by = _terms(loaded, row, query, settings.head)
    return Swap(
        labels=tuple(
            label_of_bytes(b"".join(u.token_bytes)) for u in units_of(loaded.tokenizer, ids)
        ),
        without=changes[False],
        with_them=changes[True],
        terms=terms,
        scores=sum(terms.values()) * scale,  # type: ignore[arg-type]
        added_by=added_by,
    )


def _place(token: int, n_tokens: int) -> int:
    token = n_tokens - 1 if token < 0 else token
    check_index("token", token, n_tokens)
    return token


def _change(
    loaded: LoadedModel, row: Tensor, order: list[int], *, positions: bool
) -> NDArray[np.float32]:
    """How far each token's output moves when two of them change places."""
    before = _attend(loaded, row, positions=positions)
    after = _attend(loaded, row[:, order], positions=positions)[:, order]
    return np.array((after - before)[0].float().norm(dim=-1).cpu().numpy())


def _attend(loaded: LoadedModel, row: Tensor, *, positions: bool) -> Tensor:
    """The first layer's attention over embeddings; every token sees all."""
    from models.forward_pass import start_pass

    model, config = loaded.model, loaded.config
    run = start_pass(config, row, valid=None, cache=None, trace=None, generator=None)
    run = replace(run, is_causal=False, window=None)
    x = model.embed(row)
    if not positions:
        run = replace(run, rotations={})
    elif config.positions != "rope":
        x = x + _added_vectors(loaded, row.shape[1])[0]
    block: Any = model.blocks[0]
    out: Tensor = block.attn(block.attn_norm(x), layer=0, run=run)
    return out


def _added_vectors(loaded: LoadedModel, n_tokens: int) -> tuple[Tensor, str]:
    """Learned positions where the model has them, else sinusoidal ones of its width."""
    import torch

    model, width = loaded.model, loaded.config.d_model
    if loaded.config.positions == "learned":
        return model.position_embed.weight[:n_tokens], "learned"
    vectors = torch.from_numpy(sinusoids(n_tokens, width + width % 2, 10_000.0))[:, :width]
    # of the size of the embeddings: sinusoids are made for embeddings times sqrt(D)
    size = model.embed.weight.float().square().mean().sqrt() * 2**0.5
    return (vectors * size.cpu()).to(model.device, model.dtype), "sinusoidal"


def _terms(
    loaded: LoadedModel, row: Tensor, query: int, head: int
) -> tuple[dict[str, NDArray[np.float32]], float, str]:
    """The four parts of one query's products with all keys, by the weights of the first layer."""
    config, heads = loaded.config, loaded.config.attention
    attention: Any = loaded.model.blocks[0].attn
    content, (position, added_by) = loaded.model.embed(row)[0], _added_vectors(loaded, row.shape[1])
    group = head // heads.group_size

    def project(weight: Tensor, vectors: Tensor, number: int) -> Tensor:
        rows = slice(number * heads.d_head, (number + 1) * heads.d_head)
        return vectors.float() @ weight[rows].float().T

    def part(of_query: Tensor, of_key: Tensor) -> NDArray[np.float32]:
        q = project(attention.q_proj.weight, of_query, head)[query]
        return np.array((project(attention.k_proj.weight, of_key, group) @ q).cpu().numpy())

    parts = (part(a, b) for a in (content, position) for b in (content, position))
    assert config.d_model == content.shape[-1], "both are as wide as the stream"
    return dict(zip(TERMS, parts, strict=True)), heads.score_scale, added_by
