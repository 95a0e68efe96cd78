"""What a task sends: one of the shards is told where all rows lie, and each gets its turn."""

from __future__ import annotations

import pyarrow as pa
import pytest

from panes.language.parse import parse
from panes.planning.plan import plan
from panes.shards.combiner import Combiner
from panes.shards.marks import read_marks
from panes.shards.names import AT, REJECTED, SOURCE, column_name, positions_name
from panes.shards.query_filler import PlanFiller
from panes.stores import codec

TEXT = "SELECT k, count(*) AS n FROM s [TUMBLING 1 minute WATTR ts] GROUP BY k"
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string()})
INTEGERS = pa.schema({"at": pa.int64(), "k": pa.string()})
SHARDS = 4


def test_batches_that_end_at_whole_seconds_are_noted_by_different_shards() -> None:
    planned = plan(parse(TEXT), {"s": SCHEMA})
    noted = []
    for second in range(40):
        combiner = Combiner(PlanFiller(planned), SHARDS)
        batch = {AT: pa.array([second * 1_000_000]), column_name(0): pa.array(["a"])}
        combiner.add(pa.record_batch(batch))
        packages = {shard: codec.unpack(data) for shard, data in combiner.packages()}
        assert set(packages) == set(range(SHARDS))
        noted += [shard for shard, tables in packages.items() if positions_name(0) in tables]
    assert len(noted) == 40
    assert set(noted) == set(range(SHARDS))


def test_a_position_far_ahead_of_the_others_moves_no_mark() -> None:
    """It is rejected with the reason; each source is judged by its own rows."""
    planned = plan(parse(TEXT.replace("1 minute WATTR ts", "10 WATTR at")), {"s": INTEGERS})
    combiner = Combiner(PlanFiller(planned), 1, max_step=100)
    batch = {
        AT: pa.array([1, 10**15, 2, None, 7_000, 7_001]),
        SOURCE: pa.array([0, 0, 0, 0, 1, 1], pa.int32()),
        column_name(0): pa.array(["a"] * 6),
    }
    combiner.add(pa.record_batch(batch))
    [(_, data)] = combiner.packages()
    tables = codec.unpack(data)
    assert {number: marks.high for number, marks in read_marks(tables).items()} == {0: 2, 1: 7_001}
    assert tables[REJECTED].column("reason").to_pylist() == [
        "`at` is NULL or outside the axis",
        "`at` is further ahead of all rows so far, up to 2, than max_ahead",
    ]


def test_a_position_is_compared_with_all_rows_of_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task works through its rows in pieces; here the last one is a wrong position alone."""
    monkeypatch.setattr("panes.shards.combiner._FULL", 3)
    planned = plan(parse(TEXT.replace("1 minute WATTR ts", "10 WATTR at")), {"s": INTEGERS})
    combiner = Combiner(PlanFiller(planned), 1, max_step=100)
    for at in ([1, 2, 3], [10**15]):
        batch = {AT: pa.array(at), column_name(0): pa.array(["a"] * len(at))}
        combiner.add(pa.record_batch(batch))
    [(_, data)] = combiner.packages()
    tables = codec.unpack(data)
    assert read_marks(tables)[0].high == 3
    assert tables[REJECTED].column("reason").to_pylist() == [
        "`at` is further ahead of all rows so far, up to 3, than max_ahead"
    ]
