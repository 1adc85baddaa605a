"""The numbers of a run for other programs: CSV, TensorBoard event files, Trackio.

All three are one table: a row per optimiser step, from `Step`, with the losses of `Evaluated` in
the row of the step that they were taken at. What was not measured, or is not finite, is left out.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path

from explorer.errors import JobError
from explorer.training.events import Evaluated, Event, Step

STEP_COLUMNS = ("epoch", "tokens", "loss", "learning_rate", "gradient_norm", "duration_s")
EVALUATION_COLUMNS = ("training_loss", "validation_loss")
METRICS = (*STEP_COLUMNS, *EVALUATION_COLUMNS)
Row = dict[str, float | int]


def metric_rows(events: Iterable[Event]) -> list[Row]:
    """The table, by step: `step`, `at` (seconds since 1970) and those of METRICS that are known.

    Args:
        events: Of one run; where a step was taken twice, its last event counts.
    """
    rows: dict[int, Row] = {}
    for event in events:
        if isinstance(event, Step):
            names: tuple[str, ...] = STEP_COLUMNS
        elif isinstance(event, Evaluated):
            # `tokens` too: an evaluation before the first step has a row of its own
            names = ("tokens", *EVALUATION_COLUMNS)
        else:
            continue
        row = rows.setdefault(event.step, {"step": event.step, "at": event.at})
        row.update({name: getattr(event, name) for name in names})
    return [_finite(rows[step]) for step in sorted(rows)]


def _finite(row: Row) -> Row:
    return {name: value for name, value in row.items() if math.isfinite(value)}


def metrics_csv(events: Iterable[Event]) -> str:
    """The table as CSV (RFC 4180: a header, commas, lines that end in CR LF)."""
    text = io.StringIO()
    writer = csv.DictWriter(text, ("step", "at", *METRICS))
    writer.writeheader()
    writer.writerows(metric_rows(events))
    return text.getvalue()


def write_tensorboard(events: Iterable[Event], folder: Path) -> None:
    """Write the table as a TensorBoard event file; `tensorboard --logdir FOLDER` shows it.

    Args:
        events: Of one run.
        folder: Made if it is not there; each run, and each export of it, needs one of its own,
            since TensorBoard draws all files of a folder as one.
    """
    from tensorboardX import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for row in metric_rows(events):
            for name, value in _metrics(row).items():
                writer.add_scalar(name, value, global_step=int(row["step"]), walltime=row["at"])


def send_to_trackio(
    events: Iterable[Event], *, project: str, name: str, config: Mapping[str, object]
) -> None:
    """Log the table as a run of Trackio, an experiment tracker that stores on this machine.

    Args:
        events: Of one run.
        project: Of Trackio; made if it is not there.
        name: Of the run.
        config: Shown beside it; plain values.

    Raises:
        JobError: Trackio is not installed; Glassbox does not bring it.
    """
    try:
        trackio = import_module("trackio")
    except ModuleNotFoundError as error:
        if error.name != "trackio":
            raise
        raise JobError(
            "the run was to be sent to Trackio, which is not installed here; install it with "
            "`pip install trackio`, or export CSV or TensorBoard files",
            code="trackio-missing",
        ) from None
    trackio.init(project=project, name=name, config=dict(config))
    for row in metric_rows(events):
        trackio.log(_metrics(row), step=row["step"])
    trackio.finish()


def _metrics(row: Row) -> Row:
    return {name: row[name] for name in METRICS if name in row}
