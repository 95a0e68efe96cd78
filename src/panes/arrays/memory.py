"""The memory that this process may use: the machine's, or what a container leaves of it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Where Linux says what a container may use, in its two generations."""


@cache
def usable_memory() -> int:
    """Bytes of memory that the machine has, or its container allows."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(limit for path in _LIMITS if (limit := stated_limit(path)))])


def stated_limit(path: Path) -> int | None:
    """The number in a file; None if there is no file, or it says that there is no limit."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
