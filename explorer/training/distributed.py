"""One run shared by several processes, as `torchrun` starts them.

    torchrun --nproc-per-node 2 ...        each process reads its rows of every batch
      ddp     each holds the whole model, gradients are averaged
              (Li et al. 2020, arXiv 2006.15704)
      fsdp    each holds a part of every weight, gradient and optimiser state; the whole weights of
              a block are put together while it computes (Zhao et al. 2023, arXiv 2304.11277)

The mean over all rows is the mean of the processes' means, since all read equally many: losses and
gradients are those of one process with the whole batch, up to rounding.

Everything here but `Processes` is called by all processes at the same place of their program: each
waits for the others. A run of one process calls the same functions, and nothing is waited for.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor, nn

from explorer.errors import JobError
from models.decoder import Decoder

SharedBy = Literal["ddp", "fsdp"]
TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, kw_only=True)
class Processes:
    """Which one of how many this process is.

    Args:
        rank: Number among all, from 0.
        world: How many there are.
        local_rank: Number among those of this machine: of its GPU.
        device_type: `cpu` or `cuda`, of all.
    """

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    device_type: str = "cpu"

    @property
    def is_first(self) -> bool:
        """Whether this one writes events and checkpoints."""
        return self.rank == 0

    @property
    def device(self) -> torch.device:
        """Where this process computes."""
        if self.device_type == "cuda":
            return torch.device("cuda", self.local_rank)
        return torch.device(self.device_type)

    def take_rows(self, batch: Tensor) -> Tensor:
        """The rows of a batch (B, ...) that this process reads: (B / world, ...).

        Raises:
            JobError: B is not a multiple of the number of processes.
        """
        if len(batch) % self.world:
            raise _setting_error(
                f"a batch of {len(batch)} windows cannot be shared equally by {self.world} "
                f"processes; choose a batch size that is a multiple of {self.world}"
            )
        return batch.chunk(self.world)[self.rank]


def _setting_error(problem: str) -> JobError:
    return JobError(
        f"the run cannot be shared: {problem}", code="processes-setting", problem=problem
    )


def connect(device_type: str, environment: Mapping[str, str] = os.environ) -> Processes:
    """Find the other processes of this run; without `torchrun` there are none.

    Args:
        device_type: `cpu` (they talk by gloo), `cuda` (by nccl), or another that one process uses
            alone.
        environment: Where `torchrun` says who this is.

    Raises:
        JobError: Only a part of what `torchrun` says is there, or the device cannot be shared.
    """
    if int(environment.get("WORLD_SIZE", "1")) == 1:
        return Processes(device_type=device_type)
    if missing := [name for name in TORCHRUN if name not in environment]:
        raise _setting_error(
            f"WORLD_SIZE is set and {', '.join(missing)} not; start it with torchrun, or unset "
            "WORLD_SIZE"
        )
    if device_type not in {"cpu", "cuda"}:
        raise _setting_error(f"device {device_type!r} takes one process; choose cpu or cuda")
    processes = Processes(
        rank=int(environment["RANK"]),
        world=int(environment["WORLD_SIZE"]),
        local_rank=int(environment["LOCAL_RANK"]),
        device_type=device_type,
    )
    if device_type == "cuda":
        torch.cuda.set_device(processes.device)
    backend = "nccl" if device_type == "cuda" else "gloo"
    torch.distributed.init_process_group(backend, rank=processes.rank, world_size=processes.world)
    return processes


def disconnect(processes: Processes) -> None:
    """Let go of the others; the last thing that a run does."""
    if processes.world > 1:
        torch.distributed.destroy_process_group()


def wrap_model(model: nn.Module, processes: Processes, shared_by: SharedBy) -> nn.Module:
    """What to call in training in place of `model`, so that gradients are those of all processes.

    Optimiser, averages and checkpoints go on with `model` itself, whose parameters keep their
    names; the optimiser is built after this.

    Args:
        model: With the same weights everywhere: drawn from one seed or read from one file.
        processes: Of this run; one alone gets `model` back.
        shared_by: With `fsdp`, `model` is changed in place, and from then on each of its forward
            passes, for evaluation too, needs all processes.

    Raises:
        JobError: `fsdp` with experts: each process would wait for those that only others chose.
    """
    assert shared_by in get_args(SharedBy)
    if processes.world == 1:
        return model
    if shared_by == "fsdp":
        if isinstance(model, Decoder) and model.config.moe is not None:
            raise _setting_error("fsdp does not go with experts; choose ddp")
        return _shard(cast(Decoder, model), processes)
    on_gpu = processes.device_type == "cuda"
    return nn.parallel.DistributedDataParallel(
        model,
        device_ids=[processes.local_rank] if on_gpu else None,
        # an expert that no token chose has no gradient, and DDP would wait for it
        find_unused_parameters=isinstance(model, Decoder) and model.config.moe is not None,
    )


def _shard(model: Decoder, processes: Processes) -> Decoder:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(processes.device_type, (processes.world,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def set_gradient_exchange(wrapped: nn.Module, wanted: bool) -> None:
    """Whether the next forward and backward pass averages gradients over the processes.

    With accumulation only the last pass of a step has to; the others would only cost time.

    Args:
        wrapped: From `wrap_model`.
        wanted: True from the last pass of a step on.
    """
    if isinstance(wrapped, nn.parallel.DistributedDataParallel):
        wrapped.require_backward_grad_sync = wanted
    elif set_wanted := getattr(wrapped, "set_requires_gradient_sync", None):  # of fully_shard
        set_wanted(wanted)


def average(value: float, processes: Processes) -> float:
    """The mean of what each process gives, such as its loss."""
    if processes.world == 1:
        return value
    total = torch.tensor(value, device=processes.device, dtype=torch.float64)
    torch.distributed.all_reduce(total)
    return float(total) / processes.world


def average_tensor(values: Tensor, processes: Processes) -> Tensor:
    """The mean of a tensor without gradient over the processes."""
    if processes.world == 1:
        return values
    total = values.detach().clone()
    torch.distributed.all_reduce(total)
    return total / processes.world


def hear_first(value: int, processes: Processes) -> int:
    """What the first process gives, in all: a request to stop must reach them at the same step."""
    if processes.world == 1:
        return value
    said = torch.tensor(value, device=processes.device)
    torch.distributed.broadcast(said, src=0)
    return int(said)


def gather_full_state(state: Any, processes: Processes) -> Any:
    """A state with whole tensors, on the CPU, for the first process to save.

    Args:
        state: Of a model, an optimiser or an average: tensors and numbers in any depth of dicts.
        processes: Of this run.

    Returns:
        The same dicts; in all but the first process with empty tensors.
    """
    if isinstance(state, Mapping):
        return {key: gather_full_state(value, processes) for key, value in state.items()}
    if not isinstance(state, Tensor):
        return state
    whole: Any = state.detach()
    if hasattr(whole, "full_tensor"):  # a DTensor: each process holds a part
        whole = whole.full_tensor()
    return whole.cpu() if processes.is_first else whole.new_empty(0, device="cpu")


def scatter_like(whole: Tensor, parameter: Tensor) -> Tensor:
    """The part of a whole tensor that belongs to this process's part of a parameter.

    Args:
        whole: The same in all processes.
        parameter: A parameter of a wrapped model; one that is not shared out takes `whole` as it
            is.
    """
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(parameter, DTensor) or whole.shape != parameter.shape:
        return whole
    on_device = whole.to(parameter.device, parameter.dtype)
    return distribute_tensor(on_device, parameter.device_mesh, parameter.placements)


def drop_gathered(model: nn.Module) -> None:
    """Let go of whole weights that the last forward pass put together.

    `fully_shard` keeps those of the outermost module until the next backward pass. Whoever changes
    weights without one, as an average that is swapped in does, would else go on with the old ones.

    Args:
        model: Any; only one that is shared out has such weights.
    """
    from torch.distributed.fsdp import FSDPModule

    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()
