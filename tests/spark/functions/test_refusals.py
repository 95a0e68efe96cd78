"""What Spark does not understand is refused in our words, and by the expression."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import panes
from panes.errors import PanesError, QueryError

ROWS = pa.table({"at": [1], "x": ["a"], "n": [1.5], "arr": [[1, 2]]})
PLACES = (
    "SELECT max({}) AS m FROM s [TUMBLING 10 WATTR at]",
    "SELECT count(*) AS m FROM s [TUMBLING 10 WATTR at] WHERE {} IS NULL",
    "SELECT count(*) AS m FROM s [TUMBLING 10 WATTR at] GROUP BY {}",
    "SELECT count(*) AS m FROM (SELECT at, {} AS y FROM s) [TUMBLING 10 WATTR at]",
    "SELECT count(*) AS m FROM (SELECT at FROM s WHERE {} IS NULL) [TUMBLING 10 WATTR at]",
)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("upper(x, x)", "gives `upper` 2 arguments, and it takes 1"),
        ("n + arr", "does not fit its types"),
        ("reduce(arr, 0, (a, e) -> a + e + 0.5D)", "does not fit its types"),
    ],
)
def test_a_wrong_call_is_refused_by_name_on_both_engines(
    spark: SparkSession, expression: str, said: str
) -> None:
    frame = spark.createDataFrame(ROWS)
    for place in PLACES:
        with pytest.raises(QueryError, match=said):
            panes.sql(place.format(expression), s=frame)
        with pytest.raises(PanesError):
            panes.sql(place.format(expression), s=ROWS)
