"""What a number format costs, as the page's API sees it."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from gradio_client import Client

from components.format_cost import say_cost
from components.text import CHINESE, ENGLISH, load_words
from explorer.format_cost import FormatCost, read_sample
from explorer.perplexity import Perplexity, compute_perplexity
from tests.components.tiny_chat import TinyStore

WORDS = load_words()
LONG_S = 30


@pytest.fixture
def client(url: str) -> Client:
    return Client(url, verbose=False)


@pytest.mark.parametrize("locale", [ENGLISH, CHINESE])
def test_the_result_says_both_numbers_and_the_difference(locale: str) -> None:
    cost = FormatCost("int8", Perplexity(3.0, 445), Perplexity(3.01, 445))
    said = say_cost(WORDS, locale, cost)
    for part in ("445", "float32 20.09", "int8 20.29", "+1.0%"):
        assert part in said


def test_it_is_measured_step_by_step_and_the_numbers_are_the_models(
    client: Client, store: TinyStore
) -> None:
    job = client.submit("tiny", "int8", api_name="/measure_format")
    line = job.result(LONG_S)[0]
    expected = compute_perplexity(store.usual, read_sample(), window_tokens=128)
    exact, rounded = re.findall(r"(?:float32|int8) ([\d.]+)", line)
    assert exact == rounded == f"{expected.perplexity:.2f}"  # this store has one model for both
    lines = [update[0] for update in job.outputs()]
    assert any("float32: reading a sample" in line for line in lines)
    assert any("int8: reading a sample" in line for line in lines)


def test_stop_ends_it_within_one_pass(client: Client, store: TinyStore) -> None:
    store.after_pass = lambda passes: _press(client) if passes == 2 else None
    last = client.predict("tiny", "int8", api_name="/measure_format")
    assert last[0] == ""
    assert _cards(last) == []
    assert store.passes <= 3


def _press(client: Client) -> None:
    client.predict(api_name="/stop_measuring")


def test_float32_has_nothing_to_be_compared_with(client: Client, store: TinyStore) -> None:
    last = client.predict("tiny", "float32", api_name="/measure_format")
    assert "nothing to compare" in _cards(last)[0]["text"]
    assert store.passes == 0


def test_a_failure_becomes_a_card_and_the_next_one_works(client: Client, store: TinyStore) -> None:
    last = client.predict("missing", "int8", api_name="/measure_format")
    assert "was not found" in _cards(last)[0]["text"]
    assert "int8" in client.predict("tiny", "int8", api_name="/measure_format")[0]


@pytest.mark.slow
def test_two_visitors_measure_at_once(url: str, store: TinyStore) -> None:
    clients = [Client(url, verbose=False) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        ask = "tiny", "bfloat16"
        lines = list(pool.map(lambda c: c.predict(*ask, api_name="/measure_format")[0], clients))
    assert lines[0] == lines[1]
    assert "bfloat16" in lines[0]


def _cards(update: Any) -> list[dict[str, str]]:
    return [part for part in update if isinstance(part, dict) and part.get("kind") == "error"]
