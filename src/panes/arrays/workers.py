"""The threads that all queries of this process share."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from threading import Event, Lock, current_thread, main_thread
from typing import TypeVar, cast

Result = TypeVar("Result")


@cache
def workers() -> Executor:
    """A pool as wide as the machine; compiled loops run in it without the GIL."""
    return ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="panes")


@cache
def _apart() -> Executor:
    return ThreadPoolExecutor(thread_name_prefix="panes-apart")


if hasattr(os, "register_at_fork"):  # a forked process has none of these threads
    os.register_at_fork(after_in_child=workers.cache_clear)
    os.register_at_fork(after_in_child=_apart.cache_clear)


def apart_from_interrupts(
    work: Callable[[], Result], stop: Callable[[], object] | None = None
) -> Result:
    """The result of `work`, done where no interrupt falls into it.

    Only the main thread is interrupted, so it lets another one work. An interrupt is raised here,
    once the work is done, which `stop` may hasten.

    >>> apart_from_interrupts(lambda: 7)
    7
    """
    if current_thread() is not main_thread():
        return work()
    context, claim, ended = copy_context(), Lock(), Event()

    def run() -> Result | None:
        if not claim.acquire(blocking=False):
            return None  # interrupted before it began: nobody waits for it
        try:
            return context.run(work)
        finally:
            ended.set()

    try:
        return cast(Result, _apart().submit(run).result())
    finally:
        if not claim.acquire(blocking=False):
            while not ended.is_set():
                if stop is not None:
                    stop()
                ended.wait(0.05)
