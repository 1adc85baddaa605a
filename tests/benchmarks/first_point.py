"""How soon a tiny run shows its first point after Start, by the API of the page: warm and cold.

    python tests/benchmarks/first_point.py [--rounds 3]

Starts the app as a user does, lets the training process warm up as the panel "setup" does, and
asks for the run as the page does, every 0.1 s, until it has a point. Prints both times of each
round, the rate of updates and their size (wanted: 3 s warm, 10 s cold, two updates a second, each
under 20 KB). Run it on a quiet machine.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from start import PROJECT, free_port

ASK_EVERY_S = 0.1
WATCHED_S = 5.0
PATIENCE_S = 180.0


def wait_for_page(url: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=5).read()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("no page")


def ask(url: str, run_id: str, since: int = 0) -> tuple[dict, int]:
    with urllib.request.urlopen(f"{url}glassbox/run/{run_id}?since={since}&starts=1") as answer:
        content = answer.read()
    return json.loads(content), len(content)


def first_point_s(client, url: str) -> tuple[float, str]:
    """From the press of Start to the first point of its curve."""
    begun = time.perf_counter()
    run_id = client.predict(n_steps=400, api_name="/pretrain_start")["id"]
    while time.perf_counter() - begun < PATIENCE_S:
        if ask(url, run_id)[0]["have"]:
            return time.perf_counter() - begun, run_id
        time.sleep(ASK_EVERY_S)
    raise TimeoutError("no point")


def watch(url: str, run_id: str) -> str:
    """How often there was something new, and the largest answer."""
    seen, largest, changes = -1, 0, 0
    end = time.perf_counter() + WATCHED_S
    while time.perf_counter() < end:
        found, n_bytes = ask(url, run_id, max(seen, 0))
        changes += found["have"] > seen
        seen, largest = max(seen, found["have"]), max(largest, n_bytes)
        time.sleep(ASK_EVERY_S)
    return f"{changes / WATCHED_S:.1f} updates/s, at most {largest:,} bytes each"


def wait_for_end(run: Path) -> None:
    """A run outlives its app: one that goes on would slow the next round down."""
    deadline = time.monotonic() + PATIENCE_S
    while (run / "lock.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)


def one_round(home: str, *, warm: bool) -> None:
    from gradio_client import Client

    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    command = [sys.executable, "app.py", "--port", str(port)]
    environment = {**os.environ, "GLASSBOX_HOME": home, "GRADIO_ANALYTICS_ENABLED": "False"}
    app = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_for_page(url)
        client = Client(url, verbose=False)
        if warm:  # an estimate ends when the process is there, and leaves it warm
            client.predict(api_name="/pretrain_estimate")
        seconds, run_id = first_point_s(client, url)
        print(f"{'warm' if warm else 'cold'}: {seconds:.2f} s; {watch(url, run_id)}", flush=True)
        client.predict(run_id, False, api_name="/pretrain_stop")
        wait_for_end(Path(home) / "runs" / run_id)
    finally:
        app.send_signal(signal.SIGTERM)
        app.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for _ in range(options.rounds):
        for warm in (True, False):
            with tempfile.TemporaryDirectory() as home:
                one_round(str(Path(home)), warm=warm)


if __name__ == "__main__":
    main()
