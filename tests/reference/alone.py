"""What one query gets, alone and by brute force: the definition that a register is held to.

A window is answered once, when progress reaches its end, from all rows that have come by then:
late ones too, unless they are dropped. Nothing else is said here, and windows are found by trying
every position. Aggregates are the oracle's folds, and `test_the_definition_is_the_oracles` shows
that over a bounded stream the answers are the oracle's too. It is stated again because it must be
fast: a state machine asks for it after every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from panes.reference.folds import FOLDS, order

NOTHING = -(10**6)
"""The promise before anything is promised: before every row of a test."""
EVERYTHING = 10**6
"""The promise at the end of a stream."""

SCHEMA = pa.schema(
    {
        "at": pa.int64(),
        "k": pa.string(),
        "b": pa.bool_(),
        "i": pa.int64(),
        "x": pa.float64(),
    }
)


class Row(NamedTuple):
    at: int
    k: str | None
    b: bool | None
    i: int | None
    x: float | None


def table_of(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([r._asdict() for r in rows], schema=SCHEMA)


CONDITIONS: dict[str, Callable[[Row], bool]] = {
    "": lambda row: True,
    "i > 0": lambda row: row.i is not None and row.i > 0,
    "b": lambda row: row.b is True,
    "x < 1.5 OR b": lambda row: row.b is True or (row.x is not None and row.x < 1.5),
    "i % 2 = 0": lambda row: row.i is not None and row.i % 2 == 0,
}
"""A row for which a condition is NULL does not satisfy it."""

FAILED = "no number"
"""What stands for the value of an expression that cannot be evaluated."""

VALUES: dict[str, Callable[[Row], Any]] = {
    **{name: attrgetter(name) for name in ("k", "b", "i", "x")},
    "i + 1": lambda row: None if row.i is None else row.i + 1,
    "x * 2": lambda row: None if row.x is None else row.x * 2,
    "i % 2": lambda row: None if row.i is None else int(math.fmod(row.i, 2)),
    "12 % i": lambda row: None if row.i is None else int(math.fmod(12, row.i)) if row.i else FAILED,
}
"""Columns and expressions over them. The last one fails of some rows."""

GROUPINGS = ("", "k", "b", "k, b", "i % 2", "k, i % 2")

Fold = Callable[[Sequence[Row]], Any]


def over(name: str, argument: str, where: str = "") -> Fold:
    """An aggregate of an expression, of the rows that satisfy a condition."""
    holds, value = CONDITIONS[where], VALUES[argument]

    def fold(rows: Sequence[Row]) -> Any:
        found = [(r.at, (value(r),)) for r in rows if holds(r)]
        return FAILED if (FAILED,) in [values for _, values in found] else FOLDS[name](found)

    return fold


CALLS: dict[str, Fold] = {
    "count(*)": len,
    "count(x)": over("count", "x"),
    "sum(i)": over("sum", "i"),
    "sum(x)": over("sum", "x"),
    "avg(i)": over("avg", "i"),
    "min(i)": over("min", "i"),
    "max(x)": over("max", "x"),
    "max(k)": over("max", "k"),
    "var_samp(i)": over("var_samp", "i"),
    "first(x)": over("first", "x"),
    "last(i)": over("last", "i"),
    "median(i)": over("median", "i"),
    "count(DISTINCT i)": over("approx_count_distinct", "i"),
    "collect_list(x)": over("collect_list", "x"),
    "count(*) FILTER (WHERE i > 0)": lambda rows: sum(map(CONDITIONS["i > 0"], rows)),
    "sum(i) FILTER (WHERE b)": over("sum", "i", "b"),
    "median(i) FILTER (WHERE b)": over("median", "i", "b"),
    "max(i + 1)": over("max", "i + 1"),
    "last(i + 1)": over("last", "i + 1"),
    "median(i + 1)": over("median", "i + 1"),
    "sum(x * 2) FILTER (WHERE b)": over("sum", "x * 2", "b"),
    "sum(12 % i)": over("sum", "12 % i"),
    "max(12 % i) FILTER (WHERE i > 0)": over("max", "12 % i", "i > 0"),
}

COMPUTED = tuple(name for name in CALLS if any(sign in name for sign in ("+", "* 2", "%")))
"""Aggregates of expressions, which are evaluated only of rows that some query lets through."""


@dataclass(frozen=True)
class Question:
    """A query over the stream ``t``."""

    size: int
    slide: int
    origin: int = 0
    group: str = "k"
    where: str = ""
    calls: tuple[str, ...] = ("count(*)",)
    least: int = 0
    """HAVING at least so many rows."""

    @property
    def keys(self) -> list[str]:
        """The grouping columns."""
        return self.group.split(", ") if self.group else []

    @property
    def text(self) -> str:
        """The query as it is registered."""
        return self._over(f"RANGE {self.size} SLIDE {self.slide} WATTR at ORIGIN {self.origin}")

    @property
    def once(self) -> str:
        """The same rows and aggregates, asked for now, over the newest `size`."""
        return self._over(f"RANGE {self.size} WATTR at")

    @property
    def of_rows(self) -> str:
        """The same over the last `size` rows."""
        return self._over(f"ROWS {self.size}")

    def _over(self, window: str) -> str:
        selected = [*self.keys, *(f"{call} AS c{i}" for i, call in enumerate(self.calls))]
        text = f"SELECT {', '.join(selected)} FROM t [{window}]"
        text += f" WHERE {self.where}" if self.where else ""
        text += f" GROUP BY {self.group}" if self.group else ""
        return text + (f" HAVING count(*) >= {self.least}" if self.least else "")

    @property
    def of_plain_rows(self) -> str:
        """The rows themselves, of the newest `size`."""
        where = f" WHERE {self.where}" if self.where else ""
        return f"SELECT at, i, x FROM t [RANGE {self.size} WATTR at]{where}"

    def fails_of(self, rows: Sequence[Row]) -> bool:
        """Whether it cannot be evaluated of some rows, of those that it is about."""
        own = [row for row in rows if CONDITIONS[self.where](row)]
        return any(CALLS[call](own) == FAILED for call in self.calls)

    def ends(self, after: int, until: int) -> Iterator[int]:
        """Where its windows in ``(after, until]`` end."""
        return (end for end in range(after + 1, until + 1) if (end - self.origin) % self.slide == 0)


def window_of(question: Question, rows: Sequence[Row], start: int, end: int) -> list[list[Any]]:
    """The answers of one window, by key: NULL first."""
    holds = CONDITIONS[question.where]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if start <= row.at < end and holds(row):
            groups.setdefault(tuple(VALUES[k](row) for k in question.keys), []).append(row)
    return [
        [start, end, *key, *(CALLS[call](group) for call in question.calls)]
        for key, group in sorted(groups.items(), key=lambda item: tuple(map(order, item[0])))
        if len(group) >= question.least
    ]


def answers(question: Question, rows: Sequence[Row], *, after: int, until: int) -> list[list[Any]]:
    """The answers of all windows that end in ``(after, until]``, by window and then by key."""
    oldest = min((r.at for r in rows), default=0)
    newest = max((r.at for r in rows), default=0)
    ends = question.ends(max(after, oldest), min(until, newest + question.size))
    return [line for end in ends for line in window_of(question, rows, end - question.size, end)]
