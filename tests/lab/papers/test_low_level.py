"""Low-level aggregation of thesis 8.3.3: nothing lost, order kept where promised, ring honest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.papers.low_level import (
    BLOCK,
    Aggregates,
    InAnyOrder,
    InOrder,
    LowLevel,
    empty_table,
    flush_before,
    roll_up,
    room_for,
)
from lab.papers.low_level_costs import measure, packets, plain_counts
from lab.papers.ring_buffer import Work, drops, highest_rate
from panes.errors import WrongAnswerError

VARIANTS: dict[str, Callable[[int], LowLevel]] = {
    "in order": lambda size: InOrder(empty_table(size)),
    "lazy": lambda size: InAnyOrder(empty_table(size), delay=2),
    "slow": lambda size: InAnyOrder(empty_table(size), delay=2, every=3),
    "no delay": lambda size: InAnyOrder(empty_table(size), delay=0),
}

Sent = list[tuple[int, int, int, int]]

streams = st.lists(st.lists(st.integers(0, 9), max_size=40), min_size=1, max_size=6)
sizes = st.sampled_from([1, 2, 4, 16])


def sent_by(low: LowLevel, windows: list[list[int]]) -> Sent:
    """Everything sent: when (the window that was open), window, group, count."""
    sent: Sent = []

    def keep(out: Aggregates, count: int, now: int) -> None:
        sent.extend((now, *row) for row in out[:count].tolist())

    out = room_for(50, len(low.table))
    for window, stream in enumerate(windows):
        keep(out, low.begin(window, out), window)
        left = np.zeros(len(stream) // BLOCK + 1, dtype=np.int32)
        count = low.absorb(np.array(stream, dtype=np.int32), window, out, left)
        assert left.sum() == count
        keep(out, count, window)
    keep(out, flush_before(low.table, 0, len(windows), out, 0), len(windows))
    return sent


@pytest.mark.parametrize("variant", VARIANTS)
@given(windows=streams, size=sizes)
@settings(max_examples=80, deadline=None)
def test_the_parts_add_up_to_the_plain_counts(
    variant: str, windows: list[list[int]], size: int
) -> None:
    sent = sent_by(VARIANTS[variant](size), windows)
    counts = np.zeros((len(windows), 10), dtype=np.int64)
    roll_up(np.array([row[1:] for row in sent], dtype=np.int64).reshape(-1, 3), counts)
    plain = [np.bincount(np.array(w, dtype=np.int64), minlength=10) for w in windows]
    assert counts.tolist() == [p.tolist() for p in plain]


@given(windows=streams, size=sizes)
@settings(max_examples=80, deadline=None)
def test_ordered_output_never_goes_back_to_an_older_window(
    windows: list[list[int]], size: int
) -> None:
    order = [window for _, window, _, _ in sent_by(VARIANTS["in order"](size), windows)]
    assert order == sorted(order)


@pytest.mark.parametrize(("variant", "delay"), [("lazy", 2), ("slow", 2), ("no delay", 0)])
@given(windows=streams, size=sizes)
@settings(max_examples=80, deadline=None)
def test_nothing_stays_longer_than_the_delay(
    variant: str, delay: int, windows: list[list[int]], size: int
) -> None:
    for now, window, _, _ in sent_by(VARIANTS[variant](size), windows):
        assert now <= window + delay + 1


def colliding(size: int) -> tuple[int, int]:
    """Two groups that share a slot of a table of that size."""
    seen: dict[int, int] = {}
    for group in range(10_000):
        low = InOrder(empty_table(size))
        low.absorb(np.array([group], np.int32), 0, room_for(1, size), np.zeros(1, np.int32))
        slot = int(np.flatnonzero(low.table[:, 0] == 0)[0])
        if slot in seen:
            return seen[slot], group
        seen[slot] = group
    raise AssertionError


def test_a_collision_in_the_new_window_flushes_the_whole_old_one_only_in_order() -> None:
    """Window 0 fills the table; in window 1 two groups meet in one slot.

    window 0   | 64 groups ................ |
    window 1                                | a b
                                                └ in order: all of window 0 leaves here
    """
    size = 64
    a, b = colliding(size)
    filled = {}
    for name in ("in order", "lazy"):
        low = VARIANTS[name](size)
        out = room_for(2_000, size)
        low.begin(0, out)
        low.absorb(np.arange(2_000, dtype=np.int32), 0, out, np.zeros(32, np.int32))
        low.begin(1, out)
        low.absorb(np.array([a, b], np.int32), 1, out, np.zeros(1, np.int32))
        filled[name] = int((low.table[:, 0] == 0).sum())
    assert filled == {"in order": 0, "lazy": size - 1}


def test_costs_are_told_only_of_right_answers() -> None:
    windows = packets(64, per_group=8, windows=3)
    plain = plain_counts(windows, 64)
    work = measure(InAnyOrder(empty_table(32), delay=2), windows, plain)
    assert work.left.sum() > 0
    assert work.aggregate > 0
    with pytest.raises(WrongAnswerError):
        measure(InOrder(empty_table(32)), windows, plain + 1)


def test_a_steady_stream_may_come_as_fast_as_it_is_worked_off() -> None:
    steady = Work(packet=1e-6, aggregate=1e-6, block=64, left=np.full(1_000, 64, np.int32))
    assert highest_rate(steady, ring=1_000) == pytest.approx(500_000, rel=0.01)
    assert steady.busy_share(250_000) == pytest.approx(0.5)


def test_a_surge_must_fit_into_the_ring() -> None:
    """1,000 aggregates of 10 µs stop everything for 10 ms; 500 packets fit: 50,000 a second."""
    left = np.zeros(2_000, dtype=np.int32)
    left[1_000] = 1_000
    surge = Work(packet=1e-6, aggregate=1e-5, block=1, left=left)
    rate = highest_rate(surge, ring=500)
    assert rate == pytest.approx(50_000, rel=0.01)
    assert not drops(surge, rate, ring=500)
    assert drops(surge, rate * 1.01, ring=500)
