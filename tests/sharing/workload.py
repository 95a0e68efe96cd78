"""Six queries that share a register in several tests, and seeded rows for them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tests.support import assert_same, sorted_answers

QUERIES = {
    "all": "SELECT count(*) AS n FROM s [RANGE 20 SLIDE 5 WATTR at]",
    "keyed": "SELECT k, sum(x) AS total, avg(x) AS mean FROM s [RANGE 12 SLIDE 4 WATTR at] "
    "GROUP BY k",
    "dear": "SELECT k, max(x) AS most FROM s [RANGE 30 SLIDE 10 WATTR at] WHERE x > 5 GROUP BY k",
    "middle": "SELECT k, median(x) AS m FROM s [RANGE 10 SLIDE 5 WATTR at] GROUP BY k",
    "some": "SELECT k, count(*) FILTER (WHERE x < 3) AS few, count(*) AS n "
    "FROM s [RANGE 9 SLIDE 3 WATTR at] GROUP BY k HAVING count(*) > 1",
    "long": "SELECT k, min(x) AS least FROM s [RANGE 200 SLIDE 50 WATTR at] GROUP BY k",
}


SCHEMA = pa.schema({"at": pa.int64(), "k": pa.string(), "x": pa.int64()})


def rows(seed: int, count: int, begin: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    at = begin + np.sort(rng.integers(0, 40, count)) - rng.integers(0, 6, count)
    keys = np.array(["a", "b", "c", None])[rng.integers(0, 4, count)]
    return pa.table([at, keys.tolist(), rng.integers(0, 9, count)], schema=SCHEMA)


def assert_same_answers(left: Mapping[str, pa.Table], right: Mapping[str, pa.Table]) -> None:
    assert left.keys() == right.keys()
    for name in left:
        keys = int("k" in left[name].column_names)
        assert_same(sorted_answers(left[name], keys), sorted_answers(right[name], keys))
