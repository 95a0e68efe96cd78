"""Independent work spread over threads, where there is enough of it to pay for the handing over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_FEW_ROWS = 16_384
_PARTS = 8


def parts(rows: int) -> list[tuple[int, int]]:
    """Rows in parts of like size, from where to where; more than threads, so that none idles.

    >>> parts(10)
    [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6), (6, 7), (7, 8), (8, 10)]
    """
    edges = [rows * part // _PARTS for part in range(_PARTS + 1)]
    return [(begin, end) for begin, end in pairwise(edges) if end > begin]


def spread(
    executor: Executor, work: Callable[[Item], Result], items: Iterable[Item], *, rows: int
) -> list[Result]:
    """The results of `work` for each item, in their order; `rows` says how much work an item is.

    The caller takes items too, and other threads take what is left until nothing is: handing over
    happens once for each thread. It takes as long as adding up some ten thousand rows.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> spread(ThreadPoolExecutor(1), abs, [-1, 2, -3], rows=100_000)
    [1, 2, 3]
    """
    todo = list(items)
    helpers = min(len(todo), os.cpu_count() or 1) - 1
    if rows < _FEW_ROWS or helpers < 1:
        return [work(item) for item in todo]
    waiting = iter(enumerate(todo))  # threads may share it: one step is one step
    handed: list[Future[dict[int, Result]]] = []
    try:
        handed.extend(executor.submit(_drain, work, waiting) for _ in range(helpers))
        done = _drain(work, waiting)
    finally:
        running = [h for h in handed if not h.cancel()]  # nothing is left for those who wait
        for helper in running:
            helper.exception()
    for helper in running:
        done |= helper.result()
    return [done[index] for index in range(len(todo))]


def _drain(
    work: Callable[[Item], Result], waiting: Iterator[tuple[int, Item]]
) -> dict[int, Result]:
    """Do what is waiting until nothing is; if one fails, the rest is left."""
    done = {}
    for index, item in waiting:
        try:
            done[index] = work(item)
        except BaseException:
            for _ in waiting:
                pass
            raise
    return done
