"""The classic 124M GPT on the-verdict: the published start, and the recorded end."""

import json

import pytest

from explorer.training.events import Evaluated, Started, Step
from tests.benchmarks.classic_124m import RECORD, train_classic


@pytest.mark.slow
def test_three_steps_begin_where_the_course_begins(data_folder, tmp_path):
    text = (data_folder / "the-verdict.txt").read_text(encoding="utf-8")
    events = list(train_classic(tmp_path, text, n_steps=3))
    started = events[0]
    assert isinstance(started, Started)
    assert (started.n_training_tokens, started.n_validation_tokens) == (4_608 + 0, 512)
    assert started.steps_per_epoch == 9
    assert started.n_parameters == 162_419_712
    first, *_, last = [e for e in events if isinstance(e, Evaluated)]
    assert first.training_loss == pytest.approx(10.98, abs=0.03)  # of 5 batches in this order
    assert first.validation_loss == pytest.approx(10.98, abs=0.02)
    losses = [e.loss for e in events if isinstance(e, Step)]
    assert losses[0] > losses[1] > losses[2]
    assert last.training_loss < 9.5


def test_the_recorded_run_ends_where_the_course_ends():
    record = json.loads(RECORD.read_text())
    step, training_loss, validation_loss = record["step_training_validation"][-1]
    assert step == 90
    assert training_loss < 1.3
    assert 6.0 < validation_loss < 6.5
