"""Python that gives the same numbers as a picture, for "Copy as Python".

Names of functions, modules and files are taken from the objects themselves, so that a snippet
cannot go on naming what has been moved. A test runs every snippet in a fresh process.
"""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from explorer.checkpoint_sources import find_own_checkpoint, run_of
from explorer.number_formats import DEFAULT_DTYPE, split_dtype

PROJECT = Path(__file__).parent.parent


def source_file_of(function: Callable[..., Any]) -> str:
    """The file that a function stands in, from the top of the project."""
    # by its module: a function that is wrapped, as tests do to check shapes, stands elsewhere
    file = sys.modules[function.__module__].__file__ or ""
    return Path(file).resolve().relative_to(PROJECT).as_posix()


def make_snippet(imports: tuple[Callable[..., Any], ...], *lines: str) -> str:
    """A runnable snippet.

    Args:
        imports: What the lines use; each is imported from where it is defined.
        *lines: The code.
    """
    # what `say_load` writes for a checkpoint of a run
    opens = any(f"{find_own_checkpoint.__name__}(" in line for line in lines)
    used = (*imports, find_own_checkpoint) if opens else imports
    head = sorted(f"from {f.__module__} import {f.__name__}" for f in used)
    return "\n".join([*head, *lines]) + "\n"


# Longer texts are read from a file: a snippet of a megabyte cannot be read, and travels each time.
MOST_SNIPPET_CHARACTERS = 2_000


def say_text(text: str) -> str:
    """A text as Python, or where to put it when it is too long to repeat."""
    if len(text) <= MOST_SNIPPET_CHARACTERS:
        return repr(text)
    return 'open("text.txt", encoding="utf-8", newline="").read()'


def say_load(source: str) -> str:
    """The call that loads a model in the number format that its source names."""
    bare, dtype = split_dtype(source)
    given = "" if dtype == DEFAULT_DTYPE else f", dtype={dtype!r}"
    said = f"{find_own_checkpoint.__name__}({bare!r})" if run_of(bare) else repr(bare)
    return f"load_model({said}{given})"


def say_checkpoint_import(load: str) -> str:
    """The line that imports what `say_load` wrote for a checkpoint of a run; empty for others."""
    name = find_own_checkpoint.__name__
    return f"from {find_own_checkpoint.__module__} import {name}\n" if f"{name}(" in load else ""


def say_call(settings: object) -> str:
    """A dataclass as the call that makes it, without what is as by default."""
    changed = [
        f"{field.name}={getattr(settings, field.name)!r}"
        for field in dataclasses.fields(settings)  # type: ignore[arg-type]
        if getattr(settings, field.name) != field.default
    ]
    return f"{type(settings).__name__}({', '.join(changed)})"


def make_settings_snippet(compute: Callable[..., Any], settings: object, *lines: str) -> str:
    """Python that computes something from settings alone.

    Args:
        compute: Takes the settings; its result is called `found`.
        settings: A dataclass.
        *lines: What to print of `found`.
    """
    call = f"found = {compute.__name__}({say_call(settings)})"
    return make_snippet((type(settings), compute), "", call, *lines)


def make_attention_snippet(source: str, text: str, layer: int, head: int, query: int) -> str:
    """Python that gives one row of an attention map."""
    from explorer.attention_maps import compute_attention, compute_patterns

    return make_snippet(
        (compute_attention, compute_patterns),
        "from models import load_model",
        "",
        f"maps = {compute_attention.__name__}({say_load(source)}, {say_text(text)})",
        f"row = {compute_patterns.__name__}(maps, {layer})[{head}, {query}]",
        "for label, weight in zip(maps.labels, row):",
        "    print(repr(label), weight)",
    )
