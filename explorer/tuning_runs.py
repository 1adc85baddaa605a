"""Fine-tuned models as the page asks for them: made from a data set and a model, and looked at.

A run of fine-tuning is a run like any other (`explorer/runs.py`): it waits, trains, pauses and is
found again in the same way. What is its own: it begins from a model, learns from examples, and can
be the model that another one begins from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from explorer.checkpoint_sources import RUN_PREFIX, find_checkpoint, run_of
from explorer.datasets.examples import Example
from explorer.errors import JobError, SourceError
from explorer.number_formats import split_dtype
from explorer.run_records import RunSummary
from explorer.runs import Runs
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import TuningPart
from explorer.training.translation_setup import TRANSLATION
from explorer.training.tuning_config import TuningConfig
from explorer.training.tuning_setup import TuningSetup
from explorer.tuning_data import DataSets, DataSettings, DataView

if TYPE_CHECKING:
    from explorer.training.learner import LoadedClassifier
    from explorer.tuning_scores import Turn
    from models.loading import LoadedModel

OTHERS = ("pretrain", TRANSLATION)  # objectives that begin from nothing


class ModelSource(Protocol):
    """What lends models; see `explorer.store`."""

    def lease(self, source: str, owner: str) -> AbstractContextManager[LoadedModel]:
        """The loaded model, protected from eviction inside the block."""


@dataclass(frozen=True, kw_only=True)
class LineageNode:
    """A model in the tree of who came from whom.

    Args:
        source: What the store opens it by.
        name: For the page.
        objective: How it was made; empty for one that was there before.
        depth: Steps from its root.
        parent: Source of the model it began from, or empty.
        loss: Its lowest held-out loss, or None.
    """

    source: str
    name: str
    objective: str
    depth: int
    parent: str
    loss: float | None


class TuningRuns:
    """Makes runs of fine-tuning. Safe to use from any thread.

    Args:
        runs: All runs.
        store: Lends the models they begin from.
    """

    def __init__(self, runs: Runs, store: ModelSource) -> None:
        self._runs = runs
        self._store = store
        self.data = DataSets()

    def create(
        self, setup: TuningSetup, view: DataView, settings: DataSettings, source: str, owner: str
    ) -> str:
        """Make a run, not yet started.

        Args:
            setup: What the form says.
            view: The data.
            settings: How it was read, kept with the run.
            source: The model it begins from.
            owner: Id of the visitor.

        Returns:
            Its id.

        Raises:
            ExplorerError: Model, data and settings do not go together.
        """
        from explorer.training.new_tuning import make_tuning_run

        kept = dataclasses.asdict(dataclasses.replace(settings, typed=settings.typed[:2_000]))
        with self._store.lease(source, owner) as loaded:
            run = make_tuning_run(
                self._runs.root,
                setup,
                view.objective,
                view.parts,
                loaded,
                base=source,
                base_name=loaded.info.name,
                data_name=view.name,
                about={"owner": owner, "data": kept},
            )
        return run.id

    def list(self, owner: str) -> tuple[RunSummary, ...]:
        """The visitor's runs of fine-tuning, newest first."""
        return tuple(s for s in self._runs.list(owner) if s.objective not in OTHERS)

    def tuning(self, run_id: str) -> TuningConfig:
        """What a run does besides what every run does.

        Raises:
            JobError: It is not there, or no fine-tuning.
        """
        return self._config(run_id)[1]

    def base(self, run_id: str) -> str:
        """What the store calls the model that a run began from.

        Raises:
            JobError: The run is not there, or no fine-tuning; or that model was a run that has been
                deleted since.
        """
        tuning = self.tuning(run_id)
        if run_of(tuning.base):
            try:
                find_checkpoint(self._runs.root, split_dtype(tuning.base)[0])
            except SourceError:
                raise JobError(
                    f"{tuning.base_name}, which this run began from, has been deleted, so that "
                    "nothing can be compared with it; the run itself still opens in all other tabs",
                    code="tune-base-gone",
                    base=tuning.base_name,
                ) from None
        return tuning.base

    def name(self, run_id: str) -> str:
        """What its owner calls a run.

        Raises:
            JobError: It is not there.
        """
        return self._runs.view(run_id).summary.name

    def objective(self, run_id: str) -> str:
        """What a run learns.

        Raises:
            JobError: It is not there, or no fine-tuning.
        """
        return self._config(run_id)[0].objective

    def examples(self, run_id: str, part: TuningPart = "test") -> tuple[Example, ...]:
        """Examples of a part of a run's data.

        Raises:
            JobError: It is not there, or no fine-tuning.
        """
        from explorer.training.objectives.row_examples import read_part

        self._config(run_id)
        return read_part(self._runs.folder(run_id), part)

    def classifier(self, run_id: str, step: int, loaded: LoadedModel) -> LoadedClassifier:
        """Put the head of a checkpoint on its model.

        Args:
            run_id: The run.
            step: Of the checkpoint.
            loaded: Its model, as the store lends it.

        Raises:
            JobError: There is no such checkpoint.
            WeightError: It has no head of classes.
        """
        from explorer.training.learner import load_class_head

        return load_class_head(self._runs.checkpoint(run_id, step), loaded)

    def best_step(self, run_id: str) -> int:
        """The checkpoint to look at: that of the lowest held-out loss, else the newest.

        Raises:
            JobError: The run is not there, or has no checkpoint yet.
        """
        step = self._runs.view(run_id).summary.offered_step
        if step is None:
            raise JobError(
                f"run {run_id} has no checkpoint yet; wait until it has saved one",
                code="run-no-checkpoint",
                step=0,
                known="-",
            )
        return step

    def answer_both(
        self, run_id: str, step: int, examples: Sequence[Example], owner: str, turn: Turn
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Let the base and a checkpoint answer the same questions.

        Args:
            run_id: The run.
            step: Of the checkpoint.
            examples: The questions.
            owner: Id of the visitor.
            turn: Entered for each pass.

        Returns:
            Answers of the base, and those of the checkpoint.

        Raises:
            ExplorerError: The run or a model is not there, or it writes no answers.
        """
        from explorer.tuning_scores import answer_examples

        tuning = self.tuning(run_id)
        if tuning.labels:
            raise JobError(
                "a classifier writes no answers; choose another run", code="tune-no-answers"
            )
        found = []
        for source in (self.base(run_id), self._runs.checkpoint_source(run_id, step)):
            with self._store.lease(source, owner) as loaded:
                found.append(answer_examples(loaded, examples, tuning, turn=turn))
        return found[0], found[1]

    def lineage(self, owner: str) -> tuple[LineageNode, ...]:
        """All models of a visitor's runs, each below the one that it began from."""
        return arrange_lineage([s for s in self._runs.list(owner) if s.objective != TRANSLATION])

    def _config(self, run_id: str) -> tuple[RunConfig, TuningConfig]:
        config = self._runs.view(run_id).config
        if config.tuning is None:
            raise JobError(
                f"run {run_id} is no fine-tuning; choose one of the Fine-tune tab",
                code="tune-no-tuning",
            )
        return config, config.tuning


def arrange_lineage(summaries: Sequence[RunSummary]) -> tuple[LineageNode, ...]:
    """Models in the order of a tree: each below the one that it began from.

    Args:
        summaries: Runs.
    """
    by_id = {summary.id: summary for summary in summaries}
    children: dict[str, list[RunSummary]] = {}
    for summary in reversed(summaries):  # oldest first
        children.setdefault(_parent_of(summary, by_id), []).append(summary)
    found: list[LineageNode] = []

    def add(summary: RunSummary, depth: int) -> None:
        step = summary.offered_step
        found.append(
            LineageNode(
                source="" if step is None else f"{RUN_PREFIX}{summary.id}@{step}",
                name=summary.name,
                objective=summary.objective,
                depth=depth,
                parent=summary.base,
                loss=summary.best_loss,
            )
        )
        for child in children.get(summary.id, []):
            add(child, depth + 1)

    for root in sorted(k for k in children if k not in by_id):
        if root:
            found.append(
                LineageNode(source=root, name=root, objective="", depth=0, parent="", loss=None)
            )
        for summary in children[root]:
            add(summary, 1 if root else 0)
    return tuple(found)


def _parent_of(summary: RunSummary, known: dict[str, RunSummary]) -> str:
    """Id of the run it began from, else the source of its model; empty for one from nothing."""
    if not summary.base.startswith(RUN_PREFIX):
        return summary.base
    run_id = summary.base.removeprefix(RUN_PREFIX).partition("@")[0]
    return run_id if run_id in known else summary.base
