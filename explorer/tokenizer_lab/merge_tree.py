r"""How one word becomes tokens: every join with its rank, and the tree that the joins make.

    newest   n e w e s t                   newest
             n e w es t     rank 0        /      \
             n e w est      rank 1      new      est
             ne w est ...               / \      / \

Why " hello" and "hello" differ: the space belongs to the word, written Ġ (byte 32 in GPT-2's table
of visible characters, byte_table.py), so that the joins begin with another symbol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.errors import TokenizerError
from explorer.tokens import label_of_bytes
from models.tokenizers.byte_table import byte_to_character
from models.tokenizers.merge_rules import MergeRules, read_merge_rules
from models.tokenizers.tokenizer import replace_lone_surrogates

if TYPE_CHECKING:
    from models.tokenizers.tokenizer import Tokenizer

MOST_WORDS = 200  # pieces of the text that are listed


@dataclass(frozen=True, kw_only=True)
class TreeNode:
    """A symbol, or what a join gave.

    Args:
        text: As a reader sees it, with visible blanks.
        symbols: In the tokenizer's symbols.
        start: First symbol of the word that it covers.
        end: One after the last.
        step: Number of the join that made it, from 1; 0 is a symbol.
        rank: Of that join; -1 for a symbol.
        children: Places of its two parts in the list of nodes; empty for a symbol.
        id: Its id, or None where it is no token.
    """

    text: str
    symbols: str
    start: int
    end: int
    step: int
    rank: int
    children: tuple[int, ...]
    id: int | None


@dataclass(frozen=True, kw_only=True)
class MergeTree:
    """The joins of one word.

    Args:
        words: The pieces that the text is cut into first, readable; the first `MOST_WORDS`.
        n_words: How many there are in all.
        chosen: Which of them is shown.
        nodes: Symbols, then one node a join, in the order of the joins.
        parts: For each step from 0, the nodes that are left of the word; the last are its tokens.
        ids: The word's ids.
        whole: Whether the word was taken as it is because it is a token: its joins, if there are
            any, are those that would have given the same or other tokens.
    """

    words: tuple[str, ...]
    n_words: int
    chosen: int
    nodes: tuple[TreeNode, ...]
    parts: tuple[tuple[int, ...], ...]
    ids: tuple[int, ...]
    whole: bool

    @property
    def n_steps(self) -> int:
        """How many joins."""
        return len(self.parts) - 1


def compute_merge_tree(tokenizer: Tokenizer, text: str, *, word: int = 0) -> MergeTree:
    """Cut a text into words and one of them into tokens.

    Args:
        tokenizer: Of byte pairs.
        text: Any text; special tokens count as text.
        word: Which piece of it, from 0; moved into the range.

    Raises:
        TokenizerError: The tokenizer works otherwise, the text is empty, or the word is too long.
    """
    rules = read_merge_rules(tokenizer)
    words = rules.cut(replace_lone_surrogates(text))
    if not words:
        raise TokenizerError("there is no word to join; type one", code="text-empty")
    chosen = min(max(0, word), len(words) - 1)
    nodes, parts = _grow(rules, words[chosen])
    return MergeTree(
        words=tuple(_readable(rules, w) for w in words[:MOST_WORDS]),
        n_words=len(words),
        chosen=chosen,
        nodes=tuple(nodes),
        parts=tuple(parts),
        ids=tuple(rules.encode_word(words[chosen])),
        whole=rules.takes_whole_words and words[chosen] in rules.vocabulary,
    )


def _grow(rules: MergeRules, word: str) -> tuple[list[TreeNode], list[tuple[int, ...]]]:
    nodes = [_node(rules, word, i, i + 1, step=0, rank=-1) for i in range(len(word))]
    current = list(range(len(word)))
    parts = [tuple(current)]
    for number, join in enumerate(rules.join(word), start=1):
        pair = current[join.place : join.place + 2]
        start, end = nodes[pair[0]].start, nodes[pair[1]].end
        made = _node(rules, word, start, end, number, join.rank, (pair[0], pair[1]))
        current[join.place : join.place + 2] = [len(nodes)]
        nodes.append(made)
        parts.append(tuple(current))
    return nodes, parts


def _node(
    rules: MergeRules,
    word: str,
    start: int,
    end: int,
    step: int,
    rank: int,
    children: tuple[int, ...] = (),
) -> TreeNode:
    symbols = word[start:end]
    return TreeNode(
        text=_readable(rules, symbols),
        symbols=symbols,
        start=start,
        end=end,
        step=step,
        rank=rank,
        children=children,
        id=rules.vocabulary.get(symbols),
    )


def _readable(rules: MergeRules, symbols: str) -> str:
    return label_of_bytes(rules.bytes_of(symbols))


def list_byte_table() -> list[list[str]]:
    """GPT-2's table of visible characters, 16 rows of 16: entry b stands for byte b."""
    table = byte_to_character()
    return [list(table[start : start + 16]) for start in range(0, 256, 16)]
