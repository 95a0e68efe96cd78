"""Threads that share a query or a register: no row is lost, none counted twice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Barrier, Thread

import pyarrow as pa
import pytest

import panes

COUNT = "SELECT k, count(*) AS n, sum(x) AS s FROM t [TUMBLING 10 WATTR at] GROUP BY k"
THREADS, PUSHES = 4, 25


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    """Threads are made to change over as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def batch(number: int) -> pa.Table:
    return pa.table({"at": [number % 30] * 3, "k": ["a", "b", "a"], "x": [1, 2, 3]})


def in_threads(push: object) -> None:
    barrier, failed = Barrier(THREADS), []

    def work(first: int) -> None:
        barrier.wait()
        for i in range(PUSHES):
            try:
                push(batch(first * PUSHES + i))  # type: ignore[operator]
            except BaseException as failure:
                failed.append(failure)
                raise

    threads = [Thread(target=work, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_query_counts_every_row_of_every_thread() -> None:
    query = panes.open(COUNT)
    query.push(t=batch(0).slice(0, 0))
    in_threads(lambda table: query.push(t=table))
    answers = query.finish()
    assert sum(answers["n"].to_pylist()) == 3 * THREADS * PUSHES
    assert sum(answers["s"].to_pylist()) == 6 * THREADS * PUSHES


def test_a_join_gives_every_pair_once_whoever_pushes() -> None:
    query = panes.open("SELECT l.x, r.x AS y FROM l JOIN r ON l.k = r.k AND l.at = r.at AND "
                       "r.at BETWEEN l.at AND l.at")  # fmt: skip
    query.push(l=batch(0).slice(0, 0), r=batch(0).slice(0, 0))
    given: list[int] = []
    in_threads(lambda table: given.append(len(query.push(l=table, r=table))))
    every = pa.concat_tables([batch(n) for n in range(THREADS * PUSHES)]).to_pylist()
    pairs = sum(a["k"] == b["k"] and a["at"] == b["at"] for a in every for b in every)
    assert sum(given) == pairs
    assert len(query.finish()) == 0


def test_a_register_counts_every_row_of_every_thread() -> None:
    register = panes.register("t")
    register.add("all", COUNT)
    register.push(batch(0).slice(0, 0))
    in_threads(register.push)
    answers = register.finish()["all"]
    assert sum(answers["n"].to_pylist()) == 3 * THREADS * PUSHES


def test_who_is_handed_answers_may_ask() -> None:
    """The thread that pushes comes back in; it does not wait for itself."""
    seen = []
    register: panes.Register = panes.register(
        "t", lateness=0, hand_over=lambda name, _: seen.append((name, register.state["queries"]))
    )
    register.add("all", COUNT)
    register.push(batch(1))
    register.push(batch(29))
    assert seen == [("all", 1)]
