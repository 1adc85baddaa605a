"""The Next token and Layers tabs through their handlers, against the model itself."""

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from components.context import Settings
from components.next_routes import NextRoutes
from components.shell import build_page
from components.tabs.asking import Ask
from components.tabs.layers.attribution import AttributionHandlers
from components.tabs.layers.checkpoints import CheckpointHandlers
from components.tabs.layers.comparison import ComparisonHandlers
from components.tabs.layers.gradients import GradientHandlers
from components.tabs.layers.lens import LensHandlers
from components.tabs.layers.losses import LossHandlers
from components.tabs.layers.space import SpaceHandlers
from components.tabs.layers.steer import SteerHandlers
from components.tabs.next.bars import BarsHandlers
from components.tabs.next.beam import BeamHandlers
from components.tabs.next.draws import DrawsHandlers
from components.tabs.next.game import GameHandlers
from components.tabs.next.pairs import PairHandlers
from components.tabs.next.step_handlers import Scene, StepHandlers
from explorer.beam_tree import BeamSettings
from explorer.errors import ConfigError
from explorer.next_token import SamplingSettings
from explorer.run_records import RunSummary
from models import Trace
from tests.components.tiny_chat import TinyStore

NINE = "closer 4.51\nevery 0.89\neffort -1.90\nforward 6.75\ninches 1.63\nmoves -1.62\n"
NINE += "pizza -1.89\ntoward 6.28\nyou 1.79"
ASK = Ask(text="ab 玛 cd", source="tiny")
NOBODY = gr.Request()
DIALS = SamplingSettings()


@pytest.fixture(scope="module")
def asking() -> Iterator[object]:
    """What the handlers are given: the context of a page, and turns that nobody stops."""
    _, ctx = build_page(TinyStore(), Settings())

    class Asking(SimpleNamespace):
        def working(self, panel, request):
            from contextlib import nullcontext

            return nullcontext(self.ctx.slots.turn)

    return Asking(ctx=ctx)


@pytest.fixture(scope="module")
def client(asking):
    from starlette.applications import Starlette

    return TestClient(
        Starlette(routes=[*NextRoutes(asking.ctx.results, asking.ctx.words).routes()])
    )


def event(**data):
    return gr.EventData(None, data)


def own(asking, ids):
    with asking.ctx.store.lease("tiny", "local") as loaded, torch.no_grad():
        return loaded.model(torch.tensor([ids]))[0]


def encode(asking, text=ASK.text):
    with asking.ctx.store.lease("tiny", "local") as loaded:
        return loaded.tokenizer.encode(text)


def csv_of(asking, exports):
    found = asking.ctx.routes.find(exports["csv"])
    assert found is not None
    return found.cells


def test_the_route_filters_kept_logits(asking, client):
    value, *_ = BarsHandlers(asking).read(ASK, None, NOBODY, DIALS)
    found = client.get(f"/glassbox/next/{value['id']}", params={"top_k": 2}).json()
    p = own(asking, encode(asking))[-1].double()
    best = p.topk(2)
    final = best.values.softmax(-1)
    assert [one["id"] for one in found["candidates"][:2]] == best.indices.tolist()
    shown = [one["final"] for one in found["candidates"][:3]]
    assert shown == pytest.approx([*final.tolist(), 0.0], abs=1e-6)
    assert found["candidates"][2]["removed_by"] == "top_k"
    assert [stage["kept"] for stage in found["stages"]] == [259, 259, 259, 2, 2, 2, 2]
    for query, status in (("temperature=-1", 400), ("top_p=x", 400), ("top_k=1e999", 400)):
        assert client.get(f"/glassbox/next/{value['id']}?{query}").status_code == status
    assert client.get("/glassbox/next/unknown").status_code == 404
    refused = client.get(f"/glassbox/next/{value['id']}?top_p=0", headers={"accept-language": "zh"})
    assert refused.json()["error"].startswith("top_p = 0.0 不可用")
    assert len(client.get(f"/glassbox/next/{value['id']}").content) < 20_000


def test_bars_and_their_drawer_say_the_same(asking):
    ask = Ask(text="every effort moves you", source="tiny", logits=NINE)
    value, said, facts, table, exports, kept = BarsHandlers(asking).read(ask, None, NOBODY, DIALS)
    assert "9 words" in said
    assert facts["tensor"] == "logits"
    shown = dict(zip(table["rows"], (row[3] for row in table["cells"]), strict=True))
    assert round(shown["forward"], 4) == 0.5721
    np.testing.assert_allclose(csv_of(asking, exports)[:, 3], list(shown.values()), rtol=1e-6)
    cold = BarsHandlers(asking).turn(ask, kept, NOBODY, SamplingSettings(temperature=0.1))
    assert round(cold[2]["cells"][0][3], 4) == 0.9910
    namespace = run_snippet(exports["python"])
    assert [c.final for c in namespace["found"].candidates] == pytest.approx(list(shown.values()))


def run_snippet(snippet):
    """In this process: the slow tests run those of a model in a fresh one."""
    namespace = {"print": lambda *_: None}
    exec(snippet, namespace)
    return namespace


def test_draws_show_the_published_counts(asking):
    ask = Ask(text="x", source="tiny", logits=NINE)
    said, message, _, table, exports = DrawsHandlers(asking).draw(
        ask, "draws", 1_000, None, NOBODY, DIALS
    )
    counts = dict(zip(table["rows"], (row[0] for row in table["cells"]), strict=True))
    assert (counts["closer"], counts["forward"], counts["toward"]) == ("73", "582", "343")
    assert "seed 123" in said
    figure = json.loads(message)["figure"]["data"]
    assert figure[0]["y"][:3] == [582, 343, 73]
    assert csv_of(asking, exports)[0, 0] == 582
    skipped = DrawsHandlers(asking).draw(ask, "bars", 10, None, NOBODY, DIALS)
    assert all(isinstance(value, dict) and "__type__" in value for value in skipped)


def test_pairs_beams_and_questions_come_from_the_model(asking):
    *_, last = PairHandlers(asking).write(ASK, "greedy", 5, None, NOBODY, DIALS)
    table = last[4]
    assert len(table["rows"]) == 5
    ids = encode(asking)
    greedy = int(own(asking, ids)[-1].argmax())
    assert csv_of(asking, last[5])[0, 2] == greedy
    found = BeamHandlers(asking).search(
        ASK, 1, None, NOBODY, BeamSettings(n_beams=2, max_new_tokens=3)
    )
    assert {node["d"] for node in found[1]["nodes"]} == {1, 2, 3}
    assert found[2]["cells"][0][3] == pytest.approx(found[2]["cells"][0][2] / 3)
    board, _, table, _ = GameHandlers(asking).deal(
        ASK, "game", "Once upon a time there was a house.", 3, None, NOBODY
    )
    assert all(sum(o["came"] for o in one["options"]) == 1 for one in board["rounds"])
    assert len(table["rows"]) == len(board["rounds"])


def test_stepping_writes_looks_back_and_forces(asking):
    on, scene = StepHandlers(asking), Scene(ask=ASK, request=NOBODY, settings=DIALS)
    walk = on.begin(scene)[-1]
    for _ in range(2):
        values = on.write(replace(scene, walk=walk))
        walk = values[-1]
    assert len(walk.written) == 2
    units = values[1]["units"]
    p = own(asking, walk.ids).softmax(-1)
    assert units[-1]["p"] == pytest.approx(float(p[-2, walk.written[1]]), abs=1e-5)
    back = on.look(replace(scene, walk=walk, data={"index": len(units) - 2}))[-1]
    assert back.at in (0, 1)
    forced = on.force(replace(scene, walk=back, data={"id": 70}))[-1]
    assert forced.written[-1] == 70
    assert len(on.rewind(replace(scene, walk=forced))[-1].written) == len(forced.written) - 1
    typed = on.force_word(replace(scene, walk=forced, word="z"))[-1]
    assert len(typed.written) == len(forced.written) + 1
    assert on.begin(replace(scene, ask=Ask()))[-1] is None


def test_a_thinking_models_thoughts_end_where_one_says(asking):
    """Its tokens are bytes: a tag is written letter by letter, or put as a special token."""
    ask = Ask(text="hi", source="thinker", chat=True)
    on, scene = StepHandlers(asking), Scene(ask=ask, request=NOBODY, settings=DIALS)
    walk = on.begin(scene)[-1]
    for letter in "<think>a":
        walk = walk.force(3 + ord(letter))
    assert "in its thoughts" in on.refresh(replace(scene, walk=walk))[0]
    for letter in "</think>":
        walk = walk.force(3 + ord(letter))
    assert "in the answer" in on.refresh(replace(scene, walk=walk))[0]
    assert on.refresh(replace(scene, walk=walk.go_to(8)))[0].count("in its thoughts") == 1
    ended = on.force_word(replace(scene, walk=walk, word="<|end|>"))[-1]
    assert ended.written[-1] == 0


def test_the_lens_ends_with_the_models_answer(asking):
    *_, last = LensHandlers(asking).read(ASK, None, NOBODY)
    said, grid, message, facts, table, exports = last
    lines = [json.loads(line) for line in grid.split("\n")]
    assert [line["s"] for line in lines[1:]] == ["embed", "0", "1"]
    p = own(asking, encode(asking)).softmax(-1)
    np.testing.assert_allclose(lines[-1]["p"], p.max(-1).values, atol=1e-4)
    assert lines[-1]["r"][-1] == 1
    assert table["cells"][-1][1] == pytest.approx(float(p[-1].max()), abs=1e-5)
    assert json.loads(message)["figure"]["data"][0]["y"][-1] == 1
    assert csv_of(asking, exports).shape == (3 * 9, 4)
    several = Ask(text=ASK.text, source="tiny", target="玛", position=99)
    *_, last = LensHandlers(asking).read(several, None, NOBODY)
    assert "3 tokens" in last[0]
    assert LensHandlers(asking).cell(event(row=0, column=4)) == 4


def test_the_shown_parts_add_up(asking):
    values = AttributionHandlers(asking).split(ASK, None, NOBODY)
    logit = float(own(asking, encode(asking))[-1].max())
    cells = csv_of(asking, values[8])
    assert cells.sum() == pytest.approx(logit, abs=1e-3)
    assert f"{logit:.3f}" in values[1]
    bars = json.loads(values[2])["figure"]["data"]
    total = sum(sum(trace["y"]) for trace in bars)
    assert total == pytest.approx(logit, abs=1e-3)
    assert len(json.loads(values[3])["figure"]["data"][0]["z"]) == 2
    norms = json.loads(values[4])["figure"]["data"][0]["y"]
    trace = Trace(record=("embed", "blocks.1.resid_post"))
    with asking.ctx.store.lease("tiny", "local") as loaded, torch.no_grad():
        loaded.model(torch.tensor([encode(asking)]), trace=trace)
    ends = [float(trace[name][0, -1].norm()) for name in trace.names()]
    assert (norms[0], norms[-1]) == pytest.approx(tuple(ends), abs=1e-3)


def test_all_three_measures_stand_side_by_side(asking):
    measured = None
    for method in ("gradient", "integrated", "leave_one_out"):
        steps = list(GradientHandlers(asking).measure(ASK, method, measured, None, NOBODY))
        assert "left" in steps[0][0]
        measured = steps[-1][-1]
    table = steps[-1][4]
    assert len(table["cols"]) == 3
    assert len(table["cells"]) == 9
    assert csv_of(asking, steps[-1][5]).shape == (9, 3)
    steps = list(GradientHandlers(asking).begin(ASK, "gradient", None, None, NOBODY))
    assert steps[-1][3]["tensor"] == "embed"
    with pytest.raises(ConfigError, match="choose gradient"):
        list(GradientHandlers(asking).measure(ASK, "magic", None, None, NOBODY))


def test_what_takes_long_waits_for_the_button(asking, monkeypatch):
    monkeypatch.setattr("components.tabs.layers.gradients.QUICK_S", 0.0)
    on = GradientHandlers(asking)
    (only,) = on.begin(ASK, "leave_one_out", None, None, NOBODY)
    assert only[0].startswith("Passes: 9, about ")
    assert "Press Run" in only[0]
    assert only[3] is None
    *_, last = on.measure(ASK, "leave_one_out", None, None, NOBODY)
    assert last[3]["tensor"] == "embed"


def test_losses_and_their_steps_are_those_of_torch(asking):
    *_, last = LossHandlers(asking).read(ASK, None, NOBODY)
    said, chips, steps, worst, _, _, table, exports, kept = last
    ids = encode(asking)
    logits = own(asking, ids)[:-1]
    nats = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none")
    np.testing.assert_allclose([row[3] for row in table["cells"]], nats, atol=1e-4)
    assert f"{float(nats.mean()):.4f}" in said
    assert worst["cells"][0][0] == pytest.approx(float(nats.max()), abs=1e-4)
    came = steps["cells"][-1]
    assert came[3] == pytest.approx(float(nats.max()), abs=1e-4)
    assert came[2] == pytest.approx(float((-nats.max()).exp()), rel=1e-3)
    assert "p" not in chips["value"]["units"][0]
    assert chips["value"]["units"][1]["p"] == pytest.approx(float((-nats[0]).exp()), abs=1e-5)
    np.testing.assert_allclose(csv_of(asking, exports)[:, 2], nats, atol=1e-4)
    again, _ = LossHandlers(asking).token(event(index=1), kept, NOBODY)
    assert again["cells"][-1][3] == pytest.approx(float(nats[0]), abs=1e-4)
    *_, (_, compared, exports) = ComparisonHandlers(asking).compare(
        ASK, ["tiny", "base"], None, NOBODY
    )
    assert compared["cells"][0][1] == pytest.approx(float(nats.mean().exp()), rel=1e-4)
    assert compared["rows"] == ["tiny", "base"]
    assert csv_of(asking, exports)[1, 0] == pytest.approx(float(nats.mean()), abs=1e-4)


class TwoRuns:
    """A run without checkpoints and one with three, all of them the tiny model."""

    def list(self, owner):
        facts = {"state": "done", "step": 80, "n_steps": 80, "created_at": 0.0}
        facts |= {"training_loss": None, "validation_loss": None, "text_name": "", "place": None}
        return tuple(
            RunSummary(id=name, name=name.title(), n_parameters=1, checkpoints=steps, **facts)
            for name, steps in (("young", ()), ("ripe", (0, 40, 80)), ("other", (0,)))
        )

    def checkpoint_source(self, run, step):
        return f"run:{run}@{step}"


def test_checkpoints_are_read_one_after_the_other(asking, monkeypatch):
    monkeypatch.setattr("components.tabs.layers.checkpoints.EVERY_S", 0.0)
    on = CheckpointHandlers(type(asking)(ctx=replace(asking.ctx, runs=TwoRuns())))
    first, *_, last = on.read(ASK, None, "", None, NOBODY)
    assert [name for _, name in first[0].choices] == ["ripe", "other"]
    run, said, grid, cell, chart, facts, table, exports, kept = last
    lines = [json.loads(line) for line in grid.split("\n")]
    assert lines[0]["cols"] == ["embed", "0", "1"]
    assert [line["s"] for line in lines[1:]] == ["0", "40", "80"]
    p = own(asking, encode(asking))[-1].softmax(-1)
    assert table["cells"][2][1] == pytest.approx(float(p.max()), abs=1e-5)
    assert [row[3] for row in table["cells"]] == ["1", "1", "1"]
    assert "3 of 3 checkpoints of Ripe" in said
    assert cell["cells"][0][1] == pytest.approx(float(p.max()), abs=1e-5)
    assert len(json.loads(chart)["figure"]["data"]) == 3
    assert csv_of(asking, exports).shape == (9, 5)
    early = on.cell(event(row=0, column=0), kept, NOBODY)
    assert early["corner"] == "Step 0, layer embed"
    *_, one = on.read(ASK, "other", "ripe", None, NOBODY)
    assert "1 of 1 checkpoints of Other" in one[1]


def test_space_and_steering_name_what_they_show(asking):
    values = SpaceHandlers(asking).look(ASK, True, None, NOBODY)
    assert values[2]["cells"][-1] == pytest.approx([1.0] * 9, abs=1e-5)
    assert len(json.loads(values[1])["figure"]["data"]) == 9
    *_, last = SteerHandlers(asking).write(
        ASK, "love", "hate", {"index": 1, "count": 2}, None, 0.0, 4, 0.0, 1, NOBODY
    )
    cells = csv_of(asking, last[6])
    np.testing.assert_array_equal(cells[:, 0], cells[:, 2])  # strength 0 changes nothing
    assert last[3] == {"index": 1, "count": 2}


def test_no_text_is_no_error(asking):
    nothing = Ask(source="tiny")
    for values in (
        BarsHandlers(asking).read(nothing, None, NOBODY, DIALS),
        BeamHandlers(asking).search(nothing, 1, None, NOBODY, BeamSettings()),
        AttributionHandlers(asking).split(nothing, None, NOBODY),
        SpaceHandlers(asking).look(nothing, True, None, NOBODY),
        *LensHandlers(asking).read(nothing, None, NOBODY),
        *LossHandlers(asking).read(nothing, None, NOBODY),
        *GradientHandlers(asking).measure(nothing, "gradient", None, None, NOBODY),
    ):
        exports = [v for v in values if isinstance(v, dict) and "csv" in v]
        assert exports == [{"csv": None, "png": None, "python": None}]
