"""Python that gives the numbers of the panels on added positions."""

from explorer.added_positions import (
    AddedSettings,
    SwapSettings,
    compute_added_positions,
    compute_swap,
)
from explorer.broken_rotation import BrokenSettings, compute_broken_reading
from explorer.snippets import make_settings_snippet, make_snippet, say_call, say_load


def make_added_snippet(source: str, settings: AddedSettings) -> str:
    """Python that prints the products of one position with all others."""
    if settings.kind != "learned":
        return make_settings_snippet(compute_added_positions, settings, "print(found.products)")
    return make_snippet(
        (AddedSettings, compute_added_positions),
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"found = {compute_added_positions.__name__}({say_call(settings)}, loaded)",
        "print(found.products)",
    )


def make_swap_snippet(source: str, settings: SwapSettings) -> str:
    """Python that prints what a swap changes, and the four parts of a score."""
    return make_snippet(
        (SwapSettings, compute_swap),
        "from models import load_model",
        "",
        f"found = {compute_swap.__name__}({say_load(source)}, {say_call(settings)})",
        "print(found.without, found.with_them)",
        "print(found.terms, found.scores)",
    )


def make_broken_snippet(source: str, settings: BrokenSettings) -> str:
    """Python that prints both perplexities and both continuations."""
    return make_snippet(
        (BrokenSettings, compute_broken_reading),
        "from models import load_model",
        "",
        f"loaded = {say_load(source)}",
        f"found = {compute_broken_reading.__name__}(loaded, {say_call(settings)})",
        "print(found.perplexities)",
        "print(found.own_text, '|', found.broken_text)",
    )
