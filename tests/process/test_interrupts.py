"""Ctrl-C at any moment of a step: it passes through, and the step has not happened.

push ──┬─────┬─────┬─────┬─────┬──► answers
       ▲     ▲     ▲     ▲     ▲
       Ctrl-C here: KeyboardInterrupt, all is as it was, the same batch can be pushed again
"""

from __future__ import annotations

import _thread
import gc
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.errors import interrupt_in
from panes.live.query_feed import QueryFeed
from panes.stores.state_file import StateFile
from tests.process.interrupts import lines, places

Runner = Any


@pytest.fixture(autouse=True)
def no_garbage_of_others() -> Iterator[None]:
    """Python swallows an interrupt that falls into what other tests' garbage does when it goes."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


TEXT = (
    "SELECT k, sum(x + 1) AS a, max(upper(s)) AS u, median(x) AS m FROM t "
    "[RANGE 40 SLIDE 20 WATTR at] WHERE x * 2 > 0.1 GROUP BY k"
)
BAND = (
    "SELECT l.at, l.x + r.x AS y, upper(r.s) AS u FROM l JOIN r "
    "ON l.k = r.k AND r.at BETWEEN l.at AND l.at + 3"
)
LONE = "SELECT l.at, r.x FROM l LEFT JOIN r ON l.k = r.k AND r.at BETWEEN l.at AND l.at + 1"
ABOVE = (
    "SELECT count(*) AS n [TUMBLING 10 WATTR max(l.at, r.at)] FROM l LEFT JOIN r "
    "ON l.k = r.k AND r.at BETWEEN l.at - 5 AND l.at + 5"
)
PAIRED = (
    "SELECT a.k, a.s, b.m FROM (SELECT k, sum(x) AS s FROM l [TUMBLING 10 WATTR at] GROUP BY k) a "
    "LEFT JOIN (SELECT k, max(x) AS m FROM r [TUMBLING 10 WATTR at] GROUP BY k) b "
    "ON a.k = b.k AND b.window_time BETWEEN a.window_time AND a.window_time + 10"
)


def batch(number: int, rows: int = 50) -> pa.Table:
    random = np.random.default_rng(number)
    at = np.arange(number * rows, (number + 1) * rows)
    words = pa.array([f"w{n}" for n in random.integers(0, 9, rows)])
    return pa.table(
        {"at": at, "k": random.integers(0, 5, rows), "x": random.random(rows), "s": words}
    )


class One:
    """A kind of runner, its pushes, and what shows of it."""

    def __init__(self) -> None:
        self.runner = self.opened()
        self.answers: Any = None

    def opened(self) -> Runner:
        return panes.open(TEXT, lateness=8)

    def push(self, rows: pa.Table) -> None:
        """Push a batch; no signal comes between the answers and where they are stored."""
        self.answers = self.runner.push(t=rows)

    def finish(self) -> None:
        self.answers = self.runner.finish()

    def plain(self) -> object:
        """The answers of the last step."""
        if isinstance(self.answers, Mapping):
            return {name: table.to_pylist() for name, table in self.answers.items()}
        return self.answers.to_pylist()

    def seen(self) -> object:
        progress = self.runner.progress
        return dict(self.runner.state), len(self.runner.late), str(progress)


class Watched(One):
    """The live page counts each step once."""

    def opened(self) -> Runner:
        query = super().opened()
        self.feed = QueryFeed(query)
        return query

    def seen(self) -> object:
        recorder = self.feed.recorder
        return super().seen(), recorder.counts, recorder.steps, recorder.where


class Join(One):
    def push(self, rows: pa.Table) -> None:
        self.answers = self.runner.push(l=rows, r=rows)

    def opened(self) -> Runner:
        return panes.open(ABOVE, lateness=8)


class Inside(Join):
    """Queries inside a query: each part has a turn of its own."""

    def opened(self) -> Runner:
        return panes.open(PAIRED, lateness=8)


class Many(One):
    def opened(self) -> Runner:
        register = panes.register("t", lateness=8)
        for n in range(3):
            register.add(f"q{n}", TEXT.replace("40", str(20 * (n + 1))))
        register.prepare("SELECT sum(x) AS s FROM t [ROWS 20]", within=0.5)
        register.prepare("SELECT max(x) AS m FROM t [ROWS 30]")
        register.prepare("SELECT * FROM t [RANGE 9 WATTR at]")
        return register

    def push(self, rows: pa.Table) -> None:
        self.answers = self.runner.push(rows)

    def seen(self) -> object:
        stored = dict(self.runner.state)
        if self.runner.queries() and stored["keys"]:
            asked = [
                self.runner.ask(text, within=w).to_pylist() for text, w in self.runner.prepared()
            ]
            return stored, asked, self.runner.progress
        return stored, self.runner.progress


class Handing(Many):
    """Answers go to a sink as they are found: it gets each of them once."""

    def opened(self) -> Runner:
        self.given: list[tuple[str, object]] = []
        register = panes.register("t", lateness=8, hand_over=self.take)
        for n in range(3):
            register.add(f"q{n}", TEXT.replace("40", str(20 * (n + 1))))
        return register

    def take(self, name: str, answers: pa.Table) -> None:
        self.given += [(name, answers.to_pylist())]

    def plain(self) -> object:
        return sorted(self.given, key=str)

    def seen(self) -> object:  # what was handed over stays given: windows may have closed
        return self.runner.progress


class Joins(Join):
    def opened(self) -> Runner:
        register = panes.register(("l", "r"), lateness=8)
        for name, text in {"band": BAND, "lone": LONE, "above": ABOVE}.items():
            register.add(name, text)
        return register


KINDS: list[type[One]] = [One, Watched, Join, Inside, Many, Handing, Joins]
PUSHES = 2


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_wherever_an_interrupt_falls_nothing_is_lost_and_nothing_comes_twice(
    kind: type[One],
) -> None:
    interrupt_everywhere(kind, some=10)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_at_many_more_lines(kind: type[One]) -> None:
    interrupt_everywhere(kind, some=60)


def interrupt_everywhere(kind: type[One], some: int) -> None:
    warm, calm, shaken = kind(), kind(), kind()
    steps: list[Callable[[One], None]] = [
        *(partial(kind.push, rows=batch(number)) for number in range(PUSHES)),
        kind.finish,
    ]
    for step in steps:  # fills caches, so that the others run the same lines
        step(warm)
    interrupted = 0
    for step in steps:
        with lines() as files:
            step(calm)
        before, shaken.answers = shaken.seen(), None
        for at in places(files, some):
            try:
                with lines(at):
                    step(shaken)
            except KeyboardInterrupt:
                interrupted += 1
            if shaken.answers is not None:  # it came when the answers were with the caller
                break
            assert shaken.seen() == before
        if shaken.answers is None:
            step(shaken)
        assert shaken.plain() == calm.plain()
        assert shaken.seen() == calm.seen()
    assert interrupted > 60


GOLDEN = (5**0.5 - 1) / 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_signals_at_any_microsecond(kind: type[One]) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    calm, shaken, interrupted = kind(), kind(), 0
    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(10):
            calm.push(batch(number))
            shaken.push(batch(number))
        number, seconds = 10, 0.01
        for signals in range(1_000):
            rows, shaken.answers = batch(number), None
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + seconds * (signals * GOLDEN % 1))
                try:
                    shaken.push(rows)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            if shaken.answers is not None:
                calm.push(rows)
                assert shaken.plain() == calm.plain()
                number += 1
                seconds *= 0.97
            else:
                seconds *= 1.01  # about three in four are interrupted
    finally:
        signal.signal(signal.SIGALRM, previous)
    if shaken.answers is None:  # what a sink has taken of it stays given: it is pushed again
        shaken.push(rows)
        calm.push(rows)
    shaken.finish()
    calm.finish()
    assert shaken.plain() == calm.plain()
    assert interrupted > 500


def test_a_query_that_is_added_while_somebody_presses_ctrl_c_is_there_or_not() -> None:
    def add(at: int | None) -> list[str]:
        register = panes.register("t", lateness=0, schema=batch(0).schema)
        with suppress(KeyboardInterrupt), lines(at) as files:
            register.add("q", TEXT)
        if "q" not in register.queries():
            register.add("q", TEXT)
        register.push(batch(0))
        assert set(register.push(batch(1))) == {"q"}
        return files

    for at in places(add(None), 10):
        add(at)


def test_late_rows_are_taken_of_all_parts_of_a_query_or_of_none() -> None:
    one, other = Inside(), Inside()
    for kind in (one, other):
        kind.push(batch(3))
        kind.push(batch(0))
    count = len(one.runner.late)
    assert count == 2 * len(batch(0))
    with lines() as files:
        other.runner.take_late()
    for at in [*places(files, 5), None]:
        taken = None
        with suppress(KeyboardInterrupt), lines(at):
            taken = one.runner.take_late()
        if taken is not None:
            assert len(taken) == count
            return
        assert len(one.runner.late) == count


def test_a_register_knows_what_it_has_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C just after the file was written: it is the register's own, and may be written over."""
    register = panes.register("t", lateness=8)
    register.add("q", TEXT)
    register.push(batch(0))
    write = StateFile.write

    def pressing(*given: Any) -> None:
        write(*given)
        _thread.interrupt_main()

    with monkeypatch.context() as patched:
        patched.setattr(StateFile, "write", pressing)
        with pytest.raises(KeyboardInterrupt):
            register.save(tmp_path / "register")
    register.save(tmp_path / "register")
    assert panes.register("t", lateness=8, saved=tmp_path / "register").saves == 2


@pytest.mark.parametrize("kind", ["list", "tree", "hash", "group"])
def test_a_window_index_takes_in_rows_and_slides_or_does_not(kind: str) -> None:
    schema = batch(0).schema

    def index(batches: int, to: int) -> Any:
        found = panes.window_index(schema, at="at", size=40, basic=10, on="k", kind=kind)
        for number in range(batches):
            found.add(batch(number, 20))
        found.advance(to)
        return found

    def seen(found: Any) -> object:
        counts = {n: c for n, c in found.state.items() if n != "bytes"}
        return found.end, found.sorted().to_pylist(), found.values().to_pylist(), counts

    steps: list[tuple[Any, tuple[int, int], tuple[int, int]]] = [
        (lambda w: w.add(batch(2, 20)), (2, 35), (3, 35)),
        (lambda w: w.advance(50), (3, 35), (3, 50)),
        (lambda w: [*w.slides(50)], (3, 35), (3, 50)),
    ]
    for step, before, after in steps:
        ends: tuple[object, ...] = seen(index(*before)), seen(index(*after))
        if step is steps[2][0]:
            ends = (*ends, seen(index(3, 40)))
        with lines() as files:
            step(index(*before))
        for at in places(files, 5)[::3]:
            found = index(*before)
            with suppress(KeyboardInterrupt), lines(at):
                step(found)
            assert seen(found) in ends


def test_the_exit_that_a_signal_asks_for_passes_through_with_its_code() -> None:
    """Also where it falls into compiled code that makes an error of its own of it."""
    exits = SystemExit(143)
    seen = panes.CustomAggregate(
        name="seen", lift=lambda x: x.to_numpy()[None, :], combine=np.add,
        lower=lambda p: p[0], empty=(0.0,), type=pa.float64(),
    )  # fmt: skip

    def lift(x: pa.Array) -> NoReturn:
        raise SystemError("a result with an exception set") from exits

    failing = replace(seen, lift=lift)
    register = panes.register("t", lateness=0, aggregates=[failing])
    register.add("q", "SELECT seen(x) AS s FROM t [TUMBLING 10 WATTR at]")
    query = panes.open("SELECT seen(x) AS s FROM t [TUMBLING 10 WATTR at]", aggregates=[failing])
    for push in (register.push, lambda rows: query.push(t=rows)):
        with pytest.raises(SystemExit) as left:
            push(batch(0))
        assert left.value is exits
    assert register.failed == {}


def test_an_interrupt_is_found_among_the_causes_of_an_error_only() -> None:
    interrupt, other = KeyboardInterrupt(), ValueError("other")
    interrupted = SystemError("made of it")
    interrupted.__cause__ = interrupt
    assert interrupt_in(interrupt) is interrupt
    assert interrupt_in(interrupted) is interrupt
    assert interrupt_in(other) is None
    other.__context__ = interrupt  # raised while somebody dealt with an earlier one
    assert interrupt_in(other) is None


def test_a_thread_can_go_on_after_another_was_interrupted() -> None:
    """The turn is given back, wherever the interrupt falls."""
    kind = Many()
    warm = batch(0)
    with lines() as files:
        kind.push(warm)
    for at in places(files, 5):
        with suppress(KeyboardInterrupt), lines(at):
            kind.push(warm)
        other = Thread(target=lambda: kind.runner.state)
        other.start()
        other.join(60)
        assert not other.is_alive()
