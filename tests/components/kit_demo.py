"""A page with every view of the kit on hard data, for the browser tests and for the eye.

Run it as `python tests/components/kit_demo.py PORT` from the project's folder.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

import gradio as gr
import numpy as np
from starlette.middleware import Middleware

from components.early_head import EarlyHead, make_early_head
from components.kit.bars import build_bar_list
from components.kit.cards import build_card, build_note
from components.kit.chips import build_token_chips
from components.kit.curve_panel import Curve, curves_message
from components.kit.examples import build_examples
from components.kit.head_grid import build_head_grid
from components.kit.heatmap import build_heatmap
from components.kit.number_matrix import build_number_matrix
from components.kit.pickers import build_picker
from components.kit.plotly_panel import Points, build_plotly_panel, points_message
from components.kit.stepper import build_stepper
from components.kit.view_assets import view_routes
from components.kit.working import build_working
from components.routes import MatrixRoutes
from components.text import Words, load_words
from components.theme import build_theme
from tests.components.kit_data import (
    DEMO_WORDS,
    SNIPPET,
    WEIGHTS,
    make_answer_units,
    make_attention,
    make_many,
    make_plain_units,
    make_unit,
    make_weight_units,
)

QUIET: dict[str, Any] = {
    "show_progress": "hidden",
    "api_visibility": "private",
    "trigger_mode": "always_last",
}

# The shell lays the real page out; the demo only needs some room.
PAGE = """
gradio-app main.app { padding: 16px !important; max-width: 1240px !important; }
gradio-app main.app > .wrap > .column { gap: 16px !important; }
"""


@dataclass(frozen=True)
class Maps:
    """What the demo publishes: ids of the routes, and the numbers behind them."""

    small: np.ndarray
    large: np.ndarray
    small_id: str
    large_id: str
    stack_id: str
    labels: list[str]


def publish_maps(routes: MatrixRoutes) -> Maps:
    """Publish a small map, a 512 x 512 one and a stack of heads."""
    labels = ["When", " Mary", " and", " John", " went", " to", " the", " store", ",", "\n", "\t"]
    labels += ["玛", "丽", "<b>", "${1+1}", "👨‍👩‍👧‍👦", "שלום", " a", " drink", " to", " Mary", "."]
    heads = make_attention(len(labels), 9)
    large = make_attention(512, 1, seed=1)[0]
    stack = np.round(heads * 255).astype(np.uint8)
    return Maps(
        small=heads[4],
        large=large,
        small_id=routes.publish(heads[4], row_labels=labels, column_labels=labels),
        large_id=routes.publish(large),
        stack_id=routes.publish_stack(stack),
        labels=labels,
    )


def large_map_value(maps: Maps) -> dict[str, Any]:
    """Give the value of a heatmap of 512 tokens."""
    names = [f" token{index}" for index in range(512)]
    return {
        "matrix": maps.large_id,
        "rows": names,
        "cols": names,
        "causal": True,
        "title": "512 tokens",
    }


def small_map_value(maps: Maps) -> dict[str, Any]:
    """Give the value of a heatmap of hard labels."""
    return {
        "matrix": maps.small_id,
        "rows": maps.labels,
        "cols": maps.labels,
        "causal": True,
        "title": "Head 4",
        "max": 1,
    }


def demo_words() -> Words:
    """Give the page's sentences and those of the demo."""
    words = load_words()
    return Words({key: {**words.sentences[key], **DEMO_WORDS[key]} for key in words.sentences})


def on_event(event: gr.EventData) -> str:
    """Say what arrived in Python."""
    return repr({key: value for key, value in sorted(event._data.items())})


def build_chips_part(words: Words, said: gr.Textbox) -> None:
    """Chips in all modes, with text that grows."""
    plain_units = make_plain_units()
    gr.Markdown("### Chips")
    chips = build_token_chips(
        words, elem_id="chips", copy=True, value={"units": plain_units, "more": 0, "total": 28}
    )
    chips.token_click(on_event, None, said, **QUIET)
    answer = build_token_chips(
        words,
        elem_id="answer",
        mode="probability",
        readout="popover",
        value={"units": make_answer_units(), "more": 0, "total": 10},
    )
    answer.token_click(on_event, None, said, **QUIET)
    build_token_chips(
        words,
        elem_id="weights",
        mode="weight",
        readout="aside",
        value={"units": make_weight_units(), "more": 0, "total": 10},
        weights=WEIGHTS,
        selected=4,
    )
    rtl = [make_unit(text, 0) for text in ["שלום", " עולם", " abc", " 12", "!"]]
    build_token_chips(words, elem_id="rtl", readout="popover", value={"units": rtl})
    many = build_token_chips(words, elem_id="many", readout="popover", value={"units": []})
    with gr.Row():
        thousand = gr.Button("1,000 tokens", elem_id="b_many", size="sm")
        stream = gr.Button("Stream", elem_id="b_stream", size="sm")
        middle = gr.Button("Edit the middle", elem_id="b_middle", size="sm")
    thousand.click(lambda: make_many(1000, more=234), None, many, **QUIET)
    stream.click(stream_units, None, many, **QUIET)
    middle.click(edit_middle, None, many, **QUIET)


def stream_units() -> Any:
    """Grow a text as a model would."""
    for length in range(1, 31):
        yield make_many(length)


def edit_middle() -> dict[str, Any]:
    """Change a streamed text of 30 units in its middle: one unit becomes two."""
    value = make_many(30)
    value["units"][15:16] = [make_unit("new", 15), make_unit("er", 16)]
    return value


def build_maps_part(words: Words, maps: Maps, said: gr.Textbox) -> None:
    """Head grid, heatmap and the drawer that belongs to them."""
    with gr.Row():
        with gr.Column(scale=1, min_width=220):
            gr.Markdown("**Heads of layer 13**")
            heads = build_head_grid(
                words,
                elem_id="heads",
                value={
                    "stack": maps.stack_id,
                    "n": 9,
                    "size": [len(maps.labels)] * 2,
                    "labels": [f"h{index}" for index in range(9)],
                    "selected": 4,
                    "groups": [3, 3, 3],
                },
            )
        with gr.Column(scale=3, min_width=320):
            heat = build_heatmap(words, elem_id="heat", value=small_map_value(maps), selected=5)
            large = gr.Button("512 tokens", elem_id="b_large", size="sm")
            gone = gr.Button("An id that is gone", elem_id="b_gone", size="sm")
    heads.head_select(on_event, None, said, **QUIET)
    heat.row_select(on_event, None, said, **QUIET)
    large.click(lambda: large_map_value(maps), None, heat, **QUIET)
    gone.click(lambda: {**small_map_value(maps), "matrix": "unknown"}, None, heat, **QUIET)
    working = build_working(
        words,
        elem_id="working",
        formula=r"$$A = \mathrm{softmax}\left(\frac{q k^\top}{\sqrt{64}} + \mathrm{mask}\right)$$",
        png="heat",
        open_at_start=True,
    )
    row = maps.small[20]
    best = np.argsort(-row)[:5]
    working.facts.value = {
        "tensor": "blocks.13.attn.pattern",
        "shape": [9, 22, 22],
        "dtype": "float32",
        "file": "models/attention.py",
        "test": "tests/models/test_attention.py",
    }
    working.table.value = {
        "rows": [maps.labels[index] for index in best],
        "cols": ["position", "weight"],
        "corner": "query 20 reads",
        "cells": [[str(index), float(row[index])] for index in best],
        "digits": 4,
    }
    working.exports.value = {"csv": maps.small_id, "png": "heat", "python": SNIPPET}
    build_note(words, "demo.note", elem_id="note")


def build_small_part(words: Words, said: gr.Textbox) -> None:
    """Pickers, examples, stepper, bars, matrix and cards."""
    examples = build_examples(words, ["demo.one", "demo.two", "demo.three"], elem_id="examples")
    examples.example(on_event, None, said, **QUIET)
    layer = build_picker(words, "layer", elem_id="layer", value={"index": 13, "count": 30})
    layer.pick(lambda value: f"layer {value['index']}", layer, said, **QUIET)
    stepper = build_stepper(words, elem_id="stepper", value={"index": 2, "count": 12})
    stepper.step(on_event, None, said, **QUIET)
    texts = [" Paris", "\n", "<b>", "שלום", " the"]
    bars = [
        {"label": text, "value": 0.71 / (1 + 2 * index), "note": f"{index + 1}"}
        for index, text in enumerate(texts)
    ]
    listed = build_bar_list(
        words, elem_id="bars", clickable=True, value={"bars": bars, "unit": "%", "max": 1}
    )
    listed.bar_click(on_event, None, said, **QUIET)
    cells = [[1.0, None, None], [0.25, 0.75, None], [0.125, 0.5, 0.375]]
    build_number_matrix(
        words,
        elem_id="matrix",
        value={
            "rows": ["a", " b", "\n"],
            "cols": ["a", " b", "\n"],
            "cells": cells,
            "digits": 3,
            "shade": 1,
        },
    )
    error = build_card(words, elem_id="error")
    build_card(
        words,
        elem_id="hint",
        value={"kind": "hint", "title": "Short text", "text": "Three tokens say little."},
    )
    fail = gr.Button("Fail", elem_id="b_fail", size="sm")
    fail.click(
        lambda: {
            "kind": "error",
            "title": "The file cannot be read",
            "text": "<b>model.gguf</b> has 12 bytes; its header alone needs 24.",
            "remedy": "Download it again, or choose another file.",
        },
        None,
        error,
        **QUIET,
    )


def build_plot_part(words: Words, said: gr.Textbox) -> None:
    """Curves that grow."""
    panel = build_plotly_panel(words, elem_id="loss", label_key="demo.loss", height=280)
    with gr.Row():
        draw = gr.Button("Curves", elem_id="b_curves", size="sm")
        live = gr.Button("Live", elem_id="b_live", size="sm")
        gap = gr.Button("Gap", elem_id="b_gap", size="sm")
    steps = list(range(200))

    def curves() -> str:
        train = [4 * float(np.exp(-step / 60)) + 1.5 for step in steps]
        held_out = [loss + 0.2 for loss in train]
        lines = [Curve("train <b>", steps, train), Curve("${1+1}", steps, held_out)]
        return curves_message(
            lines, x_title="step", y_title="loss (nats)", keep="run", have=[200, 200]
        )

    draw.click(curves, None, panel, **QUIET)
    live.click(lambda: points_message([Points(200, [200, 201], [1.6, 1.7]), None]), None, panel)
    gap.click(lambda: points_message([Points(900, [900], [1.0]), None]), None, panel, **QUIET)
    panel.plot_gap(lambda: "gap", None, said, **QUIET)
    panel.plot_click(on_event, None, said, **QUIET)


def build_demo(routes: MatrixRoutes) -> tuple[gr.Blocks, Maps, Words]:
    """Build the page."""
    words, maps = demo_words(), publish_maps(routes)
    with gr.Blocks(title="Kit") as demo:
        said = gr.Textbox(label="event", elem_id="said")
        with gr.Column(elem_classes=["figure"]):
            build_chips_part(words, said)
        with gr.Column(elem_classes=["figure"]):
            build_maps_part(words, maps, said)
        with gr.Column(elem_classes=["figure"]):
            build_small_part(words, said)
        with gr.Tab("first"):
            gr.Markdown("The panel is in the other tab.")
        with gr.Tab("plot"):
            build_plot_part(words, said)
    return demo, maps, words


def launch_demo(port: int | None, **more: Any) -> tuple[gr.Blocks, str, Maps]:
    """Start the page on a port of this machine and give its address."""
    routes = MatrixRoutes()
    demo, maps, words = build_demo(routes)
    _, url, _ = demo.launch(
        server_name="127.0.0.1",
        server_port=port,
        prevent_thread_lock=True,
        quiet=True,
        ssr_mode=False,
        i18n=words.translations,
        theme=build_theme(),
        css=PAGE,
        app_kwargs={
            "routes": [*routes.routes(), *view_routes(words)],
            "middleware": [Middleware(EarlyHead, html=make_early_head(words))],
        },
        **more,
    )
    return demo, url, maps


if __name__ == "__main__":
    launch_demo(int(sys.argv[1]))[0].block_thread()
