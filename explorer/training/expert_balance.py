"""The load of experts in training: without a word for balance, a router sends all to a few.

    balance loss = E * sum over experts of F_e * P_e          mean over the layers with experts

F_e is the number of a token's k choices that fall on expert e, P_e the probability that the router
gives it, both as means over the tokens of the pass. Where all experts are used alike it is k, its
least; where k of them take everything it is E. F counts and has no gradient; P has. Fedus et al.
2021 (Switch Transformers, arXiv 2101.03961), section 2.2, equations 4 to 6, for k = 1.
`load_balancing_loss_func` of transformers gives the same number for one layer; of several it lumps
all tokens together, so that one layer's favourites could make up for another's.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from explorer.training.distributed import Processes, average_tensor
from models.trace import Trace

_LOGITS, _IDS = ".router.logits", ".router.ids"


class RouterTrace(Trace):
    """Keeps what the routers said in one forward pass, with its gradients."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, Tensor] = {}

    def wants(self, name: str) -> bool:
        """Only the routers; attention may stay fast."""
        return name.endswith((_LOGITS, _IDS))

    def visit(self, name: str, tensor: Tensor) -> Tensor:
        """Keep it the first time; a block that is computed again in the backward pass comes twice.

        Args:
            name: Of the activation.
            tensor: Its value.
        """
        if self.wants(name):
            self._kept.setdefault(name, tensor)
        return tensor

    def compute_balance_loss(self, valid: Tensor | None, processes: Processes) -> Tensor:
        """The balance loss of the pass.

        Args:
            valid: (B, T), False marks padding; None is no padding.
            processes: Those that share the batch; shares are counted over all their rows, as the
                mean of their losses would else be another one than of the whole batch.
        """
        losses = [
            compute_layer_balance(
                logits, self._kept[name.removesuffix(_LOGITS) + _IDS], valid, processes
            )
            for name, logits in self._kept.items()
            if name.endswith(_LOGITS)
        ]
        return torch.stack(losses).mean()


def compute_layer_balance(
    logits: Tensor, ids: Tensor, valid: Tensor | None, processes: Processes
) -> Tensor:
    """The balance loss of one layer.

    Args:
        logits: (B, T, E), of the router.
        ids: (B, T, k), the experts that it chose.
        valid: (B, T), False marks padding; None is no padding.
        processes: Those that share the batch.
    """
    n_experts = logits.shape[-1]
    used = slice(None) if valid is None else valid
    choices = functional.one_hot(ids, n_experts).sum(-2)[used].flatten(0, -2)
    shares = average_tensor(choices.float().mean(0), processes)
    probabilities = logits.softmax(-1, dtype=torch.float32)[used].flatten(0, -2).mean(0)
    return n_experts * (shares * probabilities).sum()
