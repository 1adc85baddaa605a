"""How near the estimate before Start comes to what then happens, for several sizes.

    python tests/benchmarks/estimate.py [--sizes tiny small] [--steps 60]

Estimates a run, trains it in a process of its own as the app does, and prints the ratio of the time
that it took to the estimate (wanted: 0.67 to 1.5), of its memory, and of its disk; beside them what
other programs took of the processors while the step was measured. Run it on a quiet machine.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
WATCH_EVERY_S = 0.05


def size_of(folder: Path) -> int:
    """Bytes of the checkpoints."""
    return sum(path.stat().st_size for path in folder.glob("step-*/*") if path.is_file())


def train_watched(runs, run_id: str) -> tuple[float, int]:
    """Seconds from the first event to the last, and the most memory of the process."""
    runs.start(run_id, "")
    peak, process = 0, None
    while runs.view(run_id).summary.state in ("queued", "running"):
        worker = runs._keeper._working.get(run_id)
        if process is None and worker is not None:
            process = psutil.Process(worker.pid)
        if process is not None and process.is_running():
            try:
                peak = max(peak, process.memory_info().rss)
            except psutil.NoSuchProcess:
                break
        time.sleep(WATCH_EVERY_S)
    while runs.view(run_id).summary.state != "finished":
        time.sleep(WATCH_EVERY_S)
    view = runs.view(run_id)
    return max(e.at for e in (*view.saved, *view.evaluated)) - view.started.at, peak


def compare(size: str, n_steps: int) -> None:
    from explorer.runs import Runs
    from explorer.training.run_folder import RUNS_FOLDER
    from explorer.training.setup import recommended_setup

    setup = replace(recommended_setup(size), text="village", n_steps=n_steps, warmup_steps=5)
    with tempfile.TemporaryDirectory() as home:
        runs = Runs(Path(home))
        found = runs.estimate(setup)
        *_, last = runs.create(setup, "")
        seconds, peak = train_watched(runs, last.run_id)
        disk = size_of(Path(home) / RUNS_FOLDER / last.run_id)
    print(
        f"{size}: {seconds:.1f} s, estimated {found.duration_s:.1f} s, ratio "
        f"{seconds / found.duration_s:.2f}; memory {peak / found.peak_bytes:.2f}, disk "
        f"{disk / found.disk_bytes:.2f}; others took {found.others_share:.0%} meanwhile",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["tiny", "small"])
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    for size in options.sizes:
        compare(size, options.steps)


if __name__ == "__main__":
    main()
