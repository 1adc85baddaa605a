"""Heatmap, head grid and the drawer in a browser."""

import csv
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from tests.components import kit_data
from tests.components.kit_page import point_at, wait_said, weight_shown

pytest_plugins = ["tests.components.kit_page"]
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("row", "column"), [(0, 0), (20, 3), (21, 21), (9, 4)])
def test_map_shows_the_exact_weight(page, kit_app, row: int, column: int):
    _, maps = kit_app
    point_at(page, row, column, 22)
    assert np.float32(weight_shown(page)) == maps.small[row, column]
    tokens = page.locator("#heat .readout .code").all_inner_texts()
    assert [json.loads(token) for token in tokens] == [maps.labels[row], maps.labels[column]]


def test_masked_cell_says_so(page):
    point_at(page, 3, 12, 22)
    assert page.locator("#heat .weight").text_content() == "masked"


def test_map_by_keyboard(page, kit_app):
    _, maps = kit_app
    page.locator("#heat .plot").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    # Focus begins in the chosen row, 5.
    assert np.float32(weight_shown(page)) == maps.small[7, 1]
    page.keyboard.press("Enter")
    wait_said(page, "{'column': 1, 'index': 7}")


def test_click_chooses_a_row(fresh_page):
    box = fresh_page.locator("#heat .plot").bounding_box()
    fresh_page.locator("#heat .plot").click(
        position={"x": box["width"] * 2.5 / 22, "y": box["height"] * 10.5 / 22}
    )
    wait_said(fresh_page, "{'column': 2, 'index': 10}")
    chosen = fresh_page.locator("#heat .chosen").evaluate("node => node.style.top")
    assert abs(float(chosen.rstrip("%")) - 100 * 10 / 22) < 0.01


def test_map_pixels_are_the_weights(page, kit_app):
    """Darker means larger, in every cell that is not masked; masked cells are clear."""
    _, maps = kit_app
    pixels = page.evaluate(
        "(() => { const c = document.querySelector('#heat canvas');"
        "return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]; })()"
    )
    image = np.array(pixels).reshape(22, 22, 4)
    open_cells = np.tril(np.ones((22, 22), dtype=bool))
    assert (image[..., 3] == np.where(open_cells, 255, 0)).all()
    order = np.argsort(maps.small[open_cells])
    lightness = image[..., :3].sum(-1)[open_cells][order]
    assert (np.diff(lightness) <= 0).all()
    assert lightness[0] > lightness[-1] + 300


def test_512_tokens_have_few_labels_and_exact_weights(fresh_page, kit_app):
    _, maps = kit_app
    fresh_page.locator("#b_large").click()
    fresh_page.wait_for_function("document.querySelector('#heat canvas').width === 512")
    labels = fresh_page.locator("#heat .rows div").count()
    assert 10 <= labels <= 60
    point_at(fresh_page, 300, 150, 512)
    assert np.float32(weight_shown(fresh_page)) == maps.large[300, 150]


def test_map_that_is_gone_says_what_to_do(open_page):
    page = open_page()
    page.locator("#b_gone").click()
    page.get_by_text("no longer kept, run the text again").wait_for()
    # The refused request itself is the one line that a browser writes.
    assert all("404" in fault for fault in open_page.faults)
    open_page.faults.clear()


def test_labels_of_a_phone_do_not_overlap(open_page):
    page = open_page(width=390)
    tops = page.evaluate(
        "[...document.querySelectorAll('#heat .rows div')].map(n => n.getBoundingClientRect().top)"
    )
    assert min(np.diff(tops)) >= 12


def test_saved_picture_is_a_png_of_the_map(page):
    with page.expect_download() as download:
        page.locator("#working-exports .png").click()
    assert download.value.suggested_filename == "heat.png"
    content = Path(download.value.path()).read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", content[16:24])
    assert min(width, height) > 1000


def test_heads_by_click_and_keyboard(page):
    heads = page.locator("#heads .head")
    heads.nth(7).click()
    wait_said(page, "{'index': 7}")
    page.keyboard.press("ArrowRight")
    wait_said(page, "{'index': 8}")
    assert heads.nth(8).get_attribute("aria-pressed") == "true"
    assert page.locator("#heads .head[aria-pressed='true']").count() == 1
    assert page.locator("#heads .caption").all_inner_texts() == [
        "KV head 0",
        "KV head 1",
        "KV head 2",
    ]


def test_csv_holds_the_map(page, kit_app):
    _, maps = kit_app
    with page.expect_download() as download:
        page.locator("#working-exports .csv").click()
    assert download.value.suggested_filename.endswith(".csv")
    with open(download.value.path(), encoding="utf-8-sig", newline="") as file:
        lines = list(csv.reader(file))
    cells = np.array([line[1:] for line in lines[1:]], dtype="f4")
    assert (cells == maps.small).all()


def test_copied_python_is_the_snippet(open_page):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    assert not page.locator("#working-exports .source").is_visible()
    page.locator("#working-exports .copy").click()
    assert page.locator("#working-exports .source").is_visible()
    assert page.evaluate("navigator.clipboard.readText()") == kit_data.SNIPPET
    assert page.locator("#working-exports .source").text_content() == kit_data.SNIPPET


def test_facts_and_table(page, kit_app):
    _, maps = kit_app
    assert page.locator("#working-facts .facts").text_content() == (
        "Tensor blocks.13.attn.pattern (9, 22, 22) · float32 · computed in models/attention.py"
        " · checked in tests/models/test_attention.py"
    )
    numbers = page.locator("#working-table td.number").all_inner_texts()
    assert numbers == [f"{weight:.4f}" for weight in np.sort(maps.small[20])[::-1][:5]]
    heads = page.locator("#working-table th[scope='row']").count()
    assert heads == 5


def test_copied_table_is_tab_separated(open_page):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.locator("#matrix .copy").click()
    page.locator("#matrix").get_by_text("Copied").wait_for()
    lines = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert lines[0].split("\t") == ["", "a", " b", "\\n"]
    assert lines[1].split("\t") == ["a", "1", "", ""]
    assert lines[3].split("\t") == ["\\n", "0.125", "0.5", "0.375"]
