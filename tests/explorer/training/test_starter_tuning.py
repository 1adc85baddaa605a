"""What fine-tuning the starter comes to with the settings that the form starts from.

Steps, data and scores are pinned, seconds are not: see tests/benchmarks/fine_tuning.py, which also
has the samples that take longer.
"""

from dataclasses import replace

import pytest

from explorer.datasets.splits import Parts
from explorer.training.tuning_setup import recommended_tuning
from explorer.tuning_data import DataSets, DataSettings
from tests.benchmarks.fine_tuning import measure

pytestmark = pytest.mark.slow

N_TESTED = 40  # of the rows kept apart; a third of them is Chinese, as of all


@pytest.mark.parametrize(
    ("data", "most_before", "least_after"),
    [("messages", 0.7, 0.95), ("instructions", 0.2, 0.7)],
)
def test_the_starter_learns_a_sample(data: str, most_before: float, least_after: float) -> None:
    view = DataSets().view(DataSettings(data=data))
    parts = replace(view.parts, test=view.parts.test[:N_TESTED])
    assert isinstance(parts, Parts)
    found = measure(
        "starter", view.objective, parts, recommended_tuning(view.objective), name=view.name
    )
    assert found["before"] <= most_before
    assert found["after"] >= least_after
    assert found["after"] > view.baseline
