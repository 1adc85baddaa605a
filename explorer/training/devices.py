"""Which device trains, and what it could do at best."""

from __future__ import annotations

import errno
import platform
import time

import torch

from models.errors import ConfigError

# Of torch's allocator, of the C++ library, and of a thread that finds no room for its stack.
_OUT_OF_MEMORY = ("can't allocate", "bad_alloc", "can't start new thread")


MEASURED_S = 0.3
LEAST_PRODUCTS = 8


def choose_device(name: str) -> torch.device:
    """The device of a run.

    Args:
        name: `auto` takes the first there is of cuda, mps and cpu.

    Raises:
        ConfigError: This machine has no such device.
    """
    here = {"cuda": torch.cuda.is_available(), "mps": torch.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, found in here.items() if found))
    if not here.get(name.partition(":")[0], False):
        raise ConfigError(
            f"device={name!r} is not on this machine; choose auto, "
            + ", ".join(kind for kind, found in here.items() if found),
            code="run-setting",
            problem=f"device={name!r} is not on this machine",
        )
    return torch.device(name)


def name_device(device: torch.device) -> str:
    """Its name for people: the product where it is known."""
    if device.type == "cuda":
        return f"cuda: {torch.cuda.get_device_name(device)}"
    return f"{device.type}: {platform.processor() or platform.machine()}"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on any device; on the CPU torch says so in a plain RuntimeError."""
    said = str(error)
    return (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or any(words in said for words in _OUT_OF_MEMORY)
    )


def measure_peak_flops(device: torch.device, dtype: torch.dtype) -> float:
    """Floating-point operations a second of a large matrix product: what a model could reach.

    Measured, since tables of peak speeds do not know this machine. The best of many products
    counts: while others work, most of them are slowed down.

    Args:
        device: Where.
        dtype: Type of the numbers.
    """
    width = 4_096 if device.type == "cuda" else 1_024
    matrix = torch.ones(width, width, device=device, dtype=dtype)
    best = float("inf")
    end = time.perf_counter() + MEASURED_S
    n_measured = 0
    while n_measured < LEAST_PRODUCTS or time.perf_counter() < end:  # the first ones warm up
        n_measured += 1
        _wait_for(device)
        begun = time.perf_counter()
        matrix @ matrix
        _wait_for(device)
        best = min(best, time.perf_counter() - begun)
    return 2 * width**3 / best


def _wait_for(device: torch.device) -> None:
    """GPUs work in the background; a time means something only when they are done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
