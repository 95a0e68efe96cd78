"""Work that is spread over threads is all done, in order, and ends when a part of it fails."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from panes.arrays.spread import spread

MUCH = 1 << 20


@pytest.fixture(autouse=True)
def _cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)


def test_results_come_in_the_order_of_the_items() -> None:
    with ThreadPoolExecutor(3) as pool:
        assert spread(pool, lambda n: n * n, range(1_000), rows=MUCH) == [
            n * n for n in range(1_000)
        ]
        assert spread(pool, abs, [], rows=MUCH) == []


def test_others_take_items_while_the_caller_is_busy() -> None:
    both = threading.Barrier(2, timeout=60)
    with ThreadPoolExecutor(1) as pool:
        assert spread(pool, lambda n: both.wait() >= 0 and n, [1, 2], rows=MUCH) == [1, 2]


def test_little_work_stays_with_the_caller() -> None:
    with ThreadPoolExecutor(1) as pool:
        names = spread(pool, lambda _: threading.current_thread().name, range(9), rows=10)
    assert set(names) == {threading.current_thread().name}


@pytest.mark.parametrize("fails", ["the caller's", "a helper's"])
def test_a_failure_is_raised_and_the_rest_is_left(fails: str) -> None:
    caller, failed = threading.current_thread(), threading.Event()
    done: list[int] = []

    def work(item: int) -> None:
        if failed.is_set():
            done.append(item)
            threading.Event().wait(0.001)
        elif (threading.current_thread() is caller) == (fails == "the caller's"):
            failed.set()
            raise ValueError("broken")
        else:
            assert failed.wait(60)

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="broken"):
        spread(pool, work, range(1_000), rows=MUCH)
    assert len(done) < 500, "all of them, if the rest were not left"


def test_it_may_be_spread_again_inside() -> None:
    """The only other thread is busy with the outer items; nobody waits for it."""
    with ThreadPoolExecutor(1) as pool:

        def twice(n: int) -> int:
            return sum(spread(pool, abs, [n, -n], rows=MUCH))

        found = spread(pool, twice, [1, 2, 3], rows=MUCH)
    assert found == [2, 4, 6]
