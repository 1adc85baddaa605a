"""Toy translators as the page asks for them: made, and opened at any of their checkpoints.

A run of a translation is a run like any other (`explorer/runs.py`): it waits, trains, pauses and is
found again in the same way. Its checkpoints hold an encoder-decoder, which only this part opens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.datasets.translations import ToyTask, get_task
from explorer.errors import JobError
from explorer.run_records import RunSummary
from explorer.runs import Runs
from explorer.training.new_translation import make_translation_run
from explorer.training.translation_setup import TRANSLATION, TranslationSetup

if TYPE_CHECKING:
    from models.encoder_decoder import EncoderDecoder


@dataclass(frozen=True)
class Translator:
    """A checkpoint that translates.

    Args:
        model: Its weights.
        task: Its rule, and how its texts are cut.
        step: Optimiser steps that it was trained for.
    """

    model: EncoderDecoder
    task: ToyTask
    step: int


class TranslationRuns:
    """Makes runs of toy translations. Safe to use from any thread.

    Args:
        runs: All runs.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def create(self, setup: TranslationSetup, owner: str) -> str:
        """Make a run, not yet started.

        Args:
            setup: What the form says.
            owner: Id of the visitor.

        Returns:
            Its id.

        Raises:
            ConfigError: A value that cannot be used.
            DataError: The task has not so many pairs.
        """
        return make_translation_run(self._runs.root, setup, {"owner": owner}).id

    def list(self, owner: str) -> tuple[RunSummary, ...]:
        """The visitor's runs of translations, newest first."""
        return tuple(s for s in self._runs.list(owner) if s.objective == TRANSLATION)

    def newest_step(self, run_id: str) -> int | None:
        """Step of the newest checkpoint; None before the first.

        Raises:
            JobError: The run is not there.
        """
        steps = self._runs.view(run_id).summary.checkpoints
        return steps[-1] if steps else None

    def open(self, run_id: str, step: int | None = None) -> Translator:
        """Read a checkpoint.

        Args:
            run_id: The run.
            step: Of the checkpoint; None is the newest.

        Raises:
            JobError: The run is not there, translates nothing, or has no such checkpoint.
            WeightError: The checkpoint is damaged.
        """
        from explorer.training.translator import load_translator

        task = self.task(run_id)
        wanted = (self.newest_step(run_id) or 0) if step is None else step
        return Translator(load_translator(self._runs.checkpoint(run_id, wanted)), task, wanted)

    def task(self, run_id: str) -> ToyTask:
        """What a run translates.

        Raises:
            JobError: It is not there, or translates nothing.
        """
        view = self._runs.view(run_id)
        if view.config.translation is None:
            raise JobError(
                f"the run {view.summary.name} translates nothing; choose one of the panel "
                "Encoder-decoder",
                code="translation-other",
                run=view.summary.name,
            )
        return get_task(view.config.translation.task)
