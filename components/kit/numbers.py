"""Numbers with ends: fields and sliders that say in the reader's language what lies outside.

Gradio checks the ends before a handler is called, so no card can tell of it; left alone it shows an
English line and writes a traceback into the log. A slider moves such a number to its end by itself,
on the page, so here it counts as that, with a word about it; a field leaves it there, and nothing
is computed.
"""

import math

import gradio as gr
from gradio.context import LocalContext

from components.text import load_words, locale_of


class Number(gr.Number):
    """A field for a number."""

    is_template = True  # for the page it is the component that it descends from

    def preprocess(self, payload: float | None) -> float | int | None:
        """The number, as `gr.Number` gives it.

        Raises:
            gr.Error: It lies outside, or is none.
        """
        low, high = _ends_of(self)
        if payload is not None and not low <= payload <= high:
            title, text = _say_outside(payload, low, high)
            raise gr.Error(text, title=title, print_exception=False)
        return super().preprocess(payload)


class Slider(gr.Slider):
    """A slider."""

    is_template = True

    def preprocess(self, payload: float) -> float:
        """The number, moved into the range where it lies outside.

        Raises:
            gr.Error: It is none.
        """
        low, high = _ends_of(self)
        if math.isnan(payload):
            title, text = _say_outside(payload, low, high)
            raise gr.Error(text, title=title, print_exception=False)
        inside = min(max(payload, low), high)
        if inside != payload and LocalContext.event_id.get(None) is not None:
            title, text = _say_outside(payload, low, high)
            gr.Warning(text, title=title)
        return super().preprocess(inside)


def _ends_of(number: gr.Number | gr.Slider) -> tuple[float, float]:
    low, high = number.minimum, number.maximum
    return -math.inf if low is None else low, math.inf if high is None else high


def _say_outside(value: float, low: float, high: float) -> tuple[str, str]:
    """Title and sentence."""
    # read anew: an updated component is built again from what its class takes, and this is rare
    say, locale = load_words().say, locale_of(LocalContext.request.get(None))
    ends = {"low": _name_end(low), "high": _name_end(high)}
    text = say(locale, "shell.number_outside", value=f"{value:g}", **ends)
    return say(locale, "shell.number_title"), text


def _name_end(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:g}"
