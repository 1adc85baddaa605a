"""Train a run without a page.

    python -m explorer.train FOLDER                 train, or go on from the last checkpoint
    torchrun --nproc-per-node 4 -m explorer.train FOLDER        the same on several devices
    python -m explorer.train --warm                 wait for a folder on standard input

The page starts the last form ahead of time: importing torch takes seconds, and a run that is to
begin at once finds a process that has done it. Such a process takes one line

    {"do": "train", "folder": "..."}    train that run, then end
    {"do": "probe", "config": {...}}    measure one step, answer with a line of JSON, wait again

and ends when nobody can ask it any more. Once it trains it asks nobody: it outlives the page.
"""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# Chat and the page come first where they share cores with a run.
NICENESS = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, as the command line says.

    Args:
        arguments: The words after the program's name; those of this process when None.

    Returns:
        0; 1 when the run failed; 2 when there was nothing to train.
    """
    parser = argparse.ArgumentParser(
        prog="python -m explorer.train", description="Train a run, or go on with it."
    )
    parser.add_argument("folder", nargs="?", type=Path, help="folder of the run")
    parser.add_argument("--warm", action="store_true", help="wait for a folder on standard input")
    parser.add_argument(
        "--shared-by",
        choices=("ddp", "fsdp"),
        default="ddp",
        help="under torchrun: each process holds the whole model, or a part (default: ddp)",
    )
    options = parser.parse_args(arguments)
    if options.warm == (options.folder is not None):
        parser.error("give the folder of a run, or --warm")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch; see app.py
    if options.warm:
        return _serve_one()
    return run_folder(options.folder, options.shared_by)


def run_folder(folder: Path, shared_by: str = "ddp") -> int:
    """Train one run and print what happens, a line each.

    Args:
        folder: Its folder.
        shared_by: How the processes of `torchrun` share the model.

    Returns:
        0; 1 when the run failed; 2 when it could not be begun.
    """
    from explorer.errors import ExplorerError
    from explorer.training.events import Failed, event_to_json
    from explorer.training.loop import train

    failed = False
    try:
        _set_threads(folder)
        is_first = os.environ.get("RANK", "0") == "0"
        for event in train(folder, shared_by="fsdp" if shared_by == "fsdp" else "ddp"):
            if is_first:
                print(json.dumps(event_to_json(event), ensure_ascii=False), flush=True)
            failed = isinstance(event, Failed)
    except ExplorerError as error:
        print(error.message, file=sys.stderr, flush=True)
        return 2
    return int(failed)


def _set_threads(folder: Path) -> None:
    import torch

    from explorer.training.run_folder import RunFolder

    n_threads = RunFolder(folder).read_config().n_threads
    if n_threads:
        torch.set_num_threads(n_threads)


def _serve_one() -> int:
    from explorer.training import estimate, loop  # noqa: F401 this is what takes the time

    _step_back()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "train":
            folder = Path(request["folder"])
            _send_output_to(folder / "process.log")
            return run_folder(folder)
        print(json.dumps(estimate.answer_probe(request)), flush=True)
    return 0


def _step_back() -> None:
    """Let the page and its chat go first.

    Linux may share the processor between sessions before it looks at niceness (`sched(7)`,
    autogroups), and this process has a session of its own: its group has to be nice as well.
    """
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with contextlib.suppress(OSError):  # a system without autogroups
        Path("/proc/self/autogroup").write_text(str(NICENESS), encoding="ascii")


def _send_output_to(path: Path) -> None:
    """Whoever started this process may end before it: its pipes would break."""
    with path.open("ab") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    with contextlib.suppress(OSError), open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())


if __name__ == "__main__":
    sys.exit(main())
