"""The newest answers, and those of a few keys over the last windows.

Answers come as tables, which are immutable: whoever pushes only leaves a reference. They are looked
at when a snapshot is taken, in the thread of whoever asked. Nothing is queued beyond `MOST_ROWS`:
if nobody looks, the oldest tables are dropped unread.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.cells import cells, shown_key
from panes.language.query import WINDOW_COLUMNS
from panes.live.snapshot import AnswerLine, AnswersShown

MOST_ROWS = 500_000
MOST_SHOWN = 50
MOST_LINES = 8
MOST_WINDOWS = 120
_TRACKED = 16
_MOST_FOUND = 200_000
"""Rows of one window that are searched for a text; more are not looked through."""


@dataclass(frozen=True, slots=True)
class _Window:
    """The greatest answers of one window, by key; those that can be drawn."""

    end: int
    value: dict[str, float]


class AnswerHistory:
    """Answers of one query. `keys` is how many columns after the window's are its key."""

    def __init__(self, keys: int | None = None) -> None:
        self.keys = keys
        self._waiting: deque[pa.Table] = deque()
        self._waiting_rows = 0
        self._intake, self._lock = Lock(), Lock()  # nobody who pushes waits for a reader
        self._windows: dict[int, _Window] = {}
        self._newest: pa.Table | None = None
        self._by: str | None = None

    def give(self, answers: pa.Table) -> None:
        """More answers have come."""
        if not len(answers):
            return
        with self._intake:
            self._waiting.append(answers)
            self._waiting_rows += len(answers)
            while len(self._waiting) > 1 and self._waiting_rows > MOST_ROWS:
                self._waiting_rows -= len(self._waiting.popleft())

    def shown(self, find: str = "") -> AnswersShown:
        """What there is to see; with `find`, the answers whose key holds this text."""
        with self._lock:
            with self._intake:
                came = list(self._waiting)
                self._waiting.clear()
                self._waiting_rows = 0
            for table in came:
                self._read(table)
            return self._table(find)

    # Reading what came

    def _read(self, answers: pa.Table) -> None:
        names = answers.column_names
        if WINDOW_COLUMNS[1] not in names:
            self._newest = answers.slice(max(0, len(answers) - MOST_SHOWN))
            return
        ends = _ticks(answers.column(WINDOW_COLUMNS[1]))
        bounds = np.flatnonzero(np.diff(ends)) + 1
        begins = np.concatenate([[0], bounds])[-MOST_WINDOWS:]
        stops = np.append(begins[1:], len(answers))
        self._by = self._by if self._by in names else self._value_column(answers.schema)
        self._newest = answers.slice(int(begins[-1]))
        if self._by is not None:
            self._remember(answers, ends, list(zip(begins.tolist(), stops.tolist(), strict=True)))
        for end in sorted(self._windows)[:-MOST_WINDOWS]:
            del self._windows[end]

    def _remember(
        self, answers: pa.Table, ends: NDArray[np.int64], windows: Sequence[tuple[int, int]]
    ) -> None:
        """Note the greatest answers of windows, which lie between bounds."""
        first = windows[0][0]
        value = _numbers(answers.column(self._by).slice(first))
        which = [b + _greatest(value[b - first : e - first], _TRACKED) for b, e in windows]
        every = np.concatenate(which)
        keys, values = self._keys(answers.take(pa.array(every))), value[every - first].tolist()
        begin = 0
        for (bound, _), some in zip(windows, which, strict=True):
            stop = begin + len(some)
            pairs = zip(keys[begin:stop], values[begin:stop], strict=True)
            found = {key: number for key, number in pairs if math.isfinite(number)}
            known = self._windows.get(int(ends[bound]))
            merged = found if known is None else known.value | found
            self._windows[int(ends[bound])] = _Window(int(ends[bound]), merged)
            begin = stop

    def _value_column(self, schema: pa.Schema) -> str | None:
        """The first number among what was selected beside the key."""
        first = 2 + (self.keys or 0)
        for field in list(schema)[first:]:
            if _is_number(field.type):
                return str(field.name)
        return None

    def _keys(self, answers: pa.Table) -> list[str]:
        """The key of each answer, as one text."""
        columns = answers.columns[2 : 2 + (self.keys or 0)]
        values = [column.to_pylist() for column in columns]
        return [shown_key(key) for key in zip(*values, strict=True)] or [""] * len(answers)

    # Showing it

    def _table(self, find: str) -> AnswersShown:
        newest = self._newest
        if newest is None:
            return AnswersShown(note="no window has closed yet")
        total = len(newest)
        if find:
            newest = self._found(newest, find)
        window = None
        if WINDOW_COLUMNS[1] in newest.column_names and len(newest):
            window = int(_ticks(newest.column(WINDOW_COLUMNS[1]).slice(0, 1))[0])
        if self._by is not None and self._by in newest.column_names:
            greatest = _greatest(_numbers(newest.column(self._by)), MOST_SHOWN)
            newest = newest.take(pa.array(greatest))
        newest = newest.slice(0, MOST_SHOWN)
        names = [str(name) for name in newest.column_names]
        rows = cells(newest)
        return AnswersShown(
            columns=names, rows=rows, by=self._by, window=window, total=total, lines=self._lines()
        )

    def _found(self, answers: pa.Table, find: str) -> pa.Table:
        some = answers.slice(0, _MOST_FOUND)
        columns = some.columns[2 : 2 + self.keys] if self.keys else some.columns
        holds = pa.chunked_array([pa.array([False] * len(some))])
        for column in columns:
            try:
                text = column.cast(pa.string())
            except pa.ArrowException:
                continue
            hit = pc.fill_null(pc.match_substring(text, find, ignore_case=True), False)
            holds = pc.or_(holds, hit)
        return some.filter(holds)

    def _lines(self) -> Sequence[AnswerLine]:
        """A line for each of the keys that are greatest in the newest window."""
        windows = [self._windows[end] for end in sorted(self._windows) if self._windows[end].value]
        if not windows:
            return ()
        newest = windows[-1].value
        keys = sorted(newest, key=lambda key: (-newest[key], key))[:MOST_LINES]
        return [
            AnswerLine(
                key,
                [w.end for w in windows if key in w.value],
                [w.value[key] for w in windows if key in w.value],
            )
            for key in keys
        ]


def _ticks(column: pa.ChunkedArray) -> NDArray[np.int64]:
    whole = column.combine_chunks()
    plain = whole if pa.types.is_int64(whole.type) else whole.cast(pa.int64())
    ticks: NDArray[np.int64] = plain.to_numpy(zero_copy_only=False)
    return ticks


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Numbers to compare; NULL and what is no number are least of all, as minus infinity."""
    plain = pc.fill_null(column.cast(pa.float64(), safe=False), -np.inf)
    values: NDArray[np.float64] = plain.to_numpy()
    return np.where(np.isnan(values), -np.inf, values)


def _greatest(value: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Indexes of the greatest values, greatest first."""
    if len(value) > most:
        some = np.argpartition(value, len(value) - most)[-most:]
    else:
        some = np.arange(len(value))
    ordered: NDArray[np.int64] = some[np.argsort(-value[some], kind="stable")]
    return ordered
