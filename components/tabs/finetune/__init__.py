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
    runs = live.wire_panel(ctx, head, watch, choice, "finetune")
    data.wire_panel(ctx, head, rows, tunings, panels)
    train.wire_panel(ctx, head, tabs["train"], form, rows, tunings, choice, panels, watch, runs)
    answers.wire_panel(ctx, head, tabs["answers"], asked, choice, tunings)
    evaluate.wire_panel(ctx, head, tabs["evaluate"], scores, choice, tunings)
    judge.wire_panel(ctx, head, judging, choice, tunings)
    choices.wire_panel(ctx, head, chosen, choice, tunings)
    changes.wire_panel(ctx, head, tabs["changes"], changed, choice, tunings)
    adapter.wire_panel(ctx, head, tabs["adapter"], low_rank, choice, tunings)
    clicks.wire_panel(ctx, head, judged, rows, choice, tunings, panels)
    lineage.wire_panel(ctx, head, tabs["lineage"], tree, tunings)


TAB = Tab("finetune", "finetune.title", build)
