"""The integer axis every window lives on: ticks inside, durations and timestamps at the edges.

A tick is a microsecond since the epoch (UTC) on a time axis, the value itself on an integer
axis, and the arrival number on a row axis. Units are parsed and printed here and nowhere else.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Literal, TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.errors import ColumnTypeError, OptionError

SECOND = 1_000_000
DAY = 86_400 * SECOND

UNITS = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": SECOND,
    "sec": SECOND,
    "s": SECOND,
    "minute": 60 * SECOND,
    "min": 60 * SECOND,
    "hour": 3_600 * SECOND,
    "h": 3_600 * SECOND,
    "day": DAY,
    "d": DAY,
    "week": 7 * DAY,
}

# A window's edges must stay inside 64 bits whatever its size: half the range for the axis, half
# for the arithmetic. Time is further bounded by the years that timestamps can be printed in.
LIMIT = 1 << 61
BEGINNING, FOREVER = -(1 << 62), 1 << 62
"""Before every position, and after all of them."""
_FIRST_INSTANT = -62_135_596_800 * SECOND
_LAST_INSTANT = 253_402_300_800 * SECOND


_MOST_DIGITS = 400
_DIGITS = re.compile(r"[0-9]+")
_LENGTH = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)")
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")


Duration: TypeAlias = str | int | dt.timedelta
"""A length of time as people give it: text, a timedelta, or ticks."""


def unit_ticks(word: str) -> int | None:
    """Ticks in one of a unit of time, by any of its spellings; None if it is not one.

    >>> unit_ticks("minutes"), unit_ticks("sec"), unit_ticks("month")
    (60000000, 1000000, None)
    """
    lowered = word.lower()
    return UNITS.get(lowered) or UNITS.get(lowered.removesuffix("s"))


def is_whole(value: object) -> TypeGuard[int]:
    """Whether something is a whole number. True is none, and NumPy's lengths of time are none."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64)


def written_number(text: str) -> Fraction | None:
    """The number that a text writes, exactly; None if it is none, or too long to be meant.

    Python itself takes any digits of Unicode, fails past 4,300 of them, and computes
    ``1e999999999`` for minutes.

    >>> written_number("1.5"), written_number("2e3"), written_number("\u00b2")
    (Fraction(3, 2), Fraction(2000, 1), None)
    """
    return Fraction(text) if len(text) <= _MOST_DIGITS and _NUMBER.fullmatch(text) else None


def written_whole(text: str) -> int | None:
    """The whole number that a text writes in digits alone; None if it is none, or too long."""
    return int(text) if len(text) <= _MOST_DIGITS and _DIGITS.fullmatch(text) else None


def parse_duration(text: Duration, *, option: str) -> int:
    """Ticks in a duration: ``"10 seconds"``, ``"1 hour 30 minutes"``, a timedelta, or ticks.

    >>> parse_duration("1 minute 500 ms", option="lateness")
    60500000
    """
    if isinstance(text, dt.timedelta):
        return text // dt.timedelta(microseconds=1)
    if is_whole(text):
        return int(text)
    if not isinstance(text, str):
        raise OptionError(f"{option} must be a duration or a whole number, got {text!r}")
    found = _LENGTH.findall(text)
    parts = [(written_number(number), unit_ticks(unit)) for number, unit in found]
    known = [(number, unit) for number, unit in parts if number is not None and unit is not None]
    rest = _LENGTH.sub("", text).strip(" ,")
    if not parts or rest or len(known) < len(parts):
        raise OptionError(
            f"{option} must be a duration, got {text!r}",
            hint=f'{option}="10 seconds" (units: microsecond ... week)',
        )
    ticks = sum((number * unit for number, unit in known), Fraction(0))
    if ticks.denominator != 1:
        raise OptionError(f"{option} is finer than a microsecond: {text!r}")
    return int(ticks)


def format_duration(ticks: int) -> str:
    """The shortest exact way to say a number of microseconds.

    >>> format_duration(600_000_000), format_duration(90_000_000), format_duration(6_400_000)
    ('10 minutes', '90 seconds', '6400 milliseconds')
    """
    for word in ("week", "day", "hour", "minute", "second", "millisecond"):
        count, rest = divmod(ticks, UNITS[word])
        if count and not rest and not (word == "week" and count == 1):
            return f"{count} {word}" if count == 1 else f"{count} {word}s"
    return f"{ticks} microseconds"


def parse_instant(value: str | int | dt.datetime | dt.date) -> int:
    """Ticks of an instant: ISO text, date or datetime (UTC unless it says otherwise), or ticks.

    >>> parse_instant("1970-01-01T00:00:01Z"), parse_instant(dt.date(1970, 1, 2))
    (1000000, 86400000000)
    """
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if is_whole(value):
        ticks = int(value)
        if abs(ticks) >= LIMIT:
            raise OptionError(f"{ticks} lies outside the axis")
        return ticks
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            raise OptionError(
                f"not a timestamp: {value!r}", hint='write it as "2026-01-01T00:10:00Z"'
            ) from None
    if not isinstance(value, dt.datetime):
        raise OptionError(
            f"not a position: {value!r}",
            hint='write it as "2026-01-01T00:10:00Z" or as a whole number',
        )
    if value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    return (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Axis:
    """What positions mean: how to read them from a column and how to print them.

    `column` is None on a row axis, whose positions are arrival numbers. `type` is the Arrow
    type of ``window_start`` and ``window_end``: a time axis keeps its column's time zone.
    """

    kind: Literal["time", "integer", "rows"]
    column: str | None
    type: pa.DataType

    def ticks(self, array: pa.Array) -> tuple[np.ndarray, np.ndarray | None]:
        """Positions of a column, and which rows have none (None: every row has one).

        A row without a position is one whose value is NULL or lies outside the axis.
        """
        ticks, inside = _to_ticks(array)
        if inside is None:
            return ticks, None if array.null_count == 0 else ~_is_valid(array)
        valid = inside if array.null_count == 0 else inside & _is_valid(array)
        return ticks, None if bool(valid.all()) else ~valid

    def label(self, ticks: np.ndarray) -> pa.Array:
        """Positions as the values a user sees."""
        return pa.array(ticks, type=pa.int64()).view(self.type)

    def format(self, tick: int) -> str:
        """One position, as text."""
        if self.kind != "time":
            return str(tick)
        instant = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=tick)
        return instant.isoformat() + "Z"


def axis_over(column: str, data_type: pa.DataType, *, stream: str) -> Axis:
    """The axis a column gives: time for timestamps and dates, integer for integers."""
    if pa.types.is_timestamp(data_type):
        return Axis("time", column, pa.timestamp("us", data_type.tz))
    if pa.types.is_date(data_type):
        return Axis("time", column, pa.timestamp("us"))
    if pa.types.is_integer(data_type):
        return Axis("integer", column, pa.int64())
    way = f"CAST({column} AS TIMESTAMP)"
    other = f"where the text is no ISO 8601: to_timestamp({column}, 'dd/MM/yyyy HH:mm') AS at"
    if pa.types.is_floating(data_type) or pa.types.is_decimal(data_type):
        other = "which takes it as seconds since 1970; where it counts milliseconds: "
        other += f"timestamp_millis(CAST({column} AS BIGINT)) AS at"
    elif pa.types.is_struct(data_type) and data_type.num_fields:
        way, other = f"{column}.{data_type[0].name}", "a field of it may be such a column"
    raise ColumnTypeError(
        f"`{column}` of stream `{stream}` cannot order a window: it is {data_type}, "
        "and a window needs a timestamp, date or integer column",
        hint=f"convert it: FROM (SELECT {way} AS at, ... FROM {stream}); {other}",
    )


ARRIVAL = Axis("rows", None, pa.int64())


def _is_valid(array: pa.Array) -> np.ndarray:
    valid: np.ndarray = pc.is_valid(array).to_numpy(zero_copy_only=False)
    return valid


def _to_ticks(array: pa.Array) -> tuple[np.ndarray, np.ndarray | None]:
    """Positions, and which of them lie on the axis (None: all of them do)."""
    kind = array.type
    if pa.types.is_uint64(kind):
        values = _plain(array, pa.uint64())
        return values.astype(np.int64), values < np.uint64(LIMIT)
    if pa.types.is_integer(kind):
        values = _plain(array, pa.int64())
        return values, _between(values, -LIMIT, LIMIT)
    if pa.types.is_date(kind):
        width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        counted = _plain(array.view(width), pa.int64())
        unit = DAY if pa.types.is_date32(kind) else 1_000
        return counted * unit, _between(counted, _FIRST_INSTANT // unit, _LAST_INSTANT // unit)
    raw = _plain(array.view(pa.int64()), pa.int64())
    per_second = {"s": 1, "ms": 1_000, "us": SECOND, "ns": 1_000 * SECOND}[kind.unit]
    inside = _between(
        raw, _FIRST_INSTANT * per_second // SECOND, _LAST_INSTANT * per_second // SECOND
    )
    if kind.unit == "ns":
        return raw // 1_000, inside
    if kind.unit == "us":
        return raw, inside
    counted = raw if inside is None else np.where(inside, raw, 0)
    return counted * (SECOND // per_second), inside


def _plain(array: pa.Array, data_type: pa.DataType) -> np.ndarray:
    filled = array if array.null_count == 0 else pc.fill_null(array, pa.scalar(0, array.type))
    values: np.ndarray = (filled if filled.type == data_type else filled.cast(data_type)).to_numpy()
    return values


def _between(values: np.ndarray, low: int, high: int) -> np.ndarray | None:
    """Which values are in [low, high), None if all are; bounds may lie beyond 64 bits."""
    low, high = max(low, -(1 << 63)), min(high, (1 << 63) - 1)
    if not len(values) or (low <= values.min() and values.max() < high):
        return None
    inside: np.ndarray = (values >= low) & (values < high)
    return inside
