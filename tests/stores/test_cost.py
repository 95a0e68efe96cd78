"""The cost model: the thesis's formulas as they are printed, and estimates against runs.

Catches: a formula with a term missing, an estimate of memory that a run does not bear out, and an
explanation that tells another store than the one that ran.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import panes
from panes.stores.cost import (
    Load,
    UnitCosts,
    differential_time,
    eager_bytes,
    lazy_bytes,
    lazy_rows,
    paned_time,
    window_time,
)

UNIT = UnitCosts(fill_row=2.0, close_pane=3.0, roll_pane=5.0, window_row=7.0)


def test_equations_6_1_to_6_4() -> None:
    """T = 100 rows, P = 10 panes, G = 4 groups, one pane per slide."""
    load = Load(rows=100, panes=10, groups=4, slides=1, overlap=10)
    assert paned_time(load, UNIT, differential=False) == 2 * 100 / 10 + 3 * 4 + 5 * 10 * 4
    assert paned_time(load, UNIT, differential=True) == 2 * 100 / 10 + 3 * 4 + 2 * 5 * 4
    assert window_time(load, UNIT) == 7 * 100
    assert differential_time(load, UNIT) == 2 * 7 * 100 / 10


def test_equation_6_2_counts_the_panes_of_a_slide() -> None:
    """RANGE 9 SLIDE 6: panes of 3, two of them per slide."""
    load = Load(rows=90, panes=3, groups=1, slides=2, overlap=1.5)
    assert paned_time(load, UNIT, differential=True) == 2 * 90 / 3 * 2 + 3 * 2 + 2 * 5 * 2


def test_panes_gain_nothing_where_every_group_has_one_row() -> None:
    """6.2.3: as many groups in a pane as rows."""
    unit = UnitCosts()
    crowded = Load(rows=100, panes=10, groups=10, slides=1, overlap=10)
    sparse = Load(rows=10_000, panes=10, groups=10, slides=1, overlap=10)
    ratio = {
        load: paned_time(load, unit, differential=False) / window_time(load, unit)
        for load in (crowded, sparse)
    }
    assert ratio[sparse] < ratio[crowded]


def test_equations_6_5_to_6_8() -> None:
    """Q6-5, one row in five minutes: five partials against one row."""
    assert eager_bytes(partial=24, duration=5, slide=1) == 120
    assert lazy_bytes(row=20, volume=1) == 20
    assert lazy_rows(volume=30, lag=12) == 18
    assert lazy_rows(volume=3, lag=12) == 0


def stream(rows: int) -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "at": np.sort(random.integers(0, 100 * rows // 20, rows)),
            "item": random.integers(0, 20, rows),
            "price": random.random(rows),
        }
    )


TEXT = "SELECT item, max(price) AS m FROM bids [RANGE 500 SLIDE 100 WATTR at] GROUP BY item"


@pytest.mark.parametrize("store", ["panes", "eager", "buffered", "adaptive", "adaptive-panes"])
def test_the_estimate_of_memory_is_borne_out_by_the_run(store: str) -> None:
    query = panes.open(TEXT, lateness=0, store=store)
    table = stream(20_000)
    for begin in range(0, len(table), 50):
        query.push(bids=table.slice(begin, 50))
    query.finish()
    (line,) = [t for t in query.explain(details=True).splitlines() if "chosen" in t]
    assert line.replace("cost", "").split()[0] == store
    estimated = _kilobytes(line.split("(6.1-6.4)")[1].split("(6.5-6.9)")[0])
    measured = _kilobytes(line.rsplit(",", 1)[1])
    assert 0.4 < estimated / measured < 2.5, line


def _kilobytes(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"B": 1e-3, "kB": 1, "MB": 1e3}[unit]


def test_explain_runs_a_query_over_tables_if_asked() -> None:
    text = panes.explain(TEXT, run=True, bids=stream(2_000))
    assert "seen       2,000 rows" in text
    assert "store      panes (one update a row" in text
    assert "measured" in text
    assert "seen" not in panes.explain(TEXT, bids=stream(2_000))


def test_explain_tells_what_is_made_of_a_stream_before_it_is_windowed() -> None:
    text = (
        "SELECT count(*) AS n FROM (SELECT DISTINCT at, item FROM bids WHERE price > 0.5) "
        "[TUMBLING 10 WATTR at] EMIT EARLY"
    )
    told = panes.explain(text, bids=stream(10))
    assert "before     bids: rows where price > 0.5; projected to at, item; each different" in told
    assert "early      open windows are answered with every batch" in told


def test_explain_names_the_store_that_was_asked_for() -> None:
    text = panes.explain(TEXT, store="adaptive", bids=stream(10))
    assert "store      adaptive (asked for): rows of rare keys" in text
