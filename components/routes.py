"""Binary routes beside Gradio: matrices for the page, and the files that its scripts need.

An event stream is never compressed and carries text; a raw route brings a 512 x 512 map to the
screen in 20 ms, an event in 900. So a handler publishes a matrix, sends its id, and the page
fetches the bytes:

    GET /glassbox/matrix/{id}          uint8, row by row; `low` to `high` of the matrix as 0 to 255
    GET /glassbox/matrix/{id}/row/{i}  float32, little endian: the true numbers of one row
    GET /glassbox/matrix/{id}.csv      all numbers as a table, with the labels
    GET /glassbox/matrix/{id}.html     picture and numbers as a page of its own
    GET /glassbox/stack/{id}           uint8 thumbnails (N, height, width)
    GET /glassbox/bytes/{id}           anything else, with its own content type
    GET /glassbox/plotly.js            the script that the plotly package ships
    GET /glassbox/assets/{path}        files of assets/

Ids cannot be guessed, and who has the id may read: that is the whole access rule.
"""

import asyncio
import csv
import io
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock

import numpy as np
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from components.matrix_page import make_matrix_page
from components.text import ASSETS

_CACHE = {"Cache-Control": "private, max-age=31536000, immutable"}
# A spreadsheet would run a cell that begins with one of these as a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, eq=False)
class PublishedMatrix:
    """One matrix that the page may fetch.

    Args:
        cells: The numbers, float32 of shape (rows, columns).
        low: The number drawn as 0; below 0, and 0 is drawn in neither of two colours.
        high: The number drawn as 255.
        row_labels: One text a row, or empty.
        column_labels: One text a column, or empty.
    """

    cells: np.ndarray
    low: float
    high: float
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]

    @property
    def n_bytes(self) -> int:
        """Memory that it takes, in bytes."""
        return int(self.cells.nbytes)


@dataclass(frozen=True, eq=False)
class PublishedBytes:
    """Bytes that the page may fetch as they are.

    Args:
        content: The bytes.
        media_type: Their content type.
        headers: Headers to send with them.
    """

    content: bytes
    media_type: str
    headers: dict[str, str]

    @property
    def n_bytes(self) -> int:
        """Memory that they take, in bytes."""
        return len(self.content)


Published = PublishedMatrix | PublishedBytes


class MatrixRoutes:
    """Keeps what was published last, up to a limit in bytes, and serves it.

    Safe to call from many threads at once.

    Args:
        limit_bytes: Above this the entries that were not read for longest are dropped.
    """

    # 256 MB: one head of a 512-token text is 1 MB, so the last 240 maps stay.
    def __init__(self, limit_bytes: int = 256 * 10**6) -> None:
        self._limit_bytes = limit_bytes
        self._entries: OrderedDict[str, Published] = OrderedDict()
        self._n_bytes = 0
        self._lock = Lock()

    def publish(
        self,
        matrix: np.ndarray,
        *,
        row_labels: Sequence[str] = (),
        column_labels: Sequence[str] = (),
        low: float = 0.0,
        high: float = 1.0,
    ) -> str:
        """Make a matrix readable for whoever gets its id.

        Args:
            matrix: Numbers of shape (rows, columns); kept as float32.
            row_labels: One text a row, for the CSV file; may be empty.
            column_labels: One text a column, for the CSV file; may be empty.
            low: The number that the page draws as 0.
            high: The number that the page draws as 255; greater than `low`.

        Returns:
            The id for `/glassbox/matrix/{id}`.

        Raises:
            ValueError: The array is not two-dimensional, labels do not fit, or `high <= low`.
        """
        if matrix.ndim != 2:
            raise ValueError(f"a matrix has 2 axes, this has {matrix.ndim}; publish one layer")
        if high <= low:
            raise ValueError(f"high={high} must be greater than low={low}")
        for labels, length in ((row_labels, matrix.shape[0]), (column_labels, matrix.shape[1])):
            if labels and len(labels) != length:
                raise ValueError(f"{len(labels)} labels for {length} rows or columns")
        # Copied: the caller may go on writing into its array while the page reads this one.
        cells = np.array(matrix, dtype="<f4", order="C")
        return self._keep(
            PublishedMatrix(cells, low, high, tuple(row_labels), tuple(column_labels))
        )

    def publish_stack(self, stack: np.ndarray) -> str:
        """Make a stack of thumbnails readable.

        Args:
            stack: uint8 of shape (N, height, width).

        Returns:
            The id for `/glassbox/stack/{id}`.

        Raises:
            ValueError: The array is not uint8 with three axes.
        """
        if stack.ndim != 3 or stack.dtype != np.uint8:
            raise ValueError(
                f"a stack is uint8 (N, height, width), not {stack.dtype} {stack.shape}"
            )
        return self.publish_bytes(stack.tobytes(), shape=stack.shape)

    def publish_bytes(
        self,
        content: bytes,
        *,
        media_type: str = "application/octet-stream",
        shape: Sequence[int] = (),
    ) -> str:
        """Make bytes readable as they are.

        Args:
            content: The bytes.
            media_type: Their content type.
            shape: Axes to tell in the header `X-Shape`; may be empty.

        Returns:
            The id for `/glassbox/bytes/{id}` (or `/glassbox/stack/{id}`).
        """
        headers = {"X-Shape": ",".join(map(str, shape))} if shape else {}
        return self._keep(PublishedBytes(content, media_type, headers))

    def find(self, entry_id: str) -> Published | None:
        """Look an entry up and mark it as used; None when it is unknown or was dropped."""
        with self._lock:
            entry = self._entries.get(entry_id)
            if entry is not None:
                self._entries.move_to_end(entry_id)
            return entry

    def routes(self) -> list[BaseRoute]:
        """List the routes, for `launch(app_kwargs={"routes": ...})`.

        Given there, they stand before Gradio's own catch-all route and exist from the first
        request on.
        """
        return [
            Route("/glassbox/matrix/{id}.csv", self._serve_csv),
            Route("/glassbox/matrix/{id}.html", self._serve_page),
            Route("/glassbox/matrix/{id}/row/{row:int}", self._serve_row),
            Route("/glassbox/matrix/{id}", self._serve_matrix),
            Route("/glassbox/stack/{id}", self._serve_bytes),
            Route("/glassbox/bytes/{id}", self._serve_bytes),
            Route("/glassbox/plotly.js", _serve_plotly),
            Route("/glassbox/assets/{path:path}", _serve_asset),
        ]

    def _keep(self, entry: Published) -> str:
        entry_id = secrets.token_urlsafe(16)
        with self._lock:
            self._entries[entry_id] = entry
            self._n_bytes += entry.n_bytes
            # The newest stays even when it alone is over the limit: someone is about to read it.
            while self._n_bytes > self._limit_bytes and len(self._entries) > 1:
                _, dropped = self._entries.popitem(last=False)
                self._n_bytes -= dropped.n_bytes
        return entry_id

    def _matrix(self, request: Request) -> PublishedMatrix | None:
        entry = self.find(request.path_params["id"])
        return entry if isinstance(entry, PublishedMatrix) else None

    async def _serve_matrix(self, request: Request) -> Response:
        matrix = self._matrix(request)
        if matrix is None:
            return _not_found("matrix")
        shape = ",".join(map(str, matrix.cells.shape))
        headers = {**_CACHE, "X-Shape": shape, "X-Range": f"{matrix.low},{matrix.high}"}
        return Response(_to_uint8(matrix).tobytes(), 200, headers, "application/octet-stream")

    async def _serve_row(self, request: Request) -> Response:
        matrix = self._matrix(request)
        row: int = request.path_params["row"]
        if matrix is None or row >= matrix.cells.shape[0]:
            return _not_found("row")
        return Response(matrix.cells[row].tobytes(), 200, _CACHE, "application/octet-stream")

    async def _serve_csv(self, request: Request) -> Response:
        matrix = self._matrix(request)
        if matrix is None:
            return _not_found("matrix")
        # Half a second for 512 x 512 numbers: in a thread, so that other requests go on.
        text = await asyncio.get_running_loop().run_in_executor(None, partial(to_csv, matrix))
        headers = {**_CACHE, "Content-Disposition": 'attachment; filename="glassbox.csv"'}
        return Response(text, 200, headers, "text/csv; charset=utf-8")

    async def _serve_page(self, request: Request) -> Response:
        matrix = self._matrix(request)
        if matrix is None:
            return _not_found("matrix")
        make = partial(
            make_matrix_page,
            matrix.cells,
            low=matrix.low,
            high=matrix.high,
            row_labels=matrix.row_labels,
            column_labels=matrix.column_labels,
        )
        text = await asyncio.get_running_loop().run_in_executor(None, make)
        headers = {**_CACHE, "Content-Disposition": 'attachment; filename="glassbox.html"'}
        return Response(text, 200, headers, "text/html; charset=utf-8")

    async def _serve_bytes(self, request: Request) -> Response:
        entry = self.find(request.path_params["id"])
        if not isinstance(entry, PublishedBytes):
            return _not_found("bytes")
        return Response(entry.content, 200, {**_CACHE, **entry.headers}, entry.media_type)


def to_csv(matrix: PublishedMatrix) -> str:
    """Write a matrix as CSV text, with its labels.

    Numbers have 9 significant digits: enough to read the same float32 back. A label that a
    spreadsheet would take for a formula gets an apostrophe in front.
    """
    n_rows, n_columns = matrix.cells.shape
    rows = matrix.row_labels or tuple(map(str, range(n_rows)))
    columns = matrix.column_labels or tuple(map(str, range(n_columns)))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["", *map(_as_plain_text, columns)])
    for label, numbers in zip(rows, matrix.cells.tolist(), strict=True):
        writer.writerow([_as_plain_text(label), *(f"{number:.9g}" for number in numbers)])
    return text.getvalue()


def _as_plain_text(label: str) -> str:
    # Spreadsheets skip leading spaces before they look for a formula.
    starts_like_a_formula = label.startswith(_FORMULA_STARTS) or label.lstrip().startswith(
        _FORMULA_STARTS
    )
    return f"'{label}" if starts_like_a_formula else label


def _to_uint8(matrix: PublishedMatrix) -> np.ndarray:
    span = matrix.high - matrix.low
    # A NaN has no colour; it is drawn as 0 or the lowest, and the row route still says NaN.
    drawn = np.where(np.isnan(matrix.cells), max(matrix.low, 0.0), matrix.cells)
    shares = np.clip((drawn - matrix.low) / span, 0.0, 1.0)
    return np.rint(shares * 255).astype(np.uint8)


def _not_found(kind: str) -> Response:
    message = f"This {kind} is unknown or was dropped to make room; run the view again."
    return JSONResponse({"error": message}, 404, {"Cache-Control": "no-store"})


async def _serve_plotly(_: Request) -> Response:
    # Imported late: the page opens without plotly.
    import plotly

    path = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    return FileResponse(path, 200, _CACHE, "text/javascript")


async def _serve_asset(request: Request) -> Response:
    try:
        path = (ASSETS / request.path_params["path"]).resolve()
    except ValueError:  # a NUL character, which no path may hold
        return _not_found("file")
    if not path.is_relative_to(ASSETS.resolve()) or not path.is_file():
        return _not_found("file")
    # Addresses with a version never change their content; others are asked for again.
    headers = _CACHE if "v" in request.query_params else {"Cache-Control": "no-cache"}
    return FileResponse(path, 200, headers)
