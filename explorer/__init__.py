"""Everything that is computed for the screen, with no page in it.

Usable from a notebook, a test or a command line: functions take a loaded model and a text, and
return frozen dataclasses of numbers and labels. Nothing here imports Gradio or Plotly; torch and
`models` are imported when a model is first needed, so importing `explorer` costs nothing.

The error types that a page shows as cards are exported here, because `components/` does not import
`models`.
"""

from explorer.errors import (
    BudgetError,
    ConfigError,
    ContextError,
    DataError,
    ExplorerError,
    JobError,
    SourceError,
    Stopped,
    TokenizerError,
    WeightError,
)

__all__ = [
    "BudgetError",
    "ConfigError",
    "ContextError",
    "DataError",
    "ExplorerError",
    "JobError",
    "SourceError",
    "Stopped",
    "TokenizerError",
    "WeightError",
]
