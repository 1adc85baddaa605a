"""Forms made from dataclasses: one control for each field, described by the field's metadata.

    @dataclass(frozen=True, kw_only=True)
    class AnswerSettings:
        temperature: float = field(default=0.7, metadata={"least": 0.0, "most": 2.0, "step": 0.05})

A new setting is one line there and its words (`<prefix>.<field>` and `<prefix>.<field>_info`, of a
choice also `<prefix>.<field>.<choice>`); no field name is typed twice. What the page sends is
checked here again: anybody can send anything.

    metadata                          control                    a value that does not fit
    least, most, step                 slider, or a box           moved into the range with a word;
                                                                 a box refuses it on the page
    choices (and `dial`)              list, or buttons in a row  passed on: who uses it refuses it
    choices, `as_named`               the same; a choice without words of its own is a name
    text                              line of text               -
    none, and the field is a switch   switch                     counts as the default
    none, and the field is a number   box without limits         passed on, as NaN if it is none

The last ones are for settings whose wrong values are worth an explanation of their own.
"""

import dataclasses
import inspect
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from types import MappingProxyType
from typing import Any

import gradio as gr

from components.kit.numbers import Number, Slider
from components.text import Words

# Above so many steps a slider is too coarse to hit a value: a box for the number instead.
MOST_SLIDER_STEPS = 10_000


@dataclass(frozen=True, eq=False)
class Form:
    """The controls of a dataclass.

    Args:
        kind: The dataclass.
        controls: For each field, in their order, its control.
    """

    kind: type
    controls: Mapping[str, Any]

    @property
    def inputs(self) -> list[Any]:
        """The controls, as inputs of an event."""
        return list(self.controls.values())


def build_form(
    words: Words,
    kind: type,
    *,
    prefix: str,
    elem_id: str,
    names: Sequence[str] | None = None,
    built: Mapping[str, Any] = MappingProxyType({}),
) -> Form:
    """Build a control for each field.

    Args:
        words: The sentences of the page.
        kind: A dataclass; see above for the metadata of its fields.
        prefix: `<prefix>.<field>` is the label, `<prefix>.<field>_info` the line of help.
        elem_id: Ids in the page are `<elem_id>-<field>`.
        names: The fields to build, in this order; None builds all.
        built: Controls of fields that stand elsewhere on the page.

    Returns:
        The form.
    """
    fields = {field.name: field for field in _fields_of(kind)}
    chosen = fields if names is None else {name: fields[name] for name in names}
    return Form(
        kind,
        {
            name: built[name]
            if name in built
            else _build_control(words, field, f"{prefix}.{name}", f"{elem_id}-{name}")
            for name, field in chosen.items()
        },
    )


def _build_control(words: Words, field: Any, key: str, elem_id: str) -> Any:
    facts, common = field.metadata, _common(words, field, key, elem_id)
    if "least" in facts:
        few = (facts["most"] - facts["least"]) / facts["step"] <= MOST_SLIDER_STEPS
        ends = {"minimum": facts["least"], "maximum": facts["most"], "step": facts["step"]}
        return (Slider if few else Number)(**ends, **common)
    if "choices" in facts:
        choices = [(_name_choice(words, facts, key, c), c) for c in facts["choices"]]
        return (gr.Radio if facts.get("dial") else gr.Dropdown)(choices, **common)
    if facts.get("text"):
        return gr.Textbox(max_lines=1, **common)
    return gr.Checkbox(**common) if isinstance(field.default, bool) else gr.Number(**common)


def _name_choice(words: Words, facts: Mapping[str, Any], key: str, choice: str) -> str:
    named = f"{key}.{choice}"
    return choice if facts.get("as_named") and not words.has(named) else words.t(named)


def _common(words: Words, field: Any, key: str, elem_id: str) -> dict[str, Any]:
    """What all controls of a form are given."""
    return {
        "value": field.default,
        "label": words.t(key),
        "info": words.t(f"{key}_info"),
        "elem_id": elem_id,
    }


def build_checkbox(
    words: Words, kind: type, name: str, *, prefix: str, elem_id: str, visible: bool = True
) -> gr.Checkbox:
    """Build the switch of one field, to stand elsewhere on the page.

    Args:
        words: The sentences of the page.
        kind: The dataclass.
        name: The field.
        prefix: As for `build_form`.
        elem_id: As for `build_form`.
        visible: Whether it is shown at first.
    """
    field = next(field for field in _fields_of(kind) if field.name == name)
    common = _common(words, field, f"{prefix}.{name}", f"{elem_id}-{name}")
    return gr.Checkbox(visible=visible, **common)


def read_form(kind: type, values: Mapping[str, Any]) -> Any:
    """Make the dataclass from what the page or a program sent.

    Args:
        kind: The dataclass.
        values: A value for each field; a missing one counts as the default. Where there is a range,
            what is no number counts as the default, too, and what is outside is moved into it.

    Returns:
        An instance of `kind`.
    """
    hints = typing.get_type_hints(kind)
    given = {f.name: values.get(f.name, f.default) for f in _fields_of(kind)}
    return kind(**{f.name: _read(f, hints[f.name], given[f.name]) for f in _fields_of(kind)})


def with_form(handler: Callable[..., Any], kind: type) -> Callable[..., Any]:
    """Let a handler take the form's values one by one and get them as one dataclass.

    Args:
        handler: Its last parameter, `settings`, is a `kind`.
        kind: The dataclass.

    Returns:
        A handler with the fields of `kind` in place of `settings`, as Gradio and its API see it.
    """
    fields = _fields_of(kind)
    hints = typing.get_type_hints(kind)
    signature = inspect.signature(handler)
    kept = list(signature.parameters.values())[:-1]
    names = [parameter.name for parameter in kept] + [field.name for field in fields]

    def collect(inputs: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        given = {**dict(zip(names, inputs, strict=False)), **named}
        passed = {p.name: given[p.name] for p in kept if p.name in given}
        return {**passed, "settings": read_form(kind, given)}

    @wraps(handler)
    def call(*inputs: Any, **named: Any) -> Any:
        return handler(**collect(inputs, named))

    @wraps(handler)
    def call_steps(*inputs: Any, **named: Any) -> Any:
        yield from handler(**collect(inputs, named))

    chosen = call_steps if inspect.isgeneratorfunction(handler) else call
    settings = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields
    ]
    typed = {k: v for k, v in typing.get_type_hints(handler).items() if k != "settings"}
    chosen.__annotations__ = {**typed, **{field.name: hints[field.name] for field in fields}}
    chosen.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*kept, *settings]
    )
    return chosen


def _fields_of(kind: type) -> tuple[Any, ...]:
    return dataclasses.fields(kind)


def _read(field: Any, type_: type, value: Any) -> Any:
    if "least" in field.metadata:
        return _clamp(field, type_, value)
    if type_ is bool:
        return value if isinstance(value, bool) else field.default
    if type_ is str or typing.get_origin(type_) is typing.Literal:
        return "" if value is None else str(value)
    return _read_number(type_, value)


def _read_number(number: type, value: Any) -> int | float:
    """The number as it was meant: 16.0 is 16 where it is whole, and what is none is NaN."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return int(found) if number is int and found.is_integer() else found


def _clamp(field: Any, number: type, value: Any) -> Any:
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return field.default
    if math.isnan(found):
        return field.default
    return number(min(max(found, field.metadata["least"]), field.metadata["most"]))
