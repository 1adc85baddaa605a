"""The model store: every model is loaded once, shared by the owner rule, and evicted by bytes.

    open ──> resolving ──> downloading ──> reading ──> ready        (events for the page)
                                │              │
                    tokenizer: from here on    budget: room is made, or the load is refused,
                                               before the first weight is read

- Visitors who ask for the same model at once share one load and its progress (`shared_load`).
- Who shares what is decided in `ownership`; who stays in memory, in `model_shelf`.
- A checkpoint that is a small adapter stands on the memory of its base, as do all others of it.
- A model in use is held by a lease; the idle ones used longest ago go when room is needed.
- Nothing of a load that failed or was cancelled stays: asking again starts afresh.

Importing this imports no torch; neither does `tokenizer`.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.checkpoint_sources import AdapterPlace
from explorer.errors import ExplorerError, SourceError, Stopped
from explorer.home import find_home_folder
from explorer.memory import compute_available_bytes, compute_budget_bytes, give_back_memory
from explorer.model_loader import ModelLoader
from explorer.model_reader import ModelReader
from explorer.model_shelf import ModelShelf, ShelvedModel
from explorer.number_formats import DEFAULT_DTYPE, join_dtype, split_dtype
from explorer.ownership import EVERYBODY, OwnerRule, SharingKey
from explorer.shared_load import SharedLoad
from explorer.source_finder import SourceFinder
from explorer.store_records import CatalogueEntry, Loader, LoadStep, ModelSummary
from explorer.training.run_folder import RUNS_FOLDER
from explorer.uploads import Uploads

if TYPE_CHECKING:
    from models.loading import LoadedModel
    from models.sources import ResolvedSource
    from models.tokenizers import Tokenizer

__all__ = ["CatalogueEntry", "LoadStep", "ModelStore", "ModelSummary"]

# Tokenizers kept without their models; one with 50,000 entries takes about 20 MB.
_KEPT_TOKENIZERS = 8


class ModelStore:
    """Models for all visitors of one app. Safe to use from any thread.

    Args:
        loader: What finds and reads models; None is the real one.
        budget_bytes: Memory for all models together; None follows `explorer.memory`.
        public: Strangers can reach this host: private models stay with their owner, and paths of
            the server are refused.
        operator_sources: Sources that whoever started the app chose; open to all.
        uploads: Where uploaded models are kept; None is below the user's own data folder.
        runs: Folder of the runs, whose checkpoints open as `run:ID@STEP`; None is the usual one.
        available_bytes: Says how much memory the machine has free now.

    Raises:
        ConfigError: GLASSBOX_MEMORY_GB is set and is not an amount of memory.
    """

    def __init__(
        self,
        *,
        loader: Loader | None = None,
        budget_bytes: int | None = None,
        public: bool = False,
        operator_sources: Collection[str] = (),
        uploads: Uploads | None = None,
        runs: Path | None = None,
        available_bytes: Callable[[], int] = compute_available_bytes,
    ) -> None:
        self._loader: Loader = ModelLoader() if loader is None else loader
        chosen = frozenset(split_dtype(source)[0] for source in operator_sources)
        self._rule = OwnerRule(public, chosen)
        self._uploads = Uploads(find_home_folder()) if uploads is None else uploads
        runs = find_home_folder() / RUNS_FOLDER if runs is None else runs
        self._finder = SourceFinder(self._loader, self._rule, self._uploads, runs)
        self._available_bytes = available_bytes
        self._shelf = ModelShelf(compute_budget_bytes() if budget_bytes is None else budget_bytes)
        self._changed = threading.Condition()  # guards the shelf, the loads and the tokenizers
        self._reader = ModelReader(self._loader, self._shelf, self._changed, available_bytes)
        self._loads: dict[SharingKey, SharedLoad] = {}
        self._tokenizers: OrderedDict[SharingKey, Tokenizer] = OrderedDict()
        self._reading_tokenizer = threading.Lock()

    # What a page asks for

    def catalogue(self) -> tuple[CatalogueEntry, ...]:
        """The models that can be chosen from a list: whether each is here, and whether it fits."""
        available = self._available_bytes()
        with self._changed:
            room = self._shelf.room_without_idle(available)
            here = [key for key in self._shelf.list_keys() if key.owner == EVERYBODY]
        return tuple(
            entry.when_loaded({key.dtype for key in here if key.source == entry.id})
            for entry in self._loader.catalogue(room)
        )

    def open(self, source: str, owner: str, dtype: str = DEFAULT_DTYPE) -> Iterator[LoadStep]:
        """Load a model, or join a load of it that is going on; the last step is `ready`.

        Closing the iterator does not end the load. After `cancel` by this owner the iterator ends
        without a `ready` step.

        Args:
            source: Catalogue id, Hub id, `upload:...`, folder or file; a number format may follow
                (`gpt2#int8`, see `number_formats`), here and in all other calls.
            owner: Id of the visitor.
            dtype: Number format of the weights, where the source names none.

        Raises:
            SourceError: The source cannot be found, reached or opened, or is not this owner's.
            BudgetError: It does not fit into memory; said before its weights are downloaded.
            ExplorerError: Its files cannot be used (`ConfigError`, `WeightError`,
                `TokenizerError`).
        """
        key, visitor = self._identify(join_dtype(source, dtype), owner)
        found = self._find_or_join(key, visitor, weights=True)
        if isinstance(found, ShelvedModel):
            n_bytes = found.summary.n_bytes
            yield LoadStep("ready", n_bytes, n_bytes, summary=found.summary)
            return
        try:
            yield from found.follow(visitor, until=_never)
        except Stopped:
            return

    def cancel(self, source: str, owner: str) -> None:
        """Stop waiting for a model; the load itself stops when nobody else waits for it.

        Raises:
            SourceError: The source is not this owner's.
        """
        key, visitor = self._identify(source, owner)
        with self._changed:
            if key in self._loads:
                self._loads[key].leave(visitor)

    def summary(self, source: str, owner: str) -> ModelSummary | None:
        """What to say about a loaded model; None when it is not in memory.

        Raises:
            SourceError: The source is not this owner's.
        """
        key, _visitor = self._identify(source, owner)
        with self._changed:
            model = self._shelf.find(key)
            return None if model is None else model.summary

    def unload(self, source: str, owner: str) -> None:
        """Say that this owner needs a model no longer; it goes when no other owner has it open.

        A model that an answer is being written with goes right after that answer.

        Raises:
            SourceError: The source is not this owner's.
        """
        key, visitor = self._identify(source, owner)
        with self._changed:
            gone = self._shelf.unload(key, visitor)
            if self._shelf.find(key) is None:
                self._tokenizers.pop(key, None)
        if gone:
            give_back_memory()

    @contextmanager
    def lease(
        self, source: str, owner: str, *, cancelled: Callable[[], bool] | None = None
    ) -> "Iterator[LoadedModel]":
        """The loaded model, protected from eviction inside the block; loads it if needed.

        Args:
            source: As in `open`.
            owner: Id of the visitor.
            cancelled: Asked while the model is being loaded; True stops waiting for it.

        Raises:
            Stopped: This owner cancelled, or `cancelled()` became true, before the model was here.
            ExplorerError: As `open`.
        """
        key, visitor = self._identify(source, owner)
        model = self._take_lease(key, visitor, cancelled)
        try:
            yield model.loaded
        finally:
            with self._changed:
                self._shelf.give_back(model)

    def tokenizer(self, source: str, owner: str) -> "Tokenizer":
        """A model's tokenizer, without reading its weights or importing torch.

        It is there as soon as the model has been found, also while its weights are being read. A
        model that is not on this machine is downloaded first.

        Raises:
            Stopped: This owner cancelled before the model was found.
            ExplorerError: As `open`, but for `BudgetError`.
        """
        key, visitor = self._identify(source, owner)
        with self._changed:
            if key in self._tokenizers:
                self._tokenizers.move_to_end(key)
                return self._tokenizers[key]
            found = self._find_or_join(key, visitor, weights=False)
        if isinstance(found, ShelvedModel):
            return found.loaded.tokenizer
        for _step in found.follow(visitor, until=lambda: found.resolved is not None):
            pass
        assert found.resolved is not None, "a load without an error has found its source"
        return self._read_tokenizer(key, found.resolved)

    def keep_upload(self, files: Sequence[Path], owner: str) -> str:
        """Keep uploaded model files for their owner and return the source that opens them.

        Raises:
            SourceError: The files are no model, are damaged or too large, or the visitor has no id.
        """
        return self._uploads.keep(files, self._rule.owner_of(owner))

    def delete_upload(self, source: str, owner: str) -> None:
        """Unload an upload and delete its files.

        Raises:
            SourceError: There is no such upload of this owner.
        """
        self.unload(source, owner)
        self._uploads.delete(source, self._rule.owner_of(owner))

    # How it is done

    def _identify(self, source: str, owner: str) -> tuple[SharingKey, str]:
        """What a request is about, and who counts as its visitor."""
        bare, dtype = split_dtype(source)
        key = self._rule.key_of(bare, owner, self._loader.catalogue_ids())
        return replace(key, dtype=dtype), owner if self._rule.public else EVERYBODY

    def _find_or_join(
        self, key: SharingKey, visitor: str, *, weights: bool
    ) -> ShelvedModel | SharedLoad:
        """The model when it is in memory, else the load of it that everybody shares."""
        with self._changed:
            model = self._shelf.use(key, visitor) if weights else self._shelf.find(key)
            if model is not None:
                return model
            load = self._loads.get(key)
            if load is not None:
                load.join(visitor, weights=weights)
                return load
            load = self._loads[key] = SharedLoad(self._changed)
            load.join(visitor, weights=weights)
        # A thread of its own, so that the load outlives the page that asked first. A daemon: an
        # app that is told to end does not wait for a download.
        work = threading.Thread(
            target=self._run_load, args=(key, load), name=f"load {key.source}", daemon=True
        )
        work.start()
        return load

    def _take_lease(
        self, key: SharingKey, visitor: str, cancelled: Callable[[], bool] | None
    ) -> ShelvedModel:
        with self._changed:
            found = self._find_or_join(key, visitor, weights=True)
            found.leases += 1
        if isinstance(found, ShelvedModel):
            return found
        try:
            for _step in found.follow(visitor, until=_never, cancelled=cancelled):
                pass
        except BaseException:
            self._return_awaited_lease(key, found)
            raise
        assert found.model is not None, "a load that weights were wanted of has ended with them"
        return found.model

    def _return_awaited_lease(self, key: SharingKey, load: SharedLoad) -> None:
        with self._changed:
            if load.model is None:
                load.leases -= 1
            else:  # the model came in the very moment that it was no longer wanted
                self._shelf.give_back(load.model)

    def _run_load(self, key: SharingKey, load: SharedLoad) -> None:
        """Load in a thread of its own, again if somebody joined while it was being stopped."""
        while True:
            try:
                self._load(key, load)
                return
            # Everything: a panic inside the Rust tokenizer is no Exception, and whatever is not
            # passed on here would leave the visitors waiting for ever.
            except BaseException as problem:
                with self._changed:
                    self._shelf.cancel_reservation(key)
                    if load.try_again():
                        continue
                    del self._loads[key]
                    load.finish(error=problem)
                return

    def _load(self, key: SharingKey, load: SharedLoad) -> None:
        self._reader.refuse_before_download(key, load)
        resolved = self._finder.resolve(key, load)
        if load.is_cancelled():
            raise Stopped("everybody cancelled while the model was looked for")
        with self._changed:
            load.resolved = resolved
            self._changed.notify_all()
            if not load.openers:  # only the tokenizer was asked for
                self._end_load(key, load, None)
                return
        if not self._load_on_base(key, load, resolved):
            self._end_load(key, load, self._reader.read(key, load, resolved))

    def _load_on_base(self, key: SharingKey, load: SharedLoad, resolved: "ResolvedSource") -> bool:
        """Load a checkpoint as its adapter on its base; False where it has to stand for itself."""
        with self._hold_base(key, load) as held:
            model = None if held is None else self._reader.read_adapted(key, load, resolved, *held)
            if model is not None:
                self._end_load(key, load, model)
        return model is not None

    @contextmanager
    def _hold_base(
        self, key: SharingKey, load: SharedLoad
    ) -> "Iterator[tuple[ShelvedModel, AdapterPlace] | None]":
        """The model that a checkpoint's adapter stands on, opened if it is on this machine.

        Without it a checkpoint still opens, with all its weights, which hold the adapter already.
        """
        place = self._finder.adapter_of(key)
        base_key = None if place is None else self._base_key(place, key.owner)
        if place is None or base_key is None:
            yield None
            return
        opener = f"adapter of {key.source}"
        try:
            base = self._take_lease(base_key, opener, load.is_cancelled)
        except Stopped:  # nobody waits for the checkpoint any more, nor for its base
            with self._changed:
                if base_key in self._loads:
                    self._loads[base_key].leave(opener)
            raise
        except ExplorerError:  # whatever is wrong with the base, the checkpoint is whole
            yield None
            return
        try:
            yield base, place
        finally:
            with self._changed:
                self._shelf.leave(base, opener)
                self._shelf.give_back(base)

    def _base_key(self, place: AdapterPlace, owner: str) -> SharingKey | None:
        """How the base of an adapter is shared; None where its owner could not open it now."""
        try:
            key, _ = self._identify(place.base, owner)
        except SourceError:
            return None
        with self._changed:
            loaded = self._shelf.find(key) is not None
        return key if loaded or self._finder.is_here(key) else None

    def _end_load(self, key: SharingKey, load: SharedLoad, model: ShelvedModel | None) -> None:
        """Put the model on the shelf if somebody still wants it, and tell all who wait."""
        with self._changed:
            if model is None or not load.openers:
                model = None
                self._shelf.cancel_reservation(key)
            else:
                model.openers, model.leases = set(load.openers), load.leases
                self._shelf.put(key, model)
            del self._loads[key]
            load.finish(model=model)

    def _read_tokenizer(self, key: SharingKey, resolved: "ResolvedSource") -> "Tokenizer":
        with self._reading_tokenizer:  # once, however many ask
            with self._changed:
                if key in self._tokenizers:
                    return self._tokenizers[key]
            tokenizer = self._loader.load_tokenizer(resolved)
            with self._changed:
                self._tokenizers[key] = tokenizer
                if len(self._tokenizers) > _KEPT_TOKENIZERS:
                    self._tokenizers.popitem(last=False)
            return tokenizer


def _never() -> bool:
    return False
