"""Train a run without a page.

    python -m explorer.train FOLDER                 train, or go on from the last checkpoint
    python -m explorer.train --new NAME --text FILE make a run, then train it
    python -m explorer.train FOLDER --tensorboard DIR   write its numbers for another program
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
from collections.abc import Mapping, Sequence
from pathlib import Path

from explorer.cpu_share import THREADS_VARIABLE, TRAINING_SPINS, count_cores, set_waiting

# Options of a new run: fields of `RunSetup`, those that are not given stay as recommended.
SETTINGS: Mapping[str, tuple[type, str]] = {
    "size": (str, "tiny, small, medium, large or 124m (default: tiny)"),
    "style": (str, "gpt, llama, qwen3, gemma3, olmo3, moe, mla or window"),
    "recipe": (str, "recommended, or classic for the settings of the book"),
    "tokenizer": (str, "characters, bpe or gpt2"),
    "vocab_size": (int, "tokens of a vocabulary learnt from the text"),
    "context": (int, "tokens of a window"),
    "batch_size": (int, "windows of one pass"),
    "n_steps": (int, "optimiser steps"),
    "learning_rate": (float, "the highest of the schedule"),
    "dropout": (float, "share of values set to 0 in training"),
    "seed": (int, "of every draw"),
}
# What writes a run's numbers for another program: option -> its value and what it does.
EXPORTS: Mapping[str, tuple[str, str]] = {
    "csv": ("FILE", "write its numbers as CSV"),
    "tensorboard": ("DIR", "write them as a TensorBoard event file into this folder"),
    "trackio": ("PROJECT", "log them as a run of this Trackio project, where it is installed"),
}
# Chat and the page come first where they share cores with a run.
NICENESS = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, as the command line says.

    Args:
        arguments: The words after the program's name; those of this process when None.

    Returns:
        0; 1 when the run failed; 2 when there was nothing to train.
    """
    parser = _build_parser()
    options = parser.parse_args(arguments)
    if sum((options.warm, options.folder is not None, options.new is not None)) != 1:
        parser.error("give the folder of a run, --new with a name for one, or --warm")
    if options.folder is None and any(getattr(options, name) is not None for name in EXPORTS):
        parser.error("--csv, --tensorboard and --trackio want the folder of a run")
    if (options.new is None) != (options.text is None):
        parser.error("--new and --text go together")
    set_waiting(os.environ, TRAINING_SPINS)  # before torch
    if options.warm:
        return _serve_one()
    if options.new is not None:
        return _train_new(options)
    if any(getattr(options, name) is not None for name in EXPORTS):
        return _export(options)
    _let_go_on(options.folder)
    return run_folder(options.folder, options.shared_by)


def _build_parser() -> argparse.ArgumentParser:
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
    exports = parser.add_argument_group("the numbers of a run, in place of training it")
    for name, (value, words) in EXPORTS.items():
        exports.add_argument(f"--{name}", metavar=value, help=words)
    new = parser.add_argument_group("a new run")
    new.add_argument("--new", metavar="NAME", help="make a run of this name, then train it")
    new.add_argument("--text", metavar="FILE", help="what it learns from: UTF-8, or a sample text")
    new.add_argument(
        "--from",
        dest="source",
        metavar="MODEL",
        help="begin from these weights: a folder, a file or a name. The run takes the model's "
        "architecture and tokenizer; of a .pth file with an optimiser's state, that too",
    )
    for name, (kind, words) in SETTINGS.items():
        flag = name.removeprefix("n_").replace("_", "-")
        new.add_argument(f"--{flag}", dest=name, metavar=flag.upper(), type=kind, help=words)
    new.add_argument("--runs", type=Path, metavar="FOLDER", help="where runs are kept")
    return parser


def _train_new(options: argparse.Namespace) -> int:
    """Make the run that the options describe, say where it is, and train it."""
    from dataclasses import replace

    from explorer.errors import ExplorerError
    from explorer.home import find_home_folder
    from explorer.training.new_run import make_new_run
    from explorer.training.run_folder import RUNS_FOLDER
    from explorer.training.setup import recommended_setup

    try:
        given = {n: v for n in SETTINGS if (v := getattr(options, n)) is not None}
        setup = recommended_setup(
            given.get("size", "tiny"), recipe=given.get("recipe", "recommended")
        )
        if "n_steps" in given:
            given["epochs"] = 0.0
        setup = replace(setup, name=options.new, text=options.text, **given)
        runs = options.runs or find_home_folder() / RUNS_FOLDER
        folder = make_new_run(runs, setup, options.source).path
    except (ExplorerError, OSError) as error:
        print(error, file=sys.stderr, flush=True)
        return 2
    print(folder, file=sys.stderr, flush=True)
    return run_folder(folder, options.shared_by)


def _export(options: argparse.Namespace) -> int:
    """Write the numbers of a run for other programs, as the options say."""
    from explorer.errors import ExplorerError
    from explorer.training.config_differences import flatten
    from explorer.training.event_log import read_events
    from explorer.training.export import metrics_csv, send_to_trackio, write_tensorboard
    from explorer.training.run_config_json import run_config_to_json
    from explorer.training.run_folder import RunFolder

    run = RunFolder(options.folder)
    try:
        config = run_config_to_json(run.read_config())
        events = read_events(run.events_file)
        if options.csv is not None:
            Path(options.csv).write_bytes(metrics_csv(events).encode())
        if options.tensorboard is not None:
            write_tensorboard(events, Path(options.tensorboard))
        if options.trackio is not None:
            send_to_trackio(events, project=options.trackio, name=run.title, config=flatten(config))
    except (ExplorerError, OSError) as error:
        print(error, file=sys.stderr, flush=True)
        return 2
    return 0


def _let_go_on(folder: Path) -> None:
    """A run that was stopped is asked to go on; one that another process trains is left alone."""
    from explorer.jobs.run_states import has_worker
    from explorer.training.run_folder import RunFolder

    run = RunFolder(folder)
    if os.environ.get("RANK", "0") == "0" and run.config_file.exists() and not has_worker(run):
        run.ask("run")


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
    except (ExplorerError, OSError) as error:
        print(error, file=sys.stderr, flush=True)
        return 2
    return int(failed)


def _set_threads(folder: Path) -> None:
    import torch

    from explorer.training.run_folder import RunFolder

    n_threads = RunFolder(folder).read_config().n_threads
    if n_threads:
        torch.set_num_threads(n_threads)
    elif THREADS_VARIABLE not in os.environ:  # in a container: not those of the whole machine
        torch.set_num_threads(min(torch.get_num_threads(), count_cores()))


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
