"""The same documents for all tests of the world."""

import pytest

from tests.explorer.starter.world import LANGUAGES, take


@pytest.fixture(scope="session")
def training():
    return {language: take(3000, language=language) for language in LANGUAGES}


@pytest.fixture(scope="session")
def held_out():
    return {language: take(1500, split="held_out", language=language) for language in LANGUAGES}
