"""A stream that is split and united again (thesis, Fig. 8-3): each place sees all of its rows.

The second opinion has no stream twice: the same rows are given under two names.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panes
from tests.support import open_graph, rows_in_order

ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), min_size=1, max_size=20)
SPLIT = "(SELECT at, x FROM {s} WHERE x > 4 UNION ALL SELECT at + 3 AS at, 10 - x AS x FROM {t})"
TEXTS = {
    "as it is": "SELECT count(*) AS n, sum(x) AS x FROM ({s} UNION ALL {t}) [TUMBLING 10 WATTR at]",
    "split": f"SELECT x, count(*) AS n FROM {SPLIT} [RANGE 20 SLIDE 10 WATTR at] GROUP BY x",
    "distinct": "SELECT count(*) AS n FROM (SELECT DISTINCT at, x FROM {s} UNION ALL SELECT at, x "
    "FROM {t}) [TUMBLING 10 WATTR at]",
    "inside": f"SELECT max(n) AS most FROM (SELECT count(*) AS n FROM {SPLIT} "
    "[RANGE 20 SLIDE 10 WATTR at]) [TUMBLING 40]",
    "joined": "SELECT a.at, b.at AS bt, b.x FROM ({s} UNION ALL {t}) a JOIN {s} b "
    "ON a.x = b.x AND b.at BETWEEN a.at AND a.at + 5",
}


def stream(rows: list[tuple[int, int]]) -> pa.Table:
    at, x = zip(*rows, strict=True)
    return pa.table({"at": pa.array(at, pa.int64()), "x": pa.array(x, pa.int64())})


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@given(rows=ROWS, cut=st.integers(0, 20))
def test_it_is_two_streams_with_the_same_rows(
    text: str, rows: list[tuple[int, int]], cut: int
) -> None:
    """Rows come in two batches, none further behind than the lateness."""
    s = stream(rows)
    apart, twice = text.format(s="s", t="t"), text.format(s="s", t="s")
    wanted = rows_in_order(panes.sql(apart, s=s, t=s))
    assert rows_in_order(panes.sql(twice, s=s)) == wanted
    assert rows_in_order(panes.oracle(twice, s=s)) == wanted
    query = open_graph(twice, lateness=60)
    found = [query.push(s=s.slice(0, cut)), query.push(s=s.slice(cut)), query.finish()]
    found = [table for table in found if table.num_columns]
    assert rows_in_order(pa.concat_tables(found)) == wanted
    assert query.query.streams == ("s",)


def test_answers_are_united_with_themselves() -> None:
    text = (
        "WITH peaks AS (SELECT max(x) AS m FROM s [TUMBLING 10 WATTR at]) "
        "SELECT count(*) AS n, sum(m) AS t FROM (peaks UNION ALL peaks) [TUMBLING 20]"
    )
    s = stream([(1, 5), (4, 7), (12, 2)])
    wanted = [{"window_start": 0, "window_end": 20, "n": 4, "t": 18}]
    assert panes.sql(text, s=s).to_pylist() == wanted
    assert panes.oracle(text, s=s).to_pylist() == wanted


def test_a_promise_reaches_every_place_and_moves_as_its_rows_do() -> None:
    """
    s         |---------|        promised: 10
    at + 3       |---------|     so 13 here, and 10 of both
    """
    query = open_graph(TEXTS["split"].format(s="s", t="s"))
    query.push(s=stream([(1, 9), (9, 2)]))
    assert query.punctuate(s=9).num_rows == 0
    assert query.punctuate(s=10)["n"].to_pylist() == [1, 1]
