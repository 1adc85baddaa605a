r"""A question and its answer as one row of tokens, with the answer marked.

    text    ### Instruction:\nWho has the ball?\n\n### Response:\nMia has it.<end>
    learned .............................................................^^^^^^^^^^^^^^^^

Which tokens are the answer is found by characters: each token stands for some bytes of the text,
and a token that reaches into the answer belongs to it. Cutting question and answer into tokens one
by one and counting gives another result wherever a token would span the border, and then teaches
the model a text that it never sees.

Templates: that of Stanford Alpaca (Taori et al. 2023), that of Phi-3 (Microsoft 2024) in plain
text, as *Build a Large Language Model (From Scratch)* has it in exercise 7.1, and the model's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from explorer.datasets.examples import Example, Prompt
from explorer.errors import ConfigError, DataError
from explorer.training.tuning_config import Template

if TYPE_CHECKING:
    from models.tokenizers import ChatTemplate, Tokenizer

ALPACA_HEAD = (
    "Below is an instruction that describes a task. Write a response that appropriately completes "
    "the request."
)
# The same as chat templates, so that a tuned model can be talked to.
ALPACA_CHAT = (
    f"{ALPACA_HEAD}"
    "{% for message in messages %}"
    "{% if message.role == 'assistant' %}\n\n### Response:\n{{ message.content }}"
    "{% else %}\n\n### Instruction:\n{{ message.content }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}\n\n### Response:\n{% endif %}"
)
PHI3_CHAT = (
    "{% for message in messages %}"
    "{{ '<|' + message.role + '|>\n' + message.content + '\n\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)


@dataclass(frozen=True, kw_only=True)
class AnswerRow:
    """One row of tokens.

    Args:
        ids: Question, answer, end.
        learned: Which of them are the answer, its end token among them.
        n_cut: Tokens that did not fit and were left out on the right.
        row: Number of the example in its file.
    """

    ids: tuple[int, ...]
    learned: tuple[bool, ...]
    n_cut: int = 0
    row: int = 0


class RowWriter:
    """Writes rows in one template.

    Args:
        tokenizer: Cuts the text.
        template: How question and answer become one text.
        chat: The model's own template, where that is asked for.
        limit: Tokens of a row at most.

    Raises:
        ConfigError: The model has no template of its own, or its tokenizer no end token.
    """

    def __init__(
        self, tokenizer: Tokenizer, template: Template, chat: ChatTemplate | None, limit: int
    ) -> None:
        if template == "chat" and chat is None:
            raise ConfigError(
                "this model has no chat template of its own; choose Alpaca or Phi-3",
                code="tune-no-chat",
            )
        if tokenizer.eos_id is None:
            raise ConfigError(
                "the tokenizer of this model has no token that ends a text, so an answer could not "
                "learn to stop; choose another model",
                code="tune-no-end",
            )
        self._tokenizer = tokenizer
        self._template = template
        self._chat = chat
        self._limit = limit
        self._end = tokenizer.eos_id

    def write_prompt(self, prompt: Prompt) -> str:
        """The text that an answer follows."""
        if self._template == "chat":
            assert self._chat is not None  # checked above
            return self._chat.render(_messages(prompt))
        if prompt.earlier:
            raise DataError(
                "a conversation of several turns has no place in this template; choose the model's "
                "own chat template",
                code="tune-turns",
            )
        return write_prompt(self._template, prompt)

    def encode_prompt(self, prompt: Prompt) -> list[int]:
        """The tokens that an answer follows."""
        if self._template == "chat":
            assert self._chat is not None
            return self._chat.encode(_messages(prompt))
        return self._tokenizer.encode(self.write_prompt(prompt))

    def write_row(self, prompt: Prompt, answer: str, row: int = 0) -> AnswerRow:
        """Question and answer as tokens.

        Args:
            prompt: The question.
            answer: Its answer.
            row: Number of the example.

        Raises:
            DataError: Nothing of the answer fits into a row, or the tokenizer changes texts.
        """
        head = self.write_prompt(prompt)
        if self._template == "chat":
            assert self._chat is not None
            turns = [*_messages(prompt), {"role": "assistant", "content": answer}]
            ids = self._chat.encode(turns, add_generation_prompt=False)
            text = self._chat.render(turns, add_generation_prompt=False)
        else:
            text = head + answer
            ids = self._tokenizer.encode(text)
        learned = mark_answer(self._tokenizer, ids, text, _find_answer(text, head, answer, row))
        while self._template == "chat" and learned and not learned[-1]:  # what follows the answer
            ids, learned = ids[:-1], learned[:-1]
        return self._fit(AnswerRow(ids=(*ids, self._end), learned=(*learned, True), row=row))

    def _fit(self, row: AnswerRow) -> AnswerRow:
        n_cut = max(0, len(row.ids) - self._limit)
        if not n_cut:
            return row
        kept = replace(
            row, ids=row.ids[: self._limit], learned=row.learned[: self._limit], n_cut=n_cut
        )
        if not any(kept.learned):
            raise DataError(
                f"row {row.row}: its question alone has more than {self._limit} tokens, so nothing "
                "of the answer is left; shorten it, or choose longer rows",
                code="tune-row-long",
                row=row.row,
                limit=self._limit,
            )
        return kept


def keep_fitting(writer: RowWriter, examples: Sequence[Example]) -> tuple[Example, ...]:
    """Examples whose question leaves room for something of each answer.

    Args:
        writer: Writes the rows.
        examples: Questions with answers.

    Raises:
        DataError: There is none; what is wrong with the first one.
    """
    kept, first = [], None
    for example in examples:
        try:
            for answer in filter(None, (example.answer, example.rejected)):
                writer.write_row(example.prompt, answer, example.row)
        except DataError as error:
            if error.code != "tune-row-long":
                raise
            first = first or error
        else:
            kept.append(example)
    if first is not None and not kept:
        raise first
    return tuple(kept)


def write_prompt(template: Template, prompt: Prompt) -> str:
    """What an answer follows, in one of the two templates that need no model.

    Of the model's own template, which does, it is the question alone.

    Args:
        template: Which one.
        prompt: The question.
    """
    if template == "chat":
        return prompt.joined
    if template == "phi3":
        return f"<|user|>\n{prompt.joined}\n\n<|assistant|>\n"
    asked = f"{ALPACA_HEAD}\n\n### Instruction:\n{prompt.instruction}"
    given = f"\n\n### Input:\n{prompt.input}" if prompt.input else ""
    return f"{asked}{given}\n\n### Response:\n"


def _messages(prompt: Prompt) -> list[dict[str, str]]:
    earlier = [{"role": role, "content": text} for role, text in prompt.earlier]
    return [*earlier, {"role": "user", "content": prompt.joined}]


def _find_answer(text: str, head: str, answer: str, row: int) -> tuple[int, int]:
    """First character of the answer, and one past its last."""
    start = text.find(answer.strip(), len(head)) if text.startswith(head) else -1
    if start < 0:
        raise DataError(
            f"row {row}: the chat template does not write the answer after the question, so it "
            "cannot be told apart; choose Alpaca or Phi-3",
            code="tune-template",
            row=row,
        )
    return start, start + len(answer.strip())


def mark_answer(
    tokenizer: Tokenizer, ids: Sequence[int], text: str, span: tuple[int, int]
) -> tuple[bool, ...]:
    """Which tokens reach into a span of characters.

    Args:
        tokenizer: Whose tokens they are.
        ids: The text as tokens.
        text: The text.
        span: First character, and one past the last.

    Raises:
        DataError: The tokens together are not the text.
    """
    pieces = [tokenizer.token_bytes(token) for token in ids]
    content = text.encode("utf-8", "replace")
    joined = b"".join(pieces)
    shift = len(joined) - len(content)
    if joined[shift:] != content or joined[:shift].strip(b" "):
        raise DataError(
            "the tokenizer of this model changes texts, so characters have no place among its "
            "tokens; choose another model",
            code="tune-changed-text",
        )
    start, end = (len(text[:place].encode("utf-8", "replace")) + shift for place in span)
    ends = list(accumulate(map(len, pieces)))
    return tuple(
        last > start and last - len(piece) < end and len(piece) > 0
        for last, piece in zip(ends, pieces, strict=True)
    )


def pack_rows(rows: Sequence[AnswerRow], limit: int) -> list[AnswerRow]:
    """Put short rows behind one another, as long as they fit; each goes into the first with room.

    A row sees those before it in its pack, as in GPT-3's training (Brown et al. 2020, section
    2.2); the end token tells it that they are over. The first token of a row is not learned: nobody
    could foresee it.

    Args:
        rows: In their order.
        limit: Tokens of a pack at most.
    """
    packs: list[AnswerRow] = []
    for row in rows:
        learned = (False, *row.learned[1:])
        for place, pack in enumerate(packs):
            if len(pack.ids) + len(row.ids) <= limit:
                packs[place] = replace(pack, ids=pack.ids + row.ids, learned=pack.learned + learned)
                break
        else:
            packs.append(replace(row, learned=learned))
    return packs
