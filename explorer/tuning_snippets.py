"""Python snippets of the Fine-tune tab, which print the numbers on the page."""

from __future__ import annotations

import dataclasses

from explorer.training.tuning_setup import TuningSetup
from explorer.tuning_data import UPLOADED, DataSettings


def _changed(settings: DataSettings | TuningSetup) -> str:
    """The fields that are not as they are by default, as arguments."""
    usual = type(settings)()
    given = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
    return ", ".join(f"{k}={v!r}" for k, v in given.items() if v != getattr(usual, k))


def make_data_snippet(settings: DataSettings) -> str:
    """Reads the data set, and prints its parts and what counting words can do."""
    upload = ', upload="your-file.csv"' if settings.data == UPLOADED else ""
    return (
        "from explorer.tuning_data import DataSets, DataSettings\n\n"
        f"view = DataSets().view(DataSettings({_changed(settings)}){upload})\n"
        "print({name: len(part) for name, part in view.parts.items().items()})\n"
        "print(view.baseline, view.duplicates, view.examples.problems)\n"
    )


def make_tuning_snippet(setup: TuningSetup, settings: DataSettings, source: str) -> str:
    """Makes the run and trains it, without a page."""
    return (
        "from pathlib import Path\n\n"
        "from explorer.training.loop import train\n"
        "from explorer.training.new_tuning import make_tuning_run\n"
        "from explorer.training.tuning_setup import TuningSetup\n"
        "from explorer.tuning_data import DataSets, DataSettings\n"
        "from models import load_model\n\n"
        f"view = DataSets().view(DataSettings({_changed(settings)}))\n"
        f"setup = TuningSetup({_changed(setup)})\n"
        f"loaded = load_model({source!r})\n"
        'run = make_tuning_run(Path("runs"), setup, view.objective, view.parts, loaded,\n'
        f'                      base={source!r}, base_name="base",\n'
        "                      data_name=view.name, about={})\n"
        "for event in train(run.path):\n"
        "    print(event)\n"
    )


def make_score_snippet(run: str, step: int) -> str:
    """Answers the held-out questions of a run with one of its checkpoints."""
    return (
        "from pathlib import Path\n\n"
        "from explorer.home import find_home_folder\n"
        "from explorer.training.objectives.row_examples import read_part\n"
        "from explorer.training.run_folder import RunFolder\n"
        "from explorer.tuning_scores import score_answers\n"
        "from models import load_model\n\n"
        f'run = RunFolder(find_home_folder() / "runs" / "{run}")\n'
        f"loaded = load_model(run.checkpoint({step}))\n"
        "tuning = run.read_config().tuning\n"
        'scores = score_answers(loaded, read_part(run, "test"), tuning)\n'
        "print(scores.exact_match, scores.perplexity)\n"
    )


def make_judge_snippet(run: str, step: int, url: str, model: str, rubric: str) -> str:
    """Lets a model on a server grade the answers of one checkpoint."""
    return (
        "from pathlib import Path\n\n"
        "from explorer.home import find_home_folder\n"
        "from explorer.judge import JudgedAnswer, ask_judge\n"
        "from explorer.openai_server import OpenAIServer\n"
        "from explorer.training.objectives.row_examples import read_part\n"
        "from explorer.training.run_folder import RunFolder\n"
        "from explorer.tuning_scores import answer_examples\n"
        "from models import load_model\n\n"
        f'run = RunFolder(find_home_folder() / "runs" / "{run}")\n'
        f"loaded = load_model(run.checkpoint({step}))\n"
        'examples = read_part(run, "test")[:10]\n'
        "answers = answer_examples(loaded, examples, run.read_config().tuning)\n"
        "asked = [JudgedAnswer(row=e.row, question=e.prompt.joined, wanted=e.answer, answer=a,\n"
        '                      who="tuned") for e, a in zip(examples, answers)]\n'
        f"for verdict in ask_judge(OpenAIServer({url!r}), {model!r}, {rubric!r}, asked):\n"
        "    print(verdict.score, verdict.reply)\n"
    )


def make_choice_snippet(source: str, template: str) -> str:
    """Scores multiple choice with one model."""
    return (
        "from contextlib import nullcontext\n\n"
        "from explorer.multiple_choice import read_choice_set, score_choices\n"
        "from explorer.training.tuning_config import TuningConfig\n"
        "from models import load_model\n\n"
        "# or read_choice_set('upload', upload='your-file.csv')\n"
        'found = read_choice_set("sample")\n'
        f"tuning = TuningConfig(base={source!r}, template={template!r})\n"
        f"loaded = load_model({source!r})\n"
        "scores = score_choices(loaded, found.questions, tuning, turn=nullcontext)\n"
        "print(scores.accuracy(), scores.accuracy(mean=True), found.chance)\n"
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
