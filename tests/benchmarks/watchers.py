"""What ten pupils cost who watch one run: its speed with and without them, in turns of one run.

    python tests/benchmarks/watchers.py [--watchers 10] [--rounds 6] [--round-s 8]

The run is the tiny preset in a process of its own; the pages are threads of a third process that
ask the real route every 0.4 s, as the script of the page does. Prints the median tokens/s of both
kinds of rounds and the cost of watching (at most 5 % is wanted). Run it on a quiet machine.
"""

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
ASK_EVERY_S = 0.4


def watch(address: str, watching, end) -> None:
    """Ten pages, each with what it has so far."""
    import json

    since = starts = 0
    while not end.is_set():
        if watching.is_set():
            url = f"{address}?since={since // 20 * 20}&starts={starts}"
            found = json.loads(urllib.request.urlopen(url, timeout=10).read())
            since, starts = found["have"], found["n_starts"]
        time.sleep(ASK_EVERY_S)


def pupils(address: str, n: int, watching, end) -> None:
    threads = [threading.Thread(target=watch, args=(address, watching, end)) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def serve(runs) -> tuple[object, int]:
    """The route of the page, by the server of the page."""
    import uvicorn
    from starlette.applications import Starlette

    from components.run_routes import RunRoutes

    app = Starlette(routes=RunRoutes(runs).routes())
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return server, server.servers[0].sockets[0].getsockname()[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--watchers", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--round-s", type=float, default=8.0)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from explorer.runs import Runs
    from explorer.training.setup import RunSetup

    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        *_, last = runs.create(replace(RunSetup(), n_steps=100_000), "")
        run_id = last.run_id
        runs.start(run_id, "")
        while runs.progress(run_id)["have"] < 20:
            time.sleep(0.2)
        _, port = serve(runs)
        watching, end = multiprocessing.Event(), multiprocessing.Event()
        address = f"http://127.0.0.1:{port}/glassbox/run/{run_id}"
        process = multiprocessing.Process(
            target=pupils, args=(address, options.watchers, watching, end)
        )
        process.start()
        speeds = {True: [], False: []}
        for i in range(2 * options.rounds):
            watched = bool(i % 2)
            (watching.set if watched else watching.clear)()
            time.sleep(1.0)
            before = runs.view(run_id)
            time.sleep(options.round_s)
            after = runs.view(run_id)
            new = after.durations_s[len(before.durations_s) :]
            speeds[watched].append(after.started.tokens_per_step / statistics.median(new))
        end.set()
        process.join()
        runs.stop(run_id, "")
        while runs.view(run_id).summary.state == "stopping":
            time.sleep(0.2)
    alone, watched = statistics.median(speeds[False]), statistics.median(speeds[True])
    print(f"alone {alone:,.0f} tokens/s, {options.watchers} watchers {watched:,.0f} tokens/s")
    print(f"watching costs {100 * (1 - watched / alone):.1f} %")


if __name__ == "__main__":
    main()
