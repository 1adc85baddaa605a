"""Errors on the page: a card in the reader's language, never a traceback and never silence.

Every tab has one card slot. `wire` connects a handler to its event in such a way that an error
fills the slot and a success empties it:

    wire(button.click, on_predict, [text], [bars], card=card, words=words, api_name="predict")
"""

import inspect
import logging
import secrets
import typing
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from typing import Any

import gradio as gr
from gradio.blocks import Block

from components.text import Words, locale_of
from explorer.errors import ExplorerError, Stopped

_LOG = logging.getLogger("glassbox")

# A card as the page draws it: kind, title, text; None leaves the slot empty.
Card = dict[str, str]


def make_error_card(words: Words, locale: str, error: ExplorerError) -> Card:
    """Describe an error with a remedy.

    The title goes by the error's code, where that has one of its own, else by its class. The text
    is the translated sentence that its code names, else its English message.

    Args:
        words: The sentences of the page.
        locale: The reader's language.
        error: What was raised.

    Returns:
        The card.
    """
    # The nearest class with a title of its own, so that a subclass needs no new sentence.
    names = [str(error.code), *(kind.__name__ for kind in type(error).__mro__)]
    keys = (f"errors.title.{name}" for name in names)
    title = next((key for key in keys if words.has(key)), "errors.title.ExplorerError")
    return {"kind": "error", "title": words.say(locale, title), "text": _text(words, locale, error)}


def _text(words: Words, locale: str, error: ExplorerError) -> str:
    if error.code is None or not words.has(f"errors.{error.code}"):
        return error.message
    facts = {name: _say_fact(words, locale, fact) for name, fact in error.facts.items()}
    return words.say(locale, f"errors.{error.code}", **facts)


def _say_fact(words: Words, locale: str, fact: Any) -> Any:
    """A fact; what is wrong with a row has a sentence of its own."""
    key = getattr(fact, "text_key", None)
    return fact if key is None else words.say(locale, key, what=fact.what)


def make_fault_card(words: Words, locale: str, fault_id: str) -> Card:
    """Describe a fault of ours by the short id under which the log tells more."""
    return {
        "kind": "error",
        "title": words.say(locale, "errors.fault_title"),
        "text": words.say(locale, "errors.fault_text", fault_id=fault_id),
    }


def card_for(words: Words, locale: str, error: Exception) -> Card:
    """Make the card for any exception; log it with its traceback when it is a fault of ours.

    Args:
        words: The sentences of the page.
        locale: The reader's language.
        error: What was raised.

    Returns:
        The card.
    """
    if isinstance(error, ExplorerError):
        return make_error_card(words, locale, error)
    fault_id = secrets.token_hex(3)
    _LOG.error("fault %s", fault_id, exc_info=error)
    return make_fault_card(words, locale, fault_id)


def guarded(
    handler: Callable[..., Any],
    outputs: Sequence[Any],
    card: Any,
    words: Words,
    nothing: Sequence[Any] | None = None,
) -> Callable[..., Any]:
    """Wrap a handler so that its errors become a card.

    Args:
        handler: A function or a generator function. Returns (or yields) one value for each
            output, or a mapping from outputs to values, as Gradio allows.
        outputs: The components that it fills.
        card: The card slot of the tab. It is emptied on success, unless the handler fills it; on an
            error it is filled.
        words: The sentences of the page.
        nothing: What the outputs show after an error, so that nothing old stands beside a new
            question; None leaves them as they are.

    Returns:
        A handler whose outputs are `[*outputs, card]`. Work that the visitor stopped leaves the
        outputs as they are. Gradio's special parameters (request,
        event data, progress) go on working.
    """

    def settled(values: Any) -> dict[Any, Any]:
        return {card: None, **_by_output(outputs, values)}

    def failed(error: Exception, page_request: gr.Request | None) -> dict[Any, Any]:
        shown = {} if nothing is None else _by_output(outputs, nothing)
        return {**shown, card: card_for(words, locale_of(page_request), error)}

    @wraps(handler)
    def run(page_request: gr.Request | None, *inputs: Any) -> dict[Any, Any]:
        try:
            return settled(handler(*inputs))
        except Stopped:
            return {card: None}
        except Exception as error:
            return failed(error, page_request)

    @wraps(handler)
    def run_steps(page_request: gr.Request | None, *inputs: Any) -> Iterator[dict[Any, Any]]:
        try:
            for values in _at_least_one(handler(*inputs), {card: gr.skip()}):
                yield settled(values)
        except Stopped:
            yield {card: None}
        except Exception as error:
            yield failed(error, page_request)

    chosen = run_steps if inspect.isgeneratorfunction(handler) else run
    return _with_request_first(chosen, handler)


def _at_least_one(steps: Iterator[Any], otherwise: Any) -> Iterator[Any]:
    """Of a generator without any value Gradio would empty all outputs."""
    is_empty = True
    for step in steps:
        is_empty = False
        yield step
    if is_empty:
        yield otherwise


def _by_output(outputs: Sequence[Any], values: Any) -> dict[Any, Any]:
    if isinstance(values, dict) and all(isinstance(key, Block) for key in values):
        return values
    listed = (values,) if len(outputs) == 1 else tuple(values or ())
    return dict(zip(outputs, listed, strict=True))


def _with_request_first(
    wrapper: Callable[..., Any], handler: Callable[..., Any]
) -> Callable[..., Any]:
    """Announce the request in the signature: Gradio looks there for what to pass in addition."""
    signature = inspect.signature(handler)
    request = inspect.Parameter(
        "page_request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=gr.Request
    )
    hints = typing.get_type_hints(handler)
    wrapper.__annotations__ = {"page_request": gr.Request, **hints}
    wrapper.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[request, *signature.parameters.values()]
    )
    return wrapper


def wire(
    event: Callable[..., Any] | Sequence[Callable[..., Any]],
    handler: Callable[..., Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    *,
    card: Any,
    words: Words,
    api_name: str | None = None,
    nothing: Sequence[Any] | None = None,
    **options: Any,
) -> Any:
    """Connect a handler to an event, with its errors shown in a card.

    Args:
        event: A listener, such as `button.click`, or several of them.
        handler: What to call, as for `guarded`.
        inputs: Components whose values it gets.
        outputs: Components that it fills.
        card: The card slot of the tab; the last output of the event.
        words: The sentences of the page.
        api_name: Name in the API; None keeps the event out of the API's listing.
        nothing: What the outputs show after an error, as for `guarded`.
        **options: Further options of the listener, such as `queue=False`.

    Returns:
        What the listener returns, for `.then(...)`.
    """
    visibility: dict[str, Any] = (
        {"api_visibility": "private"} if api_name is None else {"api_name": api_name}
    )
    listen = partial(gr.on, list(event)) if isinstance(event, Sequence) else event
    return listen(
        guarded(handler, outputs, card, words, nothing),
        list(inputs),
        [*outputs, card],
        # Of each component that shows progress, Gradio's page copies all values at every update: an
        # answer's numbers many times a second. So the card stands for all; nothing is shown anyway.
        **{"show_progress": "hidden", "show_progress_on": [card], **visibility, **options},
    )
