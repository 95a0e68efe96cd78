"""Answers that wait in a shard's state, because `flush=` gives them out a few at a time.

They wait whatever the query is asked with next time: without a flush they are all given at once,
and they get the status columns of now.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from panes.errors import StateError
from panes.nodes.release import ReleaseQueue
from panes.nodes.status import CLOSED_BY, STATUS, ends_of
from panes.planning.flush import Flush, shared_by
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions
from panes.shards.state import State
from panes.stores import codec
from panes.stores.parcel import Parcel

_LINE = "line"


class WaitingAnswers:
    """The line of answers of one shard, in its state."""

    def __init__(self, plan: Plan, terms: CheckedOptions, state: State, *, shards: int) -> None:
        self._flush = None if terms.flush is None else shared_by(terms.flush, shards)
        self._keys, self._state = len(plan.query.keys), state

    def released(self, found: pa.Table, parcels: Sequence[Parcel], progress: int) -> pa.Table:
        """Of these answers and those that wait, what is to be given now; the others wait on."""
        if self._flush is None:
            return self._at_once(found)
        line = self._joined(self._flush, found)
        seen = [p.keys for p in parcels if p.keys and len(p.keys[0])]
        columns = [pa.concat_arrays(c) for c in zip(*seen, strict=True)]
        rows = len(columns[0]) if columns else sum(len(p.starts) for p in parcels)
        released = line.released(columns, rows, progress)
        self._write(line)
        return released

    def everybody(self, found: pa.Table) -> pa.Table:
        """The stream has ended: these answers and all that wait."""
        return self._at_once(found)

    def _at_once(self, found: pa.Table) -> pa.Table:
        """All that wait, and behind them these."""
        waiting = self._waiting(found.schema)
        if waiting is None:
            return found
        del self._state[_LINE]
        return pa.concat_tables([waiting, found])

    def _joined(self, flush: Flush, found: pa.Table) -> ReleaseQueue:
        """The line of those that wait, and behind them these."""
        line = ReleaseQueue(flush, tuple(range(2, 2 + self._keys)))
        waiting = self._waiting(found.schema)
        if waiting is not None:
            line.wait(waiting, ends_of(waiting))
        line.wait(found, ends_of(found))
        return line

    def _waiting(self, schema: pa.Schema) -> pa.Table | None:
        """Those that wait, with the columns of now; None if nobody does."""
        data = self._state.get(_LINE)
        return None if data is None else _with_status_of(codec.unpack(data)[_LINE], schema)

    def _write(self, line: ReleaseQueue) -> None:
        if len(line):
            self._state[_LINE] = codec.pack({_LINE: line.everybody()})
        elif self._state.get(_LINE) is not None:
            del self._state[_LINE]


def _with_status_of(waiting: pa.Table, schema: pa.Schema) -> pa.Table:
    """Answers with the status columns of a schema, which may have others than when they were found.

    Without a status an answer is final. So what is only early is not given then, and what is
    revised cannot be.
    """
    if STATUS in waiting.column_names and STATUS not in schema.names:
        status = waiting.column(STATUS)
        if pc.any(pc.equal(status, "revised")).as_py():
            raise StateError(
                "answers wait in the checkpoint that revise others, and without late='revise' "
                "nothing would say so",
                hint="leave late='revise' and drop flush= for one run, which gives them out",
            )
        waiting = waiting.filter(pc.equal(status, "final"))
    for name, value in ((STATUS, "final"), (CLOSED_BY, None)):
        if name in schema.names and name not in waiting.column_names:
            column = pa.repeat(pa.scalar(value, pa.string()), len(waiting))
            waiting = waiting.append_column(name, column)
    return waiting.select(schema.names).cast(schema)
