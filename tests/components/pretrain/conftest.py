"""One page with one small run, for all tests of the Pretrain tab."""

import gradio as gr
import pytest
from gradio_client import Client

from components.context import Settings
from components.launch import Endpoint, launch_page
from components.shell import build_page
from explorer.runs import Runs
from explorer.store import ModelStore
from explorer.training.run_folder import RUNS_FOLDER
from tests.components.run_folders import make_run, train_in_process


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def trained(home):
    """A run of three steps, with the checkpoints 0 to 3."""
    run_id = make_run(home, name="small one")
    train_in_process(home, run_id)
    return run_id


@pytest.fixture(scope="session")
def page(home):
    store = ModelStore(runs=home / RUNS_FOLDER, budget_bytes=10**9)
    demo, ctx = build_page(store, Settings(), runs=Runs(home))
    url = launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    yield url, ctx
    demo.close(verbose=False)


@pytest.fixture(scope="session")
def client(page):
    return Client(page[0], verbose=False)


@pytest.fixture
def ctx(page):
    return page[1]


@pytest.fixture
def nobody():
    return gr.Request()
