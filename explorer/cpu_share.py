"""How many threads a forward pass should use: one for each core that other programs leave free.

Torch divides an operation among threads, and all wait for the slowest. On free cores two threads
are nearly twice as fast as one. Where another program needs a core, the thread there is late, the
others wait in vain, and two threads are slower than one (measured: `tests/benchmarks/threads.py`).
That holds beside programs that have stepped back (`nice`), too, as the trainings of this app do:
they take a core whenever a thread sleeps for a moment.

    free cores = cores - (seconds that everything used - seconds of this process) / seconds gone by

Who sets OMP_NUM_THREADS wants that number, always. Threads change the last bits of a sum.
"""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass

from explorer.control_groups import ReadText, find_groups, read_system_file

THREADS_VARIABLE = "OMP_NUM_THREADS"
WAIT_VARIABLE = "OMP_WAIT_POLICY"
SPIN_VARIABLE = "GOMP_SPINCOUNT"
# How often a thread without work looks for more before it sleeps (libgomp, torch's on Linux). To
# wake one takes longer than most operations of one token; one that looks on takes a core from
# others. 5,000 looks are about 0.3 ms. Trainings run beside other work for minutes, and look less.
APP_SPINS = "5000"
TRAINING_SPINS = "2000"
# Between two looks. Linux counts in hundredths of a second, and people do not notice a quarter.
EVERY_S = 0.25
# After a longer pause the mean of the time since says nothing of now.
STALE_S = 3.0


def _read_busy_s() -> float:
    import psutil  # late: the command line's --help needs none of it

    times = psutil.cpu_times()
    return float(times.user + times.system + getattr(times, "nice", 0.0))


def _count_allowed() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class CpuReaders:
    """Where the numbers come from; tests put their own machine here.

    Args:
        now_s: Any clock that only goes forward.
        own_s: Processor seconds that this process has used.
        busy_s: Those that the machine has used.
        n_allowed: Cores that this process may run on.
        read_text: Content of a file of the system, or None when there is no such file.
    """

    now_s: Callable[[], float] = time.monotonic
    own_s: Callable[[], float] = time.process_time
    busy_s: Callable[[], float] = _read_busy_s
    n_allowed: Callable[[], int] = _count_allowed
    read_text: ReadText = read_system_file


THIS_MACHINE = CpuReaders()


def count_cores(readers: CpuReaders = THIS_MACHINE) -> int:
    """Cores that this process may use: those it may run on, and what its control groups allow.

    In a container the machine may have 64 cores and the container the time of 2.
    """
    quotas = [quota for _, quota in _quotas(readers)]
    return max(1, int(min([readers.n_allowed(), *quotas])))


def _quotas(readers: CpuReaders) -> list[tuple[str, float]]:
    """Folder and cores of every control group that is limited."""
    found = []
    for version, folder in find_groups("cpu", readers.read_text):
        if version == 2:
            quota, _, period = (readers.read_text(f"{folder}/cpu.max") or "").partition(" ")
        else:
            quota = readers.read_text(f"{folder}/cpu.cfs_quota_us") or ""
            period = readers.read_text(f"{folder}/cpu.cfs_period_us") or ""
        if quota.strip().isdecimal() and period.strip().isdecimal():  # "max" and -1 are no limit
            found.append((folder, int(quota) / int(period)))
    return found


def set_waiting(environment: MutableMapping[str, str], spins: str) -> None:
    """Say how torch's threads wait, before it is imported; what the user has set stays.

    Args:
        environment: The environment variables, changed in place.
        spins: Looks for more work before a thread sleeps.
    """
    if WAIT_VARIABLE not in environment:
        environment[WAIT_VARIABLE] = "PASSIVE"  # of other libraries than libgomp: macOS, Windows
        environment.setdefault(SPIN_VARIABLE, spins)


class FreeCores:
    """Counts the cores that are free. Safe to use from any thread.

    Args:
        readers: The machine.
        environment: The environment variables.
    """

    def __init__(
        self, readers: CpuReaders = THIS_MACHINE, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._readers = readers
        self._lock = threading.Lock()
        self._n_cores = self._free = count_cores(readers)
        self._is_fixed = THREADS_VARIABLE in environment
        # A container with a limit shares the machine's cores with strangers, whose use is no
        # business of its own: what counts is the use of its own limit.
        self._group = min(_quotas(readers), key=lambda found: found[1], default=("", math.inf))[0]
        self._last: tuple[float, float] | None = None
        self._most: int | None = None

    def count(self) -> int:
        """Cores that are free now, at least 1; looked at a few times a second at most."""
        with self._lock:
            now = self._readers.now_s()
            if self._last is not None and now - self._last[0] < EVERY_S:
                return self._free
            others, last = self._others_s(), self._last
            self._last = now, others
            if last is None or now - last[0] > STALE_S:
                self._free = self._n_cores
            else:
                used = (others - last[1]) / (now - last[0])
                self._free = min(self._n_cores, max(1, round(self._n_cores - used)))
            return self._free

    def _others_s(self) -> float:
        """Seconds that others have used since some time."""
        if not self._group:
            return self._readers.busy_s() - self._readers.own_s()
        lines = (self._readers.read_text(f"{self._group}/cpu.stat") or "").splitlines()
        values = dict(line.split(" ", 1) for line in lines if " " in line)
        if not values.get("usage_usec", "").isdecimal():
            return 0.0  # version 1 tells it elsewhere; nothing is known of others
        return int(values["usage_usec"]) / 1e6 - self._readers.own_s()

    def use(self) -> None:
        """Let the calling thread's operations of torch use the free cores."""
        torch = sys.modules.get("torch")  # not imported yet: nothing has been computed
        if torch is None or self._is_fixed:
            return
        if self._most is None:  # torch may have its reasons for fewer, such as two threads a core
            self._most = torch.get_num_threads()
        free = min(self.count(), self._most)
        if torch.get_num_threads() != free:
            torch.set_num_threads(free)
