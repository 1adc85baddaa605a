"""A run made without a page: from a text, or from a text and a model to go on with."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

from explorer.training.initial_weights import write_initial
from explorer.training.prepare import make_run
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import RunFolder
from explorer.training.run_texts import TextSize, build_tokenizer, configure, open_text
from explorer.training.setup import RunSetup
from models.config import ModelConfig
from models.loading import LoadedModel, load_model

MOST_TEXT_BYTES = 200 * 10**6


def make_new_run(runs: Path, setup: RunSetup, source: str | None = None) -> RunFolder:
    """Make a run, not yet started.

    Args:
        runs: Folder of all runs; made if it is not there.
        setup: What the run is. With `source`, size, style and tokenizer are those of the model.
        source: Folder, file or name of a model whose weights the run begins from; of a state dict
            with an optimiser's state, its moments too.

    Raises:
        ExplorerError: The text, the model or a setting cannot be used.
        OSError: The folder cannot be written to.
    """
    content = open_text(setup, MOST_TEXT_BYTES)
    loaded = None if source is None else load_model(source)
    if loaded is not None:
        setup = dataclasses.replace(setup, context=min(setup.context, loaded.config.context_length))

    def make_config(vocab_size: int, n_training: int, n_validation: int) -> RunConfig:
        config = configure(setup, TextSize(vocab_size, n_training, n_validation))
        return config if loaded is None else _of_model(config, loaded)

    tokenizer = build_tokenizer(setup, content.text) if loaded is None else loaded.tokenizer
    about = {"setup": dataclasses.asdict(setup)}
    *_, run = make_run(runs, content, tokenizer, make_config, about)
    assert isinstance(run, RunFolder)  # the last thing that it yields
    if loaded is not None and source is not None:
        try:
            write_initial(run, loaded, Path(source))
        except BaseException:  # half a run is none
            shutil.rmtree(run.path, ignore_errors=True)
            raise
    return run


def _of_model(config: RunConfig, loaded: LoadedModel) -> RunConfig:
    """The run on the model's own architecture; dropout is that of the form."""
    model: ModelConfig = dataclasses.replace(loaded.config, dropout=config.model.dropout)
    return dataclasses.replace(config, model=model, tokenizer=loaded.tokenizer.name)
