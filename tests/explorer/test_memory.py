"""Memory limits of made-up machines: plain, in containers of both versions, nested."""

import pytest

from explorer.errors import ConfigError
from explorer.memory import (
    MemoryReaders,
    compute_available_bytes,
    compute_budget_bytes,
    compute_limit_bytes,
    say_bytes,
)

GB = 10**9
VERSION_1 = "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/\n"


def machine(files: dict[str, str], total: int = 64 * GB, free: int = 40 * GB) -> MemoryReaders:
    return MemoryReaders(lambda: total, lambda: free, files.get)


def test_without_control_groups_the_machine_decides():
    readers = machine({})  # macOS, Windows
    assert compute_limit_bytes(readers) == 64 * GB
    assert compute_available_bytes(readers) == 40 * GB
    assert compute_budget_bytes({}, readers) == 32 * GB


def test_version_2_container_seen_from_inside():
    readers = machine(
        {
            "/proc/self/cgroup": "0::/\n",
            "/sys/fs/cgroup/memory.max": f"{16 * GB}\n",
            "/sys/fs/cgroup/memory.current": f"{10 * GB}\n",
            "/sys/fs/cgroup/memory.stat": f"anon 1\ninactive_file {3 * GB}\n",
        }
    )
    assert compute_limit_bytes(readers) == 16 * GB
    assert compute_available_bytes(readers) == 9 * GB
    assert compute_budget_bytes({}, readers) == 8 * GB


def test_the_tightest_of_nested_groups_counts():
    readers = machine(
        {
            "/proc/self/cgroup": "0::/user.slice/app.scope\n",
            "/sys/fs/cgroup/user.slice/app.scope/memory.max": "max\n",
            "/sys/fs/cgroup/user.slice/memory.max": f"{4 * GB}\n",
            "/sys/fs/cgroup/user.slice/memory.current": f"{1 * GB}\n",
        }
    )
    assert compute_limit_bytes(readers) == 4 * GB
    assert compute_available_bytes(readers) == 3 * GB


@pytest.mark.parametrize("folder", ["", "/docker", "/docker/abc"])
def test_version_1_at_any_level(folder):
    where = f"/sys/fs/cgroup/memory{folder}"
    readers = machine(
        {
            "/proc/self/cgroup": VERSION_1,
            f"{where}/memory.limit_in_bytes": f"{2 * GB}\n",
            f"{where}/memory.usage_in_bytes": f"{1 * GB}\n",
            f"{where}/memory.stat": f"inactive_file 7\ntotal_inactive_file {GB // 4}\n",
        }
    )
    assert compute_limit_bytes(readers) == 2 * GB
    assert compute_available_bytes(readers) == GB + GB // 4


def test_version_1_writes_no_limit_as_a_huge_number():
    readers = machine(
        {
            "/proc/self/cgroup": VERSION_1,
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        }
    )
    assert compute_limit_bytes(readers) == 64 * GB
    assert compute_available_bytes(readers) == 40 * GB


def test_available_is_never_negative():
    readers = machine(
        {
            "/proc/self/cgroup": "0::/\n",
            "/sys/fs/cgroup/memory.max": "100\n",
            "/sys/fs/cgroup/memory.current": "120\n",
        }
    )
    assert compute_available_bytes(readers) == 0


@pytest.mark.parametrize(("asked", "expected"), [("4", 4 * GB), (" 2.5 ", 5 * GB // 2)])
def test_the_variable_sets_the_budget(asked, expected):
    assert compute_budget_bytes({"GLASSBOX_MEMORY_GB": asked}, machine({})) == expected


@pytest.mark.parametrize("asked", ["lots", "0", "-1", "nan", "inf", "4GB"])
def test_a_senseless_variable_is_refused_with_a_remedy(asked):
    with pytest.raises(ConfigError, match="give gigabytes above 0") as caught:
        compute_budget_bytes({"GLASSBOX_MEMORY_GB": asked}, machine({}))
    assert caught.value.facts["found"] == asked


def test_this_machine_can_be_read():
    limit = compute_limit_bytes()
    assert 0 < compute_available_bytes() <= limit
    assert compute_budget_bytes({}) == limit // 2


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 MB"), (1, "1 MB"), (537_600_000, "538 MB"), (GB, "1.0 GB"), (4_940_000_000, "4.9 GB")],
)
def test_amounts_for_sentences(n_bytes, text):
    assert say_bytes(n_bytes) == text
