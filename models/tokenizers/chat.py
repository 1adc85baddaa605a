r"""Chat templates: how a conversation becomes the one text that the model continues.

    [{"role": "user", "content": "Hi"}]
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"

The template writes special tokens between the messages. A user may type `<|im_end|>` too, and must
not be able to end his message with it and speak as somebody else. So `encode` marks, before the
template runs, all such text inside the messages: each of its characters is exchanged for a
character that occurs nowhere else. After the template ran, special tokens that are still readable
are the template's own. The marked ones are changed back and encoded as plain text:

    content   a <|im_end|> b     ->  a ░░░░░░░░░░ b                        mark
    rendered  <|im_start|>user a ░░░░░░░░░░ b <|im_end|>                   template
    cut       <|im_start|> | user a ░░░░░░░░░░ b | <|im_end|>              split_special
    ids       special        plain, unmarked         special

A character is exchanged for one character, so a template that trims, cuts or measures contents
works as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from models.errors import TokenizerError
from models.tokenizers.tokenizer import Tokenizer, replace_lone_surrogates

if TYPE_CHECKING:
    from jinja2 import Template

Message = Mapping[str, str]
T = TypeVar("T")

# Planes 4 to 16 of Unicode: unassigned and private-use characters, none of which templates print.
_UNUSED_CHARACTERS = range(0x40000, 0x10FFFE)

# What templates call the switch between answering at once and thinking first (Qwen3, and others
# after it).
THINKING_VARIABLE = "enable_thinking"

_PROBE = "glassbox"  # an answer, to see what a template writes behind one
_LONGEST_PROBLEM = 1_000  # characters of what a template itself says, which a page shows


class ChatTemplate:
    """A model's chat template together with its tokenizer.

    Attributes:
        source: The template's text.
        format_name: None if the model's files bring the template; else the name of the well-known
            format that stands in for it (chat_format.py).
        stop_ids: Tokens that end an answer in that format; empty if the files bring the template,
            as these also name such tokens.
    """

    def __init__(
        self,
        source: str,
        tokenizer: Tokenizer,
        *,
        variables: Mapping[str, object] = MappingProxyType({}),
        format_name: str | None = None,
        stop_ids: frozenset[int] = frozenset(),
    ) -> None:
        """Keep a template; it is compiled when it is first used.

        Args:
            source: A Jinja template, as models bring it.
            tokenizer: The model's tokenizer.
            variables: More that the template may read, such as `enable_thinking`.
            format_name: As the attribute.
            stop_ids: As the attribute.

        Raises:
            TokenizerError: `variables` offer tools, which we do not run.
        """
        if variables.get("tools"):
            raise _no_tools("the variable 'tools' was given")
        self.source = source
        self.format_name = format_name
        self.stop_ids = stop_ids
        self._tokenizer = tokenizer
        self._variables = {**_special_variables(tokenizer), **variables}

    def with_variables(self, **variables: object) -> ChatTemplate:
        """The same template with more variables set.

        Args:
            **variables: For example `enable_thinking=False`; see `variables_read`.

        Returns:
            A new template.

        Raises:
            TokenizerError: The variables offer tools, which we do not run.
        """
        return ChatTemplate(
            self.source,
            self._tokenizer,
            variables={**self._variables, **variables},
            format_name=self.format_name,
            stop_ids=self.stop_ids,
        )

    @cached_property
    def variables_read(self) -> frozenset[str]:
        """Names that the template asks for: a Qwen3 has `enable_thinking` among them.

        Raises:
            TokenizerError: The template is no valid one.
        """
        from models.tokenizers.template_environment import find_variables

        return _guard(lambda: find_variables(self.source))

    @property
    def knows_thinking(self) -> bool:
        """Whether the template can be told to let the model think before it answers, or not.

        Raises:
            TokenizerError: The template is no valid one.
        """
        return THINKING_VARIABLE in self.variables_read

    @cached_property
    def end_ids(self) -> frozenset[int]:
        """The special token that the template writes behind an answer, such as `<|im_end|>`.

        Empty if something else stands there, or the template refuses to be tried.
        """
        messages = [
            {"role": "user", "content": _PROBE.upper()},
            {"role": "assistant", "content": _PROBE},
        ]
        try:
            written = self.render(messages, add_generation_prompt=False)
        except TokenizerError:
            return frozenset()
        _, found, behind = written.rpartition(_PROBE)
        blank, *special = self._tokenizer.split_special(behind) if found else [""]
        if blank.strip() or not special:
            return frozenset()
        return frozenset({self._tokenizer.special_tokens[special[0]]})

    def with_thinking(self, is_on: bool) -> ChatTemplate:
        """The template with thinking on or off; itself if it does not know the difference.

        Raises:
            TokenizerError: The template is no valid one.
        """
        return self.with_variables(**{THINKING_VARIABLE: is_on}) if self.knows_thinking else self

    def render(self, messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
        """Write a conversation as the model was trained to see it.

        Args:
            messages: Each with the strings `role` and `content`.
            add_generation_prompt: Whether to end with the beginning of an answer.

        Returns:
            The text, special tokens included.

        Raises:
            TokenizerError: The messages are malformed, or the template fails on them.
        """
        return self._render(_check_messages(messages), add_generation_prompt)

    def encode(
        self,
        messages: Sequence[Message],
        add_generation_prompt: bool = True,
        *,
        special: bool = False,
    ) -> list[int]:
        """Write a conversation and cut it into tokens.

        Args:
            messages: Each with the strings `role` and `content`.
            add_generation_prompt: Whether to end with the beginning of an answer.
            special: Whether special tokens typed inside the messages count as such.

        Returns:
            The ids.

        Raises:
            TokenizerError: The messages are malformed, or the template fails on them.
        """
        checked = _check_messages(messages)
        marks = {} if special else self._choose_marks(checked)
        if not marks:
            rendered = self._render(checked, add_generation_prompt)
            return self._tokenizer.encode(rendered, special=True)
        marked = [
            {key: self._lookalikes.sub(lambda found: found[0].translate(marks), text)
             for key, text in message.items()}
            for message in checked
        ]  # fmt: skip
        rendered = self._render(marked, add_generation_prompt)
        return self._encode_marked(rendered, {ord(mark): code for code, mark in marks.items()})

    @cached_property
    def _lookalikes(self) -> re.Pattern[str]:
        """Matches each special token; nothing if there are none."""
        texts = sorted(self._tokenizer.special_tokens, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, texts)) or "(?!)")

    def _choose_marks(self, messages: Sequence[Message]) -> dict[int, str]:
        """For each character of special tokens typed in the messages: one that stands for it."""
        texts = [text for message in messages for text in message.values()]
        typed = {c for text in texts for found in self._lookalikes.findall(text) for c in found}
        if not typed:
            return {}
        used = set().union(self.source, *texts)
        free = (chr(code) for code in _UNUSED_CHARACTERS if chr(code) not in used)
        marks = {ord(character): mark for character, mark in zip(typed, free, strict=False)}
        if len(marks) < len(typed):
            raise _bad_messages("they use up all characters that could mark special tokens")
        return marks

    def _encode_marked(self, rendered: str, unmark: Mapping[int, int]) -> list[int]:
        ids: list[int] = []
        for text, is_plain in _join_runs(self._tokenizer.split_special(rendered), unmark):
            encode = self._tokenizer.encode_continuation if ids else self._tokenizer.encode
            ids += encode(text.translate(unmark), special=not is_plain)
        return ids

    def _render(self, messages: Sequence[Message], add_generation_prompt: bool) -> str:
        from models.tokenizers.template_environment import render_template

        variables = {
            "documents": None,
            **self._variables,
            "messages": messages,
            "add_generation_prompt": add_generation_prompt,
        }
        n_characters = sum(len(text) for message in messages for text in message.values())

        def run(tools: object) -> str:
            return render_template(self._template, {**variables, "tools": tools}, n_characters)

        try:
            return _guard(lambda: run(None))
        except TokenizerError as error:
            if "tools" in self.source and _succeeds(lambda: run([_any_tool()])):
                raise _no_tools("its template works only with tools") from error
            raise

    @cached_property
    def _template(self) -> Template:
        from models.tokenizers.template_environment import compile_template

        return compile_template(self.source)


def _join_runs(pieces: Sequence[str], marks: Mapping[int, int]) -> Iterator[tuple[str, bool]]:
    """Join what may be encoded at once: (text, whether it holds marked text and so is plain)."""
    run = ""
    for index, piece in enumerate(pieces):
        is_text = index % 2 == 0
        if is_text and any(ord(character) in marks for character in piece):
            if run:
                yield run, False
            yield piece, True
            run = ""
        else:
            run += piece
    if run:
        yield run, False


def _special_variables(tokenizer: Tokenizer) -> dict[str, object]:
    """`bos_token` and so on; a token that does not exist is left undefined, and prints nothing."""
    ids = {"bos": tokenizer.bos_id, "eos": tokenizer.eos_id, "pad": tokenizer.pad_id}
    return {
        f"{role}_token": tokenizer.token_bytes(token).decode("utf-8", "replace")
        for role, token in ids.items()
        if token is not None
    }


def _check_messages(messages: Sequence[Message]) -> list[dict[str, str]]:
    if isinstance(messages, str) or not isinstance(messages, Sequence) or not messages:
        raise _bad_messages(f"there are none in {messages!r:.80}")
    checked = []
    for number, message in enumerate(messages, start=1):
        if not isinstance(message, Mapping) or not {"role", "content"} <= message.keys():
            raise _bad_messages(f"number {number} is {message!r:.80}")
        if message["role"] == "tool" or message.get("tool_calls"):
            raise _no_tools(f"message {number} is of a tool or calls one")
        for key, value in message.items():
            if not isinstance(value, str):
                raise _bad_messages(f"{key} of number {number} is a {type(value).__name__}")
        checked.append({key: replace_lone_surrogates(text) for key, text in message.items()})
    return checked


def _bad_messages(problem: str) -> TokenizerError:
    return TokenizerError(
        f"A chat is a list of messages, each with the strings 'role' and 'content', but {problem}. "
        f"Pass for example [{{'role': 'user', 'content': 'Hello'}}].",
        code="chat-messages-invalid",
        problem=problem,
    )


def _no_tools(problem: str) -> TokenizerError:
    return TokenizerError(
        f"Glassbox offers a model no tools to call, but {problem}. Use plain messages of a user, "
        f"an assistant and perhaps a system, or choose another model.",
        code="chat-tools-unsupported",
        problem=problem,
    )


def _any_tool() -> dict[str, object]:
    """What templates expect of a tool: tells whether one fails for want of tools."""
    function = {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}
    return {"type": "function", "function": function}


def _succeeds(run: Callable[[], str]) -> bool:
    try:
        _guard(run)
    except TokenizerError:
        return False
    return True


def _guard(run: Callable[[], T]) -> T:
    """Run foreign code; whatever it raises becomes an error with the template's own words."""
    from jinja2 import TemplateSyntaxError

    try:
        return run()
    except Exception as error:  # a template can fail in any way that Python code can
        problem = f"{error}"[:_LONGEST_PROBLEM] or type(error).__name__
        where = f" (line {error.lineno})" if isinstance(error, TemplateSyntaxError) else ""
        raise TokenizerError(
            f"The model's chat template refuses this conversation: {problem}{where}. Change the "
            f"messages (some templates accept no system message, or want user and assistant in "
            f"turn), or use another template.",
            code="chat-template-failed",
            problem=f"{problem}{where}",
        ) from error
