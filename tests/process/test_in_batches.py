"""Answers of tables in batches: the same ones in the same order, and never many at once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

import panes
from panes.errors import LimitError, OptionError, RejectedRowsWarning
from panes.nodes import steps
from panes.planning.terms import StreamOptions
from panes.process import in_steps
from panes.process.running_query import OpenQuery
from tests.strategies import streams
from tests.support import AGGREGATES, ORDERED, PARTITIONED, PER_ROW, WINDOWS, select

EVERY = (*WINDOWS, *PARTITIONED, *ORDERED)
FEW = 5


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "ANSWERS_A_STEP", FEW)


def in_batches(text: str, table: pa.Table) -> pa.Table:
    """All answers, by way of a reader."""
    reader = panes.sql(text, batches=True, s=table)
    assert isinstance(reader, pa.RecordBatchReader)
    return reader.read_all()


def spread_out(window: str) -> pa.Table:
    """Forty rows with gaps: dense, a long silence, dense again."""
    at = [*range(-20, 0), *range(10**6, 10**6 + 40, 2)]
    if "ALL" in window:
        at = list(range(-20, 20))
    keys = ["a", "b", None, "a", "c"] * 8
    flags = [True, False, None, True] * 10
    return pa.table({"at": at, "k": keys, "b": flags, "i": list(range(40))})


@pytest.mark.parametrize("window", EVERY)
@pytest.mark.parametrize("keys", ["", "k", "k, b"])
def test_batches_are_the_answers_in_their_order(window: str, keys: str) -> None:
    table = spread_out(window)
    shown, by = (f"{keys}, ", f" GROUP BY {keys}") if keys else ("", "")
    text = f"SELECT {shown}sum(i) AS t, count(DISTINCT i) AS n FROM s [{window}]{by}"
    assert in_batches(text, table).equals(panes.sql(text, s=table))


@pytest.mark.parametrize("window", PER_ROW)
def test_batches_of_per_row_windows_are_the_answers_in_their_order(window: str) -> None:
    table = spread_out(window)
    text = f"SELECT at, k, sum(i) AS t FROM s [{window}]"
    assert in_batches(text, table).equals(panes.sql(text, s=table))


@pytest.mark.long
@given(table=streams)
@settings(max_examples=15)
def test_every_aggregate_is_the_same_in_batches(table: pa.Table) -> None:
    text = f"SELECT k, {select(AGGREGATES)} FROM s [RANGE 23 SLIDE 3 WATTR at] GROUP BY k"
    want, got = panes.sql(text, s=table), in_batches(text, table)
    assert got.schema.equals(want.schema)
    assert str(got.to_pylist()) == str(want.to_pylist())  # NaN is NaN here


@pytest.mark.parametrize("text", [
    "SELECT k, count(*) AS n FROM s [RANGE 20 SLIDE 2 WATTR at] GROUP BY k HAVING n > 3",
    "SELECT k, max(i) + 1 AS m FROM s [RANGE 20 SLIDE 2 WATTR at] WHERE b GROUP BY k",
    "SELECT count(*) AS n FROM s [RANGE 20 SLIDE 2 WATTR at ORIGIN FIRST]",
])  # fmt: skip
@pytest.mark.parametrize("options", [{}, {"lateness": 3}, {"why": True}])
def test_options_and_expressions_mean_the_same(text: str, options: dict[str, Any]) -> None:
    table = spread_out(text)
    reader = panes.sql(text, batches=True, s=table, **options)
    assert reader.read_all().equals(panes.sql(text, s=table, **options))


def test_no_batch_has_more_answers_than_a_step() -> None:
    text = "SELECT k, count(*) AS n FROM s [RANGE 20 SLIDE 2 WATTR at] GROUP BY k"
    sizes = [len(batch) for batch in panes.sql(text, batches=True, s=spread_out(text))]
    assert max(sizes) <= FEW
    assert len(sizes) > 20


def test_a_window_with_more_keys_than_a_step_is_a_step_of_its_own() -> None:
    table = pa.table({"at": [1, 1, 1, 1, 1, 1, 1, 12], "k": list("abcdefga")})
    text = "SELECT k, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"
    assert [len(batch) for batch in panes.sql(text, batches=True, s=table)] == [7, 1]


def test_what_was_answered_is_forgotten_while_the_rest_waits() -> None:
    """The store shrinks from step to step, and nothing is answered before it is asked for."""
    text = "SELECT k, count(*) AS n FROM s [TUMBLING 2 WATTR at] GROUP BY k"
    query = OpenQuery(text, StreamOptions(bounded=True))
    assert [len(t) for t in in_steps.push(query, {"s": spread_out(text)})] == [0]
    stored = [query.state["partials"]]
    stored += [query.state["partials"] for _ in in_steps.finish(query)]
    assert stored[0] == 40
    assert sorted(stored, reverse=True) == stored
    assert max(before - after for before, after in pairwise(stored)) <= 2 * FEW
    assert stored[-1] == 0


def test_the_limit_is_for_a_step_and_a_hundred_of_them() -> None:
    table = pa.table({"at": [0, 500], "k": ["a", "a"]})
    text = "SELECT k, count(*) AS n FROM s [RANGE 100 SLIDE 1 WATTR at] GROUP BY k"
    with pytest.raises(LimitError):
        panes.sql(text, s=table, max_answers=99)
    assert len(panes.sql(text, s=table, batches=True, max_answers=3).read_all()) == 200
    with pytest.raises(LimitError, match="100 steps of 1"):
        panes.sql(text, s=table, batches=True, max_answers=1).read_all()
    everything = panes.sql(text, s=table, batches=True, max_answers=None)
    assert len(everything.read_all()) == 200


def test_an_absurd_overlap_is_refused_before_the_first_batch() -> None:
    table = pa.table({"at": pa.array([0, 10**15], pa.timestamp("us", "UTC")), "k": ["a", "b"]})
    text = "SELECT k, count(*) AS n FROM s [{} SLIDE 1 microsecond WATTR at] GROUP BY k"
    for size in ("RANGE 1000000 days", "RANGE ALL"):
        with pytest.raises(LimitError, match="all steps together"):
            panes.sql(text.format(size), s=table, batches=True).read_all()


def test_only_the_pane_store_closes_windows_in_steps() -> None:
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"
    with pytest.raises(OptionError, match="the store `eager` cannot"):
        panes.sql(text, s=spread_out(text), batches=True, store="eager")


def test_rejected_rows_are_told_before_a_batch_is_read() -> None:
    with pytest.warns(RejectedRowsWarning, match="1 rows"):
        reader = panes.sql(
            "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]",
            batches=True,
            s=pa.table({"at": pa.array([1, None], pa.int64())}),
        )
    assert reader.read_all().to_pylist() == [{"window_start": 0, "window_end": 10, "n": 1}]


def test_an_error_in_a_later_batch_is_ours_too() -> None:
    at = list(range(0, 200, 10))
    table = pa.table({"at": at, "t": ["2026-01-01"] * (len(at) - 1) + ["x"]})
    text = "SELECT to_timestamp(max(t)) AS d FROM s [TUMBLING 10 WATTR at]"
    reader = panes.sql(text, batches=True, s=table)
    assert len(reader.read_next_batch()) == FEW
    with pytest.raises(panes.PanesError, match="cannot evaluate"):
        reader.read_all()


def test_an_empty_table_has_a_reader_with_its_columns() -> None:
    text = "SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at]"
    reader = panes.sql(text, batches=True, s=pa.table({"at": pa.array([], pa.int64())}))
    assert reader.schema.names == ["window_start", "window_end", "n"]
    assert not reader.read_all()
