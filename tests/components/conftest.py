"""What the tests of the page share: a small store of models, and a browser."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

# `--disable-quic` and the others keep Chromium itself from asking the network.
CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def fake() -> ModuleType:
    """The module fake_store.py: test folders are no packages, so it is loaded by its path."""
    path = Path(__file__).parent / "fake_store.py"
    spec = importlib.util.spec_from_file_location("glassbox_fake_store", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    """A headless Chromium; the test is skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api")
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not Path(path).exists():
        pytest.skip(f"no Chromium at {path}; CHROMIUM names another place")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_ARGUMENTS))
        yield browser
        browser.close()
