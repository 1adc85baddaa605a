"""A run of fine-tuning made: examples, weights to begin from, and configuration, in one folder."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer.datasets.examples import Example, example_to_json
from explorer.datasets.splits import Parts
from explorer.errors import DataError
from explorer.training.answer_rows import RowWriter, keep_fitting
from explorer.training.initial_weights import write_initial
from explorer.training.run_folder import RunFolder, make_run_id
from explorer.training.tuning_config import TuningConfig
from explorer.training.tuning_setup import TuningSetup, build_tuning_run, make_tuning_config

if TYPE_CHECKING:
    from models.loading import LoadedModel

N_PROMPTS = 3  # held-out questions that are answered while it learns
_UNFINISHED = ".making-"


def make_tuning_run(
    runs: Path,
    setup: TuningSetup,
    objective: str,
    parts: Parts,
    loaded: LoadedModel,
    *,
    base: str,
    base_name: str,
    data_name: str,
    about: Mapping[str, Any],
) -> RunFolder:
    """Make the folder of a run, not yet started; it appears only when it is complete.

    Args:
        runs: Where runs are kept.
        setup: What the form says.
        objective: classification, sft or preference.
        parts: The data.
        loaded: The model it begins from, in float32.
        base: What the store calls it.
        base_name: The same for the page.
        data_name: What the data set is called.
        about: Further values of `about.json`, such as the owner.

    Raises:
        ExplorerError: Data, model and settings do not go together.
        OSError: The disk is full.
    """
    labels = tuple(sorted({e.label for part in parts.items().values() for e in part if e.label}))
    _check_labels(objective, labels)
    setup = replace(setup, row_limit=min(setup.row_limit, loaded.config.context_length))
    tuning = make_tuning_config(setup, objective, base=base, base_name=base_name, labels=labels)
    parts = _leave_out_too_long(objective, parts, loaded, tuning)
    longest, prompts = _measure(objective, parts, loaded, tuning)
    config = build_tuning_run(
        *(setup, objective, tuning, loaded.config),
        n_training=len(parts.training),
        longest=longest,
        data_name=data_name,
        prompts=prompts,
        n_parameters=loaded.info.n_parameters,
    )
    run = RunFolder(runs / make_run_id())
    making = RunFolder(runs / f"{_UNFINISHED}{run.id}")
    try:
        making.path.mkdir(parents=True)
        _write_examples(making, parts)
        _write_tokenizer(making, loaded)
        making.write_config(config)
        write_initial(making, loaded, Path(base_name))
        facts = {"name": config.name, "created_at": time.time(), "tuning": asdict(setup)}
        making.write_about({**facts, "base": base, **about})
        making.path.rename(run.path)
    except BaseException:  # half a run is none
        shutil.rmtree(making.path, ignore_errors=True)
        raise
    return run


def _check_labels(objective: str, labels: Sequence[str]) -> None:
    if objective == "classification" and len(labels) < 2:
        found = ", ".join(labels) or "-"
        raise DataError(
            f"all rows have the same label ({found}), so there is nothing to tell apart; add rows "
            "of another class",
            code="tune-one-class",
            found=found,
        )


def _leave_out_too_long(
    objective: str, parts: Parts, loaded: LoadedModel, tuning: TuningConfig
) -> Parts:
    """Without the questions after which no answer fits into a row; the page has counted them."""
    if objective == "classification":
        return parts
    writer = RowWriter(loaded.tokenizer, tuning.template, loaded.chat, tuning.row_limit)
    fitting = {name: keep_fitting(writer, part) for name, part in parts.items().items()}
    return replace(parts, **fitting)


def _measure(
    objective: str, parts: Parts, loaded: LoadedModel, tuning: TuningConfig
) -> tuple[int, tuple[str, ...]]:
    """Tokens of the longest example, and the first held-out questions as the model reads them."""
    if objective == "classification":
        texts = [*parts.training, *parts.validation]
        longest = max(len(loaded.tokenizer.encode(e.text)) for e in texts)
        return min(longest, tuning.row_limit), ()
    writer = RowWriter(loaded.tokenizer, tuning.template, loaded.chat, tuning.row_limit)
    longest = max(
        len(writer.write_row(e.prompt, answer, e.row).ids)
        for e in (*parts.training, *parts.validation)
        for answer in filter(None, (e.answer, e.rejected))
    )
    asked = dict.fromkeys(writer.write_prompt(e.prompt) for e in parts.test)
    return longest, tuple(asked)[:N_PROMPTS]


def _write_examples(run: RunFolder, parts: Parts) -> None:
    for name, examples in parts.items().items():
        path = run.examples_file(name)  # type: ignore[arg-type]
        path.parent.mkdir(exist_ok=True)
        path.write_text(_lines(examples), encoding="utf-8", newline="\n")


def _lines(examples: Sequence[Example]) -> str:
    return "".join(f"{example_to_json(example)}\n" for example in examples)


def _write_tokenizer(run: RunFolder, loaded: LoadedModel) -> None:
    from models.tokenizers import fit_tokenizer, save_tokenizer

    run.tokenizer_folder.mkdir()
    tokenizer = fit_tokenizer(loaded.tokenizer, loaded.config.vocab_size)
    save_tokenizer(tokenizer, run.tokenizer_folder, chat=loaded.chat)
