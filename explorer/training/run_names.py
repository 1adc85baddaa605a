"""Names that people give to runs."""

import unicodedata

MOST_CHARACTERS = 80
# Joiners hold emoji and some scripts together; other format characters only turn the text around.
KEPT_FORMATS = frozenset("\u200c\u200d")


def clean_run_name(text: str) -> str:
    """A name on one line that leaves the text around it as it is.

    Line breaks become spaces; characters without a shape are left out, above all those that turn
    the direction of writing (U+202E and its like), which would mirror what the page says beside it.

    Args:
        text: What was typed.

    Returns:
        The name, cut to 80 characters; empty where nothing is left.
    """
    line = " ".join(text.split())
    shown = (c for c in line if c in KEPT_FORMATS or unicodedata.category(c) not in ("Cf", "Cc"))
    return "".join(shown).strip()[:MOST_CHARACTERS]
