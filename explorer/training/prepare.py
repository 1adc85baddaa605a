"""From a text to the folder of a run: cut it into two parts, into tokens, and write all down.

After this a run needs nothing but its folder.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.datasets.text import split_text, tokenize_text
from explorer.datasets.windows import count_windows
from explorer.errors import ConfigError, Stopped
from explorer.training.run_config import DataConfig, RunConfig
from explorer.training.run_folder import RunFolder, make_run_id

if TYPE_CHECKING:
    from models.tokenizers import Tokenizer

_UNFINISHED = ".making-"


@dataclass(frozen=True, kw_only=True)
class RunText:
    """What a run learns from.

    Args:
        text: The whole text.
        validation_share: Share of its characters at the end that is held out.
        validation_text: A held-out text of its own, in place of a share.
        special: Whether special tokens typed in the text count as such.
    """

    text: str
    validation_share: float = 0.1
    validation_text: str | None = None
    special: bool = False

    def parts(self) -> Mapping[str, str]:
        """Both parts.

        Raises:
            ConfigError: A part would be empty.
        """
        if self.validation_text is not None:
            return {"training": self.text, "validation": self.validation_text}
        training, validation = split_text(self.text, self.validation_share)
        return {"training": training, "validation": validation}


# (vocabulary size, tokens of the training part, tokens of the held-out part) -> configuration
MakeConfig = Callable[[int, int, int], RunConfig]


def make_run(
    runs: Path,
    content: RunText,
    tokenizer: Tokenizer,
    make_config: MakeConfig,
    about: Mapping[str, Any],
    *,
    cancelled: Callable[[], bool] | None = None,
) -> Iterator[float | RunFolder]:
    """Make the folder of a run; it appears under its name only when it is complete.

    Args:
        runs: Where runs are kept; made if it is not there.
        content: What to learn from.
        tokenizer: Cuts it.
        make_config: Makes the configuration, once the number of tokens is known.
        about: Further values of `about.json`, such as the owner.
        cancelled: Asked between pieces of the text; True ends it.

    Yields:
        The share that is done, then the run.

    Raises:
        ConfigError: The text is too short, or settings do not go together.
        Stopped: `cancelled` became true.
        OSError: The disk is full.
    """
    run = RunFolder(runs / make_run_id())
    making = RunFolder(runs / f"{_UNFINISHED}{run.id}")
    try:
        (making.path / "tokens").mkdir(parents=True)
        n_tokens = yield from _write_tokens(making, content, tokenizer, cancelled)
        config = make_config(tokenizer.vocab_size, n_tokens["training"], n_tokens["validation"])
        check_windows(config.data, n_tokens)
        _finish(making, config, content, tokenizer, about)
        making.path.rename(run.path)
    except BaseException:  # also when the generator is closed: half a run is none
        shutil.rmtree(making.path, ignore_errors=True)
        raise
    yield run


def check_windows(data: DataConfig, n_tokens: Mapping[str, int]) -> None:
    """Refuse a text that does not make one batch, before a process is started for it.

    Args:
        data: How the text becomes batches.
        n_tokens: Part -> its tokens.

    Raises:
        ConfigError: A part is shorter than a window, or the training part than a batch.
    """
    n_windows = {n: count_windows(n_tokens[n], data.context, data.stride) for n in n_tokens}
    if n_windows["training"] < data.batch_size:
        problem = (
            f"the training part has {n_windows['training']} windows of {data.context} tokens, a "
            f"batch wants {data.batch_size}; choose a smaller batch, or a longer text"
        )
        raise ConfigError(problem, code="run-setting", problem=problem)


def make_check(cancelled: Callable[[], bool] | None, said: str) -> Callable[..., None]:
    """A callback for long work, whatever it is called with.

    Args:
        cancelled: Asked each time; None never ends the work.
        said: What was stopped.

    Returns:
        Raises Stopped once `cancelled` is true.
    """

    def check(*_: object) -> None:
        if cancelled is not None and cancelled():
            raise Stopped(said)

    return check


def _write_tokens(
    run: RunFolder,
    content: RunText,
    tokenizer: Tokenizer,
    cancelled: Callable[[], bool] | None,
) -> Generator[float, None, dict[str, int]]:
    """Returns the number of tokens of each part."""
    parts = content.parts()
    n_characters = sum(map(len, parts.values()))
    n_tokens: dict[str, int] = {}
    done = 0
    check = make_check(cancelled, "making the run was stopped")
    for part, text in parts.items():
        ids = tokenize_text(tokenizer, text, check, special=content.special)
        np.save(run.tokens_file("training" if part == "training" else "validation"), ids)
        n_tokens[part] = len(ids)
        done += len(text)
        yield done / n_characters
    return n_tokens


def _finish(
    run: RunFolder,
    config: RunConfig,
    content: RunText,
    tokenizer: Tokenizer,
    about: Mapping[str, Any],
) -> None:
    from models.tokenizers.saving import save_tokenizer  # late: tests of texts need none of it

    run.text_file.write_text(content.text, encoding="utf-8", newline="\n")
    run.tokenizer_folder.mkdir()
    save_tokenizer(tokenizer, run.tokenizer_folder)
    run.write_config(config)
    run.write_about({"name": config.name, "created_at": time.time(), **about})
