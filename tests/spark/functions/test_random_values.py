# ruff: noqa: E501  (expressions stand in one list)
"""Functions, operators and casts over awkward and random values of their types, on both engines.

Where one process answers, Spark gives the same value of the same type. Where it fails, Spark fails,
row by row. What is refused, the whole expression or one of its values, is left out.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from panes.errors import PanesError
from panes.expressions.rules import Parameter
from panes.expressions.table import RULES
from tests.docs.scalar_functions_page import APPROXIMATED
from tests.spark.functions.awkward_values import Drawn, drawn, rows
from tests.spark.functions.both_engines import (
    Answer,
    Outcome,
    fails_on_spark,
    on_spark,
    read,
    row_by_row,
    same,
)

AT_ONCE = 40
FAILING_ROWS = 3
MIXED = 400
"""How many expressions over decimals are asked; there are some thousand."""

_OF_TYPE = {
    "int": ["i", "i2"], "bigint": ["b", "b2"], "double": ["d", "d2"], "string": ["s", "s2", "s3"],
    "date": ["day", "day2"], "timestamp": ["ts", "ts2"], "timestamp_ntz": ["ntz"],
    "moment": ["ts", "ts2"], "boolean": ["yes", "yes2"], "binary": ["raw", "raw2"],
    "integer": ["i", "i2"], "fraction": ["d", "d2"], "decimal": ["m", "m2"], "number": ["d", "d2"],
    "array": ["a", "a2"], "void": ["NULL"], "any": ["s", "d"], "array<string>": ["words", "words2"], "array<bigint>": ["a", "a2"],
    "array<double>": ["array(d, d2)", "array(d2, 0D, d)"], "array<float>": ["array(f, float(d))"],
}  # fmt: skip
_VARIABLES: Mapping[str, tuple[list[str], list[str]]] = {
    "int": (["i", "i2", "b"], ["a", "a2"]), "string": (["s", "s2", "s3"], ["words", "words2"]),
    "double": (["d", "d2", "f"], ["array(d, d2)", "array(d2, 0D, d)"]), "date": (["day", "day2", "ts"], []),
    "decimal": (["m", "w2", "w", "w4"], ["array(m, w)", "array(w2, w4)"]),
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
        known = {**_OF_TYPE, "T": single, "O": single}
        known |= dict.fromkeys(("array<T>", "array<O>", "array<Z>"), arrays)
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
    ts > ts2 - INTERVAL 2 HOURS; typeof(i + d); ts + INTERVAL '-75:03.5' MINUTE TO SECOND;
    ts - INTERVAL -'1 02:03:04.1234567' DAY TO SECOND; ts + INTERVAL '1.5 seconds';
    'it''s'; s = 'it''s'; "a""b"; 'a' 'b'; s LIKE ANY ('a%', '%b'); s LIKE ALL ('a%', '%b'); s NOT LIKE ANY ('a%', s2);
    s NOT LIKE ALL ('a%', '%1'); s ILIKE SOME ('A%', '%1'); s LIKE s2; s LIKE concat(s2, '%'); array(i, i2)[1]; map('a', i).a;
    timestampadd(HOUR, 2, ts); timestampadd(DAY, i, ts); timestampadd(MONTH, small, ts); timestampadd(QUARTER, -1, ts);
    timestampadd(WEEK, 2, CAST(ts AS TIMESTAMP_NTZ)); timestampadd(SECOND, i, ts); timestampadd(MICROSECOND, b, ts); dateadd(MONTH, 1, day);
    timestampdiff(MONTH, ts, ts2); timestampdiff(YEAR, ts, ts2); timestampdiff(QUARTER, ts, ts2); timestampdiff(WEEK, ts, ts2);
    timestampdiff(MINUTE, ts, ts2); timestampdiff(MICROSECOND, ntz, ts); datediff(MONTH, day, day2); datediff(DAY, ts, ts2);
    i + s; s * d; s - b; m + s; s / i; i / s; s % i; s div i; f + s; i = s; s > d; i + 1 / i2; i2 / 0 + i; i IN (1, 1 / i2);
    coalesce(i, s); coalesce(s, d); nvl(s, 1); coalesce(day, s); CASE WHEN i > 0 THEN i ELSE s END; if(yes, s, 0.0);
    if(NULL, i, i2); if(yes, day, s); i BETWEEN 0 AND 1 / i2; ts + INTERVAL '1 hour 30 minutes'; ts - INTERVAL '2 days 3 hours';
    day + INTERVAL '1 week 2 days'; ts + INTERVAL '1 year 2 months'; day + INTERVAL 1 HOUR; extract(DAY FROM day - day2);
    day - day2 > INTERVAL 1 DAY; ts2 + (ts - ts2); day2 + (day - day2); ts - ts2 = day - day2; extract(HOUR FROM ts - ts2);
    concat_ws(',', s, d); s || '-' || d; upper(d); cast(i / 3 as decimal(10,4)); cast(d as decimal(38,2)); cast(ts as decimal(20,6));
    cast(a as array<string>); cast(words as array<int>); cast(array(a, a2) as array<array<double>>); decimal(s); decimal(d);
    date_format(ts, 'hh:mm a'); date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSSXXX'); date_format(day, 'EEEE, d MMMM yy');
    date_format(ts, 'Q'); date_format(ts, 'D'); date_format(ts, 'yyyyDDD'); date_format(ntz, 'X'); from_unixtime(i, 'yy-MM h a');
    to_date(s, 'M/d/yyyy'); to_date('001/2/2024', 'M/d/yyyy'); to_timestamp('2024-1-2 003:04', 'yyyy-M-d H:mm'); to_date(s, 'yyyy-M-d');
    try_to_timestamp('1/32/2024', 'M/d/yyyy'); try_to_timestamp(s, 'yyyy-M-d'); ltrim('a', s); rtrim('b1', s); initcap(s);
    initcap('hELLO wORLD a-b c,d  e\\tf'); array_join(a, ','); array_join(a, ',', '-'); pmod(f, d); pmod(i, d); pmod(i, 2.5);
    regexp_replace(s, '(a)', '$1$1'); regexp_replace(s, '([a-z])([0-9A-Z])', '$2-$1'); regexp_replace(s, '(a)|(b)', '[$1$2]');
    crc32(s); crc32(raw); hash(s); hash(i); hash(b); hash(i, s); hash(yes); hash(day); hash(ts); hash(raw); hash(small); hash(ntz);
    filter(a, x -> x > i); filter(words, (w, n) -> n < i2 AND w <> s); filter(array(d, d2), x -> x = d); exists(a, x -> x = i);
    exists(words, w -> w LIKE 'a%'); forall(a, x -> x > 0); forall(array(d, d2), x -> x > 0); aggregate(a, 0L, (t, x) -> t + x);
    aggregate(array(i, i2), 0L, (t, x) -> t + coalesce(x, 0), t -> t / 2); reduce(array(d, d2), 0D, (t, x) -> t + coalesce(x, 1));
    map_filter(map('a', i, 'b', i2), (k, v) -> v > 0 OR k = s); filter(a, i -> i > 1); exists(array(1 / i2), x -> x > 0);
    hash(NULL, i); hash(i, NULL, b); hash('abcdefghi'); pmod(hash(s), 10); struct(i, s).i; datediff(day, ts); ts = day
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


_MIXED = """
    x = y; x < y; x >= y; x <=> y; x <> y; x IN (y, 1, NULL); x IN (1.5, y); x BETWEEN y AND 2.5;
    coalesce(x, y); coalesce(y, x, 1.5); nvl(x, y); nvl2(yes, x, y); nullif(x, y); equal_null(x, y);
    if(yes, x, y); CASE WHEN yes THEN x WHEN yes2 THEN y ELSE 1 END; CASE x WHEN y THEN 1 ELSE 2 END;
    greatest(x, y); least(y, x, 2); array(x, y, 1.55); map('a', x, 'b', y); map(x, y);
    decode(x, y, x, y); array(x) = array(y); array_contains(array(x), y); array(x, y)[0];
    array_position(array(x), y); array_append(array(x), y); array_union(array(x), array(y));
    array_except(array(x), array(y)); arrays_overlap(array(x), array(y)); array_remove(array(x), y);
    named_struct('v', x) = named_struct('v', y); concat(array(x), array(y)); array_insert(array(x), 1, y);
    element_at(map(x, 'a'), y); array_max(array(x, y)); zeroifnull(x); array_repeat(x, 2)
"""
"""Expressions over decimals x and y of any precision, and numbers that are written."""
_DECIMALS = ("m", "m2", "w", "w2", "w3", "w4", "b", "d", "1.55", "3", "-7L", "12345678901234567890")


def _mixed() -> Iterator[str]:
    """Where one type holds values of two: no 38 digits hold all of both."""
    for x, y in itertools.permutations(_DECIMALS, 2):
        for form in _MIXED.split(";"):
            parts = re.split(r"\b([xy])\b", " ".join(form.split()))
            yield "".join({"x": x, "y": y}.get(part, part) for part in parts)


GROUPS = {
    "decimals of mixed precision": random.Random(17).sample(list(_mixed()), MIXED),
    "lines of the table": list(_calls()),
    "other functions": _written(),
    "operators": list(_operators()),
    "casts": list(_casts()),
}


def _asked(sql: str, answered: Sequence[int], count: int) -> str:
    if len(answered) == count:
        return sql
    return f"CASE WHEN row IN ({', '.join(map(str, answered))}) THEN {sql} END"


def differences(frame: DataFrame, here: Mapping[str, Outcome], count: int) -> list[str]:
    """What Spark says otherwise; if it fails as a whole, each expression is asked alone."""
    if not here:
        return []
    asked = [f"{_asked(sql, o.answered, count)} AS c{i}" for i, (sql, o) in enumerate(here.items())]
    try:
        there = on_spark(frame.coalesce(1).sort("row").selectExpr(*asked))
    except PySparkException as failure:
        if len(here) == 1:
            return [f"{next(iter(here))}: Spark says {str(failure).splitlines()[0]}"]
        return [d for sql in here for d in differences(frame, {sql: here[sql]}, count)]
    found = []
    for (sql, outcome), other in zip(here.items(), there, strict=True):
        assert outcome.answer is not None
        values = tuple(other.values[row] for row in outcome.answered)
        if _is_approximated(sql) and outcome.answer.type == other.type == "double":
            values = tuple(map(_as_near, outcome.answer.values, values))
        if not same(outcome.answer, Answer(values, other.type)):
            triples = zip(outcome.answered, outcome.answer.values, values, strict=True)
            apart = [(row, a, b) for row, a, b in triples if a != b]
            found.append(f"{sql}: {outcome.answer.type} and {other.type}, {apart[:3]}")
    return found


def answered_only_there(
    frame: DataFrame, here: Mapping[str, Outcome], table: pa.Table
) -> list[str]:
    """Rows that fail in one process, though Spark answers them; a few of each expression are asked.

    Equal rows are asked once, and each is a query of its own, since an error says nothing of others.
    """
    found = []
    for sql, outcome in here.items():
        names = sorted({c.name for c in read(sql)[0].find_all(exp.Column)} & {*table.column_names})
        first: dict[str, int] = {}
        for row in outcome.failed:
            first.setdefault(repr([table.column(name)[row].as_py() for name in names]), row)
        found += [
            f"{sql} of {values}: {outcome.failed[row]}"
            for values, row in [*first.items()][:: max(1, len(first) // FAILING_ROWS)]
            if not fails_on_spark(frame, sql, row)
        ]
    return found


def _is_approximated(sql: str) -> bool:
    return sql.partition("(")[0] in APPROXIMATED


def _as_near(here: str, there: str) -> str:
    """What this process says, where Spark's is at most two doubles away."""
    if "NULL" in (here, there) or not math.isfinite(float(there)):
        return there
    one, other = float(here), float(there)
    return here if abs(one - other) <= 2 * math.ulp(other) else there


def disagreements(spark: SparkSession, group: str, table: pa.Table) -> list[str]:
    """All that one process and Spark say differently about a group of expressions."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = spark.createDataFrame(table)
    here: dict[str, Outcome] = {}
    for sql in GROUPS[group]:
        try:
            here[sql] = row_by_row(sql, table)
        except PanesError:
            continue  # it is refused
    assert len(here) >= len(GROUPS[group]) // 3
    found = answered_only_there(frame, here, table)
    answered = [(sql, o) for sql, o in here.items() if o.answer is not None]
    for start in range(0, len(answered), AT_ONCE):
        found += differences(frame, dict(answered[start : start + AT_ONCE]), len(table))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_awkward_values_are_the_same_on_both_engines(group: str, spark: SparkSession) -> None:
    assert disagreements(spark, group, rows()) == []


# A table is a few hundred values for a thousand expressions, so that one that fails says which
# expression and row it is, and is not made smaller.
@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
@settings(
    max_examples=1, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None
)
@given(values=drawn)
def test_random_values_are_the_same_on_both_engines(
    group: str, spark: SparkSession, values: Drawn
) -> None:
    assert disagreements(spark, group, rows(values)) == []
