"""Functions over random values, each against a few lines of Python that define it.

Values are drawn with NULL among them, beyond ASCII, at both ends of their types, and before 1970.
"""

from __future__ import annotations

import calendar
import math
import random
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import (
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    Decimal,
    localcontext,
)
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest

from panes.expressions import types as t
from panes.expressions.dialect import parse_select
from panes.expressions.translate import translate
from panes.expressions.typed import Typed

ROWS = 400
LETTERS = "abcé日👍 ,.e\u0301"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Draw = Callable[[random.Random], object]
Column = tuple[pa.DataType, Draw]

TEXT: Column = (pa.string(), lambda r: "".join(r.choices(LETTERS, k=r.randint(0, 8))))
BYTES: Column = (pa.binary(), lambda r: r.randbytes(r.randint(0, 6)))
SMALL: Column = (pa.int32(), lambda r: r.randint(-10, 10))
WHOLE: Column = (pa.int32(), lambda r: r.choice([r.randint(-(2**31), 2**31 - 1), 3, -(2**31)]))
LONG: Column = (pa.int64(), lambda r: r.choice([r.randint(-(2**63), 2**63 - 1), -1, -(2**63)]))
NUMBER: Column = (pa.float64(), lambda r: r.choice([r.uniform(-9, 9), r.randint(-999, 999) / 200]))
PRICE: Column = (
    pa.decimal128(18, 4),
    lambda r: Decimal(r.randint(-(10**18) + 1, 10**18)).scaleb(-4),
)
RATE: Column = (pa.decimal128(5, 2), lambda r: Decimal(r.choice([150, -333, 1])).scaleb(-2))
LIST: Column = (pa.list_(pa.int32()), lambda r: r.choices([None, 1, 2, 3, 4], k=r.randint(0, 6)))
DAY: Column = (pa.date32(), lambda r: date(1900, 1, 1) + timedelta(days=r.randint(0, 60_000)))
MOMENT: Column = (
    t.TIMESTAMP,
    lambda r: EPOCH + timedelta(microseconds=r.randint(-(10**15), 10**15)),
)


def _cut(s: str, start: int, length: int | None = None) -> str:
    first = start - 1 if start > 0 else len(s) + start if start < 0 else 0
    last = len(s) if length is None else first + length
    return "" if last <= first else s[max(first, 0) : max(last, 0)]


def _overlaid(s: str, new: str, at: int, length: int) -> str:
    size = length if length >= 0 else len(new)
    return _cut(s, 1, at - 1) + new + _cut(s, at + size)


def _padded(s: str, size: int, fill: str) -> str:
    missing = size - len(s)
    return s[: max(size, 0)] if missing <= 0 or not fill else (fill * missing)[:missing] + s


def _wrapped(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _first_ones(values: list[object]) -> list[object]:
    return [v for at, v in enumerate(values) if v not in values[:at]]


def _overlap(one: list[object], other: list[object]) -> bool | None:
    if {*one} & {*other} - {None}:
        return True
    return None if one and other and None in one + other else False


def _sliced(values: list[object], start: int, length: int) -> list[object]:
    first = start - 1 if start > 0 else len(values) + start
    return values[first : first + length] if 0 <= first < len(values) else []


def _months_later(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _months_between(one: datetime, other: datetime) -> float:
    months = float((one.year - other.year) * 12 + one.month - other.month)
    ends = [calendar.monthrange(x.year, x.month)[1] == x.day for x in (one, other)]
    if one.day == other.day or all(ends):
        return months
    a, b = (x.day * 86400 + x.hour * 3600 + x.minute * 60 + x.second for x in (one, other))
    return math.floor((months + (a - b) / 2678400.0) * 1e8 + 0.5) / 1e8


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def _shown(moment: datetime) -> str:
    fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
    return moment.strftime("%Y-%m-%d %H:%M:%S") + fraction


def _rounded(value: Decimal, digits: int, how: str) -> Decimal:
    with localcontext() as context:
        context.prec = 80
        return value.quantize(Decimal(1).scaleb(-digits), how)


def _divided(one: Decimal, other: Decimal) -> Decimal:
    with localcontext() as context:
        context.prec = 80
        return _rounded(one / other, 10, ROUND_HALF_UP)


def _multiplied(one: Decimal, other: Decimal) -> Decimal:
    with localcontext() as context:
        context.prec = 80
        return one * other


def _from_wall(moment: datetime) -> datetime:
    return moment.replace(tzinfo=ZoneInfo("America/New_York"), fold=0).astimezone(UTC)


CASES: list[tuple[str, dict[str, Column], Callable[..., object]]] = [
    ("substring(s, a, b)", {"s": TEXT, "a": SMALL, "b": SMALL}, _cut),
    ("substring(s, a)", {"s": TEXT, "a": SMALL}, _cut),
    ("overlay(s placing n from a for b)", {"s": TEXT, "n": TEXT, "a": SMALL, "b": SMALL},
     _overlaid),
    ("lpad(s, a, n)", {"s": TEXT, "a": SMALL, "n": TEXT}, _padded),
    ("reverse(s)", {"s": TEXT}, lambda s: s[::-1]),
    ("reverse(s)", {"s": BYTES}, lambda s: s[::-1]),
    ("left(s, a)", {"s": TEXT, "a": SMALL}, lambda s, a: s[: max(a, 0)]),
    ("right(s, a)", {"s": TEXT, "a": SMALL}, lambda s, a: "" if a <= 0 else s[-a:]),
    ("instr(s, n)", {"s": TEXT, "n": TEXT}, lambda s, n: s.find(n) + 1),
    ("substring_index(s, ',', 2)", {"s": TEXT}, lambda s: ",".join(s.split(",")[:2])),
    ("split(s, ',', 2)", {"s": TEXT}, lambda s: s.split(",", 1)),
    ("split(s, '[,.]')", {"s": TEXT}, lambda s: re.split("[,.]", s)),
    ("upper(lower(s))", {"s": TEXT}, lambda s: s.lower().upper()),
    ("s like '%a_%'", {"s": TEXT}, lambda s: re.fullmatch("(?s).*a..*", s) is not None),
    ("shiftleft(a, b)", {"a": WHOLE, "b": SMALL}, lambda a, b: _wrapped(a << (b & 31), 32)),
    ("shiftleft(a, b)", {"a": LONG, "b": SMALL}, lambda a, b: _wrapped(a << (b & 63), 64)),
    ("a >>> 5", {"a": LONG}, lambda a: _wrapped((a & (2**64 - 1)) >> 5, 64)),
    ("bin(a)", {"a": LONG}, lambda a: f"{a & (2**64 - 1):b}"),
    ("a % 7", {"a": WHOLE}, lambda a: int(math.fmod(a, 7))),
    ("pmod(a, 7)", {"a": WHOLE}, lambda a: a % 7),
    ("round(x, 2)", {"x": NUMBER}, lambda x: float(_rounded(Decimal(repr(x)), 2, ROUND_HALF_UP))),
    ("round(x, 2)", {"x": PRICE}, lambda x: _rounded(x, 2, ROUND_HALF_UP)),
    ("bround(x, 2)", {"x": PRICE}, lambda x: _rounded(x, 2, ROUND_HALF_EVEN)),
    ("ceil(x, 2)", {"x": PRICE}, lambda x: _rounded(x, 2, ROUND_CEILING)),
    ("floor(x)", {"x": PRICE}, lambda x: _rounded(x, 0, ROUND_FLOOR)),
    ("x / y", {"x": PRICE, "y": RATE}, _divided),
    ("x * y", {"x": PRICE, "y": PRICE}, _multiplied),
    ("x % y", {"x": PRICE, "y": RATE}, lambda x, y: x % y),
    ("cast(x as double)", {"x": PRICE}, float),
    ("cast(x as string)", {"x": PRICE}, lambda x: f"{x:f}"),
    ("array_distinct(l)", {"l": LIST}, _first_ones),
    ("array_union(l, m)", {"l": LIST, "m": LIST}, lambda a, b: _first_ones(a + b)),
    ("array_except(l, m)", {"l": LIST, "m": LIST},
     lambda a, b: [x for x in _first_ones(a) if x not in b]),
    ("array_intersect(l, m)", {"l": LIST, "m": LIST},
     lambda a, b: [x for x in _first_ones(a) if x in b]),
    ("arrays_overlap(l, m)", {"l": LIST, "m": LIST}, _overlap),
    ("slice(l, 2, 3)", {"l": LIST}, lambda a: _sliced(a, 2, 3)),
    ("slice(l, -2, 3)", {"l": LIST}, lambda a: _sliced(a, -2, 3)),
    ("aggregate(l, 0L, (s, x) -> s * 2 + coalesce(x, 0))", {"l": LIST},
     lambda a: sum((x or 0) << at for at, x in enumerate(reversed(a)))),
    ("add_months(d, a)", {"d": DAY, "a": SMALL}, _months_later),
    ("d + interval 1 month", {"d": DAY}, lambda d: _months_later(d, 1)),
    ("dayofweek(d)", {"d": DAY}, lambda d: d.isoweekday() % 7 + 1),
    ("weekofyear(d)", {"d": DAY}, lambda d: d.isocalendar()[1]),
    ("next_day(d, 'WE')", {"d": DAY}, lambda d: d + timedelta(days=(1 - d.weekday()) % 7 + 1)),
    ("trunc(d, 'week')", {"d": DAY}, lambda d: d - timedelta(days=d.weekday())),
    ("unix_seconds(m)", {"m": MOMENT}, lambda m: _micros(m) // 1_000_000),
    ("unix_millis(m)", {"m": MOMENT}, lambda m: _micros(m) // 1000),
    ("extract(second from m)", {"m": MOMENT},
     lambda m: Decimal(m.second * 1_000_000 + m.microsecond).scaleb(-6)),
    ("cast(m as string)", {"m": MOMENT}, _shown),
    ("cast(cast(m as string) as timestamp)", {"m": MOMENT}, lambda m: m),
    ("date_format(m, 'yyyyMMdd HH:mm')", {"m": MOMENT}, lambda m: m.strftime("%Y%m%d %H:%M")),
    ("months_between(m, n)", {"m": MOMENT, "n": MOMENT}, _months_between),
    ("to_utc_timestamp(m, 'America/New_York')", {"m": MOMENT}, _from_wall),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "columns", "meant"),
    CASES,
    ids=[f"{sql} of {', '.join(str(kind) for kind, _ in columns.values())}"
         for sql, columns, _ in CASES],
)  # fmt: skip
def test_a_function_gives_what_its_definition_gives(
    sql: str, columns: dict[str, Column], meant: Callable[..., object]
) -> None:
    drawn = random.Random(sql)
    rows = [[None if drawn.random() < 0.05 else draw(drawn) for _, draw in columns.values()]
            for _ in range(ROWS)]  # fmt: skip
    arrays = [pa.array(values, kind) for values, (kind, _) in
              zip(zip(*rows, strict=True), columns.values(), strict=True)]  # fmt: skip
    known = {name: Typed(t.quoted(name), kind) for name, (kind, _) in columns.items()}
    text = translate(parse_select(f"SELECT {sql}").expressions[0], known).text
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("given", pa.table(arrays, names=list(columns)))
        answers = connection.sql(f"SELECT {text} FROM given").to_arrow_table().column(0).to_pylist()
    for row, answer in zip(rows, answers, strict=True):
        expected = None if any(value is None for value in row) else meant(*row)
        assert answer == expected, row
