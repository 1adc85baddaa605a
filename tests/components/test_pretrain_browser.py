"""The Pretrain tab in Chromium: a run of 20,000 steps on the screen, and one that really trains."""

import json
from typing import Any

import pytest

from components.context import Settings
from components.launch import Endpoint, launch_page
from components.shell import build_page
from components.tabs import pretrain
from explorer.runs import Runs
from explorer.store import ModelStore
from explorer.training.event_log import EventLog
from explorer.training.events import Step
from explorer.training.run_folder import RUNS_FOLDER
from explorer.training.run_lock import hold_lock
from tests.components.fake_store import FakeStore
from tests.components.run_folders import folder_of, make_run, write_events

pytestmark = pytest.mark.slow
LONG = 20_000
SOON_MS = 120_000  # a machine may be busy; nothing here measures time


class StoreWithRuns(FakeStore):
    """Opens its fake models and, as the real store does, checkpoints of runs."""

    def __init__(self, home: Any) -> None:
        super().__init__()
        self._real = ModelStore(runs=home / RUNS_FOLDER, budget_bytes=10**9)

    def open(self, source: str, owner: str) -> Any:
        store = self._real if source.startswith("run:") else super()
        yield from store.open(source, owner)

    def summary(self, source: str, owner: str) -> Any:
        store = self._real if source.startswith("run:") else super()
        return store.summary(source, owner)

    def lease(self, source: str, owner: str, **options: Any) -> Any:
        store = self._real if source.startswith("run:") else super()
        return store.lease(source, owner, **options)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def served(home):
    # other tabs would read their texts with the fake models
    demo, ctx = build_page(StoreWithRuns(home), Settings(), runs=Runs(home), tabs=(pretrain.TAB,))
    url = launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    yield url, ctx
    for summary in ctx.runs.list("local"):
        if summary.state in ("running", "queued", "paused", "pausing"):
            ctx.runs.stop(summary.id, "local")
    demo.close(verbose=False)


@pytest.fixture
def open_page(chromium, served):
    """Opens pages of the tab; every fault of a script fails the test."""
    faults: list[str] = []
    contexts = []

    def open_one(query: str, width: int = 1280) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900})
        context.set_default_timeout(SOON_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda m: faults.append(m.text) if "js_on_load" in m.text else None)
        page.goto(f"{served[0]}?__theme=light&lang=en&tab=pretrain&{query}")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert faults == []


def chart(page: Any) -> Any:
    """The traces that Plotly drew last."""
    page.wait_for_selector("#pretrain-curve .js-plotly-plot .scatterlayer", state="attached")
    return page.evaluate(
        """() => document.querySelector('#pretrain-curve .js-plotly-plot').data
             .map(t => ({name: t.name, x: [...t.x], y: [...t.y]}))"""
    )


def test_a_run_of_20000_steps_is_drawn_thinned_and_keeps_its_zoom(open_page, home):
    run_id = make_run(home, n_steps=LONG)
    write_events(home, run_id, LONG)
    page = open_page(f"panel=live&run={run_id}")
    page.wait_for_selector("#pretrain-live [data-state=finished]")
    traces = chart(page)
    assert max(len(trace["x"]) for trace in traces) <= 1_000
    assert max(traces[0]["y"]) > 6  # the spike of one step
    assert "step 20,000 of 20,000" in page.inner_text("#pretrain-live")
    fit = page.inner_text("#pretrain-live .fit")
    assert "lowest at step 10,000 with 2.000" in fit
    assert "3.000 now" in fit
    # zoom in, then draw again by another smoothing: what is looked at stays
    plot = "document.querySelector('#pretrain-curve .js-plotly-plot')"
    page.evaluate(
        f"""() => {{ const plot = {plot}; const x = plot.layout.xaxis;
            x.range = [5000, 9000]; x.autorange = false; plot.emit('plotly_relayout', {{}}); }}"""
    )
    page.click("#pretrain-live .axes button:nth-child(2)")
    page.wait_for_function(f"{plot}.layout.xaxis.title.text === 'tokens read'")
    page.click("#pretrain-live .charts button:nth-child(2)")
    page.wait_for_function(f"{plot}.layout.yaxis.title.text === 'perplexity'")
    assert max(chart(page)[0]["y"]) > 100


def test_a_page_that_is_opened_again_comes_back_to_its_run(open_page, home):
    run_id = make_run(home, n_steps=50, name="come back")
    write_events(home, run_id, 50, fail=True)
    page = open_page(f"panel=live&run={run_id}")
    page.wait_for_selector("#pretrain-live [data-state=failed]")
    assert "head.weight" in page.inner_text("#pretrain-live .message")
    page.goto(page.url.partition("?")[0] + "?lang=en&tab=pretrain&panel=live")
    page.wait_for_selector("#pretrain-live [data-state=failed]")
    assert "come back" in page.inner_text("#pretrain-runs")


def test_a_run_that_is_gone_says_so(open_page, home):
    run_id = make_run(home, name="soon gone")
    page = open_page(f"panel=live&run={run_id}")
    page.wait_for_selector("#pretrain-runs li .actions")
    page.click("#pretrain-runs .actions button:nth-child(2)")
    page.click("text=Delete for good")
    page.wait_for_function(
        "() => !document.querySelector('#pretrain-runs').innerText.includes('soon gone')"
    )
    assert run_id not in [summary.id for summary in Runs(home).list("local")]


def test_a_run_is_started_watched_paused_stopped_and_opened(open_page, served, home):
    page = open_page("panel=setup")
    page.wait_for_selector("#pretrain-begin")
    for name, value in (("n_steps", "2000"), ("context", "16"), ("batch_size", "2")):
        if not page.is_visible(f"#pretrain-{name} input"):
            page.click("#pretrain-more button")
        page.fill(f"#pretrain-{name} input", value)
        page.press(f"#pretrain-{name} input", "Tab")
    page.wait_for_timeout(1_000)
    before = len(Runs(home).list("local"))
    page.dblclick("#pretrain-begin")
    page.wait_for_selector("#pretrain-live [data-state=running]")
    assert len(Runs(home).list("local")) == before + 1  # pressed twice, made once
    page.wait_for_function("() => document.querySelector('#pretrain-curve .js-plotly-plot')")
    first = int(page.get_attribute("#pretrain-live [data-step]", "data-step") or 0)
    page.wait_for_function(
        "n => Number(document.querySelector('#pretrain-live [data-step]').dataset.step) > n",
        arg=first,
    )
    page.click("#pretrain-pause")
    page.wait_for_selector("#pretrain-live [data-state=paused]")
    page.click("#pretrain-resume")
    page.wait_for_selector("#pretrain-live [data-state=running]")
    page.click("#pretrain-keep")
    page.wait_for_selector("#pretrain-live [data-state=stopped]")
    newest = served[1].runs.list("local")[0]
    assert newest.checkpoints[-1] == newest.step
    page.click("#pretrain-open")
    page.wait_for_function(
        "step => document.querySelector('#model-pill-name').textContent.endsWith('@ ' + step)",
        arg=newest.step,
    )


def test_the_page_sends_no_event_of_gradio_while_it_watches(open_page, home):
    run_id = make_run(home, n_steps=400)
    write_events(home, run_id, 400)
    page = open_page(f"panel=live&run={run_id}")
    page.wait_for_selector("#pretrain-live [data-state=finished]")
    page.wait_for_timeout(2_000)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.wait_for_timeout(6_000)
    assert any(f"/glassbox/run/{run_id}" in url for url in sent)
    assert not [url for url in sent if "queue/join" in url]


def test_the_tab_fits_a_phone(open_page, home):
    run_id = make_run(home, n_steps=40)
    write_events(home, run_id, 40)
    page = open_page(f"panel=live&run={run_id}", width=390)
    page.wait_for_selector("#pretrain-live [data-state=finished]")
    for panel in range(5):
        page.locator("#pretrain-panels > .tab-wrapper [role=tab]:visible").nth(panel).click()
        page.wait_for_timeout(1_500)
        widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert widths[0] <= widths[1], json.dumps([panel, *widths])


def test_a_process_warms_up_once_for_who_comes_to_the_tab(open_page, served, monkeypatch):
    called: list[int] = []
    monkeypatch.setattr(served[1].runs, "warm_up", lambda: called.append(1))
    page = open_page("panel=setup")
    page.wait_for_selector("#pretrain-begin")
    for _ in range(100):
        if called:
            break
        page.wait_for_timeout(200)
    for panel in (1, 0):  # going away and coming back is the same visit
        page.locator("#pretrain-panels > .tab-wrapper [role=tab]:visible").nth(panel).click()
        page.wait_for_timeout(800)
    assert called == [1]


def append_steps(run: Any, first: int, last: int) -> None:
    with EventLog(run.events_file) as log:
        for step in range(first, last + 1):
            values = {"step": step, "at": float(step), "tokens": 32 * step, "epoch": 0.0}
            numbers = {"learning_rate": 1e-3, "gradient_norm": 0.5, "duration_s": 0.01}
            log.append(Step(**values, **numbers, loss=1 + 3 / step))


def wait_for_step(page: Any, step: int) -> None:
    page.wait_for_function(
        "n => Number(document.querySelector('#pretrain-live [data-step]')?.dataset.step) >= n",
        arg=step,
    )


def test_a_zoom_stays_while_new_points_come(open_page, home):
    run_id = make_run(home, n_steps=500)
    run = folder_of(home, run_id)
    with hold_lock(run.lock_file):  # as the process that trains it
        append_steps(run, 1, 200)
        page = open_page(f"panel=live&run={run_id}")
        page.wait_for_selector("#pretrain-live [data-state=running]")
        chart(page)
        box = page.locator("#pretrain-curve .nsewdrag").bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 0.3 * box["width"], middle)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=5)
        page.mouse.up()
        axis = "[...document.querySelector('#pretrain-curve .js-plotly-plot').layout.xaxis.range]"
        page.wait_for_function(f"() => {axis}[0] > 40 && {axis}[1] < 140")
        zoomed = page.evaluate(axis)
        append_steps(run, 201, 300)
        wait_for_step(page, 300)
        page.wait_for_function(
            "() => Math.max(...document.querySelector('#pretrain-curve .js-plotly-plot')"
            ".data[0].x) === 300"
        )
        assert page.evaluate(axis) == zoomed
        assert "300 / 500 steps" in page.inner_text("#pretrain-runs")


def test_before_the_first_point_a_sentence_stands_in_place_of_axes(open_page, home):
    run_id = make_run(home, name="not begun")
    page = open_page(f"panel=live&run={run_id}")
    page.wait_for_selector("#pretrain-live [data-state=prepared]")
    page.wait_for_selector("#pretrain-curve .annotation-text")
    assert "begins with the first step" in page.inner_text("#pretrain-curve")
    assert page.locator("#pretrain-curve .xtick").count() == 0


def test_the_other_language_opens_the_same_panel(open_page):
    page = open_page("panel=compare")
    page.wait_for_selector("#pretrain-panels [data-tab-id=compare][aria-selected=true]")
    page.locator("#pretrain-panels [data-tab-id=by_hand]:visible").click()
    page.wait_for_selector("#pretrain-panels [data-tab-id=by_hand][aria-selected=true]")
    page.click("#header .language")
    page.wait_for_selector("html[lang=zh-CN] #pretrain-panels [data-tab-id=by_hand]")
    page.wait_for_selector("#pretrain-panels [data-tab-id=by_hand][aria-selected=true]")
