"""Numbers with ends: fields and sliders that say in the reader's language what lies outside.

Gradio checks the ends before a handler is called, so no card can tell of it; left alone it shows an
English line and writes a traceback into the log.
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
        _refuse_outside(self, payload)
        return super().preprocess(payload)


class Slider(gr.Slider):
    """A slider."""

    is_template = True

    def preprocess(self, payload: float) -> float:
        """The number, as `gr.Slider` gives it.

        Raises:
            gr.Error: It lies outside, or is none.
        """
        _refuse_outside(self, payload)
        return super().preprocess(payload)


def _refuse_outside(number: Number | Slider, value: float | None) -> None:
    """Nothing; raises gr.Error where the number is none, or outside its ends."""
    low = -math.inf if number.minimum is None else number.minimum
    high = math.inf if number.maximum is None else number.maximum
    if value is None or low <= value <= high:
        return
    # read anew: an updated component is built again from what its class takes, and this is rare
    say, locale = load_words().say, locale_of(LocalContext.request.get(None))
    ends = {"low": _name_end(low), "high": _name_end(high)}
    raise gr.Error(
        say(locale, "kit.number.outside", value=f"{value:g}", **ends),
        title=say(locale, "kit.number.title"),
        print_exception=False,
    )


def _name_end(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:g}"
