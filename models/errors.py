"""Errors that a user can act on.

Every message holds what was asked, what was found and what to do. A page shows these as a card;
anything else that is raised is a fault of ours, is logged, and shown as a short id.

Where a page should say it in the reader's language, the error names a `code`: the key of a
sentence in `assets/text/<locale>/errors.json`, whose `{placeholders}` are filled from `facts`.
"""

from typing import Self


class ExplorerError(Exception):
    """Base of all errors with a remedy.

    Args:
        message: One or two sentences in English: asked, found, remedy.
        code: Key of the translated sentence, or None when only English exists.
        **facts: Values for the placeholders of the translated sentence.
    """

    def __init__(self, message: str, *, code: str | None = None, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.facts = facts

    def anew(self) -> Self:
        """An equal error to raise: one that is kept and raised again grows by each traceback."""
        return type(self)(self.message, code=self.code, **self.facts)


class ConfigError(ExplorerError):
    """A configuration that no model can be built from, or that names a part we do not have."""


class WeightError(ExplorerError):
    """A checkpoint that does not fit its model: damaged, or tensors missing, extra, misshapen."""


class TokenizerError(ExplorerError):
    """Tokenizer files or a chat template that cannot be used."""


class SourceError(ExplorerError):
    """A model, file or repository that cannot be found, reached or opened."""


class ContextError(ExplorerError):
    """A text longer than what the model can read at once."""


class BudgetError(ExplorerError):
    """A model or result that does not fit into the memory allowed for it."""


class DataError(ExplorerError):
    """A text or data set that cannot be used: missing, too large, too short, of another kind."""


class JobError(ExplorerError):
    """A background job that cannot be started, found or changed."""
