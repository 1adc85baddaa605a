"""What can be put beside the open model: what is here, and the visitor's own checkpoints."""

from types import SimpleNamespace

import gradio as gr
from starlette.requests import Request

from components.model_choices import list_models
from components.tabs.chat.side_handlers import SideHandlers
from components.text import load_words
from explorer.store_records import CatalogueEntry

CATALOGUE = (
    CatalogueEntry("near", "Near", "Llama", 1, "MIT", "here"),
    CatalogueEntry("far", "Far", "Llama", 1, "MIT", "download"),
)
RUNS = tuple(
    SimpleNamespace(id=f"{letter * 24}", name=name, checkpoints=steps, objective="sft")
    for letter, name, steps in (("a", "same", (1, 2)), ("b", "same", (3,)), ("c", "other", (1000,)))
)


def make_context() -> SimpleNamespace:
    return SimpleNamespace(
        store=SimpleNamespace(catalogue=lambda: CATALOGUE),
        runs=SimpleNamespace(list=lambda owner: RUNS if owner == "ann" else ()),
        owner_of=lambda owner, request: owner,
        words=load_words(),
    )


def test_runs_of_one_name_can_be_told_apart() -> None:
    found = list_models(make_context(), "open", "ann")
    assert found == [
        ("open", "open"),
        ("Near", "near"),
        ("same · aaaaaa · 1", f"run:{'a' * 24}@1"),
        ("same · aaaaaa · 2", f"run:{'a' * 24}@2"),
        ("same · bbbbbb · 3", f"run:{'b' * 24}@3"),
        ("other · 1,000", f"run:{'c' * 24}@1000"),
    ]


def test_side_by_side_offers_the_visitors_own_checkpoints() -> None:
    on = SideHandlers(make_context(), None)  # type: ignore[arg-type]
    scope = {"type": "http", "headers": [], "query_string": b"", "path": "/"}
    request = gr.Request(request=Request(scope))
    for owner, n_runs in (("ann", 4), ("bob", 0)):
        both = on.offer(owner, request)
        assert len(both) == 2
        for dropdown in both:
            sources = [source for _, source in dropdown["choices"]]
            assert sources[:2] == ["", "near"]
            assert len(sources) == 2 + n_runs
            assert "value" not in dropdown  # what was chosen stays
