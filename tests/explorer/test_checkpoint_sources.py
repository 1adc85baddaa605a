"""Checkpoints of runs as models to open."""

import json

import pytest

from explorer.checkpoint_sources import find_checkpoint, name_checkpoint
from explorer.errors import SourceError

RUN = "0123456789abcdef01234567"


@pytest.fixture
def runs(tmp_path):
    (tmp_path / RUN / "step-00000007").mkdir(parents=True)
    (tmp_path / "secret" / "step-00000007").mkdir(parents=True)
    (tmp_path / RUN / "about.json").write_text(json.dumps({"name": "mine"}), encoding="utf-8")
    return tmp_path


def test_a_checkpoint_is_found_and_named(runs):
    assert find_checkpoint(runs, f"run:{RUN}@7") == runs / RUN / "step-00000007"
    assert name_checkpoint(runs, f"run:{RUN}@7") == "mine @ 7"


@pytest.mark.parametrize(
    "source",
    [
        f"run:{RUN}@8",
        f"run:{RUN}",
        f"run:{RUN}@",
        f"run:{RUN}@-7",
        f"run:{RUN}@7/..",
        "run:../secret@7",
        "run:secret@7",
        f"{RUN}@7",
    ],
)
def test_nothing_else_is(runs, source):
    with pytest.raises(SourceError, match="no checkpoint of a run here"):
        find_checkpoint(runs, source)
