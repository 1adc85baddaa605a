"""The command line: defaults, a port that is taken, limits of uploads."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

import app

ROOT = Path(__file__).parent.parent.parent


def test_by_default_it_listens_to_this_machine_only() -> None:
    options = app.parse_arguments([], {})
    assert (options.host, options.port, options.public, options.model) == (
        "127.0.0.1",
        7860,
        False,
        None,
    )


@pytest.mark.parametrize("environment", [{"SPACE_ID": "a/b"}, {"SYSTEM": "spaces"}])
def test_on_a_space_it_listens_to_all_and_is_public(environment: dict[str, str]) -> None:
    options = app.parse_arguments([], environment)
    assert (options.host, options.public) == ("0.0.0.0", True)


def test_a_port_in_use_is_said_without_a_traceback() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "app.py", "--port", str(port)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert f"Port {port} is in use" in done.stderr
    assert f"--port {port + 1}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("host", "port", "remedy"),
    [
        ("127.0.0.1", 0, "1 to 65535"),
        ("127.0.0.1", 70000, "1 to 65535"),
        ("203.0.113.7", 7871, "--host"),
    ],
)
def test_other_problems_with_the_port(host: str, port: int, remedy: str) -> None:
    problem = app.find_port_problem(host, port)
    assert problem is not None
    assert remedy in problem


def test_uploads_are_limited_on_a_public_host_and_by_the_variable() -> None:
    assert app.find_upload_limit(True, {}) == 200_000_000
    assert app.find_upload_limit(False, {}) > 0
    assert app.find_upload_limit(False, {"GLASSBOX_MAX_UPLOAD": "1000"}) == 1000
    for wrong in ("200MB", "0", "-1", ""):
        with pytest.raises(ValueError, match="whole number"):
            app.find_upload_limit(True, {"GLASSBOX_MAX_UPLOAD": wrong})


def test_the_environment_is_ready_before_torch_and_gradio() -> None:
    environment = {"OMP_WAIT_POLICY": "ACTIVE"}
    app.prepare_environment(environment)
    assert environment["OMP_WAIT_POLICY"] == "ACTIVE"
    assert environment["GRADIO_ANALYTICS_ENABLED"] == "False"
    assert environment["HF_HUB_DISABLE_TELEMETRY"] == "1"
