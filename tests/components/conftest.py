"""What the tests of the page share: a small store of models."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def fake() -> ModuleType:
    """The module fake_store.py: test folders are no packages, so it is loaded by its path."""
    path = Path(__file__).parent / "fake_store.py"
    spec = importlib.util.spec_from_file_location("glassbox_fake_store", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
