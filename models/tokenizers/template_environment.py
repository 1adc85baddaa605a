"""The sandbox in which chat templates run: they come with downloaded models and are not trusted.

It offers what transformers offers to templates: `raise_exception`, `strftime_now`, `tojson` without
HTML escapes, `break` and `continue`, and the `generation` block, which marks the answer for
training and prints its contents unchanged. Of Jinja itself it offers what templates of models use.
All that a template does is paid for (template_sandbox.py, template_budget.py), as it could
otherwise keep a server busy for hours or fill its memory.

Source: transformers, "Chat templates" (the documented variables and functions).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from jinja2 import TemplateRuntimeError, TemplateSyntaxError, meta, nodes
from jinja2.ext import Extension

from models.tokenizers.template_budget import Budget, current_budget, spending
from models.tokenizers.template_sandbox import MeteredSandbox, add_prices, metered

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.parser import Parser

# Compiling takes a second for so much. The templates of models have up to 30,000 and 5,000.
_LONGEST_SOURCE = 100_000  # characters
_MOST_PARTS = 20_000  # names, operators, texts between tags ...
_MOST_OUTPUT = 1_000_000  # characters that a template may add to four copies of the messages
_LONGEST_DATE_FORM = 100
_LARGEST_INDENT = 20


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
    environment = _make_environment()
    with spending(Budget()):  # what is constant in a template is worked out now
        return environment.from_string(add_prices(_parse(environment, source)))


def find_variables(source: str) -> frozenset[str]:
    """Names that a chat template reads and does not set itself.

    Args:
        source: Its text.

    Returns:
        The names, those that we always offer included.

    Raises:
        jinja2.TemplateSyntaxError: It is no valid template.
    """
    environment = _make_environment()
    with spending(Budget()):
        return frozenset(meta.find_undeclared_variables(_parse(environment, source)))


def _make_environment() -> MeteredSandbox:
    environment = MeteredSandbox(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_GenerationBlock, "jinja2.ext.loopcontrols"],
    )
    environment.filters["tojson"] = metered(_to_json)
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _parse(environment: MeteredSandbox, source: str) -> nodes.Template:
    if len(source) > _LONGEST_SOURCE:
        raise TemplateSyntaxError(f"it has more than {_LONGEST_SOURCE:,} characters", 1)
    tree = environment.parse(source)
    if sum(1 for _ in tree.find_all(nodes.Node)) > _MOST_PARTS:
        raise TemplateSyntaxError(f"it has more than {_MOST_PARTS:,} parts", 1)
    return tree


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
    with spending(Budget(n_characters)):
        for piece in template.generate(**variables):
            printed.append(piece)
            size += len(piece)
            if size > limit:
                raise TemplateRuntimeError(f"it prints more than {limit:,} characters")
    return "".join(printed)


def _raise_exception(message: object) -> None:
    raise TemplateRuntimeError(str(message))


def _strftime_now(form: str) -> str:
    if len(form) > _LONGEST_DATE_FORM:
        raise TemplateRuntimeError(f"it writes a date in more than {_LONGEST_DATE_FORM} characters")
    return datetime.now().strftime(form)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    if indent is None:
        return encoder.encode(value)
    if (len(indent) if isinstance(indent, str) else indent) > _LARGEST_INDENT:
        raise TemplateRuntimeError(f"it indents by more than {_LARGEST_INDENT} characters")
    budget = current_budget()
    pieces = []
    for piece in encoder.iterencode(value):  # the deeper a list lies, the more blanks for each item
        budget.make(piece)
        pieces.append(piece)
    return "".join(pieces)
