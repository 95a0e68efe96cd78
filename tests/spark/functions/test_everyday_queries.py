"""Everyday queries, drawn at random: expressions, aggregates, windows, keys and conditions.

Each is asked in one process and as Spark's own ``GROUP BY window(...)``: same types, same rows.
What is an estimate is left out, since each engine has its own.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import panes

ROWS, QUERIES, CALLS = 80, 40, 8
_NUMBERS = """
    i; b; x; m; i + 1; x * 2; x / 4; m * 2; i % 3; abs(i); length(s); coalesce(i, 0); nvl(x, 0);
    if(y, i, -i); CASE WHEN i > 0 THEN i ELSE 0 END; CASE k WHEN 'a' THEN 1 WHEN 'b' THEN 2.5 END;
    nullif(i, 0); greatest(i, 2); least(x, 1.5); round(x); round(x, 1); floor(x); ceil(x);
    cast(x AS int); cast(m AS double); try_cast(s AS int); try_cast(s AS double); year(d); month(u);
    hour(u); dayofweek(d); datediff(d, DATE '2024-01-01'); unix_timestamp(u); instr(s, 'b');
    timestampdiff(MINUTE, u, TIMESTAMP '2026-03-29 00:00:00'); pmod(i, 3); i * x; m + i; m / 2;
    shiftleft(i, 2); i & 3; size(split(s, ',')); cast(y AS int); hash(k); bit_count(i); x - i; -m;
    date_diff(DAY, d, DATE '2024-03-01'); cast(u AS bigint); sign(x); quarter(d); power(i, 2);
    try_divide(x, i); ascii(s); cast(round(x, 2) AS decimal(10,2)); i div 2; b % 7; try_add(i, b)
"""
_TEXTS = """
    s; k; upper(s); lower(k); concat(k, '-', s); substring(s, 1, 1); coalesce(k, 'none'); trim(s);
    replace(s, 'a', 'x'); left(s, 2); date_format(u, 'yyyy-MM'); cast(i AS string); dayname(d);
    cast(d AS string); concat_ws('/', k, i); CASE WHEN s LIKE 'a%' THEN 'A' ELSE 'other' END;
    regexp_replace(s, '[0-9]+', '#'); split(s, ',')[0]; lpad(s, 4, '0'); if(s = '', NULL, s);
    reverse(s); initcap(s); k || s; md5(s); cast(x AS string); regexp_extract(s, '([a-z])', 1);
    nvl2(k, 'has', 'no'); hex(i); rpad(k, 3, '.'); cast(m AS string); split_part(s, ',', 1)
"""
_MOMENTS = """
    d; u; date_add(d, 1); date_trunc('hour', u); last_day(d); cast(u AS date); add_months(d, 1);
    u + INTERVAL 30 MINUTES; trunc(d, 'MM'); dateadd(DAY, 3, u); make_date(2024, 1, 2);
    from_utc_timestamp(u, 'Europe/Berlin'); to_date('2/9/2024', 'M/d/yyyy')
"""
_TRUTHS = """
    y; i > 0; s LIKE '%a%'; k IN ('a', 'b'); x BETWEEN 0 AND 2; s IS NULL; NOT y; i > 0 AND x < 2;
    s LIKE ANY ('a%', '%c'); k = 'it''s'; s RLIKE '^[a-z]'; i IS DISTINCT FROM 1; y OR x > 1;
    d > DATE '2023-06-01'; isnan(x); contains(s, 'b'); d - DATE '2024-01-01' > INTERVAL 1 DAY
"""
_OF_NUMBERS = """
    sum(#); avg(#); min(#); max(#); count(#); count(DISTINCT #); stddev(#); median(#); variance(#);
    sum(#) FILTER (WHERE ?); round(avg(#), 2); max(#) - min(#); coalesce(sum(#), 0);
    percentile(#, 0.25); sort_array(collect_set(#)); cast(max(#) AS string)
"""
_OF_TEXTS = """
    min(#); max(#); count(#); count(DISTINCT #); sort_array(collect_set(#)); length(max(#));
    upper(min(#)); max(#) FILTER (WHERE ?); max(length(#))
"""
_OF_MOMENTS = "min(#); max(#); count(DISTINCT #); count(#); max(#) FILTER (WHERE ?)"
_OF_TRUTHS = "bool_or(#); bool_and(#); count_if(#); every(#); some(#); sum(if(#, 1, 0)); max(#)"
_KEYS = """
    k; y; coalesce(k, 'none'); i % 2; upper(k); hour(u); cast(u AS date); s LIKE 'a%'; length(s);
    CASE WHEN i > 0 THEN 'p' ELSE 'n' END; date_trunc('day', u); initcap(k); if(x > 1, 'hi', 'lo')
"""
_WINDOWS = {
    "[TUMBLING 10 minutes WATTR ts]": "'10 minutes'",
    "[RANGE 30 minutes SLIDE 10 minutes WATTR ts]": "'30 minutes', '10 minutes'",
    "[RANGE 7 minutes SLIDE 3 minutes WATTR ts ALIGN START]": "'7 minutes', '3 minutes'",
    "[TUMBLING 1 hour WATTR ts ORIGIN 15 minutes]": "'1 hour', '1 hour', '15 minutes'",
}


def _of(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from([" ".join(part.split()) for part in text.split(";")])


def _call(calls: str, expressions: str) -> st.SearchStrategy[str]:
    return st.builds(
        lambda call, of, where: str(call).replace("#", of).replace("?", where),
        _of(calls), _of(expressions), _of(_TRUTHS),
    )  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """One query, in both languages."""

    window: str
    key: str | None
    where: str | None
    calls: list[str]

    @property
    def _selected(self) -> str:
        key = [] if self.key is None else [f"{self.key} AS key"]
        return ", ".join([*key, *(f"{call} AS c{i}" for i, call in enumerate(self.calls))])

    @property
    def _where(self) -> str:
        return "" if self.where is None else f" WHERE {self.where}"

    @property
    def here(self) -> str:
        group = "" if self.key is None else f" GROUP BY {self.key}"
        return f"SELECT {self._selected} FROM t {self.window}{self._where}{group}"

    @property
    def there(self) -> str:
        group = "" if self.key is None else f", {self.key}"
        return (
            f"SELECT window.start AS window_start, window.end AS window_end, {self._selected} "
            f"FROM t{self._where} GROUP BY window(ts, {_WINDOWS[self.window]}){group}"
        )


_asked = st.builds(
    Asked, st.sampled_from(sorted(_WINDOWS)), st.none() | _of(_KEYS), st.none() | _of(_TRUTHS),
    st.lists(
        _call(_OF_NUMBERS, _NUMBERS) | _call(_OF_TEXTS, _TEXTS) | _call(_OF_MOMENTS, _MOMENTS)
        | _call(_OF_TRUTHS, _TRUTHS), min_size=CALLS, max_size=CALLS,
    ),
)  # fmt: skip


def _rows() -> pa.Table:
    """Rows over two hours, in one of which clocks change; one value in eight is NULL."""
    draw, night = random.Random(7), dt.datetime(2026, 3, 29, tzinfo=dt.UTC)
    values: dict[str, tuple[pa.DataType, list[Any]]] = {
        "k": (pa.string(), ["a", "b", "c"]), "i": (pa.int32(), [0, 1, -1, 2, 7, -13, 100]),
        "b": (pa.int64(), [0, 1, -5, 10**12]), "y": (pa.bool_(), [True, False]),
        "x": (pa.float64(), [0.0, -0.0, 0.5, -2.5, 1.25, 100.0, 3.75]),
        "m": (pa.decimal128(10, 2), [Decimal("1.25"), Decimal("-0.50"), Decimal("99.99")]),
        "s": (pa.string(), ["", "a", "Abc", "é", "12", " 7 ", "a,b", "it's", "-1.5"]),
        "d": (pa.date32(), [dt.date(2024, 2, 29), dt.date(2023, 1, 1), dt.date(1969, 12, 31)]),
        "u": (pa.timestamp("us", "UTC"),
              [night, night + dt.timedelta(minutes=90), dt.datetime(1999, 12, 31, tzinfo=dt.UTC)]),
    }  # fmt: skip
    at = [night + dt.timedelta(seconds=draw.randint(0, 7200)) for _ in range(ROWS)]
    columns = {"ts": pa.array(at, pa.timestamp("us", "UTC"))}
    for name, (kind, some) in values.items():
        drawn = [None if draw.random() < 0.125 else draw.choice(some) for _ in range(ROWS)]
        columns[name] = pa.array(drawn, kind)
    return pa.table(columns)


def _told(answers: pa.Table) -> tuple[list[str], list[tuple[Any, ...]]]:
    kinds = [re.sub(r"(item|element): | not null", "", str(f.type)) for f in answers.schema]
    rows = [tuple(map(_plain, row.values())) for row in answers.to_pylist()]
    return kinds, sorted(rows, key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.7g}") + 0.0
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return tuple(map(_plain, value)) if isinstance(value, list) else value


# Queries of one example stand beside each other, so that the call that differs is seen at once.
@pytest.mark.slow
@settings(max_examples=QUERIES, phases=[Phase.generate], deadline=None)
@given(asked=_asked)
def test_an_everyday_query_is_the_same_in_one_process_and_on_spark(
    spark: SparkSession, asked: Asked
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    rows = _rows()
    spark.createDataFrame(rows).coalesce(1).createOrReplaceTempView("t")
    here, there = _told(panes.sql(asked.here, t=rows)), _told(spark.sql(asked.there).toArrow())
    assert here == there
