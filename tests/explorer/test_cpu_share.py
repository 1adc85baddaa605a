"""Cores of made-up machines: plain, in containers, beside other programs."""

import sys

import pytest
import torch

from explorer.cpu_share import (
    APP_SPINS,
    TRAINING_SPINS,
    CpuReaders,
    FreeCores,
    count_cores,
    set_waiting,
)
from explorer.jobs.worker_process import WorkerProcess
from explorer.slots import FairSlots

LIMITED = {"/proc/self/cgroup": "0::/app\n", "/sys/fs/cgroup/app/cpu.max": "200000 100000\n"}


class Machine:
    """A machine whose clocks the test moves."""

    def __init__(self, n_cores: int = 4, files: dict[str, str] | None = None) -> None:
        self.now = self.own = self.busy = 0.0
        self.files = files or {}
        self.readers = CpuReaders(
            now_s=lambda: self.now,
            own_s=lambda: self.own,
            busy_s=lambda: self.busy,
            n_allowed=lambda: n_cores,
            read_text=self.files.get,
        )

    def go_on(self, seconds: float, *, own: float = 0.0, others: float = 0.0) -> None:
        """Let time pass; `own` and `others` are cores in use meanwhile."""
        self.now += seconds
        self.own += own * seconds
        self.busy += (own + others) * seconds


def test_cores_that_others_use_are_left_to_them() -> None:
    machine = Machine()
    free = FreeCores(machine.readers, {})
    assert free.count() == 4  # nothing is known yet
    for own, others, wanted in ((4, 0, 4), (3, 1, 3), (1, 2.9, 1), (1, 4, 1), (4, 0.3, 4)):
        machine.go_on(0.5, own=own, others=others)
        assert free.count() == wanted


def test_it_looks_a_few_times_a_second_and_never_back_over_a_pause() -> None:
    machine = Machine()
    free = FreeCores(machine.readers, {})
    free.count()
    machine.go_on(0.1, others=4)
    assert free.count() == 4  # too soon
    machine.go_on(0.2, others=4)
    assert free.count() == 1
    machine.go_on(60, others=3)  # of a minute ago
    assert free.count() == 4


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({}, 8),
        (LIMITED, 2),
        ({**LIMITED, "/sys/fs/cgroup/app/cpu.max": "max 100000\n"}, 8),
        ({**LIMITED, "/sys/fs/cgroup/app/cpu.max": "50000 100000\n"}, 1),
        ({**LIMITED, "/sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1),  # the tightest counts
        (
            {
                "/proc/self/cgroup": "3:cpu,cpuacct:/docker/abc\n0::/\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            3,
        ),
        (
            {
                "/proc/self/cgroup": "3:cpu,cpuacct:/docker/abc\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            8,
        ),
    ],
)
def test_a_container_has_the_cores_of_its_quota(files: dict[str, str], wanted: int) -> None:
    assert count_cores(Machine(8, files).readers) == wanted


def test_strangers_beside_a_container_do_not_count_and_its_own_programs_do() -> None:
    machine = Machine(64, {**LIMITED, "/sys/fs/cgroup/app/cpu.stat": "usage_usec 0\n"})
    free = FreeCores(machine.readers, {})
    assert free.count() == 2
    machine.go_on(1, own=2, others=50)
    machine.files["/sys/fs/cgroup/app/cpu.stat"] = "usage_usec 2000000\n"
    assert free.count() == 2
    machine.go_on(1, own=1, others=50)
    machine.files["/sys/fs/cgroup/app/cpu.stat"] = "usage_usec 4000000\n"
    assert free.count() == 1


def test_each_turn_of_the_device_uses_the_free_cores() -> None:
    machine, before = Machine(), torch.get_num_threads()
    free = FreeCores(machine.readers, {})
    free._most = 4  # this machine may have fewer
    slots, seen = FairSlots(begin=free.use), []
    try:
        for others in (0, 2, 3):
            machine.go_on(0.5, others=others)
            with slots.turn():
                seen.append(torch.get_num_threads())
        fixed = FreeCores(machine.readers, {"OMP_NUM_THREADS": "2"})
        fixed.use()
        assert torch.get_num_threads() == seen[-1]
    finally:
        torch.set_num_threads(before)
    assert seen == [4, 2, 1]


def test_this_machine_is_read() -> None:
    assert 1 <= FreeCores().count() <= count_cores()


def test_how_threads_wait_is_the_users_choice_if_he_made_one() -> None:
    environment: dict[str, str] = {}
    set_waiting(environment, APP_SPINS)
    assert environment == {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": APP_SPINS}
    environment = {"OMP_WAIT_POLICY": "ACTIVE"}
    set_waiting(environment, APP_SPINS)
    assert environment == {"OMP_WAIT_POLICY": "ACTIVE"}
    environment = {"GOMP_SPINCOUNT": "7"}
    set_waiting(environment, APP_SPINS)
    assert environment["GOMP_SPINCOUNT"] == "7"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_training_looks_for_work_less_than_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOMP_SPINCOUNT", APP_SPINS)
    process = WorkerProcess()
    try:
        environment = process_environment(process._process.pid)
    finally:
        process.close()
    assert environment["GOMP_SPINCOUNT"] == TRAINING_SPINS
    assert int(TRAINING_SPINS) < int(APP_SPINS)


def process_environment(pid: int) -> dict[str, str]:
    import psutil

    return psutil.Process(pid).environ()
