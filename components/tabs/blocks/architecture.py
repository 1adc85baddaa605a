"""The panel "architecture": models side by side, drawn from their configurations."""

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from components.kit.architecture import build_architecture_view
from components.quantities import short_bytes, short_count
from components.tabs.panel_plan import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from components.text import Words
from explorer.architecture import Architecture, Part, describe_architecture
from explorer.architecture_choices import (
    LOADED,
    NONE,
    ArchitectureSettings,
    Difference,
    describe_chosen,
    find_differences,
)
from explorer.architecture_costs import ArchitectureCosts, compute_any_costs
from explorer.architecture_snippets import make_architecture_snippet
from explorer.snippets import source_file_of

FORMULA = r"""
$$N = V D + \sum_{\text{layers}} \bigl(\underbrace{D H d + 2 D K d + H d D}_{\text{attention}} +
\underbrace{3 D F}_{\text{gated}} + \underbrace{2 D}_{\text{norms}}\bigr) + D + V D$$
$$\text{FLOPs a token} = 2 N_{\text{matrices}} + 4\,L\,H d\,T \qquad
\text{cache} = 2 L K d \text{ numbers a token} \qquad
\text{training} = 16\,N \text{ bytes} + \text{activations}$$
"""
SECTIONS = ("top", "block", "encoder", "bottom")  # the output stands above, as in papers
GIB = 2**30


def _build_diagram(words: Words, elem_id: str) -> gr.HTML:
    return build_architecture_view(words, elem_id=elem_id)


PLAN = PanelPlan(
    prefix="blocks.architecture",
    kind=ArchitectureSettings,
    examples=(
        ArchitectureSettings(),
        ArchitectureSettings(
            first="transformer-base", second="gpt2", third="gemma3-4b", fourth="olmo3-7b"
        ),
        ArchitectureSettings(
            first="llama3.2-1b",
            second="own",
            third=NONE,
            changes="n_heads=16, n_kv_heads=4, d_head=128",
        ),
    ),
    views=(
        ViewPlan(name="diagram", kind="other", build=_build_diagram),
        ViewPlan(name="costs", kind="matrix"),
        ViewPlan(name="differences", kind="matrix"),
    ),
    formula=FORMULA,
    test="tests/explorer/test_architecture.py",
    reads_model=True,
)


def show(settings: ArchitectureSettings, visit: Visit) -> PanelView:
    """Parameters, operations and bytes of models side by side, from their configurations."""
    found = describe_chosen(settings, _loaded(settings, visit))
    differences = find_differences(found)
    costs = [compute_any_costs(m.config, settings.n_tokens, settings.batch) for m in found]
    return PanelView(
        said=_say(found, differences, visit),
        views={
            "diagram": {"models": [_draw(model, differences, visit) for model in found]},
            "costs": _tabulate_costs(found, costs, visit),
            "differences": _tabulate_differences(found, differences, visit),
        },
        facts={
            "tensor": "—",
            "shape": [model.count.unique for model in found],
            "dtype": "float32",
            "file": source_file_of(describe_architecture),
        },
        table=_tabulate_parts(found, visit),
        csv=_cost_numbers(found, costs, visit),
        python=make_architecture_snippet(settings),
    )


def _loaded(settings: ArchitectureSettings, visit: Visit) -> Any:
    """Name and configuration of the model on the page, where it was asked for."""
    if LOADED not in settings.chosen:
        return None
    with visit.lease() as loaded:
        return loaded.info.name, loaded.config


def _say(found: Sequence[Architecture], differences: Sequence[Difference], visit: Visit) -> str:
    totals = ", ".join(f"{model.name} {model.count.unique:,}" for model in found)
    return visit.say("said", totals=totals, differences=len(differences))


# ---------------------------------------------------------------------------------- the diagram
def _draw(model: Architecture, differences: Sequence[Difference], visit: Visit) -> dict[str, Any]:
    sections = [
        {
            "title": _title(model, name, visit),
            "repeats": name in model.layers,
            "boxes": [
                _box(part, differences, visit)
                for part in reversed([p for p in model.parts if p.section == name])
            ],
        }
        for name in SECTIONS
        if any(part.section == name for part in model.parts)
    ]
    note = visit.say("parameters", count=short_count(model.count.unique))
    return {"name": model.name, "note": note, "sections": sections}


def _title(model: Architecture, section: str, visit: Visit) -> str:
    layers: Mapping[str, tuple[str, ...]] = model.layers  # type: ignore[assignment]
    if section not in layers:
        return ""
    kinds = layers[section]
    key = "encoder_times" if section == "encoder" else "times"
    title = visit.say(key, n=len(kinds))
    if len(set(kinds)) == 1:
        return title
    return title + " " + visit.say("pattern", pattern=_pattern(kinds))


def _pattern(kinds: Sequence[str]) -> str:
    """`WWWF…`: up to the first time that the pattern comes back."""
    letters = "".join("F" if kind == "full" else "W" for kind in kinds)
    for length in range(1, len(letters)):
        again = letters[:length] * (len(letters) // length + 1)
        if again.startswith(letters):
            return letters[:length] + ("…" if length < len(letters) else "")
    return letters


def _box(part: Part, differences: Sequence[Difference], visit: Visit) -> dict[str, Any]:
    kind = "main" if part.tensors else "add"
    if part.kind.endswith("norm"):
        kind = "norm"
    return {
        "title": visit.say(f"part_{part.kind}"),
        "detail": _detail(part),
        "kind": kind,
        "differs": any(row.part == part.kind for row in differences),
        "facts": [[visit.say(f"fact_{name}"), text] for name, text in part.facts.items()],
        "tensors": [[name, " × ".join(map(str, shape))] for name, shape in part.tensors.items()],
        "parameters": visit.say("parameters", count=f"{part.n_parameters:,}"),
        "formula": part.formula,
        "file": part.file,
    }


def _detail(part: Part) -> str:
    """The few values that tell a part from its neighbour's."""
    shown = {
        "attention": ("heads", "n_heads", "n_kv_heads", "d_head", "window"),
        "rope": ("layer_type", "theta", "scaling"),
        "ffn": ("activation", "d_ff"),
        "experts": ("n_active", "n_experts", "d_ff"),
        "embedding": ("vocab_size", "d_model"),
        "learned": ("context_length",),
        "qk_norm": ("qk_norm",),
    }
    names = shown.get(part.kind, ("norm",))
    return " · ".join(part.facts[name] for name in names if name in part.facts)


# ------------------------------------------------------------------------------------ the tables
COSTS = ("parameters", "with_copies", "active_operations", "attention_operations")
BYTES = ("float32", "bfloat16", "int8", "cache_bytes_per_token", "cache_bytes")
TRAINING = ("gradient_bytes", "optimiser_bytes", "activation_bytes", "training_bytes", "kept_bytes")


def _value(costs: ArchitectureCosts, name: str) -> int:
    return costs.weight_bytes[name] if name in costs.weight_bytes else getattr(costs, name)


def _cost_numbers(
    found: Sequence[Architecture], costs: Sequence[ArchitectureCosts], visit: Visit
) -> TableTwin:
    """Costs as plain numbers, for export and programs."""
    names = (*COSTS, *BYTES, *TRAINING)
    return TableTwin(
        rows=[visit.say(f"cost_{name}") for name in names],
        columns=[model.name for model in found],
        cells=[[_value(c, name) for c in costs] for name in names],
        digits=0,
    )


def _tabulate_costs(
    found: Sequence[Architecture],
    costs: Sequence[ArchitectureCosts],
    visit: Visit,
) -> dict[str, Any]:
    def write(cost: ArchitectureCosts, name: str) -> str:
        value = _value(cost, name)
        if name in COSTS[2:]:
            return f"{value / 1e9:,.3f} G"
        if name in TRAINING:
            return f"{value / GIB:,.2f} GiB"
        return short_bytes(value) if name in BYTES else f"{value:,}"

    names = (*COSTS, *BYTES, *TRAINING)
    return {
        "rows": [visit.say(f"cost_{name}") for name in names],
        "cols": [model.name for model in found],
        "cells": [[write(cost, name) for cost in costs] for name in names],
        "digits": 0,
        "wide": True,
    }


def _tabulate_differences(
    found: Sequence[Architecture], differences: Sequence[Difference], visit: Visit
) -> dict[str, Any] | None:
    if not differences:
        return None
    return {
        "corner": visit.say("differences"),
        "rows": [
            f"{visit.say(f'part_{row.part}')}: {visit.say(f'fact_{row.fact}')}"
            for row in differences
        ],
        "cols": [model.name for model in found],
        "cells": [list(row.values) for row in differences],
        "digits": 0,
        "wide": True,
    }


def _tabulate_parts(found: Sequence[Architecture], visit: Visit) -> TableTwin:
    """Parameters by part."""
    kinds = dict.fromkeys(part.kind for m in found for part in m.parts if part.tensors)
    cells = [
        [sum(part.n_parameters for part in model.parts if part.kind == kind) for model in found]
        for kind in kinds
    ]
    return TableTwin(
        rows=[visit.say(f"part_{kind}") for kind in kinds],
        columns=[model.name for model in found],
        cells=cells,
        corner=visit.say("cost_parameters"),
        digits=0,
    )


PANEL = Panel(plan=PLAN, show=show)
