"""Python snippets of the Fine-tune tab, which print the numbers on the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from explorer.snippets import say_checkpoint_import, say_load
from explorer.training.tuning_setup import TuningSetup
from explorer.tuning_data import UPLOADED, DataSettings


def _changed(settings: DataSettings | TuningSetup) -> str:
    """The fields that are not as they are by default, as arguments."""
    usual = type(settings)()
    given = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
    return ", ".join(f"{k}={v!r}" for k, v in given.items() if v != getattr(usual, k))


def _upload(data: str) -> str:
    return ', upload="your-file.csv"' if data == UPLOADED else ""


def make_data_snippet(settings: DataSettings) -> str:
    """Reads the data set, and prints its parts and what counting words can do."""
    return (
        "from explorer.tuning_data import DataSets, DataSettings\n\n"
        f"view = DataSets().view(DataSettings({_changed(settings)}){_upload(settings.data)})\n"
        "print({name: len(part) for name, part in view.parts.items().items()})\n"
        "print(view.baseline, view.duplicates, view.examples.problems)\n"
    )


def make_tuning_snippet(setup: TuningSetup, settings: DataSettings, source: str) -> str:
    """Makes the run and trains it, without a page."""
    load = say_load(source)
    return (
        "from pathlib import Path\n\n"
        f"{say_checkpoint_import(load)}"
        "from explorer.training.loop import train\n"
        "from explorer.training.new_tuning import make_tuning_run\n"
        "from explorer.training.tuning_setup import TuningSetup\n"
        "from explorer.tuning_data import DataSets, DataSettings\n"
        "from models import load_model\n\n"
        f"view = DataSets().view(DataSettings({_changed(settings)}){_upload(settings.data)})\n"
        f"setup = TuningSetup({_changed(setup)})\n"
        f"loaded = {load}\n"
        'run = make_tuning_run(Path("runs"), setup, view.objective, view.parts, loaded,\n'
        f'                      base={source!r}, base_name="base",\n'
        "                      data_name=view.name, about={})\n"
        "for event in train(run.path):\n"
        "    print(event)\n"
    )


_STORE = (
    "from explorer.home import find_home_folder\n"
    "from explorer.runs import Runs\n"
    "from explorer.store import ModelStore\n"
    "from explorer.tuning_runs import TuningRuns\n"
)
_TUNINGS = "store = ModelStore()\ntunings = TuningRuns(Runs(find_home_folder()), store)\n"


def make_score_snippet(run: str, step: int, n_examples: int, against: str = "") -> str:
    """Scores a checkpoint, and its base or another run, on held-out examples."""
    other = f", against={against!r}" if against else ""
    return (
        f"{_STORE}"
        "from explorer.tuning_evaluation import Evaluator\n\n"
        f"{_TUNINGS}"
        f"found = Evaluator(tunings, store).evaluate({run!r}, {step}, {n_examples}, ''{other})\n"
        "for name, (base, tuned) in found.scores.items():\n"
        "    print(name, base, tuned)\n"
        "print(found.baseline, found.comparison)\n"
    )


def make_judge_snippet(
    run: str, step: int, n_examples: int, url: str, model: str, rubric: str
) -> str:
    """Lets a model on a server grade what base and checkpoint answer."""
    return (
        "from contextlib import nullcontext\n\n"
        "from explorer.judge import JudgedAnswer, ask_judge\n"
        f"{_STORE}"
        "from explorer.openai_server import OpenAIServer\n\n"
        f"{_TUNINGS}"
        f"examples = tunings.examples({run!r})[:{n_examples}]\n"
        f"base, tuned = tunings.answer_both({run!r}, {step}, examples, '', nullcontext)\n"
        "asked = [\n"
        "    JudgedAnswer(\n"
        "        row=e.row, question=e.prompt.joined, wanted=e.answer, answer=answer, who=who\n"
        "    )\n"
        "    for e, *both in zip(examples, base, tuned)\n"
        '    for who, answer in zip(("base", "tuned"), both)\n'
        "]\n"
        f"for verdict in ask_judge(OpenAIServer({url!r}), {model!r}, {rubric!r}, asked):\n"
        "    print(verdict.asked.row, verdict.asked.who, verdict.score, verdict.reply)\n"
    )


def make_choice_snippet(
    sources: Mapping[str, str], run: str | None, source: str, typed: str, n_questions: int
) -> str:
    """Scores multiple choice with each of a few models.

    Args:
        sources: What the page calls a model -> what the store calls it.
        run: Whose settings write the questions; None takes those of any.
        source: Where the questions are from: sample, typed or upload.
        typed: The questions, where they are typed.
        n_questions: How many are asked.
    """
    given = {"typed": f", {typed!r}", "upload": ', upload="your-file.csv"'}.get(source, "")
    base = next(iter(sources.values()))
    tuning = f"tunings.tuning({run!r})" if run else f"TuningConfig(base={base!r})"
    return (
        "from contextlib import nullcontext\n\n"
        f"{_STORE}"
        "from explorer.multiple_choice import read_choice_set, score_choices\n"
        "from explorer.training.tuning_config import TuningConfig\n\n"
        f"{_TUNINGS}"
        f"found, tuning = read_choice_set({source!r}{given}), {tuning}\n"
        f"for name, source in {dict(sources)!r}.items():\n"
        "    with store.lease(source, '') as loaded:\n"
        f"        questions = found.questions[:{n_questions}]\n"
        "        scores = score_choices(loaded, questions, tuning, turn=nullcontext)\n"
        "    print(name, scores.accuracy(), scores.accuracy(mean=True), found.chance)\n"
    )


def make_change_snippet(run: str, step: int, base: str) -> str:
    """Compares the weights of a checkpoint with those that it began from."""
    return (
        "from explorer.home import find_home_folder\n"
        "from explorer.training.run_folder import RunFolder\n"
        "from explorer.tuning_changes import compare_weights\n"
        "from models import load_model\n\n"
        f'run = RunFolder(find_home_folder() / "runs" / "{run}")\n'
        f"before = load_model(run.initial_folder)  # {base}\n"
        f"changes = compare_weights(before, load_model(run.checkpoint({step})))\n"
        'print(changes.parts, changes.layers, changes.total, sep="\\n")\n'
    )


def make_adapter_snippet(run: str, step: int, text: str, strength: float) -> str:
    """Reads a text with the adapter of a checkpoint beside, merged and taken out again."""
    return (
        "from contextlib import nullcontext\n\n"
        "from explorer.home import find_home_folder\n"
        "from explorer.training.run_folder import RunFolder\n"
        "from explorer.tuning_adapter import inspect_adapter\n"
        "from models import load_model\n\n"
        f'run = RunFolder(find_home_folder() / "runs" / "{run}")\n'
        f"folder, tuning = run.checkpoint({step}), run.read_config().tuning\n"
        "base, tuned = load_model(run.initial_folder), load_model(folder)\n"
        "found = inspect_adapter(\n"
        f"    base, tuned, folder, tuning, {text!r}, strength={strength}, turn=nullcontext\n"
        ")\n"
        "for state in found.states:\n"
        "    print(state.name, state.n_numbers, *map(state.distance, found.states[:2]))\n"
        "print(found.choices)\n"
    )


def make_pair_snippet(run: str, step: int, number: int) -> str:
    """Reads one held-out pair of answers with a checkpoint, token by token."""
    return (
        "from contextlib import nullcontext\n\n"
        "from explorer.answer_tokens import read_answer_tokens\n"
        "from explorer.home import find_home_folder\n"
        "from explorer.training.objectives.row_examples import read_part\n"
        "from explorer.training.run_folder import RunFolder\n"
        "from models import load_model\n\n"
        f'run = RunFolder(find_home_folder() / "runs" / "{run}")\n'
        f"loaded = load_model(run.checkpoint({step}))\n"
        'examples = read_part(run, "test")\n'
        f"example = examples[{max(number, 1) - 1} % len(examples)]\n"
        "tuning = run.read_config().tuning\n"
        "for answer in (example.answer, example.rejected):\n"
        "    ids, logs = read_answer_tokens(loaded, example, answer, tuning, turn=nullcontext)\n"
        "    print(loaded.tokenizer.decode(ids), logs, logs.sum())\n"
    )
