"""What packets and aggregates cost in a low-level table: really filled, checked, and timed.

A table absorbs whole windows; the high level adds up what it sends. Only when the sums are the
plain counts do the times count. They are CPU times: other work on the machine is left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import numpy as np
from numpy.typing import NDArray

from lab.papers.low_level import (
    BLOCK,
    Aggregates,
    Groups,
    LowLevel,
    flush_before,
    roll_up,
    room_for,
)
from lab.papers.ring_buffer import Work
from panes.errors import WrongAnswerError

_CHUNK = 163_840


def packets(groups: int, *, per_group: int, windows: int, seed: int = 8) -> list[Groups]:
    """The group of each packet, window by window; all groups are equally likely."""
    rng = np.random.default_rng(seed)
    count = groups * per_group
    return [rng.integers(0, groups, count, dtype=np.int32) for _ in range(windows)]


def plain_counts(windows: list[Groups], groups: int) -> NDArray[np.int64]:
    """The packets of each window and group, counted without any table of fixed size."""
    return np.stack([np.bincount(stream, minlength=groups) for stream in windows])


def measure(low: LowLevel, windows: list[Groups], plain: NDArray[np.int64]) -> Work:
    """Absorb all windows, check the counts, and tell what it cost."""
    out = room_for(_CHUNK, len(low.table))
    counts = np.zeros_like(plain)
    left, chunks = [], []
    for window, stream in enumerate(windows):
        surge = low.begin(window, out)
        roll_up(out[:surge], counts)
        for chunk in _chunks(stream):
            of_block = np.zeros(-(-len(chunk) // BLOCK), dtype=np.int32)
            begin = time.thread_time()
            sent = low.absorb(chunk, window, out, of_block)
            chunks.append((time.thread_time() - begin, len(chunk), sent))
            roll_up(out[:sent], counts)
            of_block[0] += surge
            surge = 0
            left.append(of_block)
    aggregate = _seconds_per_aggregate(low.table, out)
    sent = int(flush_before(low.table, 0, len(windows), out, 0))
    roll_up(out[:sent], counts)
    if not np.array_equal(counts, plain):
        raise WrongAnswerError(
            "low-level aggregation: the parts that were sent do not add up to the counts"
        )
    packet = median((seconds - sent * aggregate) / n for seconds, n, sent in chunks[1:])
    return Work(packet, aggregate, BLOCK, np.concatenate(left))


def _chunks(stream: Groups) -> Iterator[Groups]:
    for begin in range(0, len(stream), _CHUNK):
        yield stream[begin : begin + _CHUNK]


def _seconds_per_aggregate(table: Aggregates, out: Aggregates) -> float:
    """What an aggregate costs in a surge: the median of five flushes of the full table."""
    seconds = []
    everything = np.iinfo(np.int64).max
    for _ in range(6):
        full = table.copy()
        begin = time.thread_time()
        count = flush_before(full, 0, everything, out, 0)
        seconds.append((time.thread_time() - begin) / max(count, 1))
    return median(seconds[1:])
