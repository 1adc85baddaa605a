"""A disk that takes no more, as the system says it: files of this process have a largest size."""

import subprocess
import sys
from pathlib import Path

import pytest

from explorer.training.event_log import read_events
from explorer.training.events import Failed, Finished, Step
from explorer.training.loop import train
from models.loading import load_model
from tests.explorer.training.run_cases import make_tiny_run

resource = pytest.importorskip("resource")  # Unix alone
ROOT = Path(__file__).parents[3]
# After the checkpoint of step 5 no file may grow beyond so many bytes: the weights take more.
LIMIT = 12_000
CODE = f"""
import resource, signal, sys
from pathlib import Path
from explorer.training.events import Saved
from explorer.training.loop import train
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing then fails with EFBIG
for event in train(Path(sys.argv[1])):
    if isinstance(event, Saved) and event.step == 5:
        resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT}, {LIMIT}))
"""


def losses_of(run):
    return [e.loss for e in read_events(run.events_file) if isinstance(e, Step)]


@pytest.mark.slow
def test_a_disk_that_takes_no_more_ends_the_run_in_words_and_loses_no_checkpoint(tmp_path):
    whole, run = make_tiny_run(tmp_path / "whole"), make_tiny_run(tmp_path / "run")
    list(train(whole.path))
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(run.path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    failed = read_events(run.events_file)[-1]
    assert isinstance(failed, Failed)
    assert failed.code in ("run-not-written", "run-disk-full")
    assert failed.last_good == "step-00000005"
    assert run.checkpoint_steps() == (0, 5)
    assert load_model(run.checkpoint(5)).tokenizer.encode("Ada")
    assert not list(run.path.glob(".unfinished*"))
    assert isinstance(list(train(run.path))[-1], Finished)
    assert losses_of(run) == losses_of(whole)
