"""Independent work spread over threads, where there is enough of it to pay for the handing over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_FEW_ROWS = 16_384


def spread(
    executor: Executor, work: Callable[[Item], Result], items: Iterable[Item], *, rows: int
) -> list[Result]:
    """What `work` makes of each item, in their order; `rows` says how much work an item is.

    Handing an item to another thread and back takes as long as adding up some ten thousand rows.
    """
    if rows < _FEW_ROWS:
        return [work(item) for item in items]
    return list(executor.map(work, items))
