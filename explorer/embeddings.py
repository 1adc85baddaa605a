r"""Embeddings: a row of a matrix for each token, looked up, compared, drawn.

    lookup       E[id]  =  one_hot(id) @ E            the same numbers; the product only shows it
    neighbours   cosine(a, b) = a . b / (|a| |b|)
    map          the chosen rows minus their mean, on their two directions of largest spread (PCA)
    input        E[id] * scale + P[position]          where positions are added at all

Source: *Attention Is All You Need* (2017), arXiv 1706.03762, sections 3.4 and 3.5; *Build a Large
Language Model (From Scratch)* (2024), sections 2.7 and 2.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from explorer.errors import ConfigError
from explorer.tokens import label_of

if TYPE_CHECKING:
    import torch

    from models.decoder import Decoder
    from models.loading import LoadedModel
    from models.tokenizers.tokenizer import Tokenizer

MOST_TOY_NUMBERS = 64  # rows or columns of the small matrix
MOST_MAP_TOKENS = 200
SHOWN_NUMBERS = 8  # of a long vector
_ROWS_AT_ONCE = 8_192

PositionKind = Literal["learned", "sinusoidal", "rope", "none"]


@dataclass(frozen=True, kw_only=True)
class ToySetup:
    """A small matrix to look into.

    Args:
        n_rows: Tokens of its vocabulary.
        n_columns: Numbers of a row.
        seed: Of its numbers, drawn from N(0, 1) as PyTorch draws those of `nn.Embedding`.
    """

    n_rows: int = field(default=6, metadata={"step": 1})
    n_columns: int = field(default=3, metadata={"step": 1})
    seed: int = field(default=123, metadata={"step": 1})


@dataclass(frozen=True, kw_only=True, eq=False)
class Lookup:
    """Rows looked up, and the same by a product.

    Args:
        ids: The tokens.
        matrix: (rows, columns).
        one_hot: (tokens, rows), one 1 in each row.
        product: `one_hot @ matrix`, (tokens, columns).
        rows: `matrix[ids]`, (tokens, columns).
    """

    ids: tuple[int, ...]
    matrix: np.ndarray
    one_hot: np.ndarray
    product: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """Tokens whose rows point the same way.

    Args:
        id: The token.
        label: Readable.
        norm: Length of its row.
        ids: The nearest, best first, without itself.
        labels: Readable.
        cosines: From -1 to 1.
    """

    id: int
    label: str
    norm: float
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    cosines: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenMap:
    """Tokens on a plane.

    Args:
        ids: The tokens.
        labels: Readable.
        points: (tokens, 2).
        explained: Share of the spread of these rows that each axis shows.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    points: np.ndarray
    explained: tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class InputVectors:
    """What goes into the first block.

    Args:
        ids: The tokens.
        labels: Readable.
        kind: How the model knows positions: added vectors, or turned queries and keys.
        scale: What rows are multiplied by before positions are added.
        tokens: (tokens, D), rows of the embedding.
        positions: (tokens, D), what is added; zeros where nothing is.
        inputs: (tokens, D), as recorded in a forward pass.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    kind: PositionKind
    scale: float
    tokens: np.ndarray
    positions: np.ndarray
    inputs: np.ndarray


def compute_toy_lookup(ids: Sequence[int], setup: ToySetup) -> Lookup:
    """Look rows of a small random matrix up, in both ways.

    Args:
        ids: Tokens, 0 to `n_rows - 1`.
        setup: The matrix.

    Raises:
        ConfigError: A number cannot be used, or there is no such token.
    """
    import torch

    for name in ("n_rows", "n_columns", "seed"):
        value = getattr(setup, name)
        most = 2**63 - 1 if name == "seed" else MOST_TOY_NUMBERS
        if not isinstance(value, int) or not (0 if name == "seed" else 1) <= value <= most:
            problem = f"{name}={value!r} must be a whole number, at most {most:,}"
            raise ConfigError(problem, code="run-setting", problem=problem)
    wrong = [i for i in ids if not 0 <= i < setup.n_rows]
    if wrong or not ids or len(ids) > MOST_TOY_NUMBERS:
        problem = f"ids {list(ids)[:10]} must be 1 to {MOST_TOY_NUMBERS} numbers, each from 0 to "
        problem += f"{setup.n_rows - 1}"
        raise ConfigError(problem, code="run-setting", problem=problem)
    generator = torch.Generator().manual_seed(setup.seed)
    matrix = torch.randn(setup.n_rows, setup.n_columns, generator=generator).numpy()
    one_hot = np.eye(setup.n_rows, dtype=np.float32)[list(ids)]
    return Lookup(
        ids=tuple(ids),
        matrix=matrix,
        one_hot=one_hot,
        product=one_hot @ matrix,
        rows=matrix[list(ids)],
    )


def find_neighbours(loaded: LoadedModel, token: int, *, n: int = 12) -> Neighbours:
    """Find the tokens whose embedding rows are nearest in direction.

    Args:
        loaded: A model with its tokenizer.
        token: An id.
        n: How many.

    Raises:
        ConfigError: The model has no such row.
    """
    import torch

    n_rows = loaded.config.vocab_size
    _check_id(token, n_rows)
    with torch.inference_mode():
        row = _rows(loaded.model, [token])[0]
        cosines = torch.cat(
            [_cosines(loaded.model, row, range(start, min(start + _ROWS_AT_ONCE, n_rows)))
             for start in range(0, n_rows, _ROWS_AT_ONCE)]
        )  # fmt: skip
        cosines[token] = -torch.inf
        best = cosines.topk(min(n, n_rows - 1))
    ids = tuple(best.indices.tolist())
    return Neighbours(
        id=token,
        label=label_of(loaded.tokenizer, token),
        norm=float(row.norm()),
        ids=ids,
        labels=tuple(label_of(loaded.tokenizer, i) for i in ids),
        cosines=best.values.numpy(),
    )


def map_tokens(loaded: LoadedModel, ids: Sequence[int]) -> TokenMap:
    """Put tokens on a plane by the two directions in which their rows differ most.

    Args:
        loaded: A model with its tokenizer.
        ids: At least three different tokens.

    Raises:
        ConfigError: Fewer than three, too many, or the model has no such row.
    """
    import torch

    chosen = tuple(dict.fromkeys(ids))
    if not 3 <= len(chosen) <= MOST_MAP_TOKENS:
        raise ConfigError(
            f"a map takes 3 to {MOST_MAP_TOKENS} different tokens, this has {len(chosen)}; type "
            "some more words, or fewer",
            code="map-tokens",
            found=len(chosen),
            most=MOST_MAP_TOKENS,
        )
    for token in chosen:
        _check_id(token, loaded.config.vocab_size)
    with torch.inference_mode():
        rows = _rows(loaded.model, chosen).double()
        centred = rows - rows.mean(dim=0)
        left, sizes, _ = torch.linalg.svd(centred, full_matrices=False)
        points = (left[:, :2] * sizes[:2]).numpy()
    spread = sizes.square() / sizes.square().sum().clamp_min(1e-30)
    signs = np.sign(points[np.abs(points).argmax(axis=0), [0, 1]])  # a sign is nobody's choice
    return TokenMap(
        ids=chosen,
        labels=tuple(label_of(loaded.tokenizer, i) for i in chosen),
        points=points * np.where(signs == 0, 1, signs),
        explained=(float(spread[0]), float(spread[1])),
    )


def compute_input_vectors(
    loaded: LoadedModel,
    ids: Sequence[int],
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> InputVectors:
    """Take apart what goes into the first block: token, position, sum.

    Args:
        loaded: A model with its tokenizer.
        ids: The text.
        turn: Entered for the forward pass that records the sum.

    Raises:
        ConfigError: There is no token.
        ContextError: More tokens than the model has positions.
    """
    import torch

    from models.trace import Trace

    trace = Trace(record=("embed",))
    with turn(), torch.inference_mode():
        loaded.model(torch.tensor([list(ids)], device=loaded.model.device), trace=trace)
        inputs = trace["embed"][0].float().cpu()
        tokens = _rows(loaded.model, ids)
    config = loaded.config
    scale = float(torch.tensor(config.embedding_scale, dtype=loaded.model.dtype))
    kind: PositionKind = config.positions
    return InputVectors(
        ids=tuple(ids),
        labels=tuple(label_of(loaded.tokenizer, int(i)) for i in ids),
        kind=kind,
        scale=scale,
        tokens=tokens.numpy(),
        positions=_positions(loaded.model, len(ids)).numpy(),
        inputs=inputs.numpy(),
    )


def _positions(model: Decoder, n_tokens: int) -> torch.Tensor:
    """What is added at each place, (tokens, D); zeros where queries and keys are turned instead."""
    import torch

    from models.positions import sinusoidal_positions

    places, config = torch.arange(n_tokens, device=model.device), model.config
    if config.positions == "learned":
        return model.position_embed(places).float().cpu()
    if config.positions == "sinusoidal":
        return sinusoidal_positions(places[None], config.d_model)[0].cpu()
    return torch.zeros(n_tokens, config.d_model)


def _rows(model: Decoder, ids: Sequence[int] | range) -> torch.Tensor:
    """Rows of the embedding as float32, also of one in 8 bits."""
    import torch

    return model.embed(torch.tensor(list(ids), device=model.device)).float().cpu()


def _cosines(model: Decoder, row: torch.Tensor, ids: range) -> torch.Tensor:
    import torch

    return torch.nn.functional.cosine_similarity(_rows(model, ids), row[None], dim=1)


def _check_id(token: int, n_rows: int) -> None:
    if not 0 <= token < n_rows:
        raise ConfigError(
            f"token {token} has no row; choose 0 to {n_rows - 1}",
            code="embedding-row",
            token=token,
            last=n_rows - 1,
        )


def read_ids(typed: str) -> tuple[int, ...]:
    """Read ids typed with blanks or commas between them.

    Raises:
        ConfigError: Something else stands there.
    """
    words = typed.replace(",", " ").split()
    try:
        return tuple(int(word) for word in words)
    except ValueError as error:
        problem = f"ids {typed[:80]!r} must be whole numbers with blanks between them"
        raise ConfigError(problem, code="run-setting", problem=problem) from error


def first_token(tokenizer: Tokenizer, typed: str) -> int:
    """The first token of a text, or the id that `#17` names.

    Raises:
        ConfigError: Nothing was typed.
    """
    if typed[:1] == "#" and typed[1:].isdecimal():
        return int(typed[1:])
    ids = tokenizer.encode(typed)
    if not ids:
        raise ConfigError("there is no token; type a word", code="text-empty")
    return ids[0]


def read_map_tokens(tokenizer: Tokenizer, typed: str) -> tuple[int, ...]:
    """The tokens of words with blanks between them, each as it stands inside a sentence.

    A word of several tokens is left out: it has no row of its own.

    Args:
        tokenizer: Of the model.
        typed: The words.
    """
    pieces = (tokenizer.encode(" " + word) for word in typed.split())
    return tuple(ids[0] for ids in pieces if len(ids) == 1)
