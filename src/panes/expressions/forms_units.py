"""Moments moved, and told apart, by a unit that is written as a word: `timestampadd(HOUR, 2, ts)`.

Months are counted in the calendar of UTC and cut to the last day of a month; a difference counts
whole units, towards zero. As in Java, a day that is not whole is left out before months are
counted: from 2021-01-31 00:00 back to 2020-02-29 12:00 are ten months.
"""

from __future__ import annotations

from collections.abc import Sequence

from panes.expressions import types as t
from panes.expressions.casts import cast
from panes.expressions.intervals import MICROS
from panes.expressions.rules import taken
from panes.expressions.typed import Typed, bound, failure, refuse

_ADDED = ("timestampadd", "dateadd", "date_add")
_APART = ("timestampdiff", "datediff", "date_diff", "timediff")
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_MOST_MONTHS = 120_000
_LONGEST = 32
"""More days than any month has."""
_FAR = failure("a moment so far away is not translated")
NAMES = frozenset({"timestampadd", "timestampdiff"})
"""Functions that are called with a unit alone."""


def by_unit(name: str, unit: str, values: Sequence[Typed]) -> Typed:
    """A call whose first argument is a unit."""
    called = unit.lower()
    called = "day" if called == "dayofyear" and name in _ADDED else called
    if len(values) != 2 or (called not in MICROS and called not in _MONTHS):
        raise refuse(f"`{name}` by {unit} is not translated")
    if name in _ADDED:
        return _moved(name, called, values)
    if name in _APART:
        return _apart(name, called, values)
    raise refuse(f"`{name}` by {unit} is not translated")


def _moved(name: str, unit: str, values: Sequence[Typed]) -> Typed:
    (number,) = taken(name, values[:1], "bigint")
    moment = values[1]
    if moment.type != t.TIMESTAMP_NTZ:
        (moment,) = taken(name, values[1:], "timestamp")
    most = _MOST_MONTHS if unit in _MONTHS else 3_000_000_000_000_000_000 // MICROS[unit]

    def body(n: str) -> str:
        if unit in _MONTHS:
            step = f"to_months(CAST({n} * {_MONTHS[unit]} AS INTEGER))"
        else:
            step = f"to_microseconds({n} * {MICROS[unit]})"
        plain = f"CAST(CAST({moment.text} AS TIMESTAMP) + {step} AS {t.duckdb_name(moment.type)})"
        return f"CASE WHEN {n} NOT BETWEEN {-most} AND {most} THEN {_FAR} ELSE {plain} END"

    text = bound(number.text, body)
    return Typed(f"CAST({text} AS {t.duckdb_name(moment.type)})", moment.type)


def _apart(name: str, unit: str, values: Sequence[Typed]) -> Typed:
    both = [cast(v, t.TIMESTAMP) if v.type != t.TIMESTAMP else v for v in values]
    one, other = (f"CAST({v.text} AS TIMESTAMP)" for v in taken(name, both, "timestamp, timestamp"))
    if unit in MICROS:
        return Typed(f"((epoch_us({other}) - epoch_us({one})) // {MICROS[unit]})", t.BIGINT)

    def months(a: str, b: str) -> str:
        day, last, clock, end = (f"CAST({x} AS {to})" for to in ("DATE", "TIME") for x in (a, b))
        whole = (f"({last} + CASE WHEN {last} > {day} AND {end} < {clock} THEN -1 "
                 f"WHEN {last} < {day} AND {end} > {clock} THEN 1 ELSE 0 END)")  # fmt: skip
        apart = bound(whole, lambda d: f"({_packed(d)} - {_packed(day)}) // {_LONGEST}")
        return f"CAST(({apart}) // {_MONTHS[unit]} AS BIGINT)"

    return Typed(bound(one, lambda a: bound(other, lambda b: months(a, b))), t.BIGINT)


def _packed(day: str) -> str:
    """A day as one number, by which a part of a month is less than a month."""
    return f"((year({day}) * 12 + month({day})) * {_LONGEST} + day({day}))"
