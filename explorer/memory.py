"""How much memory models may take, and how much is free now.

The limit of a process is the smallest of what the machine has and what its control groups allow
(`control_groups`): in a container the machine may have 64 GB and the container 2.

    version 2   memory.max               memory.current
    version 1   memory.limit_in_bytes    memory.usage_in_bytes

Budget = half of that limit (activations, caches and the page need the rest), or what
GLASSBOX_MEMORY_GB says (1 GB = 10^9 bytes).
"""

import ctypes
import gc
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from explorer.control_groups import ReadText, find_groups, read_system_file
from explorer.errors import ConfigError

BUDGET_VARIABLE = "GLASSBOX_MEMORY_GB"
BYTES_PER_GB = 10**9
# A control group without a limit says "max" (v2) or a number near 2^63 (v1).
NO_LIMIT_BYTES = 2**60


def _read_machine_bytes() -> int:
    import psutil  # late: the command line's --help needs none of it

    return int(psutil.virtual_memory().total)


def _read_machine_available_bytes() -> int:
    import psutil

    return int(psutil.virtual_memory().available)


@dataclass(frozen=True)
class MemoryReaders:
    """Where the numbers come from; tests put their own machine here.

    Args:
        machine_bytes: Physical memory.
        machine_available_bytes: What can be used now without swapping.
        read_text: Content of a file of the system, or None when there is no such file.
    """

    machine_bytes: Callable[[], int] = _read_machine_bytes
    machine_available_bytes: Callable[[], int] = _read_machine_available_bytes
    read_text: ReadText = read_system_file


THIS_MACHINE = MemoryReaders()


@dataclass(frozen=True)
class _GroupFiles:
    """Names that one version of control groups gives to limit, use, and reclaimable use."""

    limit: str
    usage: str
    reclaimable_key: str


_FILES = {
    1: _GroupFiles("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: _GroupFiles("memory.max", "memory.current", "inactive_file"),
}


def compute_limit_bytes(readers: MemoryReaders = THIS_MACHINE) -> int:
    """Memory that this process may use at most: of the machine and of its control groups."""
    limits = [limit for _folder, _files, limit in _limited_groups(readers)]
    return min([readers.machine_bytes(), *limits])


def compute_available_bytes(readers: MemoryReaders = THIS_MACHINE) -> int:
    """Memory that this process can take now, never below 0.

    Inactive file pages of a control group count as free: the kernel drops them first, and a model
    file that was just read would otherwise seem to fill the memory.
    """
    free = [readers.machine_available_bytes()]
    for folder, files, limit in _limited_groups(readers):
        usage = _read_number(readers, f"{folder}/{files.usage}")
        if usage is not None:
            free.append(limit - usage + _read_reclaimable_bytes(readers, folder, files))
    return max(0, min(free))


def compute_budget_bytes(
    environment: Mapping[str, str] = os.environ, readers: MemoryReaders = THIS_MACHINE
) -> int:
    """Bytes that all loaded models together may take.

    Raises:
        ConfigError: GLASSBOX_MEMORY_GB is set and is not a number above 0.
    """
    asked = environment.get(BUDGET_VARIABLE, "").strip()
    if not asked:
        return compute_limit_bytes(readers) // 2
    try:
        gigabytes = float(asked)
    except ValueError:
        gigabytes = math.nan
    if not 0 < gigabytes < math.inf:
        raise ConfigError(
            f"{BUDGET_VARIABLE}={asked!r} is not an amount of memory; give gigabytes above 0, "
            "such as 4 or 2.5, or unset it to use half of the memory",
            code="memory-setting",
            variable=BUDGET_VARIABLE,
            found=asked,
        )
    return int(gigabytes * BYTES_PER_GB)


def give_back_memory() -> None:
    """Return to the system what was freed; call it after large objects have gone.

    Pieces below 32 MB that were freed stay with the process in the C library of Linux (glibc, its
    M_MMAP_THRESHOLD grows up to that): measured here, 130 of 750 MB after a load. Other systems
    return them by themselves.
    """
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)


def say_bytes(n_bytes: int) -> str:
    """An amount of memory for a sentence: '980 MB', '4.9 GB' (powers of 1000, as disks count)."""
    if n_bytes < BYTES_PER_GB:
        return f"{math.ceil(n_bytes / 10**6)} MB"
    return f"{n_bytes / BYTES_PER_GB:.1f} GB"


def _limited_groups(readers: MemoryReaders) -> Iterator[tuple[str, _GroupFiles, int]]:
    """Folder, file names and limit of every control group around this process that has a limit."""
    for version, folder in find_groups("memory", readers.read_text):
        files = _FILES[version]
        limit = _read_number(readers, f"{folder}/{files.limit}")
        if limit is not None and limit < NO_LIMIT_BYTES:
            yield folder, files, limit


def _read_number(readers: MemoryReaders, path: str) -> int | None:
    text = (readers.read_text(path) or "").strip()
    return int(text) if text.isdecimal() else None  # "max" is no limit


def _read_reclaimable_bytes(readers: MemoryReaders, folder: str, files: _GroupFiles) -> int:
    for line in (readers.read_text(f"{folder}/memory.stat") or "").splitlines():
        key, _, number = line.partition(" ")
        if key == files.reclaimable_key:
            return int(number)
    return 0
