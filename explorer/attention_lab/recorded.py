"""Results of experiments that took too long for a page; recorded by scripts in `tests/benchmarks`.

assets/recorded/<name>.json     what the script wrote, with its name and its settings
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parents[2] / "assets" / "recorded"


def read_recorded(name: str) -> dict[str, Any] | None:
    """The result of an experiment; None where it was not run.

    Args:
        name: Of its file, without ending.
    """
    path = RECORDED / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
