"""The page of the lab's panels, and somebody who looks at it."""

import gradio as gr
import pytest

from components.context import Settings
from components.shell import build_page
from tests.components.attention.panel_calls import Store


@pytest.fixture(scope="module")
def ctx():
    return build_page(Store(), Settings())[1]


@pytest.fixture
def nobody():
    return gr.Request()
