"""The panel "before": words, characters and bytes, and what each loses on the way back."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import make_error_card, wire
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.working import Working, build_working
from components.tabs.tab import TabHead
from components.tabs.tokens.drawer import Numbers, fill_drawer
from components.text import locale_of
from explorer.tokenizer_lab.before_bpe import KINDS, RoundTrip, compare_round_trips
from explorer.tokenizer_lab.snippets import make_round_trip_snippet

EXAMPLE_KEYS = (
    "tokens.before.example_known",
    "tokens.before.example_unknown",
    "tokens.before.example_blanks",
)
LEARNT_FROM = (
    "Ada has a red ball. The ball is round, and it is new. Ben has no ball; "
    "Ben asks: Is it your ball? Ada says: Yes, it is my ball!"
)
EXAMPLE_TEXTS = (
    "Ada has a new ball.",
    "Ada has a blue kite, 玛丽 has none.",
    "Ada  has\ta ball .\n",
)
FORMULA = r"""
$$\text{decode}(\text{encode}(x)) = x \quad \text{for every text } x \text{ only with bytes}$$
"""
MOST_UNITS = 200
MOST_SHOWN = 500  # characters of a text that comes back
# Shorter than in a card: the title above names the tokenizer already.
FAILURES = {
    "words-unknown": "tokens.before.fails_words",
    "tokenizer-character-unknown": "tokens.before.fails_characters",
}
MARKS = ("<|unk|>", "<|endoftext|>")


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    learnt: gr.Textbox
    text: gr.Textbox
    examples: gr.HTML
    titles: list[gr.HTML]
    chips: list[gr.HTML]
    said: list[gr.HTML]
    working: Working

    def outputs(self) -> list[Any]:
        """What `BeforeHandlers.show` fills."""
        drawer = [self.working.facts, self.working.table, self.working.exports]
        return [*self.titles, *self.chips, *self.said, *drawer]


def build(ctx: AppContext, head: TabHead, tab: gr.Tab) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        tab: The inner tab.
    """
    t, words = ctx.words.t, ctx.words
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "tokens-controls"], min_width=0):
            learnt = gr.Textbox(
                LEARNT_FROM,
                label=t("tokens.before.learnt"),
                info=t("tokens.before.learnt_info"),
                lines=5,
                max_lines=10,
                elem_id="before-learnt",
            )
            text = gr.Textbox(
                EXAMPLE_TEXTS[1], label=t("tokens.before.text"), lines=2, elem_id="before-text"
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="before-examples")
        with gr.Column(elem_classes=["figure"], min_width=0):
            titles, chips, said = [], [], []
            for kind in KINDS:
                titles.append(build_line(words, elem_id=f"before-title-{kind}", look="heading"))
                chips.append(
                    build_token_chips(words, elem_id=f"before-chips-{kind}", readout="popover")
                )
                said.append(build_line(words, elem_id=f"before-said-{kind}", look="text"))
            working = build_working(words, elem_id="before-working", formula=FORMULA)
    build_note(words, "tokens.before.look_for", elem_id="before-note")
    parts = Parts(learnt, text, examples, titles, chips, said, working)
    on = BeforeHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": words}
    for event in (tab.select, learnt.change, text.change):
        wire(event, on.show, [learnt, text], parts.outputs(), trigger_mode="always_last", **options)
    wire(examples.example, on.example, [], [text], queue=False, **options)
    expose(on.round_trips, "tokens_before")
    ctx.address.register("tokens", "learnt", learnt)
    ctx.address.register("tokens", "back", text)


class BeforeHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def example(self, event: gr.EventData) -> str:
        """Type one of the examples."""
        return EXAMPLE_TEXTS[int(event._data["index"])]

    def show(self, learnt: str, text: str, request: gr.Request) -> tuple[Any, ...]:
        """Send the text through each tokenizer and back."""
        locale = locale_of(request)
        trips = compare_round_trips(learnt, text)
        drawer = fill_drawer(
            self._ctx,
            self._lengths(trips, locale),
            tensor="ids",
            shape=[len(trips)],
            dtype="int64",
            function=compare_round_trips,
            snippet=make_round_trip_snippet(learnt, text),
        )
        return (
            *(self._title(trip, locale) for trip in trips),
            *(_make_chips(trip) for trip in trips),
            *(self._say(trip, locale) for trip in trips),
            *drawer,
        )

    def round_trips(self, learnt_from: str, text: str) -> list[dict[str, Any]]:
        """Send a text through words, words with unknowns, characters and bytes, and back."""
        return [
            {
                "kind": trip.kind,
                "vocab_size": trip.vocab_size,
                "ids": list(trip.ids),
                "decoded": trip.decoded,
                "exact": trip.is_exact,
                "error": None if trip.error is None else trip.error.message,
            }
            for trip in compare_round_trips(learnt_from, text)
        ]

    def _title(self, trip: RoundTrip, locale: str) -> str:
        say = self._ctx.words.say
        return say(
            locale,
            "tokens.before.title",
            kind=say(locale, f"tokens.before.kind_{trip.kind}"),
            vocabulary=f"{trip.vocab_size:,}",
            tokens=f"{len(trip.ids):,}",
        )

    def _say(self, trip: RoundTrip, locale: str) -> str:
        """What comes back, or why nothing does."""
        say = self._ctx.words.say
        if trip.error is not None:
            key = FAILURES.get(str(trip.error.code))
            if key is not None:
                return say(locale, key, **trip.error.facts)
            return make_error_card(self._ctx.words, locale, trip.error)["text"]
        key = "exact" if trip.is_exact else "lost"
        return say(locale, f"tokens.before.{key}", text=_cut(trip.decoded), n=trip.n_unknown)

    def _lengths(self, trips: tuple[RoundTrip, ...], locale: str) -> Numbers:
        say = self._ctx.words.say
        columns = ("vocabulary", "tokens", "unknown")
        return Numbers(
            corner="",
            rows=[say(locale, f"tokens.before.kind_{trip.kind}") for trip in trips],
            columns=[say(locale, f"tokens.before.column_{name}") for name in columns],
            cells=[[trip.vocab_size, len(trip.ids), trip.n_unknown] for trip in trips],
        )


def _make_chips(trip: RoundTrip) -> dict[str, Any]:
    shown = list(zip(trip.tokens, trip.ids, strict=True))[:MOST_UNITS]
    units = [{"t": token, "ids": [i], "special": token in MARKS} for token, i in shown]
    return {"units": units, "more": len(trip.ids) - len(units), "total": len(trip.ids)}


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"
