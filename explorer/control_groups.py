"""Where the limits of this process's control groups stand (Linux; elsewhere there are none).

Control groups nest, and the tightest of them counts. Version 2 keeps all in one tree, version 1 one
tree a controller; `<group>` stands in /proc/self/cgroup:

    version 2   /sys/fs/cgroup/<group>/                memory.max               cpu.max
    version 1   /sys/fs/cgroup/<controller>/<group>/   memory.limit_in_bytes    cpu.cfs_quota_us

Inside a container that path may not exist under the mount, and the container's own limit stands at
the top, so every parent up to the mount counts. Source: Linux kernel documentation, "Control Group
v2", and "cgroups v1" (Memory Resource Controller, CFS Bandwidth Control).
"""

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

ReadText = Callable[[str], str | None]
MOUNT = "/sys/fs/cgroup"


def read_system_file(path: str) -> str | None:
    """Content of a file of the system, or None when there is no such file."""
    file = Path(path)
    return file.read_text(encoding="utf-8") if file.is_file() else None


def find_groups(controller: str, read_text: ReadText) -> Iterator[tuple[int, str]]:
    """Version and folder of every control group around this process, from the inside out.

    Args:
        controller: memory or cpu.
        read_text: Content of a file of the system.
    """
    for line in (read_text("/proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if number == "0" and not controllers:
            version, mount = 2, MOUNT
        elif controller in controllers.split(","):
            version, mount = 1, f"{MOUNT}/{controller}"
        else:
            continue
        path = PurePosixPath(group)
        for parent in (path, *path.parents):
            yield version, mount + str(parent).rstrip("/")
