"""The panels of the attention lab: what they show, against the model itself and plain formulas."""

import gradio as gr
import numpy as np
import pytest
import torch
from torch.nn import functional

from components.forms import read_form
from components.tabs.attention.ablate_handlers import AblateHandlers
from components.tabs.attention.by_hand_handlers import HandHandlers, HandState, parse_stage
from components.tabs.attention.by_hand_stages import STAGES
from components.tabs.attention.handlers import HeadsHandlers
from components.tabs.attention.masks import MaskHandlers
from components.tabs.attention.overview_handlers import Measured, OverviewHandlers
from components.tabs.attention.pair import PairHandlers
from components.tabs.attention.views import Shown
from explorer.attention_lab.by_hand import HandSettings, compute_by_hand
from explorer.attention_lab.experts import LayerSettings
from explorer.attention_lab.head_kinds import KINDS, compute_head_kinds
from explorer.attention_lab.masks import MaskSettings
from explorer.attention_lab.patching import PATCH_PAIRS
from explorer.attention_lab.variants import VariantSettings
from explorer.attention_lab.ways_timing import WaySettings
from explorer.attention_maps import compute_attention
from explorer.errors import ConfigError
from models import Trace
from tests.components.attention.panel_calls import TEXT, check_drawer, event
from tests.components.tiny_chat import CONFIG


def test_what_the_page_sends_for_a_form_is_what_is_computed():
    for kind in (HandSettings, MaskSettings, WaySettings, VariantSettings, LayerSettings):
        assert read_form(kind, vars(kind())) == kind()


# ------------------------------------------------------------------------------------ by hand
def test_every_stage_shows_its_matrices(ctx, nobody):
    on = HandHandlers(ctx)
    matrices = compute_by_hand(HandSettings()).matrices
    for index, stage in enumerate(STAGES):
        title, formula, code, value, said, *drawer, key, _ = on.show(
            {"index": index}, HandState(), "journey", False, nobody, HandSettings()
        )
        assert title.startswith(f"{index + 1}.")
        assert formula == stage.formula
        assert stage.torch_line in code
        assert key == stage.key
        assert said
        check_drawer(ctx, *drawer)
        for item in value["items"]:
            if item["name"] == "sharpness":
                continue
            assert (len(item["rows"]), len(item["cols"])) == matrices[item["name"]].shape
            cell, expected = item["cells"][1][0], float(matrices[item["name"]][1, 0])
            assert cell == pytest.approx(expected), item["name"]


def test_a_cell_is_changed_marked_and_taken_back(ctx, nobody):
    on = HandHandlers(ctx)
    at = parse_stage("scaled")
    changed = on.edit(
        at, HandState(), "journey", False,
        event(matrix="scaled", row=1, column=0, value="9"), nobody, HandSettings(),
    )  # fmt: skip
    items = {item["name"]: item for item in changed[3]["items"]}
    assert items["scaled"]["changed"] == [[1, 0]]
    assert items["weights"]["cells"][1][0] > 0.99
    back = on.reset(at, changed[-1], "journey", False, nobody, HandSettings())
    weights = {item["name"]: item for item in back[3]["items"]}["weights"]
    expected = compute_by_hand(HandSettings()).matrices["weights"][1, 0]
    assert weights["cells"][1][0] == pytest.approx(float(expected))
    with pytest.raises(ConfigError, match="no number"):
        on.edit(
            at, HandState(), "journey", False,
            event(matrix="scaled", row=1, column=0, value="nine"), nobody, HandSettings(),
        )  # fmt: skip


def test_a_guess_is_hidden_first_and_then_judged(ctx, nobody):
    on = HandHandlers(ctx)
    at = parse_stage("softmax")
    hidden = on.show(at, HandState(), "journey", True, nobody, HandSettings())
    assert hidden[3]["items"][-1]["veiled"] == 1
    assert "Which word" in hidden[4]
    row = compute_by_hand(HandSettings()).matrices["softmax"][1]
    for guess, verdict in ((int(row.argmax()), "Right"), (int(row.argmin()), "largest weight is")):
        shown = on.pick(
            at, HandState(), "journey", True,
            event(matrix="softmax", row=1, column=guess), nobody, HandSettings(),
        )  # fmt: skip
        assert shown[3]["items"][-1]["veiled"] == -1
        assert verdict in shown[4]
        assert f"{row[guess]:.4f}" in shown[4]


# ------------------------------------------------------------------------------------ masks
def test_a_mask_is_shown_and_changes_the_weights(ctx, nobody):
    on = MaskHandlers(ctx)
    settings = MaskSettings(kind="window", width=3)
    at, _of, painter, big, bars, said, reach, *drawer, _ = on.show(
        TEXT, {"index": 1, "count": 2}, {"index": 4, "count": 6}, None, "masked", None, None,
        nobody, settings,
    )  # fmt: skip
    assert at == {"index": 1, "count": 2}
    assert painter["rows"][9] == "0000000111"
    pattern = ctx.routes.find(big["matrix"]).cells
    assert (pattern[9, :7] == 0).all()
    assert pattern[9].sum() == pytest.approx(1, abs=1e-5)
    a_key = 2 * 3 * 10 * 4  # a key and a value of three heads of width 10 in float32
    assert reach["cells"] == [[3, 5], [3, 3], [3 * a_key] * 2]
    assert sum(bar["value"] for bar in bars["bars"]) <= 1.0001
    assert f"{6 * a_key:,} bytes" in said
    assert "30 % of" in said
    check_drawer(ctx, *drawer)
    shown = {}
    for view in ("own", "change"):
        values = on.show(
            TEXT, {"index": 1, "count": 2}, {"index": 4, "count": 6}, None, view, None, None,
            nobody, settings,
        )  # fmt: skip
        shown[view] = ctx.routes.find(values[3]["matrix"]).cells
    np.testing.assert_allclose(shown["own"][9].sum(), 1, atol=1e-5)
    assert (shown["own"][9, :7] > 0).all()
    np.testing.assert_allclose(shown["change"], pattern - shown["own"], atol=1e-6)


def test_a_painted_mask_that_forbids_everything_says_so(ctx, nobody):
    on = MaskHandlers(ctx)
    values = on.paint(
        "abcd", None, None, None, "masked", None, None, event(rows=["0000"] * 4), nobody,
        MaskSettings(),
    )  # fmt: skip
    assert values[-1] == "painted"
    assert "0, 1, 2, 3" in values[5]
    assert (ctx.routes.find(values[3]["matrix"]).cells == 0).all()


# ------------------------------------------------------------------------------------ heads
@pytest.fixture
def shown(ctx, nobody):
    heads = HeadsHandlers(ctx)
    return heads, heads.text(Shown(), "1.4.7", TEXT, None, None, nobody)[-1]


CONTROLS = ("induction", "text", "largest", 0, "", "")


def overview(on, state, nobody, measured=None, **controls):
    """The last values of the part, by the names of what is asked for."""
    asked = dict(zip(("kind", "reading", "order", "least", "text", "model"), CONTROLS, strict=True))
    values = {**asked, **controls}.values()
    *_, last = on.show(state, measured or Measured(), None, nobody, *values)
    return last


def test_the_overview_has_every_head_and_leads_to_it(ctx, nobody, shown):
    heads, state = shown
    on, measured = OverviewHandlers(ctx, heads), Measured()
    loaded = ctx.store.usual
    expected = compute_head_kinds(compute_attention(loaded, TEXT)).scores
    ctx.store.begin()
    for kind in KINDS:
        said, big, bars, *drawer, measured = overview(on, state, nobody, measured, kind=kind)
        np.testing.assert_allclose(ctx.routes.find(big["matrix"]).cells, expected[kind], rtol=1e-5)
        values = [bar["value"] for bar in bars["bars"]]
        assert values == sorted(values, reverse=True)
        assert said
        check_drawer(ctx, *drawer)
    assert ctx.store.passes == 0  # the panel above had read the text
    lowest = overview(on, state, nobody, measured, order="smallest", kind="distance", least=0.5)
    values = [bar["value"] for bar in lowest[2]["bars"]]
    assert values == sorted(values)
    assert min(values) >= expected["distance"].max() / 2
    layer, head = measured.places[2]
    moved = on.ranked(measured, state, None, event(index=2), nobody)[-1]
    assert (moved.layer, moved.head) == (layer, head)
    moved = on.cell(state, None, event(index=0, column=5), nobody)[-1]
    assert (moved.layer, moved.head) == (0, 5)


def test_the_overview_follows_the_text_once_somebody_has_looked(ctx, nobody, shown):
    heads, state = shown
    on = OverviewHandlers(ctx, heads)
    assert all(value == gr.skip() for value in next(on.follow(state, Measured(), None, nobody)))
    seen = overview(on, state, nobody)[-1]
    same = next(on.follow(state, seen, None, nobody, *CONTROLS))
    assert all(value == gr.skip() for value in same)
    other = heads.text(state, "", "zyxw zyxw", None, None, nobody)[-1]
    *_, last = on.follow(other, seen, None, nobody, *CONTROLS)
    maps = compute_attention(ctx.store.usual, "zyxw zyxw")
    expected = compute_head_kinds(maps).scores["induction"]
    np.testing.assert_allclose(ctx.routes.find(last[1]["matrix"]).cells, expected, rtol=1e-5)


def test_two_texts_and_two_models_are_compared(ctx, nobody, shown):
    heads, state = shown
    on = OverviewHandlers(ctx, heads)
    first, second, third = (
        compute_head_kinds(compute_attention(model, text)).scores["first"]
        for model, text in (
            (ctx.store.usual, TEXT),
            (ctx.store.usual, "zyxw vu"),
            (ctx.store.chats["moe"], TEXT),
        )
    )
    values = overview(on, state, nobody, kind="first", text="zyxw vu")
    found = ctx.routes.find(values[1]["matrix"])
    assert found.low == -found.high == -np.abs(found.cells).max()
    assert values[1]["signed"]
    np.testing.assert_allclose(found.cells, first - second, atol=1e-5)
    assert "zyxw vu" in values[5]["python"]
    values = overview(on, state, nobody, kind="first", model="moe")
    found = ctx.routes.find(values[1]["matrix"]).cells
    np.testing.assert_allclose(found, first - third, atol=1e-5)


def test_equal_readings_have_no_ranking_and_a_cut_text_says_so(ctx, nobody, shown):
    heads, state = shown
    on = OverviewHandlers(ctx, heads)
    said, _map, bars, *_, measured = overview(on, state, nobody, kind="first", text=TEXT)
    assert "No difference." in said
    assert (bars["bars"], measured.places) == ([], ())
    said, _map, bars, *_ = overview(on, state, nobody, kind="first", text="z" * 30)
    assert f"“{TEXT}”" in said
    assert f"“{'z' * 24}…”" in said
    assert "No difference" not in said
    assert bars["bars"]


def test_a_pair_gives_the_weight_of_the_map(ctx, nobody, shown):
    heads, state = shown
    on = PairHandlers(ctx, heads)
    arcs, said, table, *drawer = on.pair(state, 3, None, nobody)
    check_drawer(ctx, *drawer)
    trace = Trace(record=("blocks.1.attn.pattern",))
    loaded = ctx.store.usual
    loaded.model(torch.tensor([loaded.tokenizer.encode(TEXT)]), trace=trace)
    assert f"{float(trace['blocks.1.attn.pattern'][0, 4, 7, 3]):.4f}" in said
    assert len(table["rows"]) == CONFIG.attention.d_head
    expected = trace["blocks.1.attn.pattern"][0, 4, 7].tolist()
    assert arcs["weights"] == pytest.approx(expected, abs=1e-5)
    assert (arcs["query"], arcs["first"], len(arcs["labels"])) == (7, 0, 10)
    assert on.key(event(index=7, column=3)) == 3
    big, *drawer = on.rollout(state, None, nobody)
    flow = ctx.routes.find(big["matrix"]).cells
    np.testing.assert_allclose(flow.sum(1), 1, atol=1e-5)
    check_drawer(ctx, *drawer)


# ------------------------------------------------------------------------------------ ablate
def test_losses_before_and_after_are_said(ctx, nobody):
    loaded = ctx.store.usual
    ids = torch.tensor([loaded.tokenizer.encode(TEXT)])

    def loss(edits):
        logits = loaded.model(ids, trace=Trace(edits=edits))
        return float(functional.cross_entropy(logits[0, :-1], ids[0, 1:]))

    on = AblateHandlers(ctx)
    (said, _bars, _, *drawer), (_, _, written, *_) = on.change(TEXT, "0.attn", None, None, nobody)
    assert f"{loss({}):.4f}" in said
    assert f"{loss({'blocks.0.attn_out': lambda x: x * 0}):.4f}" in said
    assert "Changed" in written
    check_drawer(ctx, *drawer)
    *_, last = on.scan(TEXT, None, None, nobody)
    assert "12 of 12" in last[0]
    check_drawer(ctx, *last[3:])
    assert on.pick("0.attn", event(index=1, column=4)) == "0.attn, 1.4"
    *_, patched = on.patch("abcdefg", "abcdefz", None, None, nobody)
    assert ctx.routes.find(patched[1]["matrix"]).cells.shape == (2, 7)
    check_drawer(ctx, *patched[2:])


def test_one_token_has_no_loss_and_the_page_says_so(ctx, nobody):
    (said, *_), _ = AblateHandlers(ctx).change("a", "0.attn", None, None, nobody)
    assert "nan" not in said
    assert said.startswith("One token has no next one")
    assert AblateHandlers(ctx).attention_ablate("a", "0.attn", nobody)["loss"] is None


def test_a_click_adds_to_changes_that_were_typed_with_other_commas(ctx):
    assert AblateHandlers(ctx).pick("0.attn；1.4", event(index=1, column=4)) == "0.attn, 1.4"


def test_texts_to_patch_are_offered_until_some_are_typed(ctx, nobody):
    on = AblateHandlers(ctx)
    assert on.offer_pair(*PATCH_PAIRS[2], None, None, nobody) == PATCH_PAIRS[0]
    assert on.offer_pair("mine", "yours", None, None, nobody) == (gr.skip(), gr.skip())
