"""Answers `HEAD /` at once.

Gradio asks so whether the page can be reached before it lets the program go on, and gives it three
seconds. To answer by itself it writes the whole page and throws it away, which takes a busy
computer longer: the program would end, although nothing is wrong.
"""

from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class HeadAnswer:
    """ASGI middleware that answers a request for the headers of the page.

    Args:
        app: The application behind it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on unless it asks for these headers."""
        if scope["type"] == "http" and scope["method"] == "HEAD" and scope["path"] == "/":
            await HTMLResponse()(scope, receive, send)
            return
        await self._app(scope, receive, send)
