"""The threads that all queries of this process share."""

from __future__ import annotations

import os
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cache


@cache
def workers() -> Executor:
    """A pool as wide as the machine; compiled loops run in it without the GIL."""
    return ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="panes")
