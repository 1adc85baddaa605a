"""A conversation with all its branches. It belongs to one visitor.

    "Capital of France?" ─┬─ "Paris."  ─── "And of Spain?" ─── "Madrid."   ◄ the leaf: this path
                          │                                                   is shown and read
                          └─ "Lyon."                                        a branch, kept

Whoever asks again, rewords a question or chooses another token makes a branch; nothing is lost.
Every change gives a new `Talk`. Names of nodes cannot collide, so two pages on one conversation
are put together by keeping the nodes of both (`merged`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from explorer.conversation import AnswerSettings, AnswerToken, Finish
from explorer.thoughts import split_thoughts

Role = Literal["user", "assistant"]
ROOT = ""
# Details of tokens (what else could have come) that are kept: they take 2 kB each.
MOST_DETAILED = 3_000
LONGEST_TITLE = 60


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How an answer came about: enough to write it again.

    Args:
        source: Of the model; for a server its address and the model's name.
        settings: How it was written, the seed included.
        system: Instruction that stood before the conversation.
        tokens: Its tokens; empty where a server tells none.
        n_start: How many of them it began with, as a branch.
        finish: Why it ended.
        starts_inside: Whether it begins inside a thought.
    """

    source: str
    settings: AnswerSettings
    system: str = ""
    tokens: tuple[AnswerToken, ...] = ()
    n_start: int = 0
    finish: Finish | None = None
    starts_inside: bool = False


@dataclass(frozen=True)
class Message:
    """One thing said.

    Args:
        id: Its name.
        parent: Name of what it follows; empty for the first.
        role: Who said it.
        text: What.
        answer: Of a model: how it came about; None where that is not known.
    """

    id: str
    parent: str
    role: Role
    text: str
    answer: Answer | None = None

    @property
    def without_thoughts(self) -> str:
        """What is said again to the model: thoughts are thought once."""
        if self.role == "user":
            return self.text
        inside = self.answer is not None and self.answer.starts_inside
        return split_thoughts(self.text, starts_inside=inside).answer


@dataclass(frozen=True)
class Talk:
    """A conversation; every change gives a new one.

    Args:
        id: Its name.
        nodes: All that was said, by name, each behind what it follows; never changed in place.
        leaf: The last message of the path that is shown.
    """

    id: str = ""
    nodes: Mapping[str, Message] = field(default_factory=dict)
    leaf: str = ROOT

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The path to the leaf, oldest first."""
        path = []
        at = self.leaf
        while at != ROOT:
            path.append(self.nodes[at])
            at = path[-1].parent
        return tuple(reversed(path))

    @property
    def title(self) -> str:
        """The first question, cut short; empty when nothing was said."""
        first = next((node.text for node in self.nodes.values() if node.parent == ROOT), "")
        line = " ".join(first.split())
        return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…"

    def ask(self, text: str) -> Talk:
        """Add what the visitor says."""
        return self._added(Message(new_name(), self.leaf, "user", text))

    def answer(self, text: str, answer: Answer | None = None, name: str = "") -> Talk:
        """Add what the model says; the very same answer is not kept twice.

        Args:
            text: What it says.
            answer: How it came about.
            name: Of the message; empty makes a new one. An answer that grows keeps its name, so
                that its beginning is not a branch of its own.
        """
        for node in self._children(self.leaf):
            if _is_same(node, text, answer):
                return replace(self, leaf=node.id)
        return self._added(Message(name or new_name(), self.leaf, "assistant", text, answer))

    def without_answer(self) -> Talk:
        """Go back to the last question, to have it answered anew; the answer stays a branch."""
        last = self.messages[-1:] or (None,)
        if last[0] is None or last[0].role != "assistant":
            return self
        return replace(self, leaf=last[0].parent)

    def is_question_at(self, index: int) -> bool:
        """Tell whether the message with this number is one of the visitor's."""
        return 0 <= index < len(self.messages) and self.messages[index].role == "user"

    def before(self, index: int) -> Talk:
        """Go back to what came before a message."""
        return replace(self, leaf=self.messages[index].parent)

    def reworded(self, index: int, text: str) -> Talk:
        """Say something else at one place; what came after it stays a branch."""
        return self.before(index).ask(text)

    def place(self, index: int) -> tuple[int, int]:
        """Which branch a message of the path is, from 0, and how many there are."""
        message = self.messages[index]
        names = [node.id for node in self._children(message.parent)]
        return names.index(message.id), len(names)

    def switched(self, index: int, by: int) -> Talk:
        """Go to another branch at a message, and along it to its newest end.

        Args:
            index: Number of the message on the path.
            by: 1 for the next branch, -1 for the one before; beyond the last comes the first.
        """
        at, count = self.place(index)
        leaf = self._children(self.messages[index].parent)[(at + by) % count].id
        while children := self._children(leaf):
            leaf = children[-1].id
        return replace(self, leaf=leaf)

    def for_model(self, system: str) -> list[dict[str, str]]:
        """The messages as `stream_answer` takes them.

        Args:
            system: Instruction that stands in front; an empty one is left out, so that a template
                may put its own there.
        """
        first = [{"role": "system", "content": system}] if system.strip() else []
        return first + [{"role": m.role, "content": m.without_thoughts} for m in self.messages]

    def merged(self, other: Talk) -> Talk:
        """This conversation with the branches of another page on it; the path stays."""
        nodes = {**other.nodes, **self.nodes}
        return replace(self, nodes=_sorted_by_parent(nodes))

    def lightened(self, most: int = MOST_DETAILED) -> Talk:
        """The same, with the details of the newest tokens only."""
        nodes: dict[str, Message] = {}
        for node in reversed(list(self.nodes.values())):
            if node.answer is not None:
                tokens = node.answer.tokens
                if len(tokens) > most:
                    bare = [_bare(token) for token in tokens[: len(tokens) - most]]
                    tokens = (*bare, *tokens[len(tokens) - most :])
                    node = replace(node, answer=replace(node.answer, tokens=tokens))
                most = max(0, most - len(tokens))
            nodes[node.id] = node
        return replace(self, nodes=dict(reversed(nodes.items())))

    def _children(self, parent: str) -> list[Message]:
        return self._by_parent.get(parent, [])

    @cached_property
    def _by_parent(self) -> dict[str, list[Message]]:
        found: dict[str, list[Message]] = {}
        for node in self.nodes.values():
            found.setdefault(node.parent, []).append(node)
        return found

    def _added(self, message: Message) -> Talk:
        nodes = {**self.nodes, message.id: message}
        return Talk(self.id or new_name(), nodes, message.id)


def make_talk(messages: Sequence[Message], leaf: str, name: str = "") -> Talk:
    """Put a conversation together.

    Args:
        messages: Each behind what it follows.
        leaf: The last message of the path that is shown.
        name: Of the conversation; empty makes a new one.
    """
    nodes = {message.id: message for message in messages}
    return Talk(name or new_name(), nodes, leaf)


def _sorted_by_parent(nodes: Mapping[str, Message]) -> dict[str, Message]:
    """Each behind what it follows, otherwise in their order."""
    done: dict[str, Message] = {}
    left = dict(nodes)
    while left:
        ready = [node for node in left.values() if node.parent == ROOT or node.parent in done]
        if not ready:  # the parent is in neither: nothing leads there
            break
        for node in ready:
            done[node.id] = left.pop(node.id)
    return done


def _is_same(node: Message, text: str, answer: Answer | None) -> bool:
    if answer is None or node.answer is None or node.text != text:
        return False
    ids = [[token.id for token in one.tokens] for one in (node.answer, answer)]
    alike = (node.answer.source, node.answer.settings) == (answer.source, answer.settings)
    return ids[0] == ids[1] and alike


def _bare(token: AnswerToken) -> AnswerToken:
    if not token.alternatives:
        return token
    return replace(token, alternatives=(), alternative_ids=(), kept=())


def new_name() -> str:
    """A name for a message or a conversation that no other one has."""
    return secrets.token_hex(8)
