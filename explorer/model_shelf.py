"""The models in memory: who uses them, how much they take, which one goes first.

    budget  |--- leased ---|--- idle, used lately ---|- idle, used long ago -|- reserved -|  free  |
                                                       goes first              being read

A model that is only an adapter stands on another one, whose bytes stay as long as it does: the base
goes after all that stand on it, never before.

A lease protects a model while an answer is being written with it. A reservation holds the bytes of
a model that is being read, so that two loads at once do not both count on the same room.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from explorer.errors import BudgetError
from explorer.memory import say_bytes
from explorer.ownership import SharingKey
from explorer.store_records import ModelSummary

if TYPE_CHECKING:
    from models.loading import LoadedModel


@dataclass(eq=False)
class ShelvedModel:
    """A loaded model and who uses it.

    Args:
        loaded: The model.
        summary: What a page says about it.
        openers: Owners who have opened it and not unloaded it.
        leases: Streams that use it right now.
        unwanted: All openers have unloaded it; it goes with its last lease, and after the last
            model that stands on it.
        stands_on: The model whose weights it uses besides its own adapter.
    """

    loaded: "LoadedModel"
    summary: ModelSummary
    openers: set[str] = field(default_factory=set)
    leases: int = 0
    unwanted: bool = False
    stands_on: "ShelvedModel | None" = None


class ModelShelf:
    """Bookkeeping of loaded models against a budget. The caller holds a lock around every call.

    Args:
        budget_bytes: Bytes that all models together may take, those being read included.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._models: OrderedDict[SharingKey, ShelvedModel] = OrderedDict()  # least used first
        self._reserved: dict[SharingKey, int] = {}

    @property
    def used_bytes(self) -> int:
        """Bytes of the models here and of those being read."""
        loaded = sum(model.summary.n_bytes for model in self._models.values())
        return loaded + sum(self._reserved.values())

    def list_keys(self) -> frozenset[SharingKey]:
        """What is here."""
        return frozenset(self._models)

    def find(self, key: SharingKey) -> ShelvedModel | None:
        """A wanted model, without counting as a use."""
        model = self._models.get(key)
        return None if model is None or model.unwanted else model

    def use(self, key: SharingKey, owner: str) -> ShelvedModel | None:
        """A model that an owner opens, now the most recently used one; None when it is not here."""
        model = self._models.get(key)
        if model is not None:
            self._models.move_to_end(key)
            model.openers.add(owner)
            model.unwanted = False
        return model

    def reserve(self, key: SharingKey, name: str, needs: int, available: int) -> int:
        """Take idle models out until a new one fits, and keep its bytes for it.

        Nothing is taken out when it would not help.

        Args:
            key: The model to be read.
            name: Its name, for the message.
            needs: Bytes that it will take.
            available: Bytes that this machine has free now.

        Returns:
            Bytes of the models that were taken out.

        Raises:
            BudgetError: It is larger than the budget, or the models in use leave too little.
        """
        self.refuse_too_large(name, needs)
        victims: list[ShelvedModel] = []
        freed = 0
        while not self._fits(needs, freed, available):
            victim = next(self._idle(victims), None)
            if victim is None:
                raise _in_use(name, needs, self._room(freed, available))
            victims.append(victim)
            freed += victim.summary.n_bytes
        for candidate, model in list(self._models.items()):
            if model in victims:
                del self._models[candidate]
        self._drop_unwanted()
        self._reserved[key] = needs
        return freed

    def _idle(self, going: Collection[ShelvedModel]) -> Iterator[ShelvedModel]:
        """Models that could go next once others go, least used first."""
        for model in self._models.values():
            needed = any(m.stands_on is model and m not in going for m in self._models.values())
            if not model.leases and not needed and model not in going:
                yield model

    def refuse_too_large(self, name: str, needs: int) -> None:
        """Refuse a model that could not be read even if all others went.

        Raises:
            BudgetError: It is larger than the budget.
        """
        if needs > self.budget_bytes:
            raise _too_large(name, needs, self.budget_bytes)

    def room_without_idle(self, available: int) -> int:
        """Bytes for one more model if all that nobody uses right now went.

        Args:
            available: Bytes that this machine has free now.
        """
        going: list[ShelvedModel] = []
        while (model := next(self._idle(going), None)) is not None:
            going.append(model)
        return self._room(sum(model.summary.n_bytes for model in going), available)

    def cancel_reservation(self, key: SharingKey) -> None:
        """Give back the bytes of a model that was not read after all."""
        self._reserved.pop(key, None)

    def put(self, key: SharingKey, model: ShelvedModel) -> None:
        """Put a model that has been read in the place of its reservation."""
        self.cancel_reservation(key)
        self._models[key] = model

    def give_back(self, model: ShelvedModel) -> None:
        """End one lease; an unwanted model goes with the last one."""
        model.leases -= 1
        self._drop_unwanted()

    def leave(self, model: ShelvedModel, owner: str) -> None:
        """Forget that an owner has a model open, without asking that it goes.

        Args:
            model: One that is here.
            owner: Who had opened it.
        """
        model.openers.discard(owner)
        model.unwanted = not model.openers

    def unload(self, key: SharingKey, owner: str) -> bool:
        """Forget that an owner uses a model; it goes when nobody else does.

        Returns:
            Whether the model went now: False when it is not here, when others have it open, when
            others stand on it, or when an answer is being written with it (then it goes right after
            that).
        """
        model = self._models.get(key)
        if model is None:
            return False
        self.leave(model, owner)
        self._drop_unwanted()
        return key not in self._models

    def _drop_unwanted(self) -> None:
        """Take out what nobody has open; its base, too, where that was here for its sake alone."""
        while True:
            bases = {id(model.stands_on) for model in self._models.values()}
            gone = [
                key
                for key, model in self._models.items()
                if model.unwanted and not model.leases and id(model) not in bases
            ]
            if not gone:
                return
            for key in gone:
                del self._models[key]

    def _room(self, freed: int, available: int) -> int:
        """Bytes for a new model once `freed` bytes have gone: of the budget and of the machine."""
        return max(0, min(self.budget_bytes - self.used_bytes, available) + freed)

    def _fits(self, needs: int, freed: int, available: int) -> bool:
        return needs <= self._room(freed, available)


def _too_large(name: str, needs: int, budget: int) -> BudgetError:
    return BudgetError(
        f"{name} needs {say_bytes(needs)} of memory, models may take {say_bytes(budget)} here; "
        "choose a smaller or quantised model, or set GLASSBOX_MEMORY_GB higher if the machine has "
        "more",
        code="model-too-large",
        name=name,
        needs=say_bytes(needs),
        budget=say_bytes(budget),
    )


def _in_use(name: str, needs: int, room: int) -> BudgetError:
    return BudgetError(
        f"{name} needs {say_bytes(needs)} of memory, {say_bytes(room)} are free while other models "
        "and programs are in use; unload a model or close a program, or try again in a while",
        code="memory-in-use",
        name=name,
        needs=say_bytes(needs),
        free=say_bytes(room),
    )
