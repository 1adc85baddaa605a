"""Which checkpoint of a run a panel looks at: what there is to choose, and the best by itself."""

from typing import Any

import gradio as gr

from components.context import AppContext
from components.text import Words, locale_of
from explorer.errors import JobError
from explorer.training.answer_rows import write_prompt
from explorer.tuning_runs import TuningRuns


def build_step_choice(words: Words, elem_id: str) -> gr.Dropdown:
    """Build the list of checkpoints.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
    """
    label, info = words.t("finetune.step"), words.t("finetune.step_info")
    return gr.Dropdown([], label=label, info=info, elem_id=elem_id)


def build_question(words: Words, label: str, elem_id: str) -> gr.Textbox:
    """Build the box for a text that models read.

    Args:
        words: The sentences of the page.
        label: Key of its label.
        elem_id: Its id in the page.
    """
    return gr.Textbox(
        "",
        label=words.t(label),
        info=words.t("finetune.change_text_info"),
        lines=3,
        max_lines=8,
        elem_id=elem_id,
    )


def list_steps(
    ctx: AppContext, tunings: TuningRuns, run: str | None, request: gr.Request
) -> tuple[Any, str]:
    """The checkpoints there are, the best of them chosen, and the name of the run.

    Args:
        ctx: The page's context.
        tunings: Knows the runs.
        run: The run that is looked at.
        request: Of the page.
    """
    say, locale = ctx.words.say, locale_of(request)
    steps = () if run is None else ctx.runs.view(run).summary.checkpoints
    if run is None or not steps:
        return gr.update(choices=[], value=None), say(locale, "finetune.no_checkpoint")
    best = tunings.best_step(run)
    named = [
        (say(locale, "finetune.step_best" if s == best else "finetune.step_other", step=s), s)
        for s in steps
    ]
    return gr.update(choices=named, value=best), ctx.runs.view(run).summary.name


def offer_question(
    ctx: AppContext,
    tunings: TuningRuns,
    run: str | None,
    text: str,
    offered: str,
    request: gr.Request,
) -> tuple[Any, ...]:
    """The checkpoints there are, the first held-out question where nothing was typed, and the name.

    The question once more stands at the end, for the next call to know it.

    Args:
        ctx: The page's context.
        tunings: Knows the runs.
        run: The run that is looked at.
        text: What stands in the box for the question.
        offered: The question that was offered last, which gives way to that of another run.
        request: Of the page.
    """
    steps, said = list_steps(ctx, tunings, run, request)
    if run is None or (text.strip() and text != offered):
        return steps, gr.skip(), said, offered
    question = first_question(tunings, run)
    return steps, question, said, question


def chosen_step(tunings: TuningRuns, run: str | None, step: int | None) -> tuple[str, int]:
    """The run and its checkpoint; without a choice the best one.

    Args:
        tunings: Knows the runs.
        run: The run that is looked at.
        step: What was chosen.

    Raises:
        JobError: There is no run, or no checkpoint yet.
    """
    if run is None:
        raise JobError("there is no run yet; train one first", code="tune-no-run")
    return run, tunings.best_step(run) if step is None else int(step)


def first_question(tunings: TuningRuns, run: str) -> str:
    """The first held-out question of a run, as its model is asked it.

    Args:
        tunings: Knows the runs.
        run: The run that is looked at.

    Raises:
        JobError: It is not there, or no fine-tuning.
    """
    example = tunings.examples(run)[0]
    return example.text or write_prompt(tunings.tuning(run).template, example.prompt)
