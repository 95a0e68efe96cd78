# ruff: noqa: E501  (expressions stand in one list)
"""Functions, operators and casts over awkward values of their argument types, on both engines.

NULL, NaN, negative numbers, both ends of every type, empty text, Unicode, leap days and the hours
in which clocks change. Where one process answers, Spark gives the same value of the same type;
a row that it refuses, or that has no answer, is left out on Spark.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from panes.errors import PanesError
from panes.scalar.rules import Parameter
from panes.scalar.table import APPROXIMATED, RULES
from tests.spark.functions.both_engines import Answer, on_spark, row_by_row, same

ROWS = 48
AT_ONCE = 40
INF, NAN = float("inf"), float("nan")
_INTS = [0, 1, -1, 2, 7, 31, 100, -13, 2**31 - 1, -(2**31)]
_LONGS = [0, 1, -1, 5, -(2**63), 2**63 - 1, 10**12, 1_582_934_400_000_000]
_DOUBLES = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 3.0, 123456.789, 1e-7, 1e300, NAN, INF, -INF]
_TEXTS = ["", " ", "a", "Abc", "é", "日本", "👍x", " 12 ", "12", "-1.5", "1e3", "a,b,,c", "it's",
          "x\ty", "%_\\", "true", "2024-02-29", "2020-03-29 02:30:00", "aAbB1", "ss"]  # fmt: skip
_DAYS = [date(1970, 1, 1), date(2000, 2, 29), date(1999, 12, 31), date(2024, 2, 29),
         date(1900, 3, 1), date(1969, 12, 31), date(2020, 3, 29), date(2023, 1, 1)]  # fmt: skip
_MOMENTS = [datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999),
            datetime(2020, 3, 29, 1, 30), datetime(2024, 2, 29, 12, 34, 56, 789_012),
            datetime(2023, 10, 29, 0, 59, 59), datetime(1999, 12, 31, 23, 0)]  # fmt: skip
_COLUMNS: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "i": (pa.int32(), _INTS), "i2": (pa.int32(), _INTS), "small": (pa.int16(), [0, 1, -3, 300]),
    "b": (pa.int64(), _LONGS), "b2": (pa.int64(), _LONGS),
    "d": (pa.float64(), _DOUBLES), "d2": (pa.float64(), _DOUBLES),
    "f": (pa.float32(), [0.0, 0.5, -1.25, 0.1, NAN, INF, 16777216.0]),
    "m": (pa.decimal128(10, 2), [Decimal(v) for v in ("0", "1.25", "-1.25", "99999999.99", "-0.5")]),
    "m2": (pa.decimal128(5, 3), [Decimal(v) for v in ("0", "1.255", "-0.125", "99.999")]),
    "s": (pa.string(), _TEXTS), "s2": (pa.string(), _TEXTS), "s3": (pa.string(), _TEXTS),
    "day": (pa.date32(), _DAYS), "day2": (pa.date32(), _DAYS),
    "ts": (pa.timestamp("us", "UTC"), [m.replace(tzinfo=UTC) for m in _MOMENTS]),
    "ts2": (pa.timestamp("us", "UTC"), [m.replace(tzinfo=UTC) for m in _MOMENTS]),
    "ntz": (pa.timestamp("us"), _MOMENTS),
    "yes": (pa.bool_(), [True, False]), "yes2": (pa.bool_(), [True, False]),
    "raw": (pa.binary(), [b"", b"\x00\xff", b"abc"]), "raw2": (pa.binary(), [b"", b"abc", b"b"]),
    "a": (pa.list_(pa.int32()), [[], [1], [1, None, 2], [3, 1, 2, 1]]),
    "a2": (pa.list_(pa.int32()), [[], [2], [None], [1, 2]]),
    "words": (pa.list_(pa.string()), [[], ["a"], ["b", None, ""], ["é", "a", "a"]]),
    "words2": (pa.list_(pa.string()), [[], ["a"], [None]]),
}  # fmt: skip
_OF_TYPE = {
    "int": ["i", "i2"], "bigint": ["b", "b2"], "double": ["d", "d2"], "string": ["s", "s2", "s3"],
    "date": ["day", "day2"], "timestamp": ["ts", "ts2"], "timestamp_ntz": ["ntz"],
    "moment": ["ts", "ts2"], "boolean": ["yes", "yes2"], "binary": ["raw", "raw2"],
    "integer": ["i", "i2"], "fraction": ["d", "d2"], "decimal": ["m", "m2"], "number": ["d", "d2"],
    "array": ["a", "a2"], "void": ["NULL"], "any": ["s", "d"], "array<string>": ["words", "words2"],
}  # fmt: skip
_VARIABLES: Mapping[str, tuple[list[str], list[str]]] = {
    "int": (["i", "i2", "b"], ["a", "a2"]), "string": (["s", "s2", "s3"], ["words", "words2"]),
    "double": (["d", "d2", "f"], []), "date": (["day", "day2", "ts"], []),
}  # fmt: skip
_CONSTANTS = {"string": "','", "boolean": "false", "int": "2"}
_LENGTHS = {"repeat", "space", "array_repeat"}
"""Functions whose result is as long as an argument says; they are among the written ones."""


def _calls() -> Iterator[str]:
    """A call for every line of the table, over columns of its parameters' types."""
    for name, rules in sorted(RULES.items()):
        for rule in rules:
            if name not in _LENGTHS:
                yield from _over(name, rule.parameters)


def _over(name: str, parameters: Sequence[Parameter]) -> Iterator[str]:
    has_variable = any(p.kind.isupper() or p.kind[6:-1].isupper() for p in parameters)
    for single, arrays in _VARIABLES.values() if has_variable else [([], [])]:
        known = {**_OF_TYPE, "T": single, "O": single, "array<T>": arrays, "array<O>": arrays}
        taken: dict[int, Iterator[str]] = {}
        arguments = []
        for parameter in parameters:
            names = known[parameter.kind]
            if parameter.constant:
                arguments.append(_CONSTANTS[parameter.kind])
            elif names:
                arguments.append(next(taken.setdefault(id(names), itertools.cycle(names))))
        if len(arguments) == len(parameters):
            yield f"{name}({', '.join(arguments)})"


_FORMS = """
    bround(d, 1); bround(m, 1); round(d, 2); round(d); round(m, 1); round(i, -1); round(b, -2);
    ceil(d, 1); ceil(m); ceil(m, 1); floor(d, 1); floor(m); floor(m, 1); floor(i); ceil(b);
    btrim(s, 'a '); concat(s, s2); concat(s, i); concat(s, d); concat(a, a2); concat_ws(',', s, s2);
    concat_ws('-', words, s); conv(s, 10, 16); conv(s, 16, 10); sign(m); sign(d);
    convert_timezone('Europe/Berlin', 'UTC', ntz); convert_timezone('America/New_York', ntz);
    from_utc_timestamp(ts, 'Europe/Berlin'); to_utc_timestamp(ts, 'Europe/Berlin');
    from_utc_timestamp(ts, 'Asia/Kolkata'); to_utc_timestamp(ts, 'America/New_York');
    date_format(ts, 'yyyy-MM-dd HH:mm:ss'); date_format(day, 'dd/MM/yy'); date_format(ts, 'E');
    date_format(ts, 'EEEE MMMM'); date_format(ts, 'D'); date_format(ts, 'SSS');
    date_part('week', ts); date_part('doy', day); date_part('dow', day); date_part('isodow', day);
    date_part('yearofweek', day); date_part('second', ts); date_part('quarter', ts);
    extract(year FROM ts); extract(second FROM ts); extract(week FROM day); extract(hour FROM ts);
    date_trunc('week', ts); date_trunc('quarter', ts); date_trunc('hour', ts);
    date_trunc('minute', ts); date_trunc('year', ts); date_trunc('millisecond', ts);
    date_trunc('month', ts); date_trunc('day', ts); trunc(day, 'week'); trunc(day, 'quarter');
    trunc(day, 'year'); trunc(day, 'month'); decode(i, 1, 'a', 2, 'b', 'c'); decode(raw, 'UTF-8');
    encode(s, 'UTF-8'); element_at(a, 1); element_at(a, -1); element_at(words, 2); a[0]; words[1];
    try_element_at(a, 2); elt(i, s, s2); equal_null(s, s2); equal_null(d, d2); from_unixtime(b);
    flatten(array(a, a2)); s LIKE 'a%'; s LIKE '%b_'; s ILIKE 'A%'; left(s, 2); right(s, 2);
    lpad(s, 5, '*'); rpad(s, 5, 'ab'); lpad(s, 2); make_timestamp(2024, 2, 29, 23, 59, m2);
    make_date(i, i2, 29); map(s, i)[s]; map_keys(map('a', i)); map_values(map('a', s));
    map_contains_key(map('a', 1), s); map_entries(map('a', d)); map_from_arrays(array('x'), array(d));
    element_at(map('a', 1, 'b', 2), s); try_element_at(map('a', 1), s); map('a', 1)[s];
    mask(s); mod(i, i2); mod(d, d2); mod(m, m2); mod(b, b2); pmod(i, i2); pmod(b, b2); pmod(d, d2);
    pmod(m, m2); months_between(ts, ts2); months_between(ts, ts2, false); months_between(day, day2);
    named_struct('x', i, 'y', s); next_day(day, 'MON'); next_day(day, 'sunday'); nullif(s, s2);
    nullif(d, d2); overlay(s, 'xy', 2); overlay(s, s2, 1, 2); regexp_count(s, '[a-c]');
    regexp_extract(s, '([a-z]+)', 1); regexp_extract_all(s, '([0-9])', 1); regexp_instr(s, 'b');
    regexp_like(s, '^a'); regexp_replace(s, '[0-9]+', '#'); regexp_substr(s, '[A-Z]'); s RLIKE 'b$';
    sha2(s, 256); sha2(s, 224); shiftleft(i, i2); shiftright(i, i2); shiftrightunsigned(i, i2);
    shiftleft(b, i); shiftright(b, i); shiftrightunsigned(b, i); size(a); split(s, ',');
    split(s, '[,b]'); split(s, ',', 2); substr(s, 2); substring(s, -2); substring(s, i, i2);
    substring(s, 2, 2); substring(raw, 1, 1); substring_index(s, ',', 2); substring_index(s, ',', -1);
    time_bucket(INTERVAL '1' HOUR, ts); time_bucket(INTERVAL '7' DAY, ts);
    time_bucket(INTERVAL '15' MINUTE, ts); timestamp_seconds(m); timestamp_millis(b);
    to_date(s); to_date(s, 'yyyy-MM-dd'); to_timestamp(s); to_timestamp(s, 'yyyy-MM-dd HH:mm:ss');
    try_to_timestamp(s); try_to_date(s); to_timestamp_ntz(s); to_unix_timestamp(ts);
    unix_timestamp(ts); unix_timestamp(s, 'yyyy-MM-dd'); unix_timestamp(day); to_char(ts, 'yyyy');
    translate(s, 'abc', 'xy'); try_add(i, i2); try_add(b, b2); try_add(d, d2); try_subtract(b, b2);
    try_multiply(b, b2); try_multiply(i, i2); try_divide(i, i2); try_divide(d, d2);
    try_divide(m, m2); try_mod(i, i2); try_add(day, i); try_to_binary(s, 'hex'); to_binary(s, 'utf-8');
    width_bucket(d, 0.0, 10.0, 4); repeat(s, 3); space(4); array_repeat(s, 2); sequence(1, 5);
    bitmap_bit_position(b); bitmap_bucket_number(b); CASE WHEN yes THEN i ELSE d END;
    CASE s WHEN 'a' THEN 1 WHEN '' THEN 2 END; if(yes, s, s2); if(i > 0, day, day2); NOT yes;
    yes AND yes2; yes OR yes2; s BETWEEN 'a' AND 'b'; d BETWEEN d2 AND 5; i IN (1, 2, NULL);
    s IN ('a', s2); i <=> i2; d <=> d2; d = d2; d < d2; d > 1; s < s2; yes IS TRUE; yes IS NOT FALSE;
    s || s2; - i; - d; - m; + d; i & i2; i | i2; i ^ i2; ~ i; ~ b; day + 1; day - 31; day2 > ts;
    ts + INTERVAL 1 HOUR; ts - INTERVAL '1' DAY; ts + INTERVAL 1 MONTH; day + INTERVAL 1 MONTH;
    day + INTERVAL '3' DAY; ts + INTERVAL '1-2' YEAR TO MONTH; ts + INTERVAL '1 02:03' DAY TO MINUTE;
    s NOT LIKE '%a%'; s NOT ILIKE 'A%'; s NOT LIKE '%!_%' ESCAPE '!'; i IS DISTINCT FROM i2;
    day BETWEEN '2020-01-01' AND '2024-12-31'; ts BETWEEN '1999-01-01' AND '2024-12-31';
    i BETWEEN '1' AND '7'; (i + small) / m2; i IN ('1', '7'); b IN (9007199254740993, 0.5D, i);
    ts + INTERVAL 1 WEEK; day - INTERVAL 2 WEEKS; floor(f); ceil(f); (i * NULL) / 0;
    ts > ts2 - INTERVAL 2 HOURS; typeof(i + d); struct(i, s).i; datediff(day, ts); ts = day
"""
_TYPES = "tinyint smallint int bigint float double decimal(5,1) string boolean date timestamp timestamp_ntz binary"
_NUMBERS = ("small", "i", "b", "f", "d", "m", "m2")


def _operators() -> Iterator[str]:
    for one, other in itertools.product(_NUMBERS, _NUMBERS):
        for sign in ("+", "-", "*", "/", "%", "div", "=", "<"):
            yield f"{one} {sign} {other}"


def _casts() -> Iterator[str]:
    sources = ("small", "i", "b", "f", "d", "m", "s", "yes", "day", "ts", "ntz", "raw")
    for source, to in itertools.product(sources, _TYPES.split()):
        yield f"CAST({source} AS {to})"
        yield f"try_cast({source} AS {to})"


def _written() -> list[str]:
    return [" ".join(part.split()) for part in _FORMS.split(";")]


GROUPS = {
    "lines of the table": list(_calls()),
    "other functions": _written(),
    "operators": list(_operators()),
    "casts": list(_casts()),
}


def rows() -> pa.Table:
    """Values drawn from the awkward ones, the same in every run; one in eight is NULL."""
    draw = random.Random(17)
    columns: dict[str, pa.Array] = {}
    for name, (kind, values) in _COLUMNS.items():
        drawn = [None if draw.random() < 0.125 else draw.choice(values) for _ in range(ROWS)]
        drawn[: len(values)] = values
        draw.shuffle(drawn)
        columns[name] = pa.array(drawn, kind)
    return pa.table({"row": pa.array(range(ROWS), pa.int32()), **columns})


def _asked(sql: str, answered: Sequence[int]) -> str:
    if len(answered) == ROWS:
        return sql
    return f"CASE WHEN row IN ({', '.join(map(str, answered))}) THEN {sql} END"


def differences(frame: DataFrame, here: Mapping[str, tuple[Answer, list[int]]]) -> list[str]:
    """What Spark says otherwise; if it fails as a whole, each expression is asked alone."""
    if not here:
        return []
    asked = [f"{_asked(sql, rows)} AS c{i}" for i, (sql, (_, rows)) in enumerate(here.items())]
    try:
        there = on_spark(frame.sort("row").selectExpr(*asked))
    except PySparkException as failure:
        if len(here) == 1:
            return [f"{next(iter(here))}: Spark says {str(failure).splitlines()[0]}"]
        return [d for sql in here for d in differences(frame, {sql: here[sql]})]
    found = []
    for (sql, (answer, rows)), other in zip(here.items(), there, strict=True):
        values = tuple(other.values[row] for row in rows)
        if _is_approximated(sql) and answer.type == other.type == "double":
            values = tuple(map(_as_near, answer.values, values))
        if not same(answer, Answer(values, other.type)):
            pairs = [
                (r, a, b) for r, a, b in zip(rows, answer.values, values, strict=True) if a != b
            ]
            found.append(f"{sql}: {answer.type} and {other.type}, {pairs[:3]}")
    return found


def _is_approximated(sql: str) -> bool:
    return sql.partition("(")[0] in APPROXIMATED


def _as_near(here: str, there: str) -> str:
    """What this process says, where Spark's is at most two doubles away."""
    if "NULL" in (here, there) or not math.isfinite(float(there)):
        return there
    one, other = float(here), float(there)
    return here if abs(one - other) <= 2 * math.ulp(other) else there


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_awkward_values_are_the_same_on_both_engines(group: str, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    table = rows()
    frame = spark.createDataFrame(table).coalesce(1)
    here: dict[str, tuple[Answer, list[int]]] = {}
    for sql in GROUPS[group]:
        try:
            answer, answered = row_by_row(sql, table)
        except PanesError:
            continue  # it is refused
        if answer is not None:
            here[sql] = (answer, answered)
    found: list[str] = []
    for some in _parts(here):
        found += differences(frame, some)
    assert found == []
    assert len(here) >= len(GROUPS[group]) // 3


def _parts(
    here: Mapping[str, tuple[Answer, list[int]]],
) -> Iterator[dict[str, tuple[Answer, list[int]]]]:
    items = list(here.items())
    for start in range(0, len(items), AT_ONCE):
        yield dict(items[start : start + AT_ONCE])
