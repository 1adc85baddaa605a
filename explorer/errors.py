"""The errors of `models`, for layers that do not import it, and a signal that work was stopped."""

from models.errors import (
    BudgetError,
    ConfigError,
    ContextError,
    DataError,
    ExplorerError,
    JobError,
    SourceError,
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
    "ServerError",
    "SourceError",
    "Stopped",
    "TokenizerError",
    "WeightError",
]


class ServerError(SourceError):
    """A model server elsewhere that may not be called, or gives no answer that can be used."""


class Stopped(Exception):
    """Work ended early because the visitor who asked for it no longer wants it.

    Not an error: whoever pressed Stop knows why nothing more comes, so a page catches it and shows
    what there is so far. It is no `ExplorerError`, so it never becomes a card.
    """
