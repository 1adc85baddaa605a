"""Python that computes the six words again, for "Copy as Python"."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.attention_lab.by_hand import ChangedCell, HandSettings, compute_by_hand
from explorer.snippets import make_snippet


def make_hand_snippet(
    settings: HandSettings, changed: Sequence[ChangedCell], names: Sequence[str]
) -> str:
    """Python that gives the same matrices.

    Args:
        settings: As on the page.
        changed: The cells that were overwritten.
        names: The matrices to print.
    """
    values = ", ".join(f"{name}={value!r}" for name, value in vars(settings).items())
    return make_snippet(
        (ChangedCell, HandSettings, compute_by_hand),
        "",
        f"changed = {list(changed)!r}",
        f"hand = {compute_by_hand.__name__}({HandSettings.__name__}({values}), changed=changed)",
        f"for name in {list(names)!r}:",
        "    print(name, hand.matrices[name].tolist())",
    )
