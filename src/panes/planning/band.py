"""A band that is written as comparisons: ``r.ts >= l.ts - INTERVAL 5 SECONDS AND ...``.

Both sides of a comparison are added up to a sum of columns and constants. If what is left is the
difference of one position of each side and a constant, the comparison bounds the distance
``right - left`` of the two, whichever way it was written. Positions are whole, so ``<`` bounds by
one less than ``<=``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from panes.axis import (
    BEGINNING,
    FOREVER,
    LIMIT,
    parse_duration,
    unit_ticks,
    written_number,
    written_whole,
)
from panes.errors import OptionError, PanesError, QueryError
from panes.expressions.intervals import read_interval
from panes.planning.joined_columns import operands
from panes.windows.partners import Band

COMPARISONS = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ)


@dataclass(frozen=True, slots=True)
class Positions:
    """A band and the two columns it compares."""

    left: str
    right: str
    band: Band


@dataclass(slots=True)
class _Bounds:
    """The bounds of one pair of columns, and the comparisons that give them."""

    low: int = BEGINNING
    high: int = FOREVER
    conditions: list[exp.Expression] = field(default_factory=list)
    is_compared: bool = False

    @property
    def is_closed(self) -> bool:
        return self.low > BEGINNING and self.high < FOREVER


def find_band(
    conditions: Sequence[exp.Expression],
    types: Mapping[str, pa.DataType],
    is_left: Callable[[str], bool],
) -> tuple[Positions | None, list[exp.Expression]]:
    """The band among conditions over joined columns, and the conditions that are not part of it.

    None if nothing compares a position of one side with one of the other.
    """
    found: dict[tuple[str, str], _Bounds] = {}
    for condition in conditions:
        bound = _bound(condition, types, is_left)
        if bound is not None:
            pair, low, high = bound
            bounds = found.setdefault(pair, _Bounds())
            bounds.low, bounds.high = max(bounds.low, low), min(bounds.high, high)
            bounds.conditions.append(condition)
            bounds.is_compared |= not isinstance(condition, exp.EQ)
    chosen = _chosen(found, types)
    if chosen is None:
        return None, list(conditions)
    taken = found[chosen]
    rest = [c for c in conditions if not any(c is t for t in taken.conditions)]
    return Positions(*chosen, Band(taken.low, taken.high)), rest


def compared(
    conditions: Sequence[exp.Expression],
    types: Mapping[str, pa.DataType],
    is_left: Callable[[str], bool],
) -> list[tuple[str, str]]:
    """The positions of both sides whose distance a condition bounds without making them equal."""
    bounded = (_bound(c, types, is_left) for c in conditions if not isinstance(c, exp.EQ))
    return [bound[0] for bound in bounded if bound is not None]


def require_intervals(condition: exp.Expression) -> None:
    """Refuse an interval that cannot be understood, and say which."""
    for interval in condition.find_all(exp.Interval):
        if _broken(interval) is None:
            read_interval(interval)


def _chosen(
    found: Mapping[tuple[str, str], _Bounds], types: Mapping[str, pa.DataType]
) -> tuple[str, str] | None:
    """The columns whose distance is the band: the only ones, or the only ones bounded twice."""
    compared = [p for p, b in found.items() if b.is_compared]
    closed = [p for p in compared if found[p].is_closed]
    timed = [p for p in (closed or compared) if _is_time(types[p[0]])]
    equal = [p for p in found if _is_time(types[p[0]])]
    for candidates in (closed, timed, compared, [] if compared else equal):
        if len(candidates) == 1:
            return candidates[0]
    if compared:
        pairs = " and ".join(f"`{a}` and `{b}`" for a, b in compared)
        raise QueryError(
            f"several comparisons could be the band of the join: {pairs}",
            hint="say which columns order the streams: l [RANGE 5 seconds WATTR ts], ...",
        )
    return None


def _bound(
    condition: exp.Expression, types: Mapping[str, pa.DataType], is_left: Callable[[str], bool]
) -> tuple[tuple[str, str], int, int] | None:
    """The bounds of ``right - left`` in a comparison: two columns, the least and the greatest."""
    if not isinstance(condition, COMPARISONS):
        return None
    one, other = (_sum(part, types) for part in operands(condition))
    if one is None or other is None:
        return None
    columns = dict(one.columns)
    for name, times in other.columns.items():
        columns[name] = columns.get(name, 0) - times
    columns = {name: times for name, times in columns.items() if times}
    left = [n for n in columns if is_left(n)]
    right = [n for n in columns if not is_left(n)]
    if sorted(columns.values()) != [-1, 1] or len(left) != 1 or len(right) != 1:
        return None
    if _kind(types[left[0]]) != _kind(types[right[0]]):
        return None
    constant = one.constant - other.constant
    if (one.has_interval or other.has_interval) and not _is_time(types[left[0]]):
        return None
    if constant and _is_time(types[left[0]]) and not (one.has_interval or other.has_interval):
        return None
    ascending = columns[right[0]] == 1
    low, high = _distances(condition, -constant if ascending else constant, ascending=ascending)
    return (left[0], right[0]), low, high


def _distances(condition: exp.Expression, at: int, *, ascending: bool) -> tuple[int, int]:
    """The least and greatest distance for which ``distance ? at`` holds, or its mirror image."""
    if isinstance(condition, exp.EQ):
        return at, at
    below = isinstance(condition, exp.LT | exp.LTE) == ascending
    edge = 1 if isinstance(condition, exp.LT | exp.GT) else 0
    return (BEGINNING, at - edge) if below else (at + edge, FOREVER)


@dataclass(frozen=True, slots=True)
class _Sum:
    """Columns, each so many times, and a constant in ticks."""

    columns: Mapping[str, int]
    constant: int = 0
    has_interval: bool = False

    def plus(self, other: _Sum, sign: int) -> _Sum:
        columns = dict(self.columns)
        for name, times in other.columns.items():
            columns[name] = columns.get(name, 0) + sign * times
        return _Sum(
            columns,
            self.constant + sign * other.constant,
            self.has_interval or other.has_interval,
        )


def _sum(tree: exp.Expression, types: Mapping[str, pa.DataType]) -> _Sum | None:
    """An expression as a sum of positions and constants; None if it is anything else."""
    if isinstance(tree, exp.Paren):
        return _sum(tree.this, types)
    if isinstance(tree, exp.Column):
        return _Sum({tree.name: 1}) if _kind(types.get(tree.name)) else None
    if isinstance(tree, exp.Neg):
        inside = _sum(tree.this, types)
        return None if inside is None else _Sum({}).plus(inside, -1)
    if isinstance(tree, exp.Add | exp.Sub):
        one, other = (_sum(part, types) for part in operands(tree))
        if one is None or other is None:
            return None
        return one.plus(other, 1 if isinstance(tree, exp.Add) else -1)
    if isinstance(tree, exp.Interval):
        ticks = _interval(tree)
        return None if ticks is None else _Sum({}, ticks, True)
    if isinstance(tree, exp.Literal) and not tree.is_string:
        number = written_whole(tree.name)
        return _Sum({}, number) if number is not None and number < LIMIT else None
    return None


def _interval(tree: exp.Interval) -> int | None:
    """The ticks of an interval of fixed length; None for months and years.

    Beside Spark's forms, units may be broken: ``INTERVAL '1.5 minutes'``.
    """
    try:
        written = read_interval(tree)
    except PanesError:
        return _broken(tree)
    return None if written.is_of_months or abs(written.micros) >= LIMIT else written.micros


def _broken(tree: exp.Interval) -> int | None:
    """The ticks of an interval in units of which any may be broken."""
    value, unit = tree.this, tree.args.get("unit")
    if not isinstance(value, exp.Literal):
        return None
    text = value.name.strip()
    if unit is None:
        try:
            return parse_duration(text, option="INTERVAL")
        except OptionError:
            return None
    ticks = unit_ticks(unit.name) if isinstance(unit, exp.Var) else None
    negative, number = text.startswith("-"), written_number(text.removeprefix("-"))
    length = None if ticks is None or number is None else number * ticks
    if length is None or length.denominator != 1 or length >= LIMIT:
        return None
    return -int(length) if negative else int(length)


def _kind(data_type: pa.DataType | None) -> str | None:
    """The kind of positions of this type: time with a zone, without one, or integers."""
    if data_type is None:
        return None
    if pa.types.is_timestamp(data_type):
        return "instant" if data_type.tz else "time"
    if pa.types.is_date(data_type):
        return "time"
    return "integer" if pa.types.is_integer(data_type) else None


def _is_time(data_type: pa.DataType) -> bool:
    return _kind(data_type) in ("instant", "time")
