"""After an error nothing old stands beside the new question."""

import gradio as gr
import pytest

from explorer.attention_lab.ways_timing import WaySettings
from tests.components.attention.panel_calls import find_component

TOO_LARGE = vars(WaySettings(d_model=1_024, n_heads=32, n_tokens=1_024, batch=16)).values()


@pytest.mark.parametrize(
    ("elem_id", "event", "inputs", "views"),
    [
        ("lab-patch-start", "click", ("abc", "abcd", None, None), ("patch-said", "patch-map")),
        ("lab-scan-start", "click", ("a", None, None), ("scan-said", "scan-map", "scan-bars")),
        (
            "lab-ablate-run",
            "click",
            ("abc", "nonsense", None, None),
            ("ablate-said", "ablate-bars", "ablate-written"),
        ),
        (
            "lab-cache-text",
            "change",
            ("", None, None, 0, None, None),
            ("cache-stepper", "cache-said", "cache-map", "cache-keys"),
        ),
        (
            "lab-cache-start",
            "click",
            ("", None, None),
            ("cache-speed", "cache-times", "cache-memory"),
        ),
        ("lab-ways-start", "click", TOO_LARGE, ("ways-said", "ways-plot", "ways-table")),
    ],
)
def test_an_error_empties_the_views(demo, nobody, elem_id, event, inputs, views):
    component = find_component(demo, elem_id)
    listener = next(fn for fn in demo.fns.values() if (component._id, event) in fn.targets)
    answer = listener.fn(nobody, *inputs)
    shown = answer if isinstance(answer, dict) else list(answer)[-1]
    assert shown[listener.outputs[-1]]["kind"] == "error"
    for view in views:
        assert not shown[find_component(demo, f"lab-{view}")], view
    kept = [block for block, value in shown.items() if value == gr.skip()]
    assert all(block.elem_id in ("lab-cache-layer", "lab-cache-head") for block in kept)
