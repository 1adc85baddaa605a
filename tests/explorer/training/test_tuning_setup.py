"""Few rows and long rows: a run of them is made all the same, and says what it left out."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.datasets.examples import Example, Prompt
from explorer.errors import DataError
from explorer.training.new_tuning import make_tuning_run
from explorer.training.objectives.row_examples import read_part
from explorer.training.tuning_config import TuningConfig
from explorer.training.tuning_setup import TuningSetup, fit_batch, recommended_tuning
from explorer.tuning_preview import preview_batch
from explorer.tuning_scores import ask_for_label
from models.loading import load_model
from tests.explorer.training.tuning_cases import draw_parts

LONG = Example(row=99, prompt=Prompt(instruction="why " * 400), answer="So.", rejected="No.")


def test_no_step_reads_more_rows_than_there_are() -> None:
    setup = TuningSetup(batch_size=8, accumulate=4)
    for n, wanted in ((100, (8, 4)), (20, (8, 2)), (7, (7, 1)), (1, (1, 1))):
        fitted = fit_batch(setup, n)
        assert (fitted.batch_size, fitted.accumulate) == wanted


@pytest.mark.parametrize("objective", ["classification", "sft", "preference"])
def test_ten_rows_are_read_often_enough_to_be_learned(objective: str) -> None:
    for n in (1, 7, 30, 99):
        setup = recommended_tuning(objective, n)
        n_steps = round(setup.epochs * (n // setup.batch_size))
        assert 40 <= n_steps <= 60
        assert setup.batch_size <= n
    assert recommended_tuning(objective, 270) == recommended_tuning(objective)


@pytest.mark.parametrize("objective", ["sft", "preference"])
def test_a_question_that_fills_a_row_is_left_out_and_counted(
    objective: str,
    base: Path,
    tmp_path: Path,
) -> None:
    parts, loaded = draw_parts(), load_model(base)
    parts = replace(parts, training=(LONG, *parts.training))
    setup = TuningSetup(template="phi3", row_limit=64, batch_size=3)
    preview = preview_batch(parts.training, objective, setup, loaded.tokenizer, loaded.chat, 96)
    assert preview.n_left_out == 1
    run = make_tuning_run(
        *(tmp_path, setup, objective, parts, loaded),
        base=str(base),
        base_name="tiny",
        data_name="rows",
        about={},
    )
    kept = [example.row for example in read_part(run, "training")]
    assert kept == [example.row for example in draw_parts().training]
    with pytest.raises(DataError) as error:
        preview_batch((LONG,), objective, setup, loaded.tokenizer, loaded.chat, 96)
    assert error.value.code == "tune-row-long"


@pytest.mark.parametrize("row_limit", [4, 64, 4_096])
def test_the_question_for_a_label_needs_no_room_in_a_row(
    row_limit: int,
    base: Path,
) -> None:
    loaded = load_model(base)
    tuning = TuningConfig(base="b", labels=("blue", "red"), template="phi3", row_limit=row_limit)
    texts = [Example(row=1, text="Ada has red", label="red"), replace(LONG, text="Ada " * 400)]
    found = ask_for_label(loaded, texts, tuning, turn=nullcontext)
    assert set(found) <= {"blue", "red"}
