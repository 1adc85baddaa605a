"""How gradients become updates: AdamW for everything, or Muon for the matrices of the blocks.

    AdamW   m ← β₁ m + (1 - β₁) g        v ← β₂ v + (1 - β₂) g²
            w ← w - η (λ w + m̂ / (√v̂ + ε))     m̂, v̂: divided by 1 - β₁ᵗ, 1 - β₂ᵗ
            Loshchilov & Hutter 2019, arXiv 1711.05101, algorithm 2

    Muon    m ← 0.95 m + 0.05 g          u = 0.05 g + 0.95 m   (Nesterov)
            w ← w - η (λ w + 0.2 √max(rows, columns) · orthogonalise(u))
            Jordan et al. 2024, kellerjordan.github.io/posts/muon: five Newton-Schulz steps bring
            all singular values of u near 1; the factor is that of Liu et al. 2025,
            arXiv 2502.16982, section 2.2: updates become as large as AdamW's, so that one learning
            rate and one decay serve both.

Weight decay pulls matrices and embeddings towards 0; norms and biases have their own scale and are
left alone, unless the configuration says `everything`. Embeddings, the head, norms and biases are
AdamW's in both kinds.

The state is kept by the names of parameters, as plain tensors: a checkpoint does not depend on the
order in which a module happens to list them, and `torch.load(weights_only=True)` opens it.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from explorer.training.run_config import OptimiserConfig
from explorer.training.saved_state import (
    lay_out_like,
    make_state_error,
    require_same_names,
    require_same_shape,
)

State = dict[str, dict[str, Tensor]]
FUSED_DEVICES = frozenset({"cpu", "cuda", "mps"})  # where PyTorch has AdamW as one kernel
ADAMW_STATE = frozenset({"step", "exp_avg", "exp_avg_sq"})
MUON_STATE = frozenset({"momentum_buffer"})
MUON_MOMENTUM = 0.95  # Jordan et al. 2024


class Optimiser:
    """One or two optimisers of PyTorch that together update every parameter of a model once.

    Args:
        parameters: Name -> what is trained.
        parts: Optimisers of PyTorch; each parameter belongs to one group of one of them.
    """

    def __init__(
        self, parameters: Mapping[str, nn.Parameter], parts: Iterable[torch.optim.Optimizer]
    ) -> None:
        self._parameters = dict(parameters)
        self._parts = tuple(parts)
        self._part_of = {
            parameter: part
            for part in self._parts
            for group in part.param_groups
            for parameter in group["params"]
        }
        assert set(self._part_of) == set(self._parameters.values())

    def step(self, learning_rate: float) -> None:
        """Update every parameter that has a gradient."""
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = learning_rate
            part.step()

    def zero_grad(self) -> None:
        """Forget all gradients; their memory is given back."""
        for parameter in self._parameters.values():
            parameter.grad = None

    def state_dict(self) -> State:
        """Parameter name -> its running means; empty for one that never had a gradient.

        The tensors are those at work, not copies: save them before the next step.
        """
        return {
            name: dict(self._part_of[parameter].state.get(parameter, {}))
            for name, parameter in self._parameters.items()
        }

    def load_state_dict(self, state: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go on from what `state_dict` gave; the tensors are copied.

        Raises:
            WeightError: It belongs to another model or another kind of optimiser; nothing changed.
        """
        self._check(state)
        for name, parameter in self._parameters.items():
            part = self._part_of[parameter]
            part.state.pop(parameter, None)
            if state[name]:
                part.state[parameter] = {
                    key: lay_out_like(tensor, parameter) for key, tensor in state[name].items()
                }

    def _check(self, state: Mapping[str, Mapping[str, Tensor]]) -> None:
        require_same_names(state, self._parameters)
        for name, entries in state.items():
            parameter = self._parameters[name]
            is_muon = isinstance(self._part_of[parameter], torch.optim.Muon)
            expected = MUON_STATE if is_muon else ADAMW_STATE
            if entries and set(entries) != expected:
                raise make_state_error(f"{name} has {sorted(entries)}, not {sorted(expected)}")
            for key, tensor in entries.items():
                if key != "step":
                    require_same_shape(f"{key} of {name}", tensor, parameter)


def build_optimiser(model: nn.Module, config: OptimiserConfig) -> Optimiser:
    """An optimiser of all parameters of `model` that are trained; a tied head counts once."""
    parameters = {n: p for n, p in model.named_parameters() if p.requires_grad}
    by_muon = {
        name: parameter
        for name, parameter in parameters.items()
        if config.kind == "muon" and "blocks." in name and parameter.ndim == 2
    }
    by_adamw = {name: p for name, p in parameters.items() if name not in by_muon}
    parts: list[torch.optim.Optimizer] = []
    if by_muon:
        parts.append(_build_muon(by_muon.values(), config))
    if by_adamw:
        parts.append(_build_adamw(by_adamw.values(), config))
    return Optimiser(parameters, parts)


def _build_muon(parameters: Iterable[nn.Parameter], config: OptimiserConfig) -> torch.optim.Muon:
    return torch.optim.Muon(
        list(parameters),
        lr=config.learning_rate,
        weight_decay=config.weight_decay,
        momentum=MUON_MOMENTUM,
        adjust_lr_fn="match_rms_adamw",
    )


def _build_adamw(parameters: Iterable[nn.Parameter], config: OptimiserConfig) -> torch.optim.AdamW:
    decayed: list[nn.Parameter] = []
    spared: list[nn.Parameter] = []
    for parameter in parameters:
        spare = config.decay == "matrices" and parameter.ndim < 2
        (spared if spare else decayed).append(parameter)
    groups = [(decayed, config.weight_decay), (spared, 0.0)]
    return torch.optim.AdamW(
        [{"params": group, "weight_decay": decay} for group, decay in groups if group],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        fused=all(p.device.type in FUSED_DEVICES for p in (*decayed, *spared)),
    )


def clip_gradients(model: nn.Module, max_norm: float | None) -> Tensor:
    """Scale all gradients down together so that their norm is at most `max_norm`.

    Pascanu et al. 2013, arXiv 1211.5063, section 3.2. Nothing here waits for a GPU: the first to
    do so is whoever reads the result.

    Args:
        model: Whose gradients; changed in place.
        max_norm: None only measures.

    Returns:
        The norm of all gradients as one vector, before they were scaled, as a scalar. Where it is
        not finite the scaled gradients are not either, and no step should follow.
    """
    norm = get_total_norm(p.grad for p in model.parameters() if p.grad is not None)
    if hasattr(norm, "full_tensor"):  # a DTensor: each process holds a part of the sum
        norm = norm.full_tensor()
    if max_norm is not None:
        clip_grads_with_norm_(model.parameters(), max_norm, norm)
    return norm
