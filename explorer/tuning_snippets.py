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
