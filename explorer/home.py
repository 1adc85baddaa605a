"""The folder on this machine where Glassbox keeps what belongs to its visitors."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

HOME_VARIABLE = "GLASSBOX_HOME"


def find_home_folder(
    environment: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> Path:
    """GLASSBOX_HOME, else the place where this system keeps a user's caches.

    Args:
        environment: Variables to read.
        platform: As in `sys.platform`.

    Returns:
        The folder; it is not created here.
    """
    chosen = environment.get(HOME_VARIABLE, "").strip()
    if chosen:
        return Path(chosen).expanduser()
    if platform == "win32" and environment.get("LOCALAPPDATA"):
        return Path(environment["LOCALAPPDATA"]) / "glassbox"
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / "glassbox"
    # An empty or relative XDG_CACHE_HOME is to be ignored (XDG Base Directory Specification 0.8).
    cache = Path(environment.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "glassbox"
