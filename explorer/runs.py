"""The runs of all visitors: made, started, watched, stopped, opened. What the page talks to.

A run belongs to the visitor who made it; on loopback there is one owner, who sees all. Its id
cannot be guessed: who has the link may watch, and only the owner may change it.

Importing this imports no torch; a run trains in a process of its own.
"""

from __future__ import annotations

import dataclasses
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from explorer.datasets.text import read_text
from explorer.errors import JobError
from explorer.jobs.keeper import RunKeeper
from explorer.jobs.run_states import WORKING, has_worker
from explorer.memory import compute_available_bytes
from explorer.run_exports import RunExports, require_checkpoint
from explorer.run_records import (
    PrepareStep,
    RunSummary,
    RunView,
    TextFile,
    make_broken_summary,
    make_progress,
    make_summary,
    make_view,
)
from explorer.tokenizer_lab.kept import KeptTokenizers
from explorer.training.batch_windows import StepWindows, read_step_windows
from explorer.training.config_differences import find_differences
from explorer.training.estimate import Estimate, Probe, estimate_run
from explorer.training.history import RunHistory
from explorer.training.prepare import make_run
from explorer.training.run_config import RunConfig
from explorer.training.run_config_json import run_config_to_json
from explorer.training.run_folder import RUN_ID, RUNS_FOLDER, Action, RunFolder
from explorer.training.run_names import clean_run_name
from explorer.training.run_texts import (
    TextSize,
    TextSizes,
    build_tokenizer,
    configure,
    open_text,
)
from explorer.training.setup import RunSetup


class Runs:
    """All runs below one folder. Safe to use from any thread.

    Args:
        home: Folder of the app's data.
        public: Strangers can reach this host: each sees his own runs only.
        most_running: How many train at once; the others wait.
        max_text_bytes: Largest text; a larger one is refused before it is read.

    Attributes:
        exports: What can be taken away from them.
        tokenizers: Those that were uploaded or made here, for a run to use.
    """

    def __init__(
        self,
        home: Path,
        *,
        public: bool = False,
        most_running: int = 1,
        max_text_bytes: int = 200 * 10**6,
    ) -> None:
        self._root = home / RUNS_FOLDER
        self._public = public
        self._max_text_bytes = max_text_bytes
        self._keeper = RunKeeper(self._root, most_running=most_running)
        self._histories: dict[str, RunHistory] = {}
        self._configs: dict[str, RunConfig] = {}
        self.tokenizers = KeptTokenizers(home)
        self._texts = TextSizes(self.tokenizers)
        self.exports = RunExports(self.folder)
        self._lock = threading.Lock()

    # Making and estimating

    def create(
        self, setup: RunSetup, owner: str, *, cancelled: Callable[[], bool] | None = None
    ) -> Iterator[PrepareStep]:
        """Make a run, not yet started; the last step has its id.

        Args:
            setup: What the form says.
            owner: Id of the visitor.
            cancelled: Asked in between; True ends it.

        Raises:
            ExplorerError: The text or a setting cannot be used.
            Stopped: `cancelled` became true.
        """
        content = open_text(setup, self._max_text_bytes)
        yield PrepareStep(what="tokenizer")
        tokenizer = build_tokenizer(setup, content.text, self.tokenizers, cancelled=cancelled)
        about = {"owner": owner, "setup": dataclasses.asdict(setup)}

        def make_config(vocab_size: int, n_training: int, n_validation: int) -> RunConfig:
            return configure(setup, TextSize(vocab_size, n_training, n_validation))

        for step in make_run(
            self._root, content, tokenizer, make_config, about, cancelled=cancelled
        ):
            if isinstance(step, RunFolder):
                yield PrepareStep(what="ready", done=1.0, run_id=step.id)
            else:
                yield PrepareStep(what="tokens", done=step)

    def estimate(
        self,
        setup: RunSetup,
        *,
        watts: float = 65.0,
        price_per_hour: float = 0.0,
        cancelled: Callable[[], bool] | None = None,
    ) -> Estimate:
        """What a run would cost, from one step of it in a worker process.

        Args:
            setup: What the form says.
            watts: Power of this machine under load.
            price_per_hour: What an hour of it costs.
            cancelled: Asked while the text is cut; True ends it.

        Raises:
            ExplorerError: The text or a setting cannot be used, or a step could not be taken.
            Stopped: `cancelled` became true.
        """
        size = self._texts.measure(setup, self._max_text_bytes, cancelled)
        config = configure(setup, size)
        answer = self._keeper.probe(run_config_to_json(config))
        if "error" in answer:
            raise JobError(answer["error"], code=answer["code"], **answer.get("facts", {}))
        return estimate_run(
            config,
            Probe(**answer["probe"]),
            n_evaluation_batches=size.count_evaluation_batches(config),
            available_bytes=compute_available_bytes(),
            watts=watts,
            price_per_hour=price_per_hour,
        )

    # Acting

    def warm_up(self) -> None:
        """Have a process ready: the first point then comes within seconds."""
        self._keeper.begin()
        self._keeper.warm_up()

    def start(self, run_id: str, owner: str) -> None:
        """Let a run wait for its turn, from the beginning or from its last checkpoint.

        Raises:
            JobError: It is not there, or not this visitor's.
        """
        self._keeper.queue(self._find(run_id, owner))

    def pause(self, run_id: str, owner: str) -> None:
        """Save and wait, without ending the process.

        Raises:
            JobError: It does not train now, or is not this visitor's.
        """
        self._ask(run_id, owner, "pause")

    def resume(self, run_id: str, owner: str) -> None:
        """Go on after a pause, or, where its process has ended, from the last checkpoint.

        Raises:
            JobError: It is not there, or not this visitor's.
        """
        run = self._find(run_id, owner)
        if self._state(run) in WORKING:
            run.ask("run")
        else:
            self._keeper.queue(run)

    def stop(self, run_id: str, owner: str) -> None:
        """End within a step, without a further checkpoint; or leave the queue.

        Raises:
            JobError: It does not train now, or is not this visitor's.
        """
        self._stop(run_id, owner, "stop")

    def stop_and_keep(self, run_id: str, owner: str) -> None:
        """End within a step, with a last checkpoint; or leave the queue.

        Raises:
            JobError: It does not train now, or is not this visitor's.
        """
        self._stop(run_id, owner, "keep")

    def rename(self, run_id: str, name: str, owner: str) -> None:
        """Call it something else.

        Raises:
            JobError: The name is empty, or the run is not this visitor's.
        """
        run = self._find(run_id, owner)
        name = clean_run_name(name)
        if not name:
            raise JobError("a run needs a name; write one", code="run-name-empty")
        self._keeper.change_about(run, name=name)

    def delete(self, run_id: str, owner: str) -> None:
        """Delete a run with all its checkpoints.

        Raises:
            JobError: It trains now, or is not this visitor's.
        """
        run = self._find(run_id, owner)
        if not self._keeper.leave_queue(run) and has_worker(run):
            raise JobError(
                f"the run {run.title} trains now; stop it before you delete it", code="run-works"
            )
        with self._lock:
            self._histories.pop(run.id, None)
            self._configs.pop(run.id, None)
        shutil.rmtree(run.path, ignore_errors=True)
        if run.path.exists():
            raise JobError(
                f"some files of the run {run.title} cannot be deleted; close what uses them, and "
                "see who may write to its folder",
                code="run-not-deleted",
            )

    # Watching

    def list(self, owner: str) -> tuple[RunSummary, ...]:
        """The visitor's runs, newest first.

        Folders that were edited into no run are there as `broken`, so that they can be deleted; on
        a public host, where nobody knows any more whose they are, they are left out.
        """
        self._keeper.begin()
        found = []
        for run in self._keeper.list_folders():
            try:
                if self._owns(run, owner):
                    found.append(self._summarise(run))
            except JobError:
                if not self._public:
                    found.append(make_broken_summary(run))
        return tuple(sorted(found, key=lambda summary: -summary.created_at))

    def view(self, run_id: str) -> RunView:
        """A whole run, for whoever has its id.

        Raises:
            JobError: It is not there, or its files were changed.
        """
        run = self._find(run_id, None)
        summary = self._summarise(run)
        exit_code = self._keeper.exit_code(run.id) if summary.state == "interrupted" else None
        return make_view(summary, self._config(run), self._history(run), exit_code)

    def progress(self, run_id: str, since: int = 0, n_starts: int = 0) -> dict[str, Any]:
        """What a page that watches needs next; see `make_progress`.

        Raises:
            JobError: It is not there, or its files were changed.
        """
        run = self._find(run_id, None)
        return make_progress(self._summarise(run), self._history(run), since, n_starts)

    def differences(self, run_ids: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Settings in which runs differ: its path in config.json and its value in each.

        Raises:
            JobError: One is not there.
        """
        return find_differences([self._config(self._find(i, None)) for i in run_ids])

    def windows(self, run_id: str, step: int) -> StepWindows:
        """The windows of the text that a step reads.

        Raises:
            JobError: The run is not there.
            ConfigError: It has no such step.
        """
        run = self._find(run_id, None)
        return read_step_windows(run, self._config(run), step)

    def owns(self, run_id: str, owner: str) -> bool:
        """Whether the visitor may change it."""
        try:
            self._find(run_id, owner)
        except JobError:
            return False
        return True

    def folder(self, run_id: str) -> RunFolder:
        """The files of a run, for whoever has its id.

        Raises:
            JobError: It is not there.
        """
        return self._find(run_id, None)

    @property
    def root(self) -> Path:
        """Folder of all runs."""
        return self._root

    def checkpoint_source(self, run_id: str, step: int) -> str:
        """What the model store opens a checkpoint by.

        Raises:
            JobError: There is no such checkpoint.
        """
        self.checkpoint(run_id, step)
        return f"run:{run_id}@{step}"

    def read_upload(self, path: Path) -> TextFile:
        """Look at a text before it is trained on.

        Args:
            path: The uploaded file.

        Raises:
            DataError: It is missing, too large, empty, binary, or not UTF-8.
        """
        text = read_text(path, max_bytes=self._max_text_bytes, name=path.name)
        return TextFile(name=path.name, n_characters=len(text))

    def checkpoint(self, run_id: str, step: int) -> Path:
        """Folder of a checkpoint, for whoever has the id of the run.

        Raises:
            JobError: There is no such checkpoint.
        """
        return require_checkpoint(self.folder(run_id), step)

    # How it is done

    def _ask(self, run_id: str, owner: str, action: Action) -> None:
        run = self._find(run_id, owner)
        state = self._state(run)
        if state not in WORKING:
            raise JobError(
                f"the run {run.title} does not train now, it is {state}; start it first",
                code="run-not-working",
                state=state,
            )
        run.ask(action)

    def _stop(self, run_id: str, owner: str, action: Action) -> None:
        run = self._find(run_id, owner)
        if not self._keeper.leave_queue(run):
            self._ask(run_id, owner, action)

    def _find(self, run_id: str, owner: str | None) -> RunFolder:
        """A run by its id; with an owner, only if it is his."""
        run = RunFolder(self._root / run_id)
        if not RUN_ID.fullmatch(run_id) or not run.config_file.exists():
            raise JobError(
                "this run is not there: it was deleted, or its link is not complete",
                code="run-missing",
            )
        if owner is not None and not self._owns(run, owner):
            raise JobError(
                "this run belongs to another browser; you may watch it, and make one of your own",
                code="run-foreign",
            )
        return run

    def _owns(self, run: RunFolder, owner: str) -> bool:
        return not self._public or (bool(owner) and run.read_about().get("owner") == owner)

    def _state(self, run: RunFolder) -> str:
        return self._summarise(run).state

    def _summarise(self, run: RunFolder) -> RunSummary:
        about, config, history = run.read_about(), self._config(run), self._history(run)
        return make_summary(run, about, config, history, self._keeper.place(run.id))

    def _config(self, run: RunFolder) -> RunConfig:
        with self._lock:
            if run.id not in self._configs:
                self._configs[run.id] = run.read_config()
            return self._configs[run.id]

    def _history(self, run: RunFolder) -> RunHistory:
        with self._lock:
            history = self._histories.setdefault(run.id, RunHistory(run.events_file))
        history.refresh()
        return history
