"""Scalar SQL means what it means in Spark's ANSI mode: values, types, errors and refusals."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from panes import PanesError
from panes.expressions import types as t
from panes.expressions.translate import translate
from panes.expressions.typed import Typed
from tests.expressions.examples import (
    CASTS,
    COLLECTIONS,
    CONDITIONS,
    DATES,
    FAILS,
    NUMBERS,
    PATTERNS,
    REFUSED,
    TEXT,
    asked,
    expression,
    require_as_in_spark,
    same,
)


@pytest.mark.parametrize(
    ("sql", "value", "kind"),
    [*CASTS, *DATES, *NUMBERS, *CONDITIONS, *TEXT, *PATTERNS, *COLLECTIONS],
)
def test_an_expression_has_the_value_and_the_type_that_it_has_in_spark(
    sql: str, value: object, kind: str
) -> None:
    require_as_in_spark(sql, value, kind)


@pytest.mark.parametrize("sql", FAILS)
def test_what_fails_in_spark_fails_here_when_it_is_worked_out(sql: str) -> None:
    found = translate(expression(sql), {})
    with pytest.raises(duckdb.Error):
        asked(found.text)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_certain_is_refused_by_its_name(sql: str) -> None:
    with pytest.raises(PanesError):
        translate(expression(sql), {})


COLUMNS = pa.table({
    "n": pa.array([1, None, -7], pa.int32()),
    "s": pa.array(["a,b", None, " 12 "]),
    "d": pa.array([date(2020, 2, 29), None, date(1969, 12, 31)]),
    "at": pa.array([datetime(2020, 2, 29, 1, 2, 3, 4), None, datetime(1969, 12, 31, 23, 59, 59)],
                   t.TIMESTAMP),
    "l": pa.array([[3, None, 1], None, []], pa.list_(pa.int32())),
})  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("abs(n) + 1", [2, None, 8]),
        ("n % 3", [1, None, -1]),
        ("pmod(n, 3)", [1, None, 2]),
        ("try_cast(s as int)", [None, None, 12]),
        ("split(s, ',')", [["a", "b"], None, [" 12 "]]),
        ("split_part(s, ',', -1)", ["b", None, " 12 "]),
        ("concat(s, '!')", ["a,b!", None, " 12 !"]),
        ("concat_ws('-', s, n)", ["a,b-1", "", " 12 --7"]),
        ("lpad(s, n + 8, 'xy')", ["xyxyxya,b"[-9:], None, " "]),
        ("add_months(d, 12)", [date(2021, 2, 28), None, date(1970, 12, 31)]),
        ("date_format(at, 'yyyy-MM-dd HH:mm:ss')", ["2020-02-29 01:02:03", None,
                                                    "1969-12-31 23:59:59"]),
        ("unix_seconds(at)", [1582938123, None, -1]),
        ("extract(second from at)", [Decimal("3.000004"), None, Decimal("59.000000")]),
        ("months_between(at, d)", [0.0, None, 0.0]),
        ("sort_array(l)", [[None, 1, 3], None, []]),
        ("filter(l, x -> x > n)", [[3], None, []]),
        ("exists(l, x -> x > 5)", [None, None, False]),
        ("aggregate(l, 0, (a, x) -> a + coalesce(x, 0))", [4, None, 0]),
        ("element_at(map(1, 'one'), n)", ["one", None, None]),
        ("CASE WHEN n > 0 THEN 1 / n ELSE 0 END", [1.0, 0.0, 0.0]),
        ("n IS NULL OR 10 / n > 1", [True, True, False]),
        ("substring(s, n)", ["a,b", None, " 12 "]),
        ("coalesce(cast(s as string), 'none') LIKE '%,%'", [True, False, False]),
    ],
)  # fmt: skip
def test_columns_are_worked_out_row_by_row_and_null_stays_null(
    sql: str, values: list[object]
) -> None:
    columns = {name: Typed(t.quoted(name), COLUMNS.schema.field(name).type)
               for name in COLUMNS.column_names}  # fmt: skip
    found = translate(expression(sql), columns)
    answer = asked(found.text, COLUMNS)
    assert same(answer, values), answer


def test_an_unknown_column_is_refused_with_those_there_are() -> None:
    with pytest.raises(PanesError, match="there is no column `nothing`"):
        translate(expression("nothing + 1"), {"n": Typed("n", t.INT)})


def test_what_is_used_often_is_worked_out_once() -> None:
    nested = "s"
    for _ in range(12):
        nested = f"split_part({nested}, ',', 1)"
    found = translate(expression(nested), {"s": Typed("s", t.STRING)})
    assert len(found.text) < 20_000
