"""Intervals and times of day as they are written in a query, and the parts of them.

They are only on the way to an answer: a day-time interval and a time of day are microseconds, a
year-month interval is months.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from panes.expressions import types as t
from panes.expressions.typed import Typed, refuse

DAY_MICROS = 86_400_000_000
MICROS = {"week": 7 * DAY_MICROS, "day": DAY_MICROS, "hour": 3_600_000_000, "minute": 60_000_000,
          "second": 1_000_000, "millisecond": 1000, "microsecond": 1}  # fmt: skip
_MONTHS = {"year": 12, "month": 1}
_PARTS = ("day", "hour", "minute", "second")
ONE_DAY = "day"
"""The mark of an interval of whole days, which moves a date to a date."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval as it was written: months, or microseconds; of whole days, if it says so."""

    months: int = 0
    micros: int = 0
    is_of_months: bool = False
    is_of_days: bool = False

    def typed(self) -> Typed:
        """The interval as a value; one that is too long is refused."""
        if self.is_of_months:
            if abs(self.months) >= 2**31:
                raise refuse("an interval of so many years is not translated")
            return Typed(f"CAST({self.months} AS INTEGER)", t.MONTHS)
        if abs(self.micros) >= 2**63:
            raise refuse("an interval of so many days is not translated")
        mark = (ONE_DAY,) if self.is_of_days else ()
        return Typed(f"CAST({self.micros} AS BIGINT)", t.DAYS, *mark)


def read_interval(node: exp.Interval) -> Interval:
    """The length of an interval literal; seconds are cut off behind the sixth digit, as Spark does.

    >>> import sqlglot
    >>> read_interval(sqlglot.parse_one("INTERVAL '-3:30.5' MINUTE TO SECOND")).micros
    -210500000
    """
    sign, value = 1, node.this
    if isinstance(value, exp.Neg):
        sign, value = -1, value.this
    if not isinstance(value, exp.Literal):
        raise refuse("an interval is written as a constant")
    unit, text = node.args.get("unit"), value.name.strip()
    if isinstance(unit, exp.IntervalSpan):
        return _span(text, unit.this.name.lower(), unit.expression.name.lower(), sign)
    name = "" if unit is None else unit.name.lower().removesuffix("s")
    if name and (re.fullmatch(_NUMBER, text) and (found := _of([(text, name)], sign))):
        return found
    if not name and (parts := _SEVERAL.fullmatch(text.lower())):
        found = _of(re.findall(rf"({_NUMBER})\s+([a-z]+)", parts[0]), sign)
        if found is not None:
            return found
        raise refuse(f"the interval '{text}' is not translated",
                     "write months and days as two intervals")  # fmt: skip
    raise refuse(f"the interval `{node.sql(dialect='spark')}` is not translated")


_NUMBER = r"[+-]?\d{1,9}(?:\.\d{1,9})?"
_SEVERAL = re.compile(rf"(?:interval\s+)?(?:{_NUMBER}\s+[a-z]+\s*)+")


def _of(parts: Sequence[tuple[str, str]], sign: int) -> Interval | None:
    """``1 hour 30 minutes``: units of days and less, or of months and years; only seconds break."""
    named = [(number, unit.removesuffix("s")) for number, unit in parts]
    if any("." in number and unit != "second" for number, unit in named):
        return None
    if all(unit in _MONTHS for _, unit in named):
        months = sum(int(number) * _MONTHS[unit] for number, unit in named)
        return Interval(months=sign * months, is_of_months=True)
    if all(unit in MICROS for _, unit in named):
        micros = sum(int(Decimal(number) * MICROS[unit]) for number, unit in named)
        is_of_days = all(unit in ("week", "day") for _, unit in named)
        return Interval(micros=sign * micros, is_of_days=is_of_days)
    return None


def _span(text: str, first: str, last: str, sign: int) -> Interval:
    """``'1 02:03:04' DAY TO SECOND``: the first part is any number, the others have limits."""
    if text[:1] in "+-":
        sign, text = (-sign if text[0] == "-" else sign), text[1:]
    if (first, last) == ("year", "month"):
        found = re.fullmatch(r"(\d{1,8})-(\d{1,2})", text)
        if found and int(found[2]) < 12:
            months = 12 * int(found[1]) + int(found[2])
            return Interval(months=sign * months, is_of_months=True)
    elif first in _PARTS and last in _PARTS and _PARTS.index(first) < _PARTS.index(last):
        names = _PARTS[_PARTS.index(first) : _PARTS.index(last) + 1]
        forms = {first: r"(\d{1,12})", "second": r"(\d{1,2}(?:\.\d{1,9})?)"}
        parts = [forms.get(name, r"(\d{1,2})") for name in names]
        joined = " ".join([parts[0], ":".join(parts[1:])]) if first == "day" else ":".join(parts)
        found = re.fullmatch(joined, text)
        if found and all(Decimal(v) < _MOST[n] for n, v in zip(names[1:], found.groups()[1:],
                                                               strict=True)):  # fmt: skip
            values = zip(names, found.groups(), strict=True)
            return Interval(micros=sign * sum(int(Decimal(v) * MICROS[n]) for n, v in values))
    form = _FORMS.get((first, last))
    hint = f"write it as INTERVAL '{form}' {first.upper()} TO {last.upper()}"
    raise refuse(f"the interval '{text}' from {first} to {last} is not translated", form and hint)


_MOST = {"hour": 24, "minute": 60, "second": 60}
_FORMS = {
    ("year", "month"): "1-6", ("day", "hour"): "1 02", ("day", "minute"): "1 02:03",
    ("day", "second"): "1 02:03:04", ("hour", "minute"): "02:03", ("hour", "second"): "02:03:04",
    ("minute", "second"): "03:04",
}  # fmt: skip


def written_time(text: str) -> Typed:
    """A time of day literal."""
    found = re.fullmatch(r"\s*(\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?\s*", text)
    if not found or not (int(found[1]) < 24 and int(found[2]) < 60 and int(found[3]) < 60):
        raise refuse(f"the time '{text}' is not translated", "write it as '12:34:56'")
    seconds = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3])
    micros = seconds * 1_000_000 + int((found[4] or "").ljust(6, "0"))
    return Typed(f"CAST({micros} AS BIGINT)", t.TIME)


def part_of_interval(field: str, value: Typed) -> Typed:
    """A part of an interval by the name that Spark gives it."""
    x = value.text
    if value.type == t.MONTHS and field in ("year", "month"):
        text = f"{x} // 12" if field == "year" else f"{x} % 12"
        kind = t.INT if field == "year" else t.TINYINT
        return Typed(f"CAST({text} AS {t.duckdb_name(kind)})", kind)
    if value.type == t.DAYS and field == "day":
        return Typed(f"CAST({x} // {DAY_MICROS} AS INTEGER)", t.INT)
    if value.type == t.DAYS and field in ("hour", "minute"):
        above = {"hour": DAY_MICROS, "minute": MICROS["hour"]}[field]
        return Typed(f"CAST(({x} % {above}) // {MICROS[field]} AS TINYINT)", t.TINYINT)
    if value.type == t.DAYS and field == "second":
        return seconds(f"({x} % {MICROS['minute']})")
    raise refuse(f"the {field} of an {value.name} is not translated")


def seconds(micros: str) -> Typed:
    """Microseconds within a minute, as seconds with six digits behind the point."""
    kind = t.bounded_decimal(8, 6)
    product = f"CAST({micros} AS DECIMAL(8, 0)) * CAST(0.000001 AS DECIMAL(7, 6))"
    return Typed(f"CAST({product} AS DECIMAL(8, 6))", kind)
