"""The page of the lab's panels, and somebody who looks at it."""

import gradio as gr
import pytest

from components.context import Settings
from components.shell import build_page
from tests.components.attention.panel_calls import Store


@pytest.fixture(scope="module")
def page():
    return build_page(Store(), Settings())


@pytest.fixture(scope="module")
def demo(page):
    return page[0]


@pytest.fixture(scope="module")
def ctx(page):
    return page[1]


@pytest.fixture
def nobody():
    return gr.Request()
