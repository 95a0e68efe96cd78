"""Rows that came late or were rejected: counted by reason, and the last of them to look at."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from threading import Lock
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from panes.cells import Cell, cell, cells
from panes.live.snapshot import Reason, SetAsideShown

MOST_ROWS = 40
MOST_REASONS = 12
_WAITING = 64

Kind = Literal["late", "rejected"]


class Apart:
    """What was set aside. Tables wait until somebody looks, or until too many do."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Kind, pa.Table]] = deque()
        self._counts: Counter[tuple[Kind, str]] = Counter()
        self._last: deque[tuple[Kind, list[str], list[Cell]]] = deque(maxlen=MOST_ROWS)
        self._lock = Lock()

    def add(self, kind: Kind, tables: Iterable[pa.Table]) -> None:
        """Rows were set aside; the last column is the reason."""
        for table in tables:
            if len(table):
                self._waiting.append((kind, table))
        if len(self._waiting) > _WAITING:
            self._read()

    def pour_into(self, other: Apart) -> None:
        """Give everything to another one, and keep nothing."""
        self._read()
        with self._lock, other._lock:
            other._counts.update(self._counts)
            other._last.extend(self._last)
            self._counts.clear()
            self._last.clear()

    def shown(self) -> SetAsideShown:
        """What there is to see, the newest row first."""
        self._read()
        with self._lock:
            reasons = [
                Reason(kind, reason, rows)
                for (kind, reason), rows in self._counts.most_common(MOST_REASONS)
            ]
            names: dict[str, None] = {}
            for _, columns, _ in self._last:
                names |= dict.fromkeys(columns)
            rows = [
                [kind, *(dict(zip(columns, row, strict=True)).get(n) for n in names)]
                for kind, columns, row in reversed(self._last)
            ]
        return SetAsideShown(reasons=reasons, columns=["", *names] if names else [], rows=rows)

    def _read(self) -> None:
        with self._lock:
            while self._waiting:
                self._count(*self._waiting.popleft())

    def _count(self, kind: Kind, table: pa.Table) -> None:
        for found in pc.value_counts(table.column(table.num_columns - 1)).to_pylist():
            self._counts[kind, _without_instant(found["values"] or "")] += found["counts"]
        last = table.slice(max(0, len(table) - MOST_ROWS))
        names = [str(cell(name)) for name in last.column_names]
        self._last.extend((kind, names, row) for row in cells(last))


def _without_instant(reason: str) -> str:
    """A late row's reason names the promise it broke; as a kind of reason that is left out.

    >>> _without_instant("behind progress 2026-01-01T00:10:00Z; dropped")
    'behind progress; dropped'
    """
    said, found, rest = reason.partition("behind progress ")
    return f"{said}behind progress;{rest.partition(';')[2]}" if found else reason
