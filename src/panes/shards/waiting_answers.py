"""Answers that wait in a shard's state, because `flush=` gives them out a few at a time."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from panes.answers.release import Line
from panes.answers.status import ends_of
from panes.planning.flush import shared_by
from panes.planning.plan import Plan
from panes.planning.terms import Terms
from panes.shards.state import State
from panes.stores import codec
from panes.stores.parcel import Parcel

_LINE = "line"


class WaitingAnswers:
    """The line of answers of one shard, in its state."""

    def __init__(self, plan: Plan, terms: Terms, state: State, *, shards: int) -> None:
        self._flush = None if terms.flush is None else shared_by(terms.flush, shards)
        self._keys, self._state = len(plan.query.keys), state

    def released(self, found: pa.Table, parcels: Sequence[Parcel], progress: int) -> pa.Table:
        """Of these answers and those that wait, what is to be given now; the others wait on."""
        line = self._joined(found)
        if line is None:
            return found
        seen = [p.keys for p in parcels if p.keys and len(p.keys[0])]
        columns = [pa.concat_arrays(c) for c in zip(*seen, strict=True)]
        rows = len(columns[0]) if columns else sum(len(p.starts) for p in parcels)
        released = line.released(columns, rows, progress)
        self._write(line)
        return released

    def everybody(self, found: pa.Table) -> pa.Table:
        """The stream has ended: these answers and all that wait."""
        line = self._joined(found)
        if line is None:
            return found
        released = line.everybody()
        self._write(line)
        return released

    def _joined(self, found: pa.Table) -> Line | None:
        """Those that wait, and behind them these; None if nobody ever waits."""
        if self._flush is None:
            return None
        line = Line(self._flush, tuple(range(2, 2 + self._keys)))
        data = self._state.get(_LINE)
        if data is not None:
            waiting = codec.unpack(data)[_LINE].cast(found.schema)
            line.wait(waiting, ends_of(waiting))
        line.wait(found, ends_of(found))
        return line

    def _write(self, line: Line) -> None:
        if len(line):
            self._state[_LINE] = codec.pack({_LINE: line.everybody()})
        elif self._state.get(_LINE) is not None:
            del self._state[_LINE]
