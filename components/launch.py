"""How the page is served: settings for Gradio, and where to listen."""

from dataclasses import dataclass
from typing import Any

from starlette.middleware import Middleware

from components.context import AppContext
from components.early_head import EarlyHead, make_early_head
from components.head_answer import HeadAnswer
from components.kit.view_assets import view_routes
from components.next_routes import NextRoutes
from components.pages import TabAddress, TabPages
from components.run_routes import RunRoutes
from components.text import ASSETS
from components.theme import build_theme


@dataclass(frozen=True)
class Endpoint:
    """Where the page listens.

    Args:
        host: Address of the network interface.
        port: TCP port.
    """

    host: str
    port: int


def launch_options(demo: TabPages, ctx: AppContext, endpoint: Endpoint) -> dict[str, Any]:
    """List the settings of `Blocks.launch`.

    Args:
        demo: The page.
        ctx: The page's context.
        endpoint: Where to listen.

    Returns:
        Its keyword arguments.
    """
    return {
        "server_name": endpoint.host,
        "server_port": endpoint.port,
        "app_kwargs": {
            "middleware": [
                Middleware(HeadAnswer),
                Middleware(TabAddress, tab_ids=demo.tab_ids()),
                Middleware(EarlyHead, html=make_early_head(ctx.words)),
            ],
            "routes": [
                *RunRoutes(ctx.runs).routes(),
                *NextRoutes(ctx.results, ctx.words).routes(),
                *ctx.routes.routes(),
                *view_routes(ctx.words),
            ],
        },
        "theme": build_theme(),
        "i18n": ctx.words.translations,
        "favicon_path": str(ASSETS / "favicon.svg"),
        "max_file_size": ctx.settings.max_upload_bytes,
        "footer_links": ["api", "settings"],
        "ssr_mode": False,
        "share": False,
        "enable_monitoring": False,
        "run_history": False,
    }


def launch_page(demo: TabPages, ctx: AppContext, endpoint: Endpoint, **extra: Any) -> str:
    """Serve the page.

    Args:
        demo: The page.
        ctx: Its context.
        endpoint: Where to listen.
        **extra: Further settings of `Blocks.launch`, such as `prevent_thread_lock=True`.

    Returns:
        The local address, once the server has ended or when it runs in a thread.
    """
    # Handlers are unlimited here: explorer gives out the device by turns, a pass at a time.
    demo.queue(default_concurrency_limit=None)
    _, url, _ = demo.launch(**{**launch_options(demo, ctx, endpoint), **extra})
    return str(url)
