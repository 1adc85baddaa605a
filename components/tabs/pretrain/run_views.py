"""The views of a run, and what they show: list, live numbers, samples."""

from typing import Any, get_args

import gradio as gr

from components.kit.views import build_view, pick_texts
from components.quantities import short_count
from components.text import Words
from explorer.jobs.run_states import RunState
from explorer.run_records import RunSummary

_LIVE = """
<div class="empty" role="status"></div>
<div class="body" hidden>
<div class="head"><span class="state" role="status"></span><span class="place"></span>
<span class="links"><a class="button csv" download></a>
<a class="button tensorboard" download></a>
<a class="button zip" download hidden></a></span></div>
<div class="bar" role="progressbar" aria-valuemin="0" aria-valuemax="100">
<div class="fill"></div></div>
<div class="message" role="status" hidden></div>
<div class="tiles"></div>
<div class="controls"><span class="charts"></span><span class="axes"></span>
<label class="log"></label><label class="smooth"></label></div>
<div class="fit" hidden></div>
</div>
"""
_SAMPLES = (
    '<div class="title"></div><div class="empty"></div><ul class="samples" tabindex="0"></ul>'
)
_LIST = '<div class="title"></div><div class="empty"></div><ul class="runs"></ul>'

_TILES = ("loss", "validation", "perplexity", "rate", "norm", "speed", "mfu", "left")
_CHARTS = ("loss", "perplexity", "rate", "norm", "score", "logp", "length")
# What objectives measure besides the loss.
_SCORES = (
    *("exact_match", "accuracy", "preferred", "margin", "policy_chosen", "policy_rejected"),
    *("reference_chosen", "reference_rejected", "drift", "answer_tokens"),
)
_LIVE_TEXTS = (
    *_TILES,
    *(f"{tile}_help" for tile in _TILES),
    *(f"{what}_{chart}" for what in ("chart", "line", "y") for chart in _CHARTS),
    *("chart", "axis", "axis_steps", "axis_tokens", "x_steps", "x_tokens", "no_points"),
    *("line_training", "line_validation", "line_lowest", "log", "smooth", "csv", "zip_step"),
    *("tensorboard", "tensorboard_help"),
    *("progress", "empty", "steps", "place", "per_second", "hours", "minutes", "seconds"),
    *("failed", "failed_tensor", "interrupted", "lost_steps", "loading", "lost_connection"),
    *("overfit", "y_loss_row"),
    *(f"score_{name}" for name in _SCORES),
    # what a run may fail of, in the reader's language; other faults are told in English
    *("run-not-finite", "run-disk-full", "run-out-of-memory"),
)
_SAMPLE_TEXTS = ("title", "none", "step", "copied", "line")
_LIST_TEXTS = (
    "title",
    "steps",
    "validation",
    "name",
    "rename",
    "remove",
    "remove_really",
    "keep",
    "sure",
)


def _state_keys() -> dict[str, str]:
    return {f"state_{state}": f"pretrain.state.{state}" for state in get_args(RunState)}


def build_live_view(words: Words, *, elem_id: str, chart: str) -> gr.HTML:
    """Build the view of a run's state and numbers, which asks the server by itself.

    Its value is `{"run": id}` or None. Event `run_change`, when the state changes or a checkpoint
    is there: `event.run`, `event.state`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        chart: The `elem_id` of the Plotly panel that shows its curves.
    """
    keys = {**{name: f"pretrain.live.{name}" for name in _LIVE_TEXTS}, **_state_keys()}
    texts = pick_texts(words, keys)
    return build_view("run_live", words, template=_LIVE, elem_id=elem_id, texts=texts, chart=chart)


def build_samples_view(words: Words, *, elem_id: str, chart: str) -> gr.HTML:
    """Build the view of what the model wrote; it has no value and follows the live view.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        chart: As for the live view.
    """
    texts = pick_texts(words, {name: f"pretrain.samples.{name}" for name in _SAMPLE_TEXTS})
    return build_view(
        "run_samples", words, template=_SAMPLES, elem_id=elem_id, texts=texts, chart=chart
    )


def build_run_list(words: Words, *, elem_id: str, none_key: str) -> gr.HTML:
    """Build the list of the visitor's runs; its value is what `make_run_list` gives.

    Events: `pick` (`event.run`), `rename` (`event.run`, `event.name`), `remove` (`event.run`).

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        none_key: Key of what it says before there is a run.
    """
    keys = {name: f"pretrain.runs.{name}" for name in _LIST_TEXTS}
    keys |= {"none": none_key, **_state_keys()}
    texts = pick_texts(words, keys)
    return build_view("run_list", words, template=_LIST, elem_id=elem_id, texts=texts)


def make_run_list(
    words: Words, locale: str, summaries: tuple[RunSummary, ...], selected: str | None
) -> dict[str, Any]:
    """The value of the list."""
    return {
        "runs": [
            {
                "id": summary.id,
                "name": summary.name,
                "state": summary.state,
                "step": summary.step,
                "n_steps": summary.n_steps,
                "detail": _say_detail(words, locale, summary),
                "validation": summary.told_loss,
            }
            for summary in summaries
        ],
        "selected": selected,
    }


def _say_detail(words: Words, locale: str, summary: RunSummary) -> str:
    if summary.state == "broken":
        return words.say(locale, "pretrain.runs.broken")
    return f"{short_count(summary.n_parameters)} · {summary.text_name}"
