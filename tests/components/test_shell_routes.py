"""Binary routes: the numbers that arrive are those that were published."""

import csv
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from components.head_answer import HeadAnswer
from components.routes import MatrixRoutes
from components.text import ASSETS

ROWS, COLUMNS = 7, 5


@pytest.fixture
def routes() -> MatrixRoutes:
    return MatrixRoutes()


@pytest.fixture
def client(routes: MatrixRoutes) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes.routes())) as client:
        yield client


def make_matrix() -> np.ndarray:
    return np.random.default_rng(3).random((ROWS, COLUMNS), dtype=np.float32)


def test_a_matrix_arrives_as_bytes_row_by_row(routes: MatrixRoutes, client: TestClient) -> None:
    matrix = make_matrix()
    answer = client.get(f"/glassbox/matrix/{routes.publish(matrix)}")
    assert answer.headers["x-shape"] == "7,5"
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    shown = np.frombuffer(answer.content, np.uint8).reshape(ROWS, COLUMNS)
    assert np.array_equal(shown, np.rint(matrix * 255))


def test_values_outside_the_range_are_drawn_at_its_ends_and_nan_as_nothing(
    routes: MatrixRoutes, client: TestClient
) -> None:
    matrix = np.array([[-9.0, -2.0, 0.0, 2.0, 9.0, np.nan, np.inf]], np.float32)
    entry = routes.publish(matrix, low=-2.0, high=2.0)
    shown = np.frombuffer(client.get(f"/glassbox/matrix/{entry}").content, np.uint8)
    assert shown.tolist() == [0, 0, 128, 255, 255, 128, 255]
    entry = routes.publish(matrix, low=0.0, high=2.0)
    shown = np.frombuffer(client.get(f"/glassbox/matrix/{entry}").content, np.uint8)
    assert shown.tolist() == [0, 0, 0, 255, 255, 0, 255]


def test_a_row_brings_the_true_float32_numbers(routes: MatrixRoutes, client: TestClient) -> None:
    matrix = make_matrix()
    entry = routes.publish(matrix)
    for row in range(ROWS):
        content = client.get(f"/glassbox/matrix/{entry}/row/{row}").content
        assert np.array_equal(np.frombuffer(content, "<f4"), matrix[row])
    assert client.get(f"/glassbox/matrix/{entry}/row/{ROWS}").status_code == 404


def test_what_was_published_does_not_change_with_the_callers_array(
    routes: MatrixRoutes, client: TestClient
) -> None:
    matrix = make_matrix()
    entry, before = routes.publish(matrix), matrix[2].copy()
    matrix[:] = 0
    content = client.get(f"/glassbox/matrix/{entry}/row/2").content
    assert np.array_equal(np.frombuffer(content, "<f4"), before)


def test_csv_reads_back_exactly_with_its_labels(routes: MatrixRoutes, client: TestClient) -> None:
    matrix = make_matrix()
    rows = ["When", " Mary", 'quote"', "comma,", "new\nline", "玛", "🦙"]
    entry = routes.publish(matrix, row_labels=rows, column_labels=list("abcde"))
    answer = client.get(f"/glassbox/matrix/{entry}.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="glassbox.csv"'
    table = list(csv.reader(io.StringIO(answer.content.decode(), newline="")))
    assert table[0] == ["", *"abcde"]
    assert [line[0] for line in table[1:]] == rows
    assert np.array_equal(np.array([line[1:] for line in table[1:]], np.float32), matrix)


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@x", "\t=1", " =1", "\r=1"])
def test_a_label_never_becomes_a_formula(
    label: str, routes: MatrixRoutes, client: TestClient
) -> None:
    entry = routes.publish(np.zeros((1, 1), np.float32), row_labels=[label])
    text = client.get(f"/glassbox/matrix/{entry}.csv").content.decode()
    assert next(csv.reader(io.StringIO(text.split("\r\n", 1)[1], newline="")))[0] == f"'{label}"


def test_a_stack_of_thumbnails(routes: MatrixRoutes, client: TestClient) -> None:
    stack = np.arange(2 * 3 * 5, dtype=np.uint8).reshape(2, 3, 5)
    answer = client.get(f"/glassbox/stack/{routes.publish_stack(stack)}")
    assert answer.headers["x-shape"] == "2,3,5"
    assert answer.content == stack.tobytes()


def test_unknown_ids_get_a_short_answer(routes: MatrixRoutes, client: TestClient) -> None:
    entry = routes.publish(make_matrix())
    for path in ("matrix/none", "matrix/none/row/0", "matrix/none.csv", "stack/none"):
        answer = client.get(f"/glassbox/{path}")
        assert answer.status_code == 404
        assert "run the view again" in answer.json()["error"]
        assert answer.headers["cache-control"] == "no-store"
    # An id of another kind is as unknown as any.
    assert client.get(f"/glassbox/stack/{entry}").status_code == 404


def test_the_least_used_goes_when_the_limit_is_reached() -> None:
    routes = MatrixRoutes(limit_bytes=3 * 4 * 10)
    first, second, third = (routes.publish(np.zeros((1, 10))) for _ in range(3))
    routes.find(first)
    routes.publish(np.zeros((1, 10)))
    assert [routes.find(entry) is not None for entry in (first, second, third)] == [
        True,
        False,
        True,
    ]


def test_one_matrix_over_the_limit_is_still_served() -> None:
    routes = MatrixRoutes(limit_bytes=10)
    small = routes.publish(np.zeros((1, 1)))
    large = routes.publish(np.zeros((9, 9)))
    assert routes.find(small) is None
    assert routes.find(large) is not None


def test_publishing_from_many_threads_keeps_the_count_right() -> None:
    routes = MatrixRoutes(limit_bytes=40 * 10)
    with ThreadPoolExecutor(8) as pool:
        entries = list(pool.map(lambda _: routes.publish(np.zeros((1, 10))), range(200)))
    assert len(set(entries)) == 200
    assert sum(routes.find(entry) is not None for entry in entries) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"matrix": np.zeros(3)}, "2 axes"),
        ({"matrix": np.zeros((2, 3)), "row_labels": ["a"]}, "1 labels"),
        ({"matrix": np.zeros((2, 3)), "low": 1.0, "high": 1.0}, "greater"),
    ],
)
def test_wrong_matrices_are_refused(arguments: dict, message: str, routes: MatrixRoutes) -> None:
    with pytest.raises(ValueError, match=message):
        routes.publish(**arguments)


def test_a_stack_of_another_kind_is_refused(routes: MatrixRoutes) -> None:
    with pytest.raises(ValueError, match="uint8"):
        routes.publish_stack(np.zeros((2, 3, 5)))


def test_the_plotly_script_is_the_one_of_the_package(client: TestClient) -> None:
    answer = client.get("/glassbox/plotly.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert b"plotly.js v" in answer.content[:200]


@pytest.mark.parametrize(
    "path",
    [
        "..%2fapp.py",
        "%2e%2e/app.py",
        "../app.py",
        "text/../../app.py",
        "/etc/passwd",
        "",
        "kit",
        "%00x",
    ],
)
def test_assets_do_not_lead_out_of_their_folder(path: str, client: TestClient) -> None:
    assert client.get(f"/glassbox/assets/{path}").status_code == 404


def test_assets_are_served(client: TestClient) -> None:
    answer = client.get("/glassbox/assets/style.css?v=1")
    assert answer.content == (ASSETS / "style.css").read_bytes()
    assert "immutable" in answer.headers["cache-control"]
    assert client.get("/glassbox/assets/style.css").headers["cache-control"] == "no-cache"


def test_headers_of_the_page_cost_no_page() -> None:
    written = []

    def write(request: Request) -> PlainTextResponse:
        written.append((request.method, request.url.path))
        return PlainTextResponse("page")

    routes = [Route("/", write), Route("/other", write)]
    app = Starlette(routes=routes, middleware=[Middleware(HeadAnswer)])
    with TestClient(app) as client:
        answer = client.head("/")
        assert (answer.status_code, written) == (200, [])
        assert answer.headers["content-type"].startswith("text/html")
        assert client.get("/").text == "page"
        assert client.head("/other").status_code == 200
    assert written == [("GET", "/"), ("HEAD", "/other")]
