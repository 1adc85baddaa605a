"""The training loop: `train(folder)` yields what happens, and writes it down.

    take B x accumulate windows ─► loss ─► gradients ─► finite? ─► clip ─► update at the rate
            ▲                                                               of the schedule
            └── evaluate, sample, save when it is time ◄── what is asked? ◄────────┘

Whoever iterates does the training; closing the generator saves and ends it. A request (pause, stop)
is obeyed between two steps. Nothing here draws from torch's global generator.
"""

from __future__ import annotations

import errno
import sys
import time
import traceback
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch

from explorer.training.best_step import find_best
from explorer.training.checkpoint import restore_newest, save_checkpoint
from explorer.training.devices import (
    choose_device,
    is_out_of_memory,
    measure_peak_flops,
    name_device,
)
from explorer.training.distributed import (
    Processes,
    SharedBy,
    connect,
    disconnect,
    hear_first,
)
from explorer.training.evaluate import compute_mean_loss, compute_mean_scores
from explorer.training.event_log import EventLog, read_events
from explorer.training.events import (
    Evaluated,
    Event,
    Failed,
    Finished,
    Paused,
    Resumed,
    Sampled,
    Saved,
    Scored,
    Started,
    Step,
    StopReason,
)
from explorer.training.initial_weights import begin_from_initial
from explorer.training.learner import load_learner
from explorer.training.objectives import objective_of
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import ACTIONS, Action, RunFolder
from explorer.training.run_lock import hold_lock
from explorer.training.samples import SampleWriter
from explorer.training.schedules import compute_learning_rate
from explorer.training.steps import NotFinite, take_step
from explorer.training.training_state import TrainingState, make_state
from models.errors import ExplorerError

E = TypeVar("E", bound=Event)
PAUSE_CHECK_S = 0.1
# Written at the start and taken away when the disk is full: room to say so.
RESERVE_BYTES = 64 * 1024
# Events that a power cut may not take back.
DURABLE = (Started, Saved, Finished, Failed, Paused)
BACKWARD_COST = 2  # gradients by inputs and by weights: two products for each one of the forward


def train(folder: Path, *, shared_by: SharedBy = "ddp") -> Generator[Event, None, None]:
    """Train a run from where it is to its end.

    Args:
        folder: The run's folder: config.json, tokens, tokenizer.
        shared_by: Under `torchrun`: whether each process holds the whole model or a part.

    Yields:
        What happens, after it was written to events.jsonl. A fault of the run is yielded as
        `Failed`, not raised.

    Raises:
        JobError: It is no run, or another process works on it.
        OSError: The folder cannot be written to.
    """
    run = RunFolder(folder)
    config = run.read_config()
    processes = connect(choose_device(config.device).type)
    try:
        with _write_alone(run, processes) as log:
            loop = TrainingLoop(run, config, log, processes, shared_by)
            with closing(loop.run_guarded()) as events:
                yield from events
    finally:
        disconnect(processes)


@contextmanager
def _write_alone(run: RunFolder, processes: Processes) -> Iterator[EventLog | None]:
    """The lock and the log, for the first of the processes that share a run."""
    if not processes.is_first:
        yield None
        return
    with hold_lock(run.lock_file), EventLog(run.events_file) as log:
        yield log


class TrainingLoop:
    """One process's work on a run.

    Args:
        run: Its files.
        config: What to do.
        log: Where events go; None in all processes but the first.
        processes: Those that share the run.
        shared_by: How.
    """

    def __init__(
        self,
        run: RunFolder,
        config: RunConfig,
        log: EventLog | None,
        processes: Processes,
        shared_by: SharedBy,
    ) -> None:
        self._run = run
        self._config = config
        self._log = log
        self._processes = processes
        self._shared_by = shared_by
        self._reserve = run.path / f".reserve-{processes.rank}"
        self._seen: frozenset[type[Event]] = frozenset()

    def run_guarded(self) -> Generator[Event, None, None]:
        """The whole work; faults become `Failed`."""
        step = 0
        try:
            self._reserve.write_bytes(bytes(RESERVE_BYTES))
            with closing(self._run_all()) as events:
                for event in events:
                    step = event.step
                    yield event
        except NotFinite as error:
            if error.weights_are_finite:
                yield from self._save_good(step)
            yield self._fail(error, step)
        except Exception as error:  # the event is how a run says what went wrong
            yield self._fail(error, step)
        finally:
            self._reserve.unlink(missing_ok=True)

    def _run_all(self) -> Generator[Event, None, None]:
        self._open()
        yield self._start()
        saved_step = self._state.step if self._resumed else -1
        try:
            yield from self._look()
            while self._state.step < self._config.n_steps:
                reason = yield from self._obey()
                if reason is not None:
                    yield self._note(Finished, reason=reason)
                    return
                self._seen = frozenset()
                yield self._step()
                yield from self._look()
                if 0 < self._config.watch.patience <= self._best.n_worse:
                    yield self._note(Finished, reason="patience")
                    return
            yield self._note(Finished, reason="done")
        except GeneratorExit:
            if self._state.step != saved_step:
                self._save()
            raise

    def _open(self) -> None:
        config = self._config
        self._objective = objective_of(config)
        self._data = self._objective.open_data(self._run, config)
        self._samples = SampleWriter(self._run, config)
        self._state = self._make_state()
        earlier = read_events(self._run.events_file)
        restored = restore_newest(self._run, self._state)
        if restored.damaged and restored.step is None:
            self._state = self._make_state()
        if restored.step is None and config.tuning is None:
            begin_from_initial(self._run, self._state)
        step = self._state.step
        self._best = find_best(e for e in earlier if e.step <= step)
        self._resumed = restored.step is not None
        self._damaged = restored.damaged
        self._lost_steps = max(0, max((e.step for e in earlier), default=0) - step)
        # a run that was closed between a step and its evaluation still owes it
        self._seen = frozenset(type(e) for e in earlier if self._resumed and e.step == step)

    def _make_state(self) -> TrainingState:
        return make_state(
            self._config,
            self._data,
            self._processes,
            shared_by=self._shared_by,
            learner=load_learner(self._run, self._config, self._processes.device),
        )

    def _start(self) -> Event:
        config, feed = self._config, self._state.feed
        dtype = torch.bfloat16 if config.precision == "bfloat16" else torch.float32
        return self._note(
            Started,
            n_steps=config.n_steps,
            n_parameters=config.n_parameters,
            n_training_tokens=self._data.training.n_tokens,
            n_validation_tokens=self._data.validation.n_tokens,
            tokens_per_step=config.data.tokens_per_step,
            steps_per_epoch=max(1, feed.batches_per_epoch // config.data.accumulate),
            flops_per_token=float(config.forward_operations * (1 + BACKWARD_COST)),
            peak_flops_per_s=measure_peak_flops(self._processes.device, dtype),
            device=name_device(self._processes.device),
            n_processes=self._processes.world,
            lost_steps=self._lost_steps,
            damaged=self._damaged,
        )

    def _step(self) -> Event:
        config, state = self._config, self._state
        rate = compute_learning_rate(config.optimiser, config.schedule, state.step, config.n_steps)
        begun = time.perf_counter()
        result = take_step(state, config, self._objective.compute_loss_sum, rate)
        return self._note(
            Step,
            epoch=state.feed.epoch,
            tokens=state.tokens,
            loss=result.loss,
            learning_rate=rate,
            gradient_norm=result.gradient_norm,
            duration_s=time.perf_counter() - begun,
        )

    def _look(self) -> Generator[Event, None, None]:
        """Evaluate, sample and save, where it is time: at the start, at intervals, at the end."""
        watch, step, is_best = self._config.watch, self._state.step, False

        def due(kind: type[Event], every: int) -> bool:
            ends = step in (0, self._config.n_steps)
            return kind not in self._seen and (ends or (every > 0 and step % every == 0))

        with self._state.averaged():
            if due(Evaluated, watch.evaluate_every):
                evaluated = self._evaluate()
                yield evaluated
                yield from self._score()
                is_best = self._best.take(evaluated)
            if due(Sampled, watch.sample_every):
                yield from self._sample()
        if due(Saved, watch.save_every) or (is_best and watch.keep_best):
            yield self._save()

    def _evaluate(self) -> Evaluated:
        begun = time.perf_counter()
        training_loss, validation_loss = (
            compute_mean_loss(
                self._state.model,
                part,
                self._objective.compute_loss_sum,
                batch_size=self._config.data.batch_size,
                most_batches=self._config.watch.evaluation_batches,
            )
            for part in (self._data.training, self._data.validation)
        )
        return self._note(
            Evaluated,
            tokens=self._state.tokens,
            training_loss=training_loss,
            validation_loss=validation_loss,
            duration_s=time.perf_counter() - begun,
        )

    def _score(self) -> Generator[Event, None, None]:
        """What the objective measures besides its loss, on the held-out part."""
        if self._objective.compute_scores is None:
            return
        scores = compute_mean_scores(
            self._state.model,
            self._data.validation,
            self._objective.compute_scores,
            batch_size=self._config.data.batch_size,
            most_batches=self._config.watch.evaluation_batches,
        )
        for name, value in scores.items():
            yield self._note(Scored, name=name, value=value)

    def _sample(self) -> Generator[Event, None, None]:
        lengths = []
        for prompt, text, copied in self._samples.write(self._state.model):
            lengths.append(self._samples.count_tokens(text))
            yield self._note(
                Sampled,
                prompt=prompt,
                text=text,
                copied=copied or (),
                searched=copied is not None,
            )
        if lengths and self._config.tuning is not None:
            yield self._note(Scored, name="answer_tokens", value=sum(lengths) / len(lengths))

    def _save(self) -> Event:
        begun = time.perf_counter()
        saved = save_checkpoint(
            self._run,
            self._state,
            self._samples.tokenizer,
            keep=self._config.watch.keep,
            best=self._best.step if self._config.watch.keep_best else None,
            tuning=self._config.tuning,
        )
        duration_s = time.perf_counter() - begun
        return self._note(Saved, folder=saved.name, n_bytes=saved.n_bytes, duration_s=duration_s)

    def _save_good(self, step: int) -> Generator[Event, None, None]:
        """Keep the weights of before a step that went wrong; on a full disk the older ones stay."""
        try:
            yield self._save()
        except (ExplorerError, OSError) as error:
            print(f"the weights of step {step} could not be kept: {error}", file=sys.stderr)

    def _obey(self) -> Generator[Event, None, StopReason | None]:
        """Do what is asked; returns why the run ends, or None."""
        action = self._asked()
        if action == "pause":
            yield self._save()
            yield self._note(Paused)
            while (action := self._asked()) == "pause":
                time.sleep(PAUSE_CHECK_S)
            if action == "run":
                yield self._note(Resumed)
        if action == "keep":
            yield self._save()
        reasons: dict[str, StopReason] = {"stop": "stopped", "keep": "kept"}
        return reasons.get(action)

    def _asked(self) -> Action:
        """What is asked, in all processes the same: one that stops alone leaves others waiting."""
        mine = ACTIONS.index(self._run.asked()) if self._processes.is_first else 0
        return ACTIONS[hear_first(mine, self._processes)]

    def _fail(self, error: Exception, step: int) -> Event:
        self._reserve.unlink(missing_ok=True)
        code, message = _explain(error)
        steps = self._run.checkpoint_steps()
        return self._write(
            Failed(
                step=step,
                at=time.time(),
                code=code,
                message=message,
                tensor=error.tensor if isinstance(error, NotFinite) else "",
                last_good=self._run.checkpoint(steps[-1]).name if steps else "",
            )
        )

    def _note(self, kind: type[E], **values: Any) -> E:
        """Write an event of this moment down."""
        return self._write(kind(step=self._state.step, at=time.time(), **values))

    def _write(self, event: E) -> E:
        if self._log is not None:
            self._log.append(event, durable=isinstance(event, DURABLE))
        return event


def _explain(error: Exception) -> tuple[str, str]:
    """Code and English sentence of a fault."""
    if isinstance(error, NotFinite):
        return "run-not-finite", str(error)
    if isinstance(error, ExplorerError):
        return error.code or "run-fault", error.message
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "run-disk-full", (
            "the disk is full; free some space, then resume: nothing before the last checkpoint is "
            "lost"
        )
    if isinstance(error, OSError) and error.errno != errno.ENOMEM:
        return "run-not-written", (
            f"the files of the run cannot be written ({error}); see to its folder, then resume: "
            "nothing before the last checkpoint is lost"
        )
    if is_out_of_memory(error):
        return "run-out-of-memory", (
            "memory ran out; choose a smaller batch, a shorter context or a smaller model"
        )
    traceback.print_exception(error, file=sys.stderr)
    return "run-fault", f"{type(error).__name__}: {error}"
