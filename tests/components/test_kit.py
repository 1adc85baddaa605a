"""The kit without a browser: files, words, events, and what its values say."""

import html
import json
import math
import re
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.kit.bars import build_bar_list
from components.kit.cards import build_card, build_note
from components.kit.chips import build_token_chips
from components.kit.curve_panel import Curve, curves_message, thin
from components.kit.examples import build_examples
from components.kit.head_grid import build_head_grid
from components.kit.heatmap import build_heatmap
from components.kit.pickers import build_picker
from components.kit.plotly_panel import (
    Points,
    build_plotly_panel,
    figure_message,
    plain,
    points_message,
)
from components.kit.stepper import build_stepper
from components.kit.view_assets import make_script, make_style
from components.kit.views import KIT, pick_texts, read_sentences
from components.kit.working import build_working
from components.text import LOCALES, Words, load_words

SCRIPTS = sorted(KIT.glob("*.js"))
VIEWS = sorted({key.split(".")[1] for key in load_words().of_file("en", "kit")} - {"working"})
# Sentences that do not come from kit.json: the tab gives them, or the name is made of parts.
GIVEN = {"note": {"text"}, "examples": {"example_"}, "plotly_panel": {"label"}}


@pytest.fixture(scope="module")
def words() -> Words:
    return load_words()


@pytest.mark.parametrize("view", VIEWS)
def test_script_asks_only_for_sentences_that_exist(view: str, words: Words):
    script = (KIT / f"{view}.js").read_text(encoding="utf-8")
    asked = set(re.findall(r"(?:say|sentence)\('(\w+)'", script))
    for locale in LOCALES:
        known = set(read_sentences(words, locale, f"kit.{view}."))
        assert asked - GIVEN.get(view, set()) <= known


def test_shared_script_fits_into_a_script_element():
    assert "</script" not in (KIT / "kit.js").read_text(encoding="utf-8").lower()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_never_write_markup(path: Path):
    """Text of users and models must stay text."""
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function",
        path.read_text(encoding="utf-8"),
    )


def test_templates_hold_no_data(words: Words):
    evil = {"units": [{"t": "${alert(1)}", "ids": [1]}]}
    first = build_token_chips(words, elem_id="a", value=evil)
    second = build_token_chips(words, elem_id="b")
    assert first.html_template == second.html_template
    assert first.js_on_load == second.js_on_load
    assert not re.search(r"\$\{|\{\{|`|\\", first.html_template)


@pytest.mark.parametrize(
    ("build", "event"),
    [
        (lambda words: build_token_chips(words, elem_id="x"), "token_click"),
        (lambda words: build_head_grid(words, elem_id="x"), "head_select"),
        (lambda words: build_heatmap(words, elem_id="x"), "row_select"),
        (lambda words: build_bar_list(words, elem_id="x"), "bar_click"),
        (lambda words: build_stepper(words, elem_id="x"), "step"),
        (lambda words: build_card(words, elem_id="x"), "dismiss"),
        (lambda words: build_examples(words, ["kit.working.title"], elem_id="x"), "example"),
        (lambda words: build_picker(words, "head", elem_id="x"), "pick"),
        (
            lambda words: build_plotly_panel(words, elem_id="x", label_key="kit.bars.label"),
            "plot_gap",
        ),
    ],
)
def test_events_can_be_listened_to(build, event: str, words: Words):
    assert callable(getattr(build(words), event))


def test_views_carry_both_languages(words: Words):
    script = make_script(words)
    assert '"copy": "Copy table"' in script
    assert '"copy": "复制表格"' in script


def test_a_view_in_the_page_is_small(words: Words):
    """Scripts and styles travel once: a page has hundreds of views."""
    view = build_token_chips(words, elem_id="x")
    assert len(json.dumps(view.get_config())) < 3000
    assert (KIT / "chips.js").read_text(encoding="utf-8") in make_script(words)
    assert ".view-chips) {" in make_style()
    assert view.elem_classes == ["view-chips"]


def test_unknown_note_is_refused_when_the_page_is_built(words: Words):
    with pytest.raises(KeyError, match="nowhere"):
        build_note(words, "kit.nowhere", elem_id="x")
    with pytest.raises(KeyError, match="nowhere"):
        pick_texts(words, {"text": "kit.nowhere"})


def test_working_names_its_parts_after_itself(words: Words):
    working = build_working(words, elem_id="w", formula="$$a$$", png="map")
    assert [part.elem_id for part in (working.drawer, working.table, working.exports)] == [
        "w",
        "w-table",
        "w-exports",
    ]
    assert working.exports.value == {"csv": None, "png": "map", "python": None}


# --- figures as messages ---------------------------------------------------------------------


@given(st.text())
def test_plain_text_is_read_back_by_html_and_holds_no_tag(text: str):
    assert html.unescape(plain(text)) == text.replace("\n", "⏎")
    assert not set(plain(text)) & {"<", ">"}


def test_plain_text_keeps_markup_as_text():
    assert html.unescape(plain("a <b>&amp;</b>\n")) == "a <b>&amp;</b>⏎"


def test_equal_messages_differ():
    """The page ignores a value equal to the last one, so a second identical chunk would be lost."""
    chunk = [Points(0, [1], [2.0])]
    assert points_message(chunk) != points_message(chunk)


def test_missing_numbers_become_gaps():
    message = json.loads(points_message([Points(3, [3, 4], [math.nan, 1.5]), None]))
    assert message["add"] == [{"at": 3, "x": [3, 4], "y": [None, 1.5]}, None]


def test_live_figure_travels_as_lists_and_without_template():
    figure = go.Figure(go.Scatter(x=np.arange(3, dtype="i4"), y=np.array([1.0, np.nan, 3.0])))
    message = json.loads(figure_message(figure, have=[3]))
    assert message["figure"]["data"][0]["x"] == [0, 1, 2]
    assert message["figure"]["data"][0]["y"] == [1.0, None, 3.0]
    assert "template" not in message["figure"]["layout"]
    assert message["have"] == [3]


def test_still_figure_travels_packed():
    figure = go.Figure(go.Heatmap(z=np.zeros((128, 128), dtype="u1")))
    assert len(figure_message(figure)) < 1.5 * 128 * 128


def test_curves_have_titles_and_literal_names():
    curve = Curve("<b>train</b>", [0, 1], [2.0, math.inf])
    figure = json.loads(curves_message([curve], x_title="step", y_title="loss (nats)"))["figure"]
    assert figure["data"][0]["name"] == "&lt;b&gt;train&lt;/b&gt;"
    assert figure["data"][0]["y"] == [2.0, None]
    assert figure["layout"]["xaxis"]["title"]["text"] == "step"
    assert figure["layout"]["yaxis"]["title"]["text"] == "loss (nats)"


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.integers(min_value=2, max_value=50)
)
def test_thinning_keeps_extremes_and_order(values: list[float], most: int):
    curve = Curve("c", list(range(len(values))), values)
    thinner = thin(curve, most)
    assert len(thinner.y) <= max(most, 2)
    assert min(thinner.y) == min(values)
    assert max(thinner.y) == max(values)
    assert list(thinner.x) == sorted(set(thinner.x))
    assert all(values[x] == y for x, y in zip(thinner.x, thinner.y, strict=True))
