"""One bad query, or a sink that raises, harms nobody else and leaves nothing half done."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.errors import FailedQueryWarning, PanesError, QueryError
from panes.process.register import Register
from panes.reference.compare import same
from tests.failing_aggregates import brittle, picky, shaky
from tests.process.bombs import Bomb, calls
from tests.spark.streaming import some_rows

GOOD = {
    "by k": "SELECT k, sum(i) AS a FROM s [RANGE 20 SLIDE 5 WATTR at] GROUP BY k",
    "high": "SELECT k, max(x) AS a FROM s [TUMBLING 10 WATTR at] WHERE b GROUP BY k",
    "all": "SELECT count(*) AS n, median(x) AS m FROM s [RANGE 30 SLIDE 10 WATTR at]",
    "few": "SELECT s, sum(i) * 2 AS a FROM s [TUMBLING 15 WATTR at] GROUP BY s HAVING sum(i) > 0",
}
BAD = {
    "argument": "SELECT k, max(to_timestamp(s)) AS a FROM s [TUMBLING 10 WATTR at] GROUP BY k",
    "key": "SELECT to_timestamp(s) AS t, sum(i) AS a FROM s [TUMBLING 10 WATTR at] "
    "GROUP BY to_timestamp(s)",
    "where": "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at] WHERE to_timestamp(s) IS NOT NULL",
    "filter": "SELECT count(*) FILTER (WHERE to_timestamp(s) IS NOT NULL) AS n "
    "FROM s [TUMBLING 10 WATTR at]",
    "answer": "SELECT k, to_timestamp(max(s)) AS a FROM s [TUMBLING 10 WATTR at] GROUP BY k",
    "having": "SELECT k, max(s) AS a FROM s [TUMBLING 10 WATTR at] GROUP BY k "
    "HAVING to_timestamp(max(s)) IS NOT NULL",
    "overflow": "SELECT sum(i + 9223372036854775000) AS a FROM s [TUMBLING 10 WATTR at]",
    "lift": "SELECT shaky(x) AS a FROM s [TUMBLING 10 WATTR at]",
    "combine": "SELECT brittle(x) AS a FROM s [RANGE 20 SLIDE 10 WATTR at]",
    "function": "SELECT picky(x) AS a FROM s [TUMBLING 10 WATTR at]",
}


def batches() -> list[pa.Table]:
    table = some_rows()
    order = np.argsort(table.column("at").to_numpy() + np.arange(len(table)) % 23, kind="stable")
    table = table.take(order)
    return [table.slice(at, 50) for at in range(0, len(table), 50)]


def register(*bad: str, **options: Any) -> Register:
    options = {"lateness": 8, "aggregates": [shaky, brittle, picky], **options}
    reg = panes.register("s", **options)
    for name in bad:
        reg.add(name, BAD[name])
    for name, text in GOOD.items():
        reg.add(name, text)
    return reg


def rows_of(answers: Any) -> dict[str, list[dict[str, object]]]:
    return {name: table.to_pylist() for name, table in answers.items()}


def steps() -> list[Callable[[Register], Any]]:
    pushes = [lambda reg, b=batch: reg.push(b) for batch in batches()]
    return [*pushes, lambda reg: reg.punctuate(170), lambda reg: reg.finish()]


@pytest.mark.parametrize("bad", [*((name,) for name in BAD), tuple(BAD)], ids=" ".join)
def test_the_others_go_on(bad: tuple[str, ...]) -> None:
    calm, shaken = register(), register(*bad)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for step in steps():
            got, want = rows_of(step(shaken)), rows_of(step(calm))
            assert same({n: r for n, r in got.items() if n in GOOD}, want)
    assert [w.category for w in warned] == [FailedQueryWarning] * len(bad)
    assert all(w.filename == __file__ for w in warned)
    assert set(shaken.failed) == set(bad)
    assert shaken.state["failed"] == len(bad)
    assert set(shaken.queries()) == set(GOOD)
    for name, reason in shaken.failed.items():
        assert "no such luck" in reason or "timestamp" in reason or "fit" in reason, (name, reason)


def test_only_the_query_whose_window_fails_is_set_aside() -> None:
    """Queries of one shape, which are answered together: the bad value lies in one's window."""
    text = "SELECT to_timestamp(max(s)) AS newest FROM s [RANGE {} SLIDE 10 WATTR at]"
    reg = panes.register("s", lateness=0)
    for size in (10, 20, 30):
        reg.add(str(size), text.format(size))
    table = pa.table({"at": [1, 11, 21, 31], "s": ["x", "2026-01-02", "2026-01-03", "2026-01-04"]})
    with pytest.warns(FailedQueryWarning):
        reg.push(table.slice(0, 2))
    assert set(reg.failed) == {"10", "20", "30"}  # the first window of each holds it
    for name in ("10", "20"):
        reg.put_back(name)
    answers = reg.push(table.slice(2))
    assert answers["10"].column("newest")[0].as_py().day == 3
    assert set(reg.failed) == {"30"}


def test_a_query_can_be_put_back_removed_or_replaced() -> None:
    reg = register("answer", "argument", "where")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for batch in batches()[:4]:
            reg.push(batch)
    assert set(reg.failed) == {"answer", "argument", "where"}
    reg.remove("argument")
    reg.add("where", GOOD["all"])
    assert set(reg.failed) == {"answer"}
    added = reg.put_back("answer")
    assert added.exact_from is not None
    assert not reg.failed
    assert "answer" in reg.queries()
    with pytest.warns(FailedQueryWarning):
        reg.push(batches()[4])
    assert set(reg.failed) == {"answer"}
    with pytest.raises(QueryError, match="was set aside"):
        reg.put_back("by k")


def test_a_round_that_fails_anywhere_leaves_no_trace() -> None:
    warm, calm, shaken = (register(keep_rows=20) for _ in range(3))
    for step in steps():
        step(warm)
    exploded = 0
    for reg in (calm, shaken):
        reg.push(batches()[0].slice(0, 0))  # the columns are known from now on, come what may
    for step in steps():
        with calls() as counted:
            want = step(calm)
        for explode_at in np.unique(np.linspace(1, counted[0], 25, dtype=int)).tolist():
            before = seen(shaken)
            try:
                with calls(explode_at):
                    got = step(shaken)
                break  # it needs fewer calls by now
            except Bomb:
                exploded += 1
            assert same(seen(shaken), before)
        else:
            got = step(shaken)
        assert same(rows_of(got), rows_of(want))
        assert same(seen(shaken), seen(calm))
    assert exploded > 100


def seen(reg: Register) -> list[object]:
    """All that shows of a register beside its answers."""
    return [
        dict(reg.state),
        reg.late.to_pylist(),
        reg.rejected.to_pylist(),
        reg.progress,
        reg.queries(),
        {name: reg.exact_from(name) for name in reg.queries()},
    ]


@pytest.mark.parametrize("bad", [(), ("answer", "argument")], ids=["good", "bad"])
def test_a_sink_that_raises_neither_loses_nor_repeats_answers(bad: tuple[str, ...]) -> None:
    """It raises at every third answer it is handed; whoever called makes the call again."""
    want: dict[str, list[object]] = {name: [] for name in GOOD}
    calm = register()
    for step in steps():
        for name, table in step(calm).items():
            want[name] += table.to_pylist()
    got: dict[str, list[object]] = {name: [] for name in GOOD}
    handed = 0

    def sink(name: str, table: pa.Table) -> None:
        nonlocal handed
        handed += 1
        if handed % 3 == 0:
            raise OSError("disk full")
        got.setdefault(name, []).extend(table.to_pylist())

    shaken = register(*bad, hand_over=sink)
    raised = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedQueryWarning)
        for step in steps():
            for _ in range(10):
                try:
                    step(shaken)
                    break
                except OSError:
                    raised += 1
            else:
                pytest.fail("the sink never took it")
    assert raised > 5
    assert same(got, want)


def test_a_refused_batch_blames_no_query() -> None:
    reg = register()
    reg.push(batches()[0])
    with pytest.raises(PanesError):
        reg.push(pa.table({"other": [1]}))
    assert not reg.failed
    assert set(reg.queries()) == set(GOOD)
