"""How long the app takes to a served page, beside an empty Gradio app, in turns.

    python tests/benchmarks/start.py [rounds]

Prints each start and the difference of the medians (limit: 2 s). Run it on a quiet machine;
recorded results are in results.md.
"""

import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PROJECT = Path(__file__).parents[2]
EMPTY = """
import sys, gradio as gr
with gr.Blocks() as demo:
    gr.Markdown("empty")
demo.launch(server_name="127.0.0.1", server_port=int(sys.argv[1]), ssr_mode=False, quiet=True)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def seconds_to_page(command, port):
    """From starting the process to the first page answered."""
    environment = {**os.environ, "GRADIO_ANALYTICS_ENABLED": "False"}
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.DEVNULL)
    try:
        while time.perf_counter() - start < 120:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).read()
                return time.perf_counter() - start
            except OSError:
                time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    raise TimeoutError("no page within two minutes")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    times = {"empty": [], "glassbox": []}
    for _ in range(rounds):
        port = free_port()
        times["empty"].append(seconds_to_page([sys.executable, "-c", EMPTY, str(port)], port))
        port = free_port()
        command = [sys.executable, "app.py", "--port", str(port)]
        times["glassbox"].append(seconds_to_page(command, port))
        print({name: round(values[-1], 2) for name, values in times.items()})
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(
        f"median: {medians['empty']:.2f} s empty, {medians['glassbox']:.2f} s Glassbox, "
        f"{medians['glassbox'] - medians['empty']:+.2f} s (limit: +2 s)"
    )


if __name__ == "__main__":
    main()
