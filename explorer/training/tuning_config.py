"""What decides a fine-tuning besides what decides any run. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from models.errors import ConfigError
from models.lora_config import LoraConfig

Trains = Literal["head", "last_block", "all", "lora"]
Template = Literal["alpaca", "phi3", "chat"]
TrainOn = Literal["answer", "everything"]
PoolingChoice = Literal["last", "position", "mean"]
PreferenceLossName = Literal["dpo", "ipo", "simpo", "orpo", "kto"]
Reduction = Literal["sum", "mean"]


@dataclass(frozen=True, kw_only=True)
class TuningConfig:
    """How a model that is there already is trained further.

    Args:
        base: What the model store calls the model it begins from: `run:ID@STEP`, a catalogue id.
        base_name: The same for the page.
        trains: Which weights: the new head alone, the last block with the final norm (and the
            head), all, or low-rank adapters.
        lora: The adapters, where they are what is trained.
        template: How question and answer become one text.
        train_on: Whether the question is learned, too.
        packing: Whether short examples share a row.
        labels: Classes, in the order of the head's rows.
        pooling: Which state the head of a classifier reads.
        loss: Of preferences.
        beta: Its strength: how far from the reference the model may go for a preference.
        gamma: Of SimPO: the margin that is wanted.
        reduction: Whether log-probabilities of an answer are summed, as in the paper and in TRL, or
            averaged over its tokens.
        row_limit: Tokens of a row; longer ones are cut on the right.
    """

    base: str
    base_name: str = ""
    trains: Trains = "all"
    lora: LoraConfig | None = None
    template: Template = "alpaca"
    train_on: TrainOn = "answer"
    packing: bool = False
    labels: tuple[str, ...] = ()
    pooling: PoolingChoice = "last"
    loss: PreferenceLossName = "dpo"
    beta: float = 0.1
    gamma: float = 0.5
    reduction: Reduction = "sum"
    row_limit: int = 256

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        for name, kind in _CHOICES.items():
            found, known = getattr(self, name), get_args(kind)
            if found not in known:
                _refuse(f"{name}={found!r} is unknown; choose {', '.join(known)}")
        if not 0 < self.beta <= 100:
            _refuse(f"beta={self.beta!r} must be above 0 and at most 100; 0.1 is usual")
        if not 0 <= self.gamma <= 100:
            _refuse(f"gamma={self.gamma!r} must be from 0 to 100; 0.5 is usual")
        if not self.row_limit >= 2:
            _refuse(f"row_limit={self.row_limit!r} leaves no room for an answer; try 256")
        if (self.trains == "lora") != (self.lora is not None):
            _refuse(f"trains={self.trains!r} does not go with lora={self.lora}")


_CHOICES: Mapping[str, object] = {
    "trains": Trains,
    "template": Template,
    "train_on": TrainOn,
    "pooling": PoolingChoice,
    "loss": PreferenceLossName,
    "reduction": Reduction,
}


def _refuse(problem: str) -> None:
    raise ConfigError(problem, code="run-setting", problem=problem)
