"""The files of a run.

    <runs>/<id>/
        config.json            everything that decides the run
        about.json             name, owner, when it was made and queued: for the page
        text.txt               the text as it came
        tokens/*.npy           token ids of the training part and of the held-out part
        tokenizer/             what cut it
        initial/               weights that it begins from, where it does not begin from nothing
        examples/*.jsonl       examples of a fine-tuning, in place of text and tokens
        events.jsonl           what happened, append-only
        control.json           what is asked of the process: go on, pause, stop, keep
        lock.json              the process that works here: who, since when, still alive
        step-00000100/         a checkpoint: a model that opens like any other, and how to go on

The id is random and cannot be guessed: whoever has it may watch.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from explorer.training.durable_files import write_json_durably
from explorer.training.run_config import RunConfig
from explorer.training.run_config_json import run_config_from_json, run_config_to_json
from models.errors import ConfigError, JobError

Action = Literal["run", "pause", "stop", "keep"]
TuningPart = Literal["training", "validation", "test"]
ACTIONS: tuple[Action, ...] = ("run", "pause", "stop", "keep")
ADAPTER_FOLDER = "adapter"  # in a checkpoint: the adapters alone, in PEFT's layout
# Below the folder of the app.
RUNS_FOLDER = "runs"
RUN_ID = re.compile(r"[A-Za-z0-9_-]{16,40}")
_CHECKPOINT_NAME = re.compile(r"step-(\d{8})")


def make_run_id() -> str:
    """A new id; 96 random bits."""
    return secrets.token_hex(12)


def checkpoint_name(step: int) -> str:
    """Name of the folder of a checkpoint."""
    return f"step-{step:08d}"


@dataclass(frozen=True)
class RunFolder:
    """Where the files of one run are.

    Args:
        path: Its folder.
    """

    path: Path

    @property
    def id(self) -> str:
        """Its name."""
        return self.path.name

    @property
    def title(self) -> str:
        """What messages call it: its name, or the beginning of its id where it has none."""
        try:
            name = self.read_about().get("name")
        except JobError:
            name = None
        return name if isinstance(name, str) and name else self.id[:8]

    @property
    def config_file(self) -> Path:
        """Everything that decides the run."""
        return self.path / "config.json"

    @property
    def about_file(self) -> Path:
        """What the page keeps about it."""
        return self.path / "about.json"

    @property
    def text_file(self) -> Path:
        """The text as it came."""
        return self.path / "text.txt"

    @property
    def tokenizer_folder(self) -> Path:
        """What cut the text."""
        return self.path / "tokenizer"

    @property
    def events_file(self) -> Path:
        """What happened."""
        return self.path / "events.jsonl"

    @property
    def control_file(self) -> Path:
        """What is asked of the process."""
        return self.path / "control.json"

    @property
    def lock_file(self) -> Path:
        """The process that works here."""
        return self.path / "lock.json"

    @property
    def log_file(self) -> Path:
        """What the process printed; for a crash that could not be written as an event."""
        return self.path / "process.log"

    def tokens_file(self, part: Literal["training", "validation"]) -> Path:
        """Token ids of a part of the text."""
        return self.path / "tokens" / f"{part}.npy"

    @property
    def initial_folder(self) -> Path:
        """Weights that it begins from; not there where it begins from nothing."""
        return self.path / "initial"

    def examples_file(self, part: TuningPart) -> Path:
        """Examples of a part of the data, of a fine-tuning."""
        return self.path / "examples" / f"{part}.jsonl"

    def reference_file(self, part: TuningPart) -> Path:
        """What the model before the first step says of preferences."""
        return self.path / "reference" / f"{part}.npy"

    def checkpoint(self, step: int) -> Path:
        """Folder of the checkpoint of that step, whether it is there or not."""
        return self.path / checkpoint_name(step)

    def checkpoint_steps(self) -> tuple[int, ...]:
        """Steps of the complete checkpoints, oldest first."""
        if not self.path.is_dir():
            return ()
        matches = [_CHECKPOINT_NAME.fullmatch(path.name) for path in self.path.iterdir()]
        return tuple(sorted(int(match[1]) for match in matches if match))

    def write_config(self, config: RunConfig) -> None:
        """Keep the configuration.

        Raises:
            OSError: It cannot be written.
        """
        write_json_durably(self.config_file, run_config_to_json(config))

    def read_config(self) -> RunConfig:
        """The configuration.

        Raises:
            JobError: There is none, or it was changed into one that cannot be.
        """
        values = self._read(self.config_file)
        try:
            return run_config_from_json(values)
        except ConfigError as error:
            raise JobError(
                f"config.json of the run {self.title} cannot be used: {error.message}; put the "
                "file back as it was, or start a new run",
                code="run-config",
                run=self.title,
                problem=error.message,
            ) from None

    def write_about(self, about: Mapping[str, Any]) -> None:
        """Keep what the page says about it.

        Raises:
            OSError: It cannot be written.
        """
        write_json_durably(self.about_file, about)

    def read_about(self) -> dict[str, Any]:
        """What the page keeps about it; empty for a folder that another program made.

        Raises:
            JobError: The file was changed into something that cannot be read.
        """
        return self._read(self.about_file) if self.about_file.exists() else {}

    def ask(self, action: Action) -> None:
        """Ask the process to go on, pause or stop; it looks between two passes.

        Raises:
            OSError: It cannot be written.
        """
        write_json_durably(self.control_file, {"action": action})

    def asked(self) -> Action:
        """What is asked of the process; `run` where nothing readable is.

        `stop` where the folder itself is gone: nobody can watch, stop or keep such a run.
        """
        try:
            action = json.loads(self.control_file.read_bytes()).get("action")
        except (OSError, ValueError, AttributeError):  # absent, or edited by hand
            return "run" if self.path.is_dir() else "stop"
        return action if action in ACTIONS else "run"

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            values = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise JobError(
                f"{self.path} has no {path.name}, so it is no run; choose the folder of a run",
                code="run-not-found",
                run=self.id,
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise self._unreadable(path, str(error)) from None
        if not isinstance(values, dict):
            raise self._unreadable(path, "it holds no object")
        return values

    def _unreadable(self, path: Path, problem: str) -> JobError:
        # the name of the run stands in the file that is most often the broken one
        title = self.id[:8] if path == self.about_file else self.title
        return JobError(
            f"{path.name} of the run {title} cannot be read ({problem}); put the file back as it "
            "was, or start a new run",
            code="run-file",
            run=title,
            file=path.name,
            problem=problem,
        )
