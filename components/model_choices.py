"""Models that can be put beside the one that is open: those that are here, and checkpoints."""

from collections import Counter

from components.context import AppContext
from explorer.training.translation_setup import TRANSLATION

MOST_RUNS, MOST_CHECKPOINTS = 8, 6  # that are offered


def list_models(ctx: AppContext, source: str, owner: str) -> list[tuple[str, str]]:
    """(name, source) of what can be compared: the open model first.

    Args:
        ctx: The page's context.
        source: The open model; "" before one is.
        owner: Whose runs are offered.
    """
    entries = ctx.store.catalogue()
    named = {entry.id: entry.name for entry in entries}
    found = {source: named.get(source, source)} if source else {}
    for entry in entries:
        if entry.presence == "here":
            found.setdefault(entry.id, entry.name)
    opened = [run for run in ctx.runs.list(owner) if run.objective != TRANSLATION]
    names = Counter(run.name for run in opened)
    for run in opened[:MOST_RUNS]:
        name = run.name if names[run.name] == 1 else f"{run.name} · {run.id[:6]}"
        for step in run.checkpoints[-MOST_CHECKPOINTS:]:
            found[f"run:{run.id}@{step}"] = f"{name} · {step:,}"  # the open one too
    return [(name, key) for key, name in found.items()]


def list_models_with_experts(ctx: AppContext, source: str, owner: str) -> list[tuple[str, str]]:
    """(name, source) of models with experts: the open one if it is such, then trained ones.

    Args:
        ctx: The page's context.
        source: The open model.
        owner: Whose runs are offered, each with its newest checkpoint.
    """
    with ctx.store.lease(source, owner) as loaded:
        found = [] if loaded.config.moe is None else [(loaded.info.name, source)]
    opened = [run for run in ctx.runs.list(owner) if run.objective != TRANSLATION]
    for run in opened[:MOST_RUNS]:
        if run.checkpoints and ctx.runs.view(run.id).config.model.moe is not None:
            step = run.checkpoints[-1]
            found.append((f"{run.name} · {step:,}", f"run:{run.id}@{step}"))
    return found
