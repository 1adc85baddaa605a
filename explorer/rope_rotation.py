"""One rotated pair, and scores against distance, with the queries and keys of a loaded model.

    q_n = R(n) q        k_m = R(m) k        q_n . k_m = q . R(m - n) k

The recorded queries and keys are turned back to position 0 first (a rotation undone is the vector
itself), so that both can be put at any position. Su et al. 2021 (arXiv 2104.09864), eq. 16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from explorer.attention_maps import AttentionMaps, check_index, compute_attention
from explorer.errors import ConfigError
from explorer.rope_frequencies import check_base

if TYPE_CHECKING:
    from models.loading import LoadedModel
    from models.rope_config import RopeConfig

SHIFTS = (0, 1, 7, 100, 1_000, 10_000)
MOST_DISTANCE = 4_096


@dataclass(frozen=True, kw_only=True, eq=False)
class UnturnedHead:
    """Queries and keys of one head of a text, before rotation.

    Args:
        labels: One for each token.
        queries: (T, d).
        keys: (T, d).
        scale: Factor on their products.
        rope: The rotation of this layer.
    """

    labels: tuple[str, ...]
    queries: NDArray[np.float32]
    keys: NDArray[np.float32]
    scale: float
    rope: RopeConfig


@dataclass(frozen=True, kw_only=True, eq=False)
class DistanceScores:
    """Scores of one query and one key as they move apart.

    Args:
        distances: (n,) tokens between them.
        scores: (n,) scaled product.
        of_pair: (n,) the part that one pair of numbers adds.
        shifts: Where the key stands in the proof.
        shifted: Score at one and the same distance, with both moved by each of `shifts`.
        distance: That distance.
    """

    distances: NDArray[np.int64]
    scores: NDArray[np.float32]
    of_pair: NDArray[np.float32]
    shifts: tuple[int, ...]
    shifted: NDArray[np.float32]
    distance: int


@dataclass(frozen=True, kw_only=True, eq=False)
class TurnedPair:
    """One pair of a query as its position grows.

    Args:
        positions: (n,), from 0.
        points: (n, 2).
        frequency: Radians a token.
    """

    positions: NDArray[np.int64]
    points: NDArray[np.float32]
    frequency: float


def read_unturned_head(
    loaded: LoadedModel,
    text: str,
    layer: int,
    head: int,
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> UnturnedHead:
    """Read a text, and undo the rotation of one head's queries and keys.

    Args:
        loaded: A model with rotary positions.
        text: What to read.
        layer: Which layer.
        head: Which query head; its key/value head follows.
        turn: Entered for the forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: No such layer or head, no text, or the model does not rotate.
    """
    config = loaded.config
    check_index("layer", layer, config.n_layers)
    check_index("head", head, config.attention.n_heads)
    if config.positions != "rope" or config.mla is not None:
        raise ConfigError(
            f"{loaded.info.name} does not rotate its queries and keys (positions="
            f"{config.positions!r}); choose a Llama, Qwen, Gemma or Olmo",
            code="rope-missing",
            model=loaded.info.name,
        )
    maps = compute_attention(loaded, text, turn=turn)
    rope = config.rope[config.layer_types[layer]]
    return UnturnedHead(
        labels=maps.labels,
        queries=_turn_back(maps.queries[layer][head], rope, len(maps.ids)),
        keys=_turn_back(_keys_of(maps, layer, head), rope, len(maps.ids)),
        scale=config.attention.score_scale,
        rope=rope,
    )


def _keys_of(maps: AttentionMaps, layer: int, head: int) -> NDArray[np.float32]:
    return maps.keys[layer][head // (maps.n_heads // maps.n_kv_heads)]


def _turn_back(turned: NDArray[np.float32], rope: RopeConfig, length: int) -> NDArray[np.float32]:
    """Rotate by minus the angle, and take out the attention factor."""
    import torch

    from models.rope import rope_tables, rotate

    vectors = torch.from_numpy(turned)[None, None]
    cosines, sines = rope_tables(rope, vectors.shape[-1], torch.arange(length)[None])
    size = cosines.square() + sines.square()  # 1, or the square of YaRN's factor
    back: Any = rotate(vectors, cosines / size, -sines / size)
    turned_back: NDArray[np.float32] = back[0, 0].numpy()
    return turned_back


def turn_to(
    vector: NDArray[np.float32], rope: RopeConfig, positions: Sequence[int]
) -> NDArray[np.float32]:
    """One vector at each of several positions, (positions, d).

    Args:
        vector: (d,), unturned.
        rope: The rotation.
        positions: Where to put it.
    """
    import torch

    from models.rope import rope_tables, rotate

    places = torch.tensor([list(positions)])
    cosines, sines = rope_tables(rope, vector.shape[-1], places)
    repeated = torch.from_numpy(vector).expand(1, 1, len(positions), -1)
    return rotate(repeated, cosines, sines)[0, 0].numpy()


def compute_turned_pair(
    vector: NDArray[np.float32], rope: RopeConfig, pair: int, position: int
) -> TurnedPair:
    """Where one pair of a vector points at each position up to `position`.

    Args:
        vector: (d,), unturned.
        rope: The rotation.
        pair: Which pair, from 0.
        position: The last position.

    Raises:
        ConfigError: There is no such pair.
    """
    from models.rope import inverse_frequencies

    half = vector.shape[-1] // 2
    check_pair(pair, half)
    positions = np.arange(position + 1)
    turned = turn_to(vector, rope, positions.tolist())
    return TurnedPair(
        positions=positions,
        points=turned[:, [pair, pair + half]],
        frequency=float(inverse_frequencies(rope, 2 * half)[pair]),
    )


def check_pair(pair: int, n_pairs: int) -> None:
    """Refuse a pair that a head does not have.

    Raises:
        ConfigError: It is outside 0 to n_pairs - 1.
    """
    if not 0 <= pair < n_pairs:
        raise ConfigError(
            f"there is no pair {pair}; this head has the pairs 0 to {n_pairs - 1}",
            code="rope-pair",
            index=pair,
            last=n_pairs - 1,
        )


def compute_distance_scores(
    head: UnturnedHead, query: int, key: int, *, pair: int, distance: int, most: int
) -> DistanceScores:
    """Scores of one query and one key at every distance, and the proof that nothing else counts.

    Args:
        head: Unturned queries and keys.
        query: Token of the query.
        key: Token of the key.
        pair: Whose part is told apart.
        distance: At which the proof is made.
        most: Largest distance.

    Raises:
        ConfigError: No such token or pair.
    """
    check_index("token", query, len(head.labels))
    check_index("token", key, len(head.labels))
    half = head.queries.shape[-1] // 2
    check_pair(pair, half)
    distances = np.arange(min(most, MOST_DISTANCE) + 1)
    queries = turn_to(head.queries[query], head.rope, distances.tolist())
    still = turn_to(head.keys[key], head.rope, [0])[0]
    both = [pair, pair + half]
    return DistanceScores(
        distances=distances,
        scores=queries @ still * head.scale,
        of_pair=queries[:, both] @ still[both] * head.scale,
        shifts=SHIFTS,
        shifted=_shifted(head, query, key, distance),
        distance=distance,
    )


def _shifted(head: UnturnedHead, query: int, key: int, distance: int) -> NDArray[np.float32]:
    queries = turn_to(head.queries[query], head.rope, [s + distance for s in SHIFTS])
    keys = turn_to(head.keys[key], head.rope, SHIFTS)
    products: NDArray[np.float32] = (queries * keys).sum(axis=1) * head.scale
    return products


def with_base(head: UnturnedHead, base: float) -> UnturnedHead:
    """The same queries and keys, rotated with another base and no scaling.

    Raises:
        ConfigError: No such base.
    """
    from models.rope_config import RopeConfig

    check_base(base)
    return UnturnedHead(
        labels=head.labels,
        queries=head.queries,
        keys=head.keys,
        scale=head.scale,
        rope=RopeConfig(theta=base),
    )


# ------------------------------------------------------------------------------------ pairing
@dataclass(frozen=True, kw_only=True, eq=False)
class Pairings:
    """Two conventions of what forms a pair.

    Args:
        order: (d,): place i of the split-half layout holds number `order[i]` of the interleaved.
        split_score: Score with the model's own convention.
        interleaved_score: Neighbours rotated, after both vectors were put into that order.
        wrong_score: Neighbours rotated in vectors that are stored as split halves.
    """

    order: NDArray[np.int64]
    split_score: float
    interleaved_score: float
    wrong_score: float


def interleaved_order(d_head: int) -> NDArray[np.int64]:
    """Which number of an interleaved vector stands at each place of a split one: 0 2 4 .. 1 3 5."""
    return np.concatenate([np.arange(0, d_head, 2), np.arange(1, d_head, 2)])


def rotate_neighbours(
    vector: NDArray[np.float32], rope: RopeConfig, position: int
) -> NDArray[np.float32]:
    """Rotate the pairs (0, 1), (2, 3), ... of a vector (d,), the paper's convention."""
    order = interleaved_order(vector.shape[-1])
    turned = np.empty_like(vector)
    turned[order] = turn_to(np.ascontiguousarray(vector[order]), rope, [position])[0]
    return turned


def compute_pairings(head: UnturnedHead, query: int, key: int, distance: int) -> Pairings:
    """Score a query and a key at a distance with both conventions, and with them mixed up.

    Args:
        head: Unturned queries and keys.
        query: Token of the query.
        key: Token of the key.
        distance: Tokens between them.
    """
    q, k, order = head.queries[query], head.keys[key], interleaved_order(head.queries.shape[-1])
    to_neighbours = np.argsort(order)

    def score(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
        return float(a @ b) * head.scale

    split = score(turn_to(q, head.rope, [distance])[0], turn_to(k, head.rope, [0])[0])
    swapped = [vector[to_neighbours] for vector in (q, k)]
    neighbours = score(
        rotate_neighbours(swapped[0], head.rope, distance),
        rotate_neighbours(swapped[1], head.rope, 0),
    )
    wrong = score(rotate_neighbours(q, head.rope, distance), rotate_neighbours(k, head.rope, 0))
    return Pairings(order=order, split_score=split, interleaved_score=neighbours, wrong_score=wrong)
