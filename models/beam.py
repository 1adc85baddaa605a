"""Beam search: several continuations at once, of which the best are kept after each token.

    The ─┬─ cat  -0.4 ─┬─ sat  -1.1   kept
         │             └─ ran  -2.0   dropped
         └─ dog  -1.2 ─┬─ ran  -1.5   kept
                       └─ .    -1.9   finished

Each candidate's number is the sum of the log-probabilities of its tokens (nats); after each token
the n best unfinished ones go on. Finished ones are compared by sum / length ** penalty, so that
penalty 0 favours short texts and 1 compares means (Wu et al. 2016, arXiv 1609.08144, section 7, has
another form; this one is that of `transformers`, whose results these equal, tested).

The search ends when n texts have finished and the best open one, at its present length, is no
better than the worst of them. Longer it could still become better: the usual shortcut, and that of
the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from models.cache import KVCache
from models.decoder import Decoder
from models.errors import ConfigError, ContextError
from models.generation import PREFILL_CHUNK

Status = Literal["kept", "dropped", "finished"]
BeamFinish = Literal["stop", "length", "context"]
# Which row each new beam goes on from, and its new token -> logits of the token after it.
Advance = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class BeamConfig:
    """How wide and how long to search.

    Args:
        n_beams: Continuations kept at once; 1 is greedy.
        max_new_tokens: At most so many.
        length_penalty: Finished texts are compared by sum / length ** this; above 0 favours long.
    """

    n_beams: int = 4
    max_new_tokens: int = 32
    length_penalty: float = 1.0

    def __post_init__(self) -> None:
        for name in ("n_beams", "max_new_tokens"):
            value = getattr(self, name)
            if value < 1:
                raise ConfigError(f"BeamConfig: {name}={value!r} must be at least 1")


@dataclass(frozen=True)
class BeamNode:
    """One candidate of the search tree.

    Args:
        id: Its token.
        parent: Index of the node before it; None follows the prompt.
        depth: 1 for the first new token.
        log_probability: Of this token after its parent, in nats.
        total: Sum over the path, in nats.
        status: `kept`: went on; `dropped`: was not among the best; `finished`: ended a text.
    """

    id: int
    parent: int | None
    depth: int
    log_probability: float
    total: float
    status: Status


@dataclass(frozen=True)
class Beam:
    """One finished continuation.

    Args:
        ids: Its new tokens, a stop token included.
        log_probability: Sum over them, in nats.
        score: log_probability / length ** penalty.
        node: Index of its last node.
        finish: `stop`: ended by a stop id; `length`: as long as asked for; `context`: the model
            cannot read further.
    """

    ids: tuple[int, ...]
    log_probability: float
    score: float
    node: int
    finish: BeamFinish


@dataclass(frozen=True)
class BeamResult:
    """A whole search.

    Args:
        beams: Finished continuations, best score first; at most n_beams.
        nodes: All candidates that were looked at, parents before children.
    """

    beams: tuple[Beam, ...]
    nodes: tuple[BeamNode, ...]


def beam_search(
    model: Decoder,
    ids: Sequence[int],
    config: BeamConfig | None = None,
    *,
    stop_ids: Collection[int] = (),
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> BeamResult:
    """Search the best continuations of a prompt.

    Args:
        model: Any decoder.
        ids: The prompt.
        config: Width, length, penalty.
        stop_ids: Any of these ends a text.
        turn: Entered for each forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: An empty prompt.
        ContextError: The prompt leaves the model no room.
    """
    config = config or BeamConfig()
    room = _room(len(ids), model.config.context_length, config.max_new_tokens)
    cache = KVCache(model.config, 1, len(ids) + room, dtype=model.dtype, device=model.device)

    def advance(rows: Tensor, new: Tensor) -> Tensor:
        cache.select_rows(rows)
        with turn(), torch.inference_mode():
            return model(new.to(model.device)[:, None], cache=cache, last_only=True)[:, -1]

    for at in range(0, len(ids), PREFILL_CHUNK):
        with turn(), torch.inference_mode():
            chunk = torch.tensor([list(ids[at : at + PREFILL_CHUNK])], device=model.device)
            logits = model(chunk, cache=cache, last_only=True)[:, -1]
    return search(logits, advance, config, stop_ids=stop_ids, room=room)


def _room(n_tokens: int, limit: int, max_new_tokens: int) -> int:
    if n_tokens == 0:
        raise ConfigError("the prompt is empty; give at least one token", code="text-empty")
    if n_tokens >= limit:
        raise ContextError(
            f"the prompt has {n_tokens} tokens, the model reads at most {limit} with the answer; "
            "shorten it or choose a model with more context",
            code="context-too-long",
            asked=n_tokens,
            limit=limit,
        )
    return min(max_new_tokens, limit - n_tokens)


def search(
    logits: Float[Tensor, "1 V"],
    advance: Advance,
    config: BeamConfig,
    *,
    stop_ids: Collection[int],
    room: int,
) -> BeamResult:
    """The search itself, over anything that scores next tokens.

    Args:
        logits: After the prompt.
        advance: (which row each beam goes on from (n), its new token (n)) -> logits (n, V).
        config: Width, length, penalty.
        stop_ids: Any of these ends a text.
        room: Longest continuation, at most config.max_new_tokens.
    """
    tree = _Tree(config, frozenset(stop_ids), room)
    open_beams: list[int | None] = [None]  # the prompt
    for depth in range(1, room + 1):
        rows, open_beams = tree.grow(open_beams, logits, depth)
        if depth == room or tree.is_decided(open_beams):
            break
        new = torch.tensor([tree.nodes[i].id for i in open_beams if i is not None])
        logits = advance(torch.tensor(rows), new)
    return tree.result()


class _Tree:
    """The candidates so far."""

    def __init__(self, config: BeamConfig, stop_ids: frozenset[int], room: int) -> None:
        self.config, self.stop_ids, self.room = config, stop_ids, room
        self.nodes: list[BeamNode] = []
        self.finished: list[Beam] = []

    def grow(
        self, open_beams: list[int | None], logits: Tensor, depth: int
    ) -> tuple[list[int], list[int | None]]:
        """Add the best candidates of one step; returns (row of each that goes on, its node)."""
        log_probabilities = logits.float().log_softmax(dim=-1).cpu()
        totals = log_probabilities + torch.tensor([[self._total(i)] for i in open_beams])
        rows, following = [], list[int | None]()
        for rank, (row, id_) in enumerate(self._best(totals)):
            total = float(totals[row, id_])
            ends = id_ in self.stop_ids or depth == self.room
            # a text may finish only while it is among the n best; else it would be compared
            # with those that were worth going on with
            status: Status = "dropped"
            if ends:
                status = "finished" if rank < self.config.n_beams else "dropped"
            elif len(following) < self.config.n_beams:
                status = "kept"
                rows.append(row)
                following.append(len(self.nodes))
            step = float(log_probabilities[row, id_])
            self.nodes.append(BeamNode(id_, open_beams[row], depth, step, total, status))
            if status == "finished":
                self._finish(len(self.nodes) - 1)
        return rows, following

    def is_decided(self, open_beams: list[int | None]) -> bool:
        """Whether no open text can be expected to beat a finished one."""
        if len(self.finished) < self.config.n_beams or not open_beams:
            return not open_beams
        best = max(self._score(self.nodes[i]) for i in open_beams if i is not None)
        return best <= self.finished[-1].score

    def result(self) -> BeamResult:
        """What was found."""
        return BeamResult(beams=tuple(self.finished), nodes=tuple(self.nodes))

    def _best(self, totals: Float[Tensor, "n V"]) -> list[tuple[int, int]]:
        """(row, token) of the best, enough for n to go on if every stop token is among them."""
        count = self.config.n_beams * max(2, 1 + len(self.stop_ids))
        flat = totals.flatten().topk(min(count, totals.numel())).indices
        n_tokens = totals.shape[1]
        return [(place // n_tokens, place % n_tokens) for place in flat.tolist()]

    def _total(self, node: int | None) -> float:
        return 0.0 if node is None else self.nodes[node].total

    def _score(self, node: BeamNode) -> float:
        return node.total / node.depth**self.config.length_penalty

    def _finish(self, index: int) -> None:
        node = self.nodes[index]
        finish: BeamFinish = "length" if self.room == self.config.max_new_tokens else "context"
        beam = Beam(
            ids=self._path(index),
            log_probability=node.total,
            score=self._score(node),
            node=index,
            finish="stop" if node.id in self.stop_ids else finish,
        )
        best = sorted([*self.finished, beam], key=lambda b: b.score, reverse=True)
        self.finished = best[: self.config.n_beams]

    def _path(self, index: int) -> tuple[int, ...]:
        ids = []
        at: int | None = index
        while at is not None:
            ids.append(self.nodes[at].id)
            at = self.nodes[at].parent
        return tuple(reversed(ids))
