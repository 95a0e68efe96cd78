"""Decimals of mixed precision: one type holds them, and whole digits come before places.

Each answer was given by Spark 4.3; `tests/spark/functions/test_random_values.py` asks it again.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import panes
from panes.errors import QueryError

WIDE = "CAST(7 AS DECIMAL(38,0))"
FINE = "CAST(0.5 AS DECIMAL(38,38))"
TINY = f"CAST('0.{'0' * 29}1' AS DECIMAL(38,30))"
ANSWERS = [
    (f"coalesce(1.55, {WIDE})", "2", "decimal(38,0)"),
    (f"if(true, 1.55, {WIDE})", "2", "decimal(38,0)"),
    (f"CASE WHEN true THEN 1.55 ELSE {WIDE} END", "2", "decimal(38,0)"),
    (f"nvl(1.45, {WIDE})", "1", "decimal(38,0)"),
    (f"greatest({WIDE}, 7.5)", "8", "decimal(38,0)"),
    (f"least(6.5, {WIDE})", "7", "decimal(38,0)"),
    (f"array(1.55, {WIDE})[0]", "2", "decimal(38,0)"),
    (f"map('a', -1.55, 'b', {WIDE})['a']", "-2", "decimal(38,0)"),
    (f"6.5 = {WIDE}", "True", "boolean"),
    (f"6.5 < {WIDE}", "False", "boolean"),
    (f"6.5 IN (1, {WIDE})", "True", "boolean"),
    (f"nullif(6.6, {WIDE})", "None", "decimal(2,1)"),
    (f"coalesce({FINE}, 1)", "0.5000000000000000000000000000", "decimal(38,28)"),
    (f"{TINY} = 0", "False", "boolean"),
    ("zeroifnull(1.5)", "1.5", "decimal(11,1)"),
    ("zeroifnull(CAST(NULL AS SMALLINT))", "0", "int"),
]
REFUSED = [
    "array_append(array(1.5), 1.55)",
    "array_union(array(1.5), array(1.55))",
    "array(1.5) = array(1.55)",
    "element_at(map(1.55, 'a'), 1.5)",
    "x < 12345678901234567890",
]


@pytest.mark.parametrize(("sql", "value", "kind"), ANSWERS)
def test_the_type_of_two_decimals_keeps_whole_digits(sql: str, value: str, kind: str) -> None:
    query = f"SELECT first({sql}) AS v, first(typeof({sql})) AS t FROM s [TUMBLING 10 WATTR at]"
    answer = panes.sql(query, s=pa.table({"at": [1]})).to_pylist()[0]
    assert (str(answer["v"]), answer["t"]) == (value, kind)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_spark_does_not_bring_together_is_refused(sql: str) -> None:
    query = f"SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at] WHERE {sql} IS NULL"
    with pytest.raises(QueryError, match="translated"):
        panes.sql(query, s=pa.table({"at": [1], "x": [1]}))


@pytest.mark.parametrize(("start", "rest"), [(-2147483648, "ab"), (-2147483647, "abc")])
def test_what_lies_before_a_text_counts_for_its_length(start: int, rest: str) -> None:
    query = f"SELECT max(substring(x, {start})) AS v, max(substring(x, i)) AS w FROM s"
    rows = pa.table({"i": pa.array([start], pa.int32()), "x": ["abc"]})
    (answer,) = panes.sql(f"{query} [TUMBLING 10 WATTR i]", s=rows).to_pylist()
    assert (answer["v"], answer["w"]) == (rest, rest)
