"""What happens in the panel "encoder-decoder"; its runs are those of `RunHandlers`."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import gradio as gr

from components.context import AppContext
from components.forms import read_form
from components.kit.beam_tree import make_tree
from components.kit.views import update_view
from components.tabs.blocks.encoder_decoder_views import (
    LookedAt,
    head_at,
    make_candidates,
    make_grid,
    make_head_stack,
    make_table,
    make_texts,
    pattern_so_far,
    row_labels,
    within,
)
from components.tabs.pretrain.run_handlers import RunHandlers
from components.text import locale_of
from explorer.snippets import source_file_of
from explorer.training.translation_setup import TranslationSetup
from explorer.translation_runs import TranslationRuns
from explorer.translation_snippets import make_translation_snippet
from explorer.translation_view import (
    TranslateSettings,
    Translation,
    compute_translation,
    pattern_of,
)

PREFIX = "blocks.encoder_decoder"
TEST_FILE = "tests/explorer/test_translation_view.py"
EXAMPLES = (
    TranslationSetup(),
    TranslationSetup(task="dates"),
    TranslationSetup(task="reversal", n_layers=1, d_model=32),
)
# A text for each task.
TEXTS = {"numbers": "4072", "dates": "March 5, 1987", "reversal": "lemon"}
N_DRAWN = 9  # what one place of a translation fills
NOTHING: dict[str, Any] = {"csv": None, "png": None, "python": None}


class TranslationHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
        runs: Handlers of its runs.
    """

    def __init__(self, ctx: AppContext, runs: RunHandlers) -> None:
        self._ctx = ctx
        self._runs = runs
        self._translations = TranslationRuns(ctx.runs)

    # ------------------------------------------------------------------------------ training
    def warm_up(self) -> None:
        """Somebody has come to train: a process loads torch while he reads."""
        self._ctx.runs.warm_up()

    def example(self, event: gr.EventData) -> tuple[Any, ...]:
        """Fill the form with one of the examples."""
        return tuple(asdict(EXAMPLES[int(event._data["index"])]).values())

    def begin(
        self, owner: str | None, request: gr.Request, settings: TranslationSetup
    ) -> tuple[Any, ...]:
        """Make the run and let it start."""
        visitor = self._ctx.owner_of(owner, request)
        run = self._translations.create(settings, visitor)
        self._ctx.runs.start(run, visitor)
        return self._runs.show(run, owner, request)

    def begin_run(self, request: gr.Request, *, settings: TranslationSetup) -> dict[str, Any]:
        """Train an encoder-decoder on a toy translation: makes a run and lets it start."""
        visitor = self._ctx.owner_of(None, request)
        run = self._translations.create(settings, visitor)
        self._ctx.runs.start(run, visitor)
        return self._runs.read_run(run)

    # --------------------------------------------------------------------------- translating
    def translate(
        self,
        run: str | None,
        looked: LookedAt,
        request: gr.Request,
        settings: TranslateSettings,
    ) -> tuple[Any, ...]:
        """Translate with the newest checkpoint; the last place is shown first."""
        if run is None or self._translations.newest_step(run) is None:
            return (*self._nothing(looked, request), None, None, gr.skip())
        given = settings.text
        if run != looked.run:  # another run may have another task: a text of it
            settings = replace(settings, text=self._text_of(run, given))
        found = self._compute(run, settings)
        result_id = self._ctx.results.put((found, settings))
        anew = run != looked.run or settings.text != looked.text
        place = len(found.chosen) - 1 if anew else looked.place
        looked = replace(looked, result_id=result_id, run=run, text=settings.text, place=place)

        def say(key: str) -> str:
            return self._ctx.words.say(locale_of(request), f"{PREFIX}.{key}")

        tree = make_tree(found.written[0], found.nodes)
        typed = gr.skip() if settings.text == given else settings.text
        drawn = self._draw(looked, found, settings, request)
        return (*drawn, make_texts(found, say), tree, typed)

    def step(self, looked: LookedAt, event: gr.EventData, request: gr.Request) -> tuple[Any, ...]:
        """Decode up to another place."""
        return self._move(replace(looked, place=int(event._data["index"])), request)

    def pick_row(
        self, looked: LookedAt, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Go to the place whose row was clicked."""
        return self.step(looked, event, request)

    def pick_head(
        self, looked: LookedAt, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Look at another head."""
        kept = self._kept(looked)
        if kept is None:
            return (gr.skip(),) * N_DRAWN
        layer, head = head_at(kept[0], int(event._data["index"]))
        return self._move(replace(looked, layer=layer, head=head), request)

    def translate_text(
        self,
        run: str,
        text: str,
        n_beams: int = 4,
        length_penalty: float = 0.6,
    ) -> dict[str, Any]:
        """Translate a text with the newest checkpoint of a run of translations."""
        given = {"text": text, "n_beams": n_beams, "length_penalty": length_penalty}
        found = self._compute(run, read_form(TranslateSettings, given))
        return {
            "step": found.step,
            "source": list(found.source_labels),
            "chosen": list(found.chosen),
            "greedy": found.greedy,
            "wanted": found.wanted,
            "texts": [asdict(one) for one in found.texts],
            "cross_attention": found.patterns.tolist(),
        }

    # -------------------------------------------------------------------------- how it is done
    def _compute(self, run: str, settings: TranslateSettings) -> Translation:
        translator = self._translations.open(run)
        return compute_translation(translator, settings, turn=self._ctx.slots.turn)

    def _text_of(self, run: str, text: str) -> str:
        """The text, where the run's task can read it; else one of its own."""
        task = self._translations.task(run)
        return text if task.find_target(text) is not None else TEXTS[task.name]

    def _kept(self, looked: LookedAt) -> tuple[Translation, TranslateSettings] | None:
        found = self._ctx.results.get(looked.result_id)
        return found if isinstance(found, tuple) else None

    def _move(self, looked: LookedAt, request: gr.Request) -> tuple[Any, ...]:
        kept = self._kept(looked)
        if kept is None:
            return (gr.skip(),) * N_DRAWN
        return self._draw(looked, *kept, request)

    def blank(self) -> tuple[Any, ...]:
        """What stands beside a text that cannot be translated."""
        return ("", {"index": 0, "count": 0}, *[None] * 5, dict(NOTHING), gr.skip())

    def _nothing(self, looked: LookedAt, request: gr.Request) -> tuple[Any, ...]:
        said = self._ctx.words.say(locale_of(request), f"{PREFIX}.none")
        return (said, *self.blank()[1:-1], looked)

    def _draw(
        self,
        looked: LookedAt,
        found: Translation,
        settings: TranslateSettings,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Values for `Parts.drawn`."""
        locale, words = locale_of(request), self._ctx.words
        place, layer, head = within(looked, found)

        def say(key: str, **values: object) -> str:
            return words.say(locale, f"{PREFIX}.{key}", **values)

        name = say("mean") if head < 0 else f"h{head}"
        labels = row_labels(found, place)
        pattern = pattern_so_far(found, place, layer, head)
        publish = self._ctx.routes.publish
        matrix = publish(pattern, row_labels=labels, column_labels=found.source_labels)
        value = {
            "matrix": matrix,
            "rows": labels,
            "cols": list(found.source_labels),
            "causal": False,
            "title": say("map_title", layer=layer, head=name),
            "max": 1,
        }
        stack = self._ctx.routes.publish_stack(make_head_stack(found))
        facts = {
            "tensor": f"decoder.blocks.{layer}.cross_attn.pattern",
            "shape": list(found.patterns.shape[1:]),
            "dtype": "float32",
            "file": source_file_of(pattern_of),
            "test": TEST_FILE,
        }
        return (
            self._say(found, place, say),
            {"index": place, "count": len(found.chosen)},
            update_view(value=value, selected=place),
            make_candidates(found, place),
            make_grid(found, stack, layer, head, say("mean")),
            facts,
            make_table(found, place, pattern, say("wrote")),
            {
                "csv": matrix,
                "png": "translate-map",
                "python": make_translation_snippet(looked.run, found.step, settings, layer, head),
            },
            looked,
        )

    def _say(self, found: Translation, place: int, say: Any) -> str:
        written = " ".join(found.written[1 : place + 1]) or "–"
        sentence = say(
            "said",
            step=f"{found.step:,}",
            written=written,
            next=found.chosen[place],
            probability=f"{found.candidates[place][0].probability:.1%}",
        )
        if found.wanted is None:
            return f"{sentence} {say('no_rule')}"
        right = "right" if found.greedy == found.wanted else "wrong"
        return f"{sentence} {say(right, greedy=found.greedy, wanted=found.wanted)}"
