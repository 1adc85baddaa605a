"""The Fine-tune tab: a model that is there learns a task, and is asked whether that helped."""

import gradio as gr

from components.context import AppContext
from components.kit.page_style import build_page_style
from components.tabs.finetune import (
    adapter,
    answers,
    changes,
    choices,
    clicks,
    data,
    evaluate,
    judge,
    lineage,
    train,
)
from components.tabs.finetune.tuning_tab import TuningTab
from components.tabs.pretrain import live, run_choice
from components.tabs.tab import Tab, build_tab_head
from explorer.tuning_runs import TuningRuns

PANELS = (
    *("data", "train", "live", "answers", "evaluate"),
    *("judge", "choices", "clicks", "changes", "adapter", "lineage"),
)


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "finetune")
    build_page_style("finetune")
    tunings = TuningRuns(ctx.runs, ctx.store)
    choice = run_choice.build(ctx, "finetune")
    tabs = {}
    with gr.Tabs(elem_id="finetune-panels", overflow_behavior="wrap") as panels:
        for name in PANELS:
            tabs[name] = gr.Tab(ctx.words.t(f"finetune.panel.{name}"), id=name)
        with tabs["data"]:
            rows = data.build(ctx)
        with tabs["train"]:
            form = train.build(ctx)
        with tabs["live"]:
            watch = live.build(ctx, "finetune")
        with tabs["answers"]:
            asked = answers.build(ctx)
        with tabs["evaluate"]:
            scores = evaluate.build(ctx)
        with tabs["judge"]:
            judging = judge.build(ctx)
        with tabs["choices"]:
            chosen = choices.build(ctx)
        with tabs["clicks"]:
            judged = clicks.build(ctx)
        with tabs["changes"]:
            changed = changes.build(ctx)
        with tabs["adapter"]:
            low_rank = adapter.build(ctx)
        with tabs["lineage"]:
            tree = lineage.build(ctx)
    ctx.address.register_panels("finetune", panels, PANELS, card=head.card)
    tune = TuningTab(ctx, head, panels, tabs, choice, tunings)
    runs = live.wire_panel(ctx, head, watch, choice, "finetune")
    data.wire_panel(tune, rows)
    train.wire_panel(tune, form, rows, watch, runs)
    answers.wire_panel(tune, asked)
    evaluate.wire_panel(tune, scores)
    judge.wire_panel(tune, judging)
    choices.wire_panel(tune, chosen)
    clicks.wire_panel(tune, judged, rows)
    changes.wire_panel(tune, changed)
    adapter.wire_panel(tune, low_rank)
    lineage.wire_panel(tune, tree)


TAB = Tab("finetune", "finetune.title", build)
