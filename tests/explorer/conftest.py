"""A store with a fake loader, and visitors to use it at once."""

import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from explorer.store import ModelStore
from explorer.uploads import Uploads

# Test folders are no packages: the module that several of them share is loaded by its path.
_spec = importlib.util.spec_from_file_location(
    "glassbox_fake_models", Path(__file__).with_name("fake_models.py")
)
fake_models = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = fake_models  # tests here import from it by this name
_spec.loader.exec_module(fake_models)

SIZES = {"tiny": 40, "org/a": 40, "org/b": 40, "org/c": 40, "org/large": 90, "org/huge": 101}


@pytest.fixture
def loader():
    """Models by size in bytes; the budget below is 100."""
    return fake_models.FakeLoader(dict(SIZES))


@pytest.fixture
def make_store(loader, tmp_path):
    """Builds a store on the fake loader, with other settings where given."""

    def make(**options) -> ModelStore:
        settings = {"loader": loader, "budget_bytes": 100, "available_bytes": lambda: 10**12}
        return ModelStore(uploads=Uploads(tmp_path), **{**settings, **options})

    return make


@pytest.fixture
def store(make_store):
    """The store of a public host."""
    return make_store(public=True)


@pytest.fixture
def visitors():
    """Threads for visitors who come at once."""
    with ThreadPoolExecutor(16) as pool:
        yield pool
