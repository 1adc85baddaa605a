"""What an adapter is: rank, scale, and beside which layers. No torch here."""

from __future__ import annotations

from dataclasses import dataclass

from models.errors import ConfigError

MOST_RANK = 1024
ATTENTION_LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj")
FFN_LAYERS = ("gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, kw_only=True)
class LoraConfig:
    """Low-rank adapters; see `models/lora.py`.

    Args:
        rank: Columns of B and rows of A.
        alpha: The correction is scaled by alpha / rank, so that another rank needs no other
            learning rate.
        targets: Last part of the names of the layers, such as `q_proj`.
    """

    rank: int = 8
    alpha: float = 16.0
    targets: tuple[str, ...] = ("q_proj", "v_proj")

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", tuple(self.targets))
        whole = isinstance(self.rank, int) and not isinstance(self.rank, bool)
        if not whole or not 1 <= self.rank <= MOST_RANK:
            self._refuse(f"rank={self.rank!r} must be a whole number from 1 to {MOST_RANK}; try 8")
        if not self.alpha > 0:
            self._refuse(f"alpha={self.alpha!r} must be above 0; twice the rank is usual")
        if not self.targets:
            self._refuse("there are no layers to adapt; choose q_proj and v_proj")

    @property
    def scale(self) -> float:
        """Factor of B A."""
        return self.alpha / self.rank

    @staticmethod
    def _refuse(problem: str) -> None:
        raise ConfigError(problem, code="run-setting", problem=problem)
