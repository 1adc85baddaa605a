"""What every tab is given: the store of models, words, routes, settings and the visitor's choices.

The store itself lives in `explorer.store`. Here stands only what the page needs of it, as a
protocol, so that a test can hand in a small one.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import gradio as gr

from components.address import ViewAddress
from components.routes import MatrixRoutes
from components.text import Words, load_words
from explorer.answer_memory import AnswerMemory
from explorer.cpu_share import FreeCores
from explorer.home import find_home_folder
from explorer.openai_server import ServerRule, find_server_rule
from explorer.results import ResultStore
from explorer.runs import Runs
from explorer.slots import FairSlots
from explorer.stop_switches import StopSwitches
from explorer.store_records import CatalogueEntry, LoadStep, ModelSummary
from explorer.talk_store import TalkStore

# On the loopback interface there is one owner, who sees everything from any page.
LOCAL_OWNER = "local"


class ModelStore(Protocol):
    """Loads models and shares them between visitors."""

    def catalogue(self) -> Sequence[CatalogueEntry]:
        """List the models that can be opened by their id; the first is the default."""

    def open(self, source: str, owner: str) -> Iterator[LoadStep]:
        """Load a model, or find it loaded, reporting progress; the last step is `ready`."""

    def summary(self, source: str, owner: str) -> ModelSummary | None:
        """Describe a loaded model; None when it is not loaded."""

    def lease(
        self, source: str, owner: str, *, cancelled: Callable[[], bool] | None = None
    ) -> AbstractContextManager[Any]:
        """Hold a loaded model while it is used; `cancelled` is asked while it is being loaded."""

    def tokenizer(self, source: str, owner: str) -> Any:
        """Give a model's tokenizer without loading its weights."""

    def cancel(self, source: str, owner: str) -> None:
        """Stop loading a model."""

    def unload(self, source: str, owner: str) -> None:
        """Drop a loaded model."""

    def keep_upload(self, files: Sequence[Path], owner: str) -> str:
        """Copy uploaded files to a private place and give the source string that opens them."""


@dataclass(frozen=True)
class Settings:
    """What the command line and the environment decided.

    Args:
        public: Whether strangers may be on the page: no local paths, limited uploads.
        max_upload_bytes: Largest single file that may be uploaded.
        default_model: Source to open first; None opens the first of the catalogue that is here.
    """

    public: bool = False
    max_upload_bytes: int = 200 * 10**6
    default_model: str | None = None


@dataclass(frozen=True)
class AppContext:
    """Given to every tab's `build(ctx)`, inside the running `gr.Blocks`.

    Args:
        store: The models.
        words: The sentences of the page.
        routes: Publishes matrices for the page to fetch.
        settings: What the command line and the environment decided.
        address: Which component belongs to which part of a view's address.
        model_id: Source of the model that this visitor chose; None before one is ready. Its
            `.change` tells a tab that another model is there.
        wanted_model: Source that a tab asks the bar at the top to open; the bar empties it.
        owner: Id of this visitor; pass its value through `owner_of`.
        results: Results that a page may come back to, by unguessable id.
        slots: Turns on the device, one for each forward pass.
        stops: Stop buttons of the answers and jobs that are running.
        runs: The trainings, which go on without the page.
        memory: What models have read already, for the next answer.
        talks: The conversations of all visitors.
        servers: Which model servers elsewhere may be called.
    """

    store: ModelStore
    words: Words
    routes: MatrixRoutes
    settings: Settings
    address: ViewAddress
    model_id: gr.State
    wanted_model: gr.State
    owner: gr.State
    results: ResultStore
    slots: FairSlots
    stops: StopSwitches
    runs: Runs
    memory: AnswerMemory
    talks: TalkStore
    servers: ServerRule

    def source_of(self, model_id: str | None) -> str:
        """Name the model to use: the visitor's, or the default before he has one.

        Args:
            model_id: Value of the `model_id` component.

        Returns:
            A source string for the store.
        """
        return model_id or self.settings.default_model or self._first_that_is_here()

    def _first_that_is_here(self) -> str:
        """The first of the list that opens without a network, or the first of all."""
        entries = self.store.catalogue()
        return next((e.id for e in entries if e.presence == "here"), entries[0].id)

    def owner_of(self, owner: str | None, request: gr.Request | None = None) -> str:
        """Name the owner for the store.

        Args:
            owner: Value of the `owner` component.
            request: The request, for a caller of the API, who never loaded the page.

        Returns:
            The one owner of a local app, else the visitor's id, else one of his session alone.
        """
        if not self.settings.public:
            return LOCAL_OWNER
        if owner:
            return owner
        session = "none" if request is None else str(request.session_hash)
        return f"session-{hashlib.sha256(session.encode()).hexdigest()[:24]}"


def build_context(
    store: ModelStore,
    settings: Settings,
    *,
    words: Words | None = None,
    routes: MatrixRoutes | None = None,
    runs: Runs | None = None,
) -> AppContext:
    """Build the context, with its state components, inside a running `gr.Blocks`.

    Args:
        store: The models.
        settings: What the command line and the environment decided.
        words: The sentences of the page; read from assets when None.
        routes: Publisher of matrices; a new one when None.
        runs: The trainings; those below the app's folder when None.

    Returns:
        The context.
    """
    return AppContext(
        store=store,
        words=words or load_words(),
        routes=routes or MatrixRoutes(),
        settings=settings,
        address=ViewAddress(),
        model_id=gr.State(None),
        wanted_model=gr.State(None),
        owner=gr.State(None),
        results=ResultStore(),
        slots=FairSlots(begin=FreeCores().use),
        stops=StopSwitches(),
        runs=runs or Runs(find_home_folder(), public=settings.public),
        memory=AnswerMemory(),
        talks=TalkStore(find_home_folder()),
        servers=find_server_rule(settings.public),
    )
