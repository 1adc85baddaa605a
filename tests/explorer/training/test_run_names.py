"""Names of runs: on one line, and without characters that turn the text around them."""

import pytest

from explorer.training.run_names import clean_run_name


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("  my\n first\trun ", "my first run"),
        ("a\u202etset", "atset"),
        ("\u2066x\u2069\u200f", "x"),
        ("שלום", "שלום"),
        ("👩\u200d🔬 run", "👩\u200d🔬 run"),
        ("\u202e\u0000", ""),
        ("x" * 300, "x" * 80),
    ],
)
def test_a_name_leaves_the_text_around_it_as_it_is(typed, kept):
    assert clean_run_name(typed) == kept
