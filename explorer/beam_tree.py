"""Beam search as a tree with readable tokens, beside what greedy and drawing write.

The search is `models/beam.py`; this gives its nodes their texts and marks the way of the best.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

from explorer.continuations import WrittenToken, write_on
from explorer.next_token import MOST_PROMPT_TOKENS, SamplingSettings
from explorer.prompts import read_prompt
from explorer.tokens import label_of

if TYPE_CHECKING:
    from models.beam import BeamResult
    from models.loading import LoadedModel


@dataclass(frozen=True, kw_only=True)
class BeamSettings:
    """How wide and how long. The metadata of each field describes its control on the page.

    Args:
        n_beams: Continuations kept at once; 1 is greedy.
        max_new_tokens: Length.
        length_penalty: Finished texts are compared by sum / length ** this.
    """

    n_beams: int = field(default=3, metadata={"least": 1, "most": 8, "step": 1})
    max_new_tokens: int = field(default=6, metadata={"least": 1, "most": 16, "step": 1})
    length_penalty: float = field(default=1.0, metadata={"least": -2.0, "most": 3.0, "step": 0.1})


@dataclass(frozen=True)
class TreeNode:
    """One candidate.

    Args:
        label: Its token's text.
        parent: Index of the node before it; None follows the prompt.
        depth: 1 for the first new token.
        log_probability: Of this token after its parent, in nats.
        total: Sum over the path, in nats.
        status: Went on, was dropped, or ended a text.
        best: Whether it is on the way of the best text.
    """

    label: str
    parent: int | None
    depth: int
    log_probability: float
    total: float
    status: Literal["kept", "dropped", "finished"]
    best: bool


@dataclass(frozen=True)
class BeamText:
    """One finished text.

    Args:
        text: What it says.
        n_tokens: Its length.
        log_probability: Sum over its tokens, in nats.
        score: log_probability / n_tokens ** penalty.
    """

    text: str
    n_tokens: int
    log_probability: float
    score: float


@dataclass(frozen=True, kw_only=True)
class BeamTree:
    """A whole search, and two other ways to write on.

    Args:
        model_name: Which model.
        nodes: All candidates, parents before children.
        texts: Finished texts, best score first.
        greedy: What always taking the likeliest writes.
        drawn: What drawing from the model's own probabilities writes.
    """

    model_name: str
    nodes: tuple[TreeNode, ...]
    texts: tuple[BeamText, ...]
    greedy: tuple[WrittenToken, ...]
    drawn: tuple[WrittenToken, ...]


def compute_beam_tree(
    loaded: LoadedModel,
    text: str,
    settings: BeamSettings | None = None,
    *,
    chat: bool = False,
    seed: int = 123,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> BeamTree:
    """Search the best continuations of a text.

    Args:
        loaded: Any model with its tokenizer.
        text: The prompt.
        settings: Width, length, penalty.
        chat: Whether it is a message that the model answers.
        seed: Of the drawn text beside it.
        turn: Entered for each forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: No text, or impossible settings.
        ContextError: The text is too long.
    """
    from models.beam import BeamConfig, beam_search

    settings = settings or BeamSettings()
    ids = read_prompt(loaded, text, chat=chat, most_tokens=MOST_PROMPT_TOKENS)
    config = BeamConfig(
        n_beams=settings.n_beams,
        max_new_tokens=settings.max_new_tokens,
        length_penalty=settings.length_penalty,
    )
    found = beam_search(loaded.model, ids, config, stop_ids=loaded.stop_ids, turn=turn)

    def write(temperature: float) -> tuple[WrittenToken, ...]:
        dials = SamplingSettings(temperature=temperature, seed=seed)
        length = settings.max_new_tokens
        return tuple(write_on(loaded, ids, dials, max_new_tokens=length, turn=turn))

    decode = loaded.tokenizer.decode
    return BeamTree(
        model_name=loaded.info.name,
        nodes=name_nodes(found, partial(label_of, loaded.tokenizer)),
        texts=tuple(
            BeamText(decode(list(b.ids)), len(b.ids), b.log_probability, b.score)
            for b in found.beams
        ),
        greedy=write(0.0),
        drawn=write(1.0),
    )


def name_nodes(found: BeamResult, label: Callable[[int], str]) -> tuple[TreeNode, ...]:
    """The candidates of a search with their texts, and which of them the best text went through.

    Args:
        found: The search.
        label: Text of a token.
    """
    best: set[int] = set()
    at = found.beams[0].node if found.beams else None
    while at is not None:
        best.add(at)
        at = found.nodes[at].parent
    return tuple(
        TreeNode(
            label(node.id),
            node.parent,
            node.depth,
            node.log_probability,
            node.total,
            node.status,
            index in best,
        )
        for index, node in enumerate(found.nodes)
    )
