"""The Tokens and Attention tabs through their API and handlers, against the model itself."""

import csv
import io
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gradio as gr
import numpy as np
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError

from components.context import Settings
from components.launch import Endpoint, launch_page
from components.shell import build_page
from components.tabs.attention.handlers import HeadsHandlers, parse_place
from components.tabs.attention.views import Shown
from components.tabs.tokens.pieces import Handlers, make_chips
from explorer.snippets import make_attention_snippet
from explorer.tokenizer_lab.snippets import make_tokenizer_snippet
from explorer.tokens import compute_token_pieces
from models import Trace
from tests.components.tiny_chat import ByteTokenizer, TinyStore

ROOT = Path(__file__).parent.parent.parent
HARD_TEXTS = [
    "",
    "x" * 1_000_000,
    "👨‍👩‍👧‍👦 🏳️‍🌈",
    "שלום עולם مرحبا",
    "a\0b\ue000\u200b\ud800",
    "<script>alert(1)</script>",
    "<|end|>",
    "{{y}} ${1+1} `\\n`\r\n\t",
]


class Store(TinyStore):
    """The tiny model, with its tokenizer alone."""

    def tokenizer(self, source, owner):
        return ByteTokenizer()


@pytest.fixture(scope="module")
def page() -> Iterator[tuple[str, object]]:
    demo, ctx = build_page(Store(), Settings())
    url = launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    yield url, ctx
    demo.close(verbose=False)


@pytest.fixture(scope="module")
def client(page):
    return Client(page[0], verbose=False)


@pytest.fixture
def request_of_nobody():
    return gr.Request()


@pytest.fixture
def handlers(page):
    return HeadsHandlers(page[1])


def event(index):
    return gr.EventData(None, {"index": index})


TEXT = "ab 玛 cd"


# ------------------------------------------------------------------------------------ tokens
def test_tokenize_gives_what_the_tokenizer_gives(client):
    found = client.predict("a玛", False, api_name="/tokenize")
    assert found["ids"] == [3 + byte for byte in "a玛".encode()]
    assert (found["tokens"], found["characters"], found["bytes"]) == (4, 2, 4)
    assert [(unit["t"], len(unit["ids"])) for unit in found["units"]] == [("a", 1), ("玛", 3)]
    assert found["units"][1]["hex"] == ["e7", "8e", "9b"]


def test_special_tokens_are_parsed_only_when_asked(client):
    plain = client.predict("<|end|>", False, api_name="/tokenize")
    parsed = client.predict("<|end|>", True, api_name="/tokenize")
    assert plain["tokens"] == 7
    assert (parsed["ids"], parsed["units"][0]["special"]) == ([0], True)


@pytest.mark.slow
@pytest.mark.parametrize("text", HARD_TEXTS, ids=lambda text: repr(text[:12]))
@pytest.mark.parametrize("special", [False, True])
def test_any_text_is_cut_without_an_exception(page, text, special, request_of_nobody):
    counts, chips, _facts, table, exports = Handlers(page[1]).text(
        text, special, "text", None, None, None, request_of_nobody
    )
    pieces = compute_token_pieces(ByteTokenizer(), text, special=special)
    assert f"{pieces.n_tokens:,}" in counts
    assert sum(len(unit["ids"]) for unit in chips["units"]) + chips["more"] == pieces.n_tokens
    assert len(table["rows"]) == min(50, pieces.shown)
    assert exports["csv"]


def test_of_a_long_text_the_first_thousand_are_drawn_and_all_ids_can_be_fetched(page):
    pieces = compute_token_pieces(ByteTokenizer(), "x" * 5_000)
    chips = make_chips(page[1], pieces)
    assert (len(chips["units"]), chips["more"], chips["total"]) == (1_000, 4_000, 5_000)
    address = f"{page[0]}glassbox/bytes/{chips['ids_from']}"
    assert json.loads(urllib.request.urlopen(address).read()) == list(pieces.ids)


# --------------------------------------------------------------------------------- attention
def _pattern(ctx, text, layer):
    with ctx.store.lease("tiny", "local") as loaded:
        ids = torch.tensor([loaded.tokenizer.encode(text)])
        trace = Trace(record=(f"blocks.{layer}.attn.pattern",))
        loaded.model(ids, trace=trace)
        return trace[f"blocks.{layer}.attn.pattern"][0].numpy()


def test_attention_api_gives_the_models_own_weights(client, page):
    found = client.predict(TEXT, 1, 4, api_name="/attention")
    np.testing.assert_allclose(found["weights"], _pattern(page[1], TEXT, 1)[4], atol=1e-5)
    assert found["labels"] == ["a", "b", "·", "玛₁", "玛₂", "玛₃", "·", "c", "d"]


@pytest.mark.parametrize(("text", "layer", "head"), [("", 0, 0), ("x", 2, 0), ("x", 0, 6)])
def test_attention_api_refuses_with_a_remedy(client, text, layer, head):
    with pytest.raises(AppError, match="type some|choose 0 to"):
        client.predict(text, layer, head, api_name="/attention")


def test_the_page_shows_the_row_that_the_model_computed(handlers, page, request_of_nobody):
    values = handlers.text(Shown(), "1.4.7", TEXT, None, None, request_of_nobody)
    counts, layer, heading, chips, grid, big, stepper, facts, table, exports, place, shown = values
    row = _pattern(page[1], TEXT, 1)[4, 7]
    assert (layer["index"], grid["selected"], stepper["index"]) == (1, 4, 7)
    assert big["selected"] == 7
    weights, selected, chips, big = (
        chips["weights"],
        chips["selected"],
        chips["value"],
        big["value"],
    )
    assert place == "1.4.7"
    assert "9" in counts
    assert "1" in heading
    assert facts["tensor"] == "blocks.1.attn.pattern"
    assert (ROOT / facts["file"]).exists()
    assert (ROOT / facts["test"]).exists()
    # chips: the three tokens of one character show their sum
    assert [unit["t"] for unit in chips["units"]] == ["a", "b", " ", "玛", " ", "c", "d"]
    assert weights[3] == pytest.approx(row[3:6].sum(), abs=1e-5)
    assert sum(weights) == pytest.approx(1, abs=1e-4)
    assert selected == 5
    # table: strongest first, with score and weight of that position
    positions = [int(cells[0]) for cells in table["cells"]]
    listed = [cells[2] for cells in table["cells"]]
    assert listed == sorted(listed, reverse=True)
    np.testing.assert_allclose(listed, row[positions], atol=1e-5)
    # the bytes, the row and the CSV that the page fetches
    base = f"{page[0]}glassbox/matrix/{big['matrix']}"
    pixels = np.frombuffer(urllib.request.urlopen(base).read(), np.uint8).reshape(9, 9)
    np.testing.assert_allclose(pixels[7] / 255, row, atol=0.003)
    exact = np.frombuffer(urllib.request.urlopen(f"{base}/row/7").read(), "<f4")
    np.testing.assert_allclose(exact, row, atol=1e-5)
    lines = list(csv.reader(io.StringIO(urllib.request.urlopen(f"{base}.csv").read().decode())))
    np.testing.assert_allclose([float(x) for x in lines[8][1:]], exact, atol=1e-7)
    assert exports["csv"] == shown.matrix_id


def test_moving_shows_another_layer_head_and_token(handlers, page, request_of_nobody):
    shown = handlers.text(Shown(), "", TEXT, None, None, request_of_nobody)[-1]
    assert (shown.layer, shown.head, shown.query) == (1, 0, 8)  # middle layer, last token
    layer = handlers.layer(shown, None, event(0), request_of_nobody)
    assert layer[-1].stack_id != shown.stack_id
    head = handlers.head(layer[-1], None, event(5), request_of_nobody)
    assert head[-1].stack_id == layer[-1].stack_id  # thumbnails are sent once a layer
    assert head[-1].matrix_id != layer[-1].matrix_id
    query = handlers.query(head[-1], None, event(2), request_of_nobody)
    assert query[-1].matrix_id == head[-1].matrix_id
    assert "value" not in query[3]  # of a step only the weights travel
    unit = handlers.unit(query[-1], None, event(3), request_of_nobody)
    assert unit[-1].query == 5  # the last token of 玛
    assert (unit[-1].layer, unit[-1].head) == (0, 5)
    row = _pattern(page[1], TEXT, 0)[5, 5]
    assert unit[8]["cells"][0][2] == pytest.approx(float(row.max()), abs=1e-5)


def test_no_text_empties_the_views_and_is_no_error(handlers, request_of_nobody):
    first = handlers.text(Shown(), "1.4.7", TEXT, None, None, request_of_nobody)[-1]
    values = handlers.text(first, "1.4.7", "", None, None, request_of_nobody)
    assert values[4] is None
    assert values[5] is None
    again = handlers.text(values[-1], "1.4.7", TEXT, None, None, request_of_nobody)[-1]
    assert (again.layer, again.head) == (1, 4)


def test_another_text_has_its_own_pictures(handlers, page, request_of_nobody):
    first = handlers.text(Shown(), "", TEXT, None, None, request_of_nobody)[-1]
    second = handlers.text(first, "", "x", None, None, request_of_nobody)[-1]
    assert second.stack_id != first.stack_id
    address = f"{page[0]}glassbox/matrix/{second.matrix_id}"
    assert urllib.request.urlopen(address).headers["X-Shape"] == "1,1"


def test_a_place_beyond_the_model_is_moved_into_it(handlers, request_of_nobody):
    shown = handlers.text(Shown(), "99.99.99", TEXT, None, None, request_of_nobody)[-1]
    assert (shown.layer, shown.head, shown.query) == (1, 5, 8)
    assert parse_place("3.0.12") == "3.0.12"
    for wrong in ("", "1.2", "a.b.c", "1.2.3.4"):
        with pytest.raises(ValueError, match=r"values to unpack|invalid literal"):
            parse_place(wrong)


def test_a_result_that_had_to_go_is_computed_again(handlers, page, request_of_nobody):
    shown = handlers.text(Shown(), "", TEXT, None, None, request_of_nobody)[-1]
    page[1].results.remove(shown.result_id)
    again = handlers.layer(shown, None, event(0), request_of_nobody)
    np.testing.assert_allclose(
        again[8]["cells"][0][2], _pattern(page[1], TEXT, 0)[0, 8].max(), atol=1e-5
    )


@pytest.mark.parametrize("text", HARD_TEXTS[1:], ids=lambda text: repr(text[:12]))
def test_any_text_is_read_without_an_exception(handlers, text, request_of_nobody):
    values = handlers.text(Shown(), "", text, None, None, request_of_nobody)
    assert values[5]["value"]["matrix"]


def test_what_had_to_make_room_on_the_server_is_published_again(handlers, page, request_of_nobody):
    shown = handlers.text(Shown(), "", TEXT, None, None, request_of_nobody)[-1]
    gone = replace(shown, stack_id="gone", matrix_id="gone")
    values = handlers.query(gone, None, event(2), request_of_nobody)
    assert page[1].routes.find(values[-1].matrix_id) is not None
    assert values[5]["value"]["matrix"] == values[-1].matrix_id


def test_a_name_that_is_markup_stays_text(page):
    from components.kit.line import build_line
    from components.kit.views import KIT

    line = build_line(page[1].words, elem_id="x", look="help")
    assert "value" not in line.html_template
    assert "textContent" in (KIT / "line.js").read_text(encoding="utf-8")


# --------------------------------------------------------------------------- copy as Python
def _run(snippet):
    """In a fresh process, offline."""
    done = subprocess.run(
        [sys.executable, "-c", snippet], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_tokens_snippet_gives_the_ids_of_the_page(smollm2_file):
    from models import load_model

    text = 'a "quoted" 玛丽\n<|im_end|>'
    lines = _run(
        make_tokenizer_snippet(
            str(smollm2_file), compute_token_pieces, text, ["found.n_tokens, found.ids"]
        )
    )
    expected = load_model(smollm2_file).tokenizer.encode(text)
    assert lines == [f"{len(expected)} {tuple(expected)}"]


@pytest.mark.slow
def test_attention_snippet_gives_the_row_of_the_page(smollm2_file):
    from models import load_model

    text = "When Mary and John went to the store"
    lines = _run(make_attention_snippet(str(smollm2_file), text, 13, 4, 6))
    loaded = load_model(smollm2_file)
    trace = Trace(record=("blocks.13.attn.pattern",))
    loaded.model(torch.tensor([loaded.tokenizer.encode(text)]), trace=trace)
    expected = trace["blocks.13.attn.pattern"][0, 4, 6].numpy()
    found = [float(line.rpartition(" ")[2]) for line in lines]
    np.testing.assert_allclose(found, expected, atol=1e-5)
