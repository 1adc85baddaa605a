"""The sandboxed Jinja environment in which everything that a template does is paid for.

Jinja's own sandbox keeps templates away from Python's internals and from changing their inputs, but
not from running for hours or filling the memory. Here every way to do either is closed:

    loops, macros, blocks          their bodies pay for each round
    calls, filters, tests, + * %   pay for their arguments, and for what they make
    ~  ==  {{ }}  [a:b]            their operands pay
    a.b, a[b]                      pays for one step
    center, zfill, lipsum, ...     do not exist: nothing makes a long text of a number
    ** and large numbers           calculating ends at about 1,200 digits

The texts of `{{ }}`, `~`, `==` and loop bodies have no hook in Jinja: `add_prices` writes the
payments into a template's syntax tree, as filters whose names no template can spell.

Source: Jinja's documentation, "Sandbox" and "Extensions, AST".
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2 import TemplateRuntimeError, nodes
from jinja2.filters import FILTERS
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, TemplateReference
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS
from jinja2.utils import Cycler, Joiner, Namespace
from jinja2.visitor import NodeTransformer

from models.tokenizers.template_budget import MADE_CHARACTER, STEP, Budget, current_budget


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LARGEST_BITS = 4096  # more than any template counts to, and quick to calculate with
_MOST_DECIMALS = 20

# Filters that take a step, as they do not look into the items of what they are given ...
_SHALLOW_FILTERS = frozenset({"count", "d", "default", "first", "last", "length"})
# ... whose result or time can be the product of two lengths ...
_PRODUCT_FILTERS = frozenset({"indent", "join", "replace", "trim"})
# ... and all the others. What Jinja has more makes a long text of a number (center, batch), or
# takes much longer for a text of twice the length (urlize, striptags, sum).
_OTHER_FILTERS = _names(
    "abs attr capitalize dictsort e escape float groupby int items list lower map max min reject "
    "rejectattr reverse safe select selectattr sort string title unique upper wordcount"
)
_SHALLOW_TESTS = _names(
    "boolean callable defined escaped false filter float integer iterable mapping none number "
    "sameas sequence string test true undefined"
)

_TEXT_METHODS = _names(
    "capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit "
    "islower isnumeric isspace istitle isupper join lower lstrip partition removeprefix "
    "removesuffix replace rfind rindex rpartition rsplit rstrip split splitlines startswith strip "
    "swapcase title upper"
)
_PRODUCT_METHODS = _names("join lstrip replace rfind rindex rpartition rsplit rstrip strip")
_CUTTING_METHODS = frozenset({"rsplit", "split", "splitlines"})  # a character can become an item
_DICT_METHODS = frozenset({"copy", "get", "items", "keys", "values"})
_LIST_METHODS = frozenset({"copy", "count", "index", "grouper", "list"})  # the last two: groupby
_JINJA_OBJECTS = (BlockReference, Cycler, Joiner, LoopContext, Macro, Namespace, TemplateReference)

_READ, _PRINT, _TOUCH, _STEP = "<read>", "<print>", "<touch>", "<step>"

# %-5d, %(name)s, %.2f, %*d: the width and the decimals, where they have three digits or a star
_WIDE_FIELD = re.compile(r"%(\([^)]*\))?[-+ #0]*(\*|\d{3}|\d*\.(\*|\d{3}))")
_LONGEST_FIELD = 99 + 20  # what such a field without them can add to its value


class MeteredSandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with prices; render and compile inside `template_budget.spending`.

    Args:
        **options: As for `jinja2.Environment`.
    """

    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, optimized=False)  # that would work out the payments beforehand
        self.filters = {
            **{name: FILTERS[name] for name in _SHALLOW_FILTERS},
            **{name: metered(FILTERS[name], Budget.make_product) for name in _PRODUCT_FILTERS},
            **{name: metered(FILTERS[name]) for name in _OTHER_FILTERS},
            "format": metered(_format_values),
            "round": _round,
            _READ: _read,
            _PRINT: _print,
            _TOUCH: _touch,
            _STEP: _step,
        }
        tests: dict[str, Any] = dict(TESTS)
        self.tests = {
            name: test if name in _SHALLOW_TESTS else metered(test) for name, test in tests.items()
        }
        del self.globals["lipsum"]
        self.globals["namespace"] = _SilentNamespace

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """As the sandbox, and of texts and lists only methods whose price is known."""
        if isinstance(obj, str):
            return attr in _TEXT_METHODS
        if isinstance(obj, dict):
            return attr in _DICT_METHODS
        if isinstance(obj, list | tuple):
            return attr in _LIST_METHODS
        return isinstance(obj, _JINJA_OBJECTS) and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> None:
        """None: `str.format` is not safe here, as its fields can be of any width."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """As the sandbox, for a step."""
        current_budget().spend(STEP)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """As the sandbox, for a step."""
        current_budget().spend(STEP)
        return super().getitem(obj, argument)

    def call(self, context: Context, obj: Any, /, *arguments: Any, **options: Any) -> Any:
        """As the sandbox, for the price of the arguments and of the result."""
        budget = current_budget()
        given = (*arguments, *options.values())
        if isinstance(obj, BuiltinMethodType | MethodType):
            _pay_for_method(budget, obj.__self__, obj.__name__, given)
        budget.read(*given)
        result = super().call(context, obj, *arguments, **options)
        budget.make(result)
        return result

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """As the sandbox, for the price of the operands and of the result."""
        budget = current_budget()
        if isinstance(left, int) and isinstance(right, int):
            _check_numbers(operator, left, right)
        elif operator == "%" and isinstance(left, str):
            return _format(left, right)
        elif operator == "*":
            is_text = isinstance(left, str) or isinstance(right, str)
            budget.make_product(left, right, each=MADE_CHARACTER if is_text else STEP)
        budget.touch(left, right)
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, str):
            budget.make(result)
        return result


class _SilentNamespace(Namespace):
    """Says nothing of what it holds: that may be itself, or much more than it seems."""

    def __repr__(self) -> str:
        return "<namespace>"


def metered(
    function: Callable[..., Any], pay_more: Callable[..., None] | None = None
) -> Callable[..., Any]:
    """A filter, test or function that is paid for.

    Args:
        function: The same without a price.
        pay_more: Called with the budget and all arguments: what it costs beside reading them.

    Returns:
        Does the same. What it would work out bit by bit, later, it works out at once.
    """

    @functools.wraps(function)  # Jinja notes on a function whether it wants to see the environment
    def run(*arguments: Any, **options: Any) -> Any:
        budget = current_budget()
        given = (*arguments, *options.values())
        budget.read(*given)
        if pay_more is not None:
            pay_more(budget, *given)
        result = function(*arguments, **options)
        if isinstance(result, Iterator):
            items = list(result)
            budget.make(items)
            return iter(items)
        budget.make(result)
        return result

    return run


def add_prices(tree: nodes.Template) -> nodes.Template:
    """Write payments into a template's syntax tree.

    Args:
        tree: From `Environment.parse`; it is changed.

    Returns:
        The same tree.
    """
    return _Pricing().visit(tree)


class _Pricing(NodeTransformer):
    """Wraps operands in filters that let them pass for a price."""

    def visit_Output(self, node: nodes.Output) -> nodes.Node:
        self.generic_visit(node)
        node.nodes = [
            part if isinstance(part, nodes.TemplateData) else _wrap(part, _PRINT)
            for part in node.nodes
        ]
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        node.nodes = [_wrap(part, _PRINT) for part in node.nodes]
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = _wrap(node.expr, _READ)
        for operand in node.ops:
            operand.expr = _wrap(operand.expr, _READ)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _wrap(node.node, _TOUCH)
        elif not isinstance(node.arg, nodes.Const):  # a key is hashed, with all that is in it
            node.arg = _wrap(node.arg, _READ)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        self.generic_visit(node)
        node.key = _wrap(node.key, _READ)
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:
        price = _price_of(node)
        self._price_body(node)
        if node.test is not None:  # runs for each item, also where the body does not
            node.test = nodes.And(_payment(price, node), node.test, lineno=node.lineno)
        return node

    def _price_body(self, node: Any) -> nodes.Node:
        payment = nodes.ExprStmt(_payment(_price_of(node), node), lineno=node.lineno)
        self.generic_visit(node)
        node.body.insert(0, payment)
        return node

    visit_Block = visit_CallBlock = visit_Macro = _price_body


def _wrap(operand: nodes.Expr, name: str) -> nodes.Expr:
    return nodes.Filter(operand, name, [], [], None, None, lineno=operand.lineno)


def _payment(price: int, place: nodes.Node) -> nodes.Expr:
    return _wrap(nodes.Const(price, lineno=place.lineno), _STEP)


def _price_of(body: nodes.Node) -> int:
    """A step for each part of a body, and what it prints of its own."""
    texts = (data.data for data in body.find_all(nodes.TemplateData))
    return STEP * (1 + sum(1 for _ in body.find_all(nodes.Node))) + sum(map(len, texts))


def _read(value: object) -> object:
    current_budget().read(value)
    return value


def _print(value: object) -> object:
    current_budget().make(value)
    return value


def _touch(value: object) -> object:
    current_budget().touch(value)
    return value


def _step(price: int) -> bool:
    current_budget().spend(price)
    return True


def _pay_for_method(budget: Budget, owner: object, name: str, given: tuple[Any, ...]) -> None:
    if isinstance(owner, dict):  # its methods do not look into the items
        return
    budget.read(owner)
    if isinstance(owner, str) and name in _PRODUCT_METHODS:
        budget.make_product(owner, *given)
    if isinstance(owner, str) and name in _CUTTING_METHODS:
        budget.spend(STEP // 10 * len(owner))


def _check_numbers(operator: str, left: int, right: int) -> None:
    """Refuse what would give, or takes, a number that is slow to calculate with."""
    bits = max(left.bit_length(), right.bit_length())
    if operator == "*":
        bits = left.bit_length() + right.bit_length()
    elif operator == "**":
        bits = left.bit_length() * max(right, 1)
    if bits > _LARGEST_BITS:
        raise TemplateRuntimeError("it calculates with numbers of thousands of digits")


def _format(text: str, values: object) -> str:
    """`text % values`, where a field is two digits wide at most."""
    budget = current_budget()
    budget.make_product(text, text.count("%"))
    if _WIDE_FIELD.search(text):
        raise TemplateRuntimeError("it pads a text to more than 99 characters")
    for _ in range(text.count("%")):  # each field can show all values, by a name or as a list
        budget.read(values)
        budget.spend(_LONGEST_FIELD)
    result = text % values
    budget.make(result)
    return result


def _format_values(text: object, *values: object, **named: object) -> str:
    return _format(str(text), named or values)


def _round(value: Any, precision: int = 0, method: str = "common") -> Any:
    if abs(precision) > _MOST_DECIMALS:
        raise TemplateRuntimeError(f"it rounds to {precision} decimals")
    return FILTERS["round"](value, precision, method)
