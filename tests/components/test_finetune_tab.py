"""The Fine-tune tab with runs of a tiny model: what its panels show is what the core computes."""

import io
import json
import math
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError

from components.context import Settings
from components.launch import Endpoint, launch_page
from components.shell import build_page
from components.text import LOCALES, load_words
from explorer.judge import RUBRIC
from explorer.runs import Runs
from explorer.store import ModelStore
from explorer.training.loop import train
from explorer.training.run_folder import RUNS_FOLDER, RunFolder
from explorer.training.tuning_setup import TuningSetup
from explorer.tuning_data import DataSettings
from explorer.tuning_runs import TuningRuns
from explorer.tuning_scores import measure_answers
from explorer.tuning_snippets import (
    make_adapter_snippet,
    make_change_snippet,
    make_choice_snippet,
    make_data_snippet,
    make_judge_snippet,
    make_pair_snippet,
    make_score_snippet,
    make_tuning_snippet,
)
from models.initialise import build_decoder
from models.loading import load_model
from models.lora_files import load_adapter
from models.saving import save_model
from models.tokenizers.bpe_trainer import train_bpe
from tests.explorer.model_server import END, make_delta, serve_models
from tests.explorer.training.run_cases import TEXT, tiny_model

pytestmark = pytest.mark.slow

OWNER = "local"
ROWS = {
    "classification": [{"label": "rb"[i % 2], "text": f"Ada has {i} balls"} for i in range(14)],
    "sft": [{"instruction": f"Who has {i}?", "output": f"Ada has {i}."} for i in range(14)],
    "preference": [
        {"prompt": f"Who has {i}?", "chosen": f"Ada has {i}.", "rejected": "No idea."}
        for i in range(14)
    ],
}
SETUP = TuningSetup(template="phi3", epochs=1.0, batch_size=3, learning_rate=3e-3, row_limit=64)
CHOICES = json.dumps([{"question": "Who?", "choices": ["Ada", "Ben has"], "answer": 1}] * 2)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    home, base = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("base")
    tokenizer = train_bpe(TEXT, vocab_size=280, special_tokens=("<|endoftext|>",)).to_tokenizer("t")
    config = replace(tiny_model(tokenizer.vocab_size, dropout=0.0), context_length=96)
    save_model(base, build_decoder(config, torch.Generator().manual_seed(1)), tokenizer=tokenizer)
    store, runs = ModelStore(runs=home / RUNS_FOLDER, budget_bytes=10**9), Runs(home)
    tunings = TuningRuns(runs, store)
    made = {}
    for objective, rows in ROWS.items():
        settings = DataSettings(data="typed", typed="\n".join(map(json.dumps, rows)))
        view = tunings.data.view(settings)
        setup = replace(SETUP, trains="lora") if objective == "sft" else SETUP
        made[objective] = tunings.create(setup, view, settings, str(base), OWNER)
        list(train(runs.folder(made[objective]).path))
    demo, ctx = build_page(store, Settings(), runs=runs)
    url = launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLASSBOX_HOME", str(home))
        yield Client(url, verbose=False), made, tunings, base
    demo.close(verbose=False)


def last_folder(tunings: TuningRuns, run: str) -> Path:
    return tunings._runs.checkpoint(run, tunings.best_step(run))


def test_answers_evaluation_and_lineage(page) -> None:
    client, made, tunings, base = page
    run, step = made["sft"], tunings.best_step(made["sft"])
    both = client.predict(run, step, "Who has 3?", api_name="/finetune_answer")
    assert both.keys() == {"base", "tuned"}
    found = client.predict(run, 5, api_name="/finetune_evaluate")
    assert found["scores"].keys() == {"exact_match", "rouge_l", "perplexity"}
    examples = tunings.examples(run)[:5]
    tuning = tunings.tuning(run)
    for place, folder in enumerate((base, last_folder(tunings, run))):
        logs = measure_answers(load_model(folder), examples, [e.answer for e in examples], tuning)
        wanted = math.exp(-sum(total for total, _ in logs) / sum(n for _, n in logs))
        assert found["scores"]["perplexity"][place] == pytest.approx(wanted, rel=1e-4)
    same = client.predict(run, 5, run, api_name="/finetune_evaluate")
    assert same["difference"] == 0
    with pytest.raises(AppError, match="learned something else"):
        client.predict(run, 5, made["preference"], api_name="/finetune_evaluate")
    nodes = client.predict(api_name="/finetune_lineage")
    assert [n["depth"] for n in nodes] == [0, 1, 1, 1]
    shares = client.predict(made["classification"], 2, "Ada", api_name="/finetune_classify")
    assert sum(shares.values()) == pytest.approx(1.0, rel=1e-5)


def test_pairs_choices_and_changes(page) -> None:
    client, made, tunings, base = page
    run, step = made["preference"], tunings.best_step(made["preference"])
    pair = client.predict(run, step, 1, api_name="/finetune_pair")
    example, tuning = tunings.examples(run)[0], tunings.tuning(run)
    for who, folder in (("base", base), ("tuned", last_folder(tunings, run))):
        loaded = load_model(folder)
        for side, answer in (("chosen", example.answer), ("rejected", example.rejected)):
            ((total, _),) = measure_answers(loaded, [example], [answer], tuning)
            assert sum(pair[side][who]) == pytest.approx(total, rel=1e-4)
    with pytest.raises(AppError, match="pairs of answers"):
        client.predict(made["sft"], step, 1, api_name="/finetune_pair")
    scores = client.predict(run, CHOICES, api_name="/finetune_choices")
    assert scores["base"]["chance"] == 0.5
    assert scores.keys() == {"base", "tuned"}
    changed = client.predict(run, step, "Ada has", api_name="/finetune_changes")
    assert 0 < changed["total"] < 1
    assert len(changed["attention"]) == 2
    still = client.predict(run, 0, "Ada has", api_name="/finetune_changes")
    assert still["total"] == 0
    assert max(max(row) for row in still["attention"]) == 0


def test_an_adapter_is_merged_taken_apart_and_saved_alone(page, tmp_path) -> None:
    client, made, tunings, base = page
    run, step = made["sft"], tunings.best_step(made["sft"])
    found = client.predict(run, step, "Ada has", 0.0, api_name="/finetune_adapter")
    loaded = load_model(base)
    ids = torch.tensor([loaded.tokenizer.encode("Ada has")])
    with torch.no_grad():
        wanted = loaded.model(ids)[0, -1].softmax(-1)
    best = loaded.tokenizer.decode([int(wanted.argmax())])
    assert found["choices"][best] == pytest.approx(float(wanted.max()), rel=1e-4)
    assert found["n_shared_bytes"] == loaded.info.n_bytes  # it stands on its base's memory
    assert found["n_bytes"] < loaded.info.n_bytes / 2
    assert found["states"]["merged"]["from_beside"] < 1e-5
    assert found["states"]["apart"]["from_base"] < 1e-5 < found["states"]["beside"]["from_base"]
    answer = httpx.get(f"{client.src}glassbox/run/{run}/step-{step}/adapter.zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        packed.extractall(tmp_path)
    with torch.no_grad():
        before = loaded.model(ids)
        assert load_adapter(tmp_path / "adapter", loaded.model).rank == 8
        merged = load_model(last_folder(tunings, run)).model(ids)
        torch.testing.assert_close(loaded.model(ids), merged, rtol=1e-5, atol=1e-5)
        assert not torch.equal(before, merged)
    whole = httpx.get(f"{client.src}glassbox/run/{run}/step-{step}.zip")
    with zipfile.ZipFile(io.BytesIO(whole.content)) as packed:
        names = packed.namelist()
    assert f"step-{step:08d}/adapter/adapter_model.safetensors" in names
    for other in ("classification", "preference"):
        with pytest.raises(AppError, match="trained with LoRA"):
            client.predict(made[other], 0, "Ada", 1.0, api_name="/finetune_adapter")
        refused = httpx.get(f"{client.src}glassbox/run/{made[other]}/step-{step}/adapter.zip")
        assert refused.status_code == 404


def test_a_deleted_base_is_named_and_stacked_adapters_say_so(page, tmp_path) -> None:
    client, made, tunings, _ = page
    first = f"run:{made['sft']}@{tunings.best_step(made['sft'])}"
    settings = DataSettings(data="typed", typed="\n".join(map(json.dumps, ROWS["sft"])))
    view = tunings.data.view(settings)
    made_here = tunings.create(replace(SETUP, trains="lora"), view, settings, first, OWNER)
    list(train(tunings._runs.folder(made_here).path))
    step = tunings.best_step(made_here)
    found = client.predict(made_here, step, "Ada has", 1.0, api_name="/finetune_adapter")
    assert found["n_bytes"] > 4 * found["n_adapter"]  # with those of the run below
    base = tunings._runs.folder(made["sft"]).path
    away = base.rename(tmp_path / "away")
    try:
        for name, asked in (
            ("adapter", (made_here, step, "Ada has", 1.0)),
            ("changes", (made_here, step, "Ada has")),
            ("answer", (made_here, step, "Who has 3?")),
            ("evaluate", (made_here, 2)),
            ("choices", (made_here, CHOICES)),
        ):
            with pytest.raises(AppError, match="has been deleted, so that nothing"):
                client.predict(*asked, api_name=f"/finetune_{name}")
    finally:
        away.rename(base)
        tunings._runs.delete(made_here, OWNER)


def run_snippet(snippet: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    exec(compile(snippet, "snippet", "exec"), {})  # noqa: S102
    return capsys.readouterr().out.split("\n")


def test_snippets_print_the_numbers_of_their_panels(page, capsys) -> None:
    client, made, tunings, _ = page
    sft, step = made["sft"], tunings.best_step(made["sft"])
    found = client.predict(sft, step, "Ada has", 0.5, api_name="/finetune_adapter")
    printed = run_snippet(make_adapter_snippet(sft, step, "Ada has", 0.5), capsys)
    for line, (name, state) in zip(printed, found["states"].items(), strict=False):
        assert line.split()[:2] == [name, str(state["n_numbers"])]
        distances = [float(x) for x in line.split()[2:]]
        wanted = [state["from_base"], state["from_beside"]]
        assert distances == pytest.approx(wanted, rel=1e-4, abs=1e-5)
    assert all(repr(token) in printed[4] for token in found["choices"])
    changed = client.predict(sft, step, "Ada has", api_name="/finetune_changes")
    *_, total, _ = run_snippet(make_change_snippet(sft, step, "base"), capsys)
    assert float(total) == pytest.approx(changed["total"], rel=1e-5)
    pair, at = made["preference"], tunings.best_step(made["preference"])
    read = client.predict(pair, at, 1, api_name="/finetune_pair")
    printed = run_snippet(make_pair_snippet(pair, at, 1), capsys)
    sums = [float(line.split()[-1]) for line in printed if "]" in line]
    wanted = [sum(read[side]["tuned"]) for side in ("chosen", "rejected")]
    assert sums == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("objective", list(ROWS))
def test_the_snippet_of_scores_prints_them(page, capsys, objective) -> None:
    client, made, tunings, _ = page
    run = made[objective]
    found = client.predict(run, 5, api_name="/finetune_evaluate")
    *printed, told, _ = run_snippet(make_score_snippet(run, tunings.best_step(run), 5), capsys)
    scores = {name: list(map(float, both)) for name, *both in map(str.split, printed)}
    assert scores.keys() == found["scores"].keys()
    for name, both in found["scores"].items():
        wanted = [math.nan if x is None else x for x in both]
        assert scores[name] == pytest.approx(wanted, rel=1e-4, nan_ok=True)
    assert told.startswith(str(found["baseline"]))
    same = run_snippet(make_score_snippet(run, tunings.best_step(run), 5, run), capsys)
    assert "difference=0.0" in same[-2]


def test_the_snippets_of_choices_and_judge_print_their_numbers(page, capsys) -> None:
    client, made, tunings, _ = page
    run, step = made["sft"], tunings.best_step(made["sft"])
    found = client.predict(run, CHOICES, api_name="/finetune_choices")
    sources = {"base": tunings.tuning(run).base, "tuned": f"run:{run}@{step}"}
    printed = run_snippet(make_choice_snippet(sources, run, "typed", CHOICES, 2), capsys)
    wanted = [" ".join(map(str, (n, s["sum"], s["byte"], s["chance"]))) for n, s in found.items()]
    assert printed == [*wanted, ""]
    snippet = make_choice_snippet({"base": "starter"}, None, "sample", "", 3)
    assert [line.split()[0] for line in run_snippet(snippet, capsys)[:-1]] == ["base"]
    with serve_models() as plays:
        plays.pieces = [make_delta("Score: 40"), END]
        snippet = make_judge_snippet(run, step, 2, plays.url, "big", RUBRIC)
        rows = [str(e.row) for e in tunings.examples(run)[:2]]
        assert run_snippet(snippet, capsys) == [
            *(f"{row} {who} 40.0 Score: 40" for row in rows for who in ("base", "tuned")),
            "",
        ]


def test_the_snippets_of_data_and_training_make_the_same_run(
    page, capsys, tmp_path, monkeypatch
) -> None:
    _, made, tunings, base = page
    monkeypatch.chdir(tmp_path)
    settings = DataSettings(data="typed", typed="\n".join(map(json.dumps, ROWS["sft"])))
    sizes, told, _ = run_snippet(make_data_snippet(settings), capsys)
    view = tunings.data.view(settings)
    assert sizes == str({name: len(part) for name, part in view.parts.items().items()})
    assert told == f"{view.baseline} {view.duplicates} {view.examples.problems}"
    setup = replace(SETUP, trains="lora")
    run_snippet(make_tuning_snippet(setup, settings, str(base)), capsys)
    (again,) = (tmp_path / "runs").iterdir()
    step = tunings.best_step(made["sft"])
    ours, theirs = last_folder(tunings, made["sft"]), RunFolder(again).checkpoint(step)
    for name, weight in load_model(ours).model.state_dict().items():
        torch.testing.assert_close(
            load_model(theirs).model.state_dict()[name], weight, rtol=1e-5, atol=1e-6
        )
    run_snippet(make_tuning_snippet(SETUP, settings, f"run:{made['sft']}@{step}"), capsys)
    first, second = (RunFolder(run) for run in (tmp_path / "runs").iterdir())
    begun = {r.read_config().tuning.base for r in (first, second)}  # type: ignore[union-attr]
    assert begun == {str(base), f"run:{made['sft']}@{step}"}


def test_the_loss_of_a_row_is_no_perplexity(page) -> None:
    client, made, _, _ = page
    told = {n: httpx.get(f"{client.src}glassbox/run/{run}").json() for n, run in made.items()}
    per_token = {name: progress["per_token"] for name, progress in told.items()}
    assert per_token == {"classification": False, "sft": True, "preference": False}


def test_a_judge_grades_and_what_it_cannot_say_is_counted(page) -> None:
    client, made, _, _ = page
    with serve_models() as plays:
        plays.pieces = [make_delta("Score: 40"), END]
        found = client.predict(made["sft"], plays.url, "big", 2, api_name="/finetune_judge")
        assert found == {w: {"mean": 40.0, "asked": 2, "failed": 0} for w in ("base", "tuned")}
        plays.pieces = [make_delta("A fine answer."), END]
        prose = client.predict(made["sft"], plays.url, "big", 2, api_name="/finetune_judge")
        assert prose["tuned"] == {"mean": None, "asked": 2, "failed": 2}
        url = plays.url
    with pytest.raises(AppError, match="cannot be reached"):
        client.predict(made["sft"], url, "big", 1, api_name="/finetune_judge")


def test_bad_rows_and_what_cannot_be_trained_are_told(page) -> None:
    client, _, _, base = page
    for typed, said in (
        ("label,text\nham,a\nham,b\nham,c\nham,d\nham,e\n", "same label"),
        ('[{"prompt": "a", "chosen": "b", "rejected": "b"}]', "no row"),
        ("label,text\n", "no rows"),
        ("{oops\n", "no line"),
    ):
        settings = {"typed": typed, "batch_size": 1}
        with pytest.raises(AppError, match=said):
            client.predict("typed", str(base), settings, api_name="/finetune_start")


def test_every_problem_of_a_row_has_its_words() -> None:
    words, project = load_words(), Path(__file__).parents[2]
    for file in ("datasets/records.py", "datasets/examples.py", "multiple_choice.py"):
        text = (project / "explorer" / file).read_text(encoding="utf-8")
        codes = set(re.findall(r'(?:_Unusable\(|RowProblem\([^)]*code=)"([a-z_]+)"', text))
        assert codes
        for code in codes:
            assert all(f"finetune.problem.{code}" in words.sentences[loc] for loc in LOCALES), code
