"""Glassbox: look inside language models, in the browser.

`python app.py` serves the page on this machine; `python app.py --help` lists the options. Only the
command line is read here; the page is built in `components/`.
"""

import argparse
import errno
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence

from explorer.cpu_share import APP_SPINS, set_waiting

# Largest upload on a public host unless GLASSBOX_MAX_UPLOAD says otherwise: 200 MB.
PUBLIC_UPLOAD_BYTES = 200 * 10**6


def parse_arguments(arguments: Sequence[str], environment: Mapping[str, str]) -> argparse.Namespace:
    """Read the command line; on a Hugging Face Space the defaults are those that a Space needs.

    Args:
        arguments: The words after the program's name.
        environment: The environment variables.

    Returns:
        `host`, `port`, `model`, `public`.
    """
    on_space = "SPACE_ID" in environment or environment.get("SYSTEM") == "spaces"
    parser = argparse.ArgumentParser(
        prog="app.py", description="Look inside language models, in the browser."
    )
    parser.add_argument(
        "--host",
        default="0.0.0.0" if on_space else "127.0.0.1",
        help="network interface to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--port", type=int, default=7860, help="port to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--model", help="model to open first: catalogue id, Hugging Face id, folder or file"
    )
    parser.add_argument(
        "--public",
        action="store_true",
        default=on_space,
        help="rules for strangers: no local paths, uploads of at most 200 MB "
        "(another limit in bytes: GLASSBOX_MAX_UPLOAD)",
    )
    return parser.parse_args(arguments)


def prepare_environment(environment: dict[str, str] | os._Environ[str]) -> None:
    """Set what must be set before torch and gradio are imported.

    Args:
        environment: The environment variables, changed in place.
    """
    set_waiting(environment, APP_SPINS)
    # Gradio would look up its own host and the Hub at start.
    environment["GRADIO_ANALYTICS_ENABLED"] = "False"
    environment["HF_HUB_DISABLE_TELEMETRY"] = "1"


def find_port_problem(host: str, port: int) -> str | None:
    """Try the port, and say in one sentence what is wrong with it, or None.

    Args:
        host: Network interface.
        port: TCP port.

    Returns:
        What was asked, what was found and what to do; None when the port is free.
    """
    if not 0 < port < 65536:
        return f"Port {port} does not exist; choose one from 1 to 65535 with --port."
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if os.name != "nt":
            # As the server does it: a port that was closed a moment ago counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return _explain_bind_error(host, port, error)
    return None


def _explain_bind_error(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} is in use on {host}, perhaps by another Glassbox; "
            f"close that program, or choose another port: python app.py --port {port + 1}"
        )
    if error.errno == errno.EACCES:
        return f"Port {port} needs administrator rights; choose one above 1023 with --port."
    return f"Cannot listen on {host}:{port}: {error.strerror or error}; check --host and --port."


def find_upload_limit(public: bool, environment: Mapping[str, str]) -> int:
    """Find the largest file that may be uploaded, in bytes.

    Args:
        public: Whether strangers may be on the page.
        environment: The environment variables.

    Returns:
        What GLASSBOX_MAX_UPLOAD says; else 200 MB on a public host and the free disk on others.

    Raises:
        ValueError: GLASSBOX_MAX_UPLOAD is no positive whole number.
    """
    asked = environment.get("GLASSBOX_MAX_UPLOAD")
    if asked is not None:
        if not asked.isdecimal() or int(asked) == 0:
            raise ValueError(
                f"GLASSBOX_MAX_UPLOAD={asked!r} is not a number of bytes; "
                "write a whole number such as 200000000."
            )
        return int(asked)
    return PUBLIC_UPLOAD_BYTES if public else shutil.disk_usage(tempfile.gettempdir()).free


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the page until it is stopped.

    Args:
        arguments: The words after the program's name; those of this process when None.

    Returns:
        The exit code: 0, or 2 when it could not start.
    """
    options = parse_arguments(sys.argv[1:] if arguments is None else arguments, os.environ)
    prepare_environment(os.environ)
    problem = find_port_problem(options.host, options.port)
    if problem is not None:
        print(problem, file=sys.stderr)
        return 2
    try:
        limit = find_upload_limit(options.public, os.environ)
        _serve(options, limit)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _serve(options: argparse.Namespace, max_upload_bytes: int) -> None:
    # Imported only now: these bring in gradio, which takes 5 seconds, and --help needs none of it.
    from components.context import Settings
    from components.launch import Endpoint, launch_page
    from components.shell import build_page
    from explorer.errors import ServerError
    from explorer.home import find_home_folder
    from explorer.openai_server import find_server_rule
    from explorer.store import ModelStore
    from explorer.uploads import Uploads

    try:
        find_server_rule(options.public)
    except ServerError as error:
        raise ValueError(error.message) from error
    store = ModelStore(
        public=options.public,
        operator_sources=() if options.model is None else (options.model,),
        uploads=Uploads(find_home_folder(), max_bytes=max_upload_bytes),
    )
    settings = Settings(options.public, max_upload_bytes, options.model)
    demo, ctx = build_page(store, settings)
    launch_page(demo, ctx, Endpoint(options.host, options.port))


if __name__ == "__main__":
    sys.exit(main())
