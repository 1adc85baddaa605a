"""The sandbox in which chat templates run: they come with downloaded models and are not trusted.

It offers what transformers offers to templates: `raise_exception`, `strftime_now`, `tojson` without
HTML escapes, `break` and `continue`, and the `generation` block, which marks the answer for
training and prints its contents unchanged. In addition, loops and output are limited, as a template
could otherwise keep a server busy for hours.

Source: transformers, "Chat templates" (the documented variables and functions).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from jinja2 import TemplateRuntimeError, nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.parser import Parser

_MOST_ROUNDS = 1_000_000  # of all `range` loops of one rendering together
_MOST_OUTPUT = 1_000_000  # characters that a template may add to four copies of the messages


class _GenerationBlock(Extension):
    """`{% generation %} ... {% endgeneration %}` prints what it contains."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def compile_template(source: str) -> Template:
    """Compile a chat template.

    Args:
        source: Its text.

    Returns:
        The template, which can be rendered from several threads at once.

    Raises:
        jinja2.TemplateSyntaxError: It is no valid template.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_GenerationBlock, "jinja2.ext.loopcontrols"],
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source)


def render_template(template: Template, variables: Mapping[str, object], n_characters: int) -> str:
    """Run a compiled template.

    Args:
        template: From `compile_template`.
        variables: What it can read.
        n_characters: How long the messages are together.

    Returns:
        What it prints.

    Raises:
        jinja2.TemplateError: It raised, or it runs or prints without end.
    """
    limit = _MOST_OUTPUT + 4 * n_characters
    printed: list[str] = []
    size = 0
    for piece in template.generate(**{**variables, "range": _limited_range()}):
        printed.append(piece)
        size += len(piece)
        if size > limit:
            raise TemplateRuntimeError(f"it prints more than {limit:,} characters")
    return "".join(printed)


def _limited_range() -> Callable[..., range]:
    left = _MOST_ROUNDS

    def limited(*bounds: int) -> range:
        nonlocal left
        rounds = range(*bounds)
        left -= len(rounds)
        if left < 0:
            raise TemplateRuntimeError(f"its loops run more than {_MOST_ROUNDS:,} times")
        return rounds

    return limited


def _raise_exception(message: str) -> None:
    raise TemplateRuntimeError(message)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
