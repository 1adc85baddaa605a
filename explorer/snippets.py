"""Python that gives the same numbers as a picture, for "Copy as Python".

Names of functions, modules and files are taken from the objects themselves, so that a snippet
cannot go on naming what has been moved. A test runs every snippet in a fresh process.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parent.parent


def source_file_of(function: Callable[..., Any]) -> str:
    """The file that a function stands in, from the top of the project."""
    return Path(inspect.getsourcefile(function) or "").resolve().relative_to(PROJECT).as_posix()


def make_snippet(imports: tuple[Callable[..., Any], ...], *lines: str) -> str:
    """A runnable snippet.

    Args:
        imports: What the lines use; each is imported from where it is defined.
        *lines: The code.
    """
    head = sorted(f"from {f.__module__} import {f.__name__}" for f in imports)
    return "\n".join([*head, *lines]) + "\n"


def make_tokens_snippet(source: str, text: str, special: bool) -> str:
    """Python that cuts the same text into tokens."""
    from explorer.tokens import compute_token_pieces

    return make_snippet(
        (compute_token_pieces,),
        "from models import load_model",
        "",
        f"tokenizer = load_model({source!r}).tokenizer",
        f"pieces = {compute_token_pieces.__name__}(tokenizer, {text!r}, special={special})",
        "print(pieces.n_tokens, pieces.ids)",
    )


def make_attention_snippet(source: str, text: str, layer: int, head: int, query: int) -> str:
    """Python that gives one row of an attention map."""
    from explorer.attention_maps import compute_attention, compute_patterns

    return make_snippet(
        (compute_attention, compute_patterns),
        "from models import load_model",
        "",
        f"maps = {compute_attention.__name__}(load_model({source!r}), {text!r})",
        f"row = {compute_patterns.__name__}(maps, {layer})[{head}, {query}]",
        "for label, weight in zip(maps.labels, row):",
        "    print(repr(label), weight)",
    )
