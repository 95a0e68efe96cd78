"""Answers on their way out, and the status columns that say what they are.

An answer is final, unless the query says otherwise: with ``EMIT EARLY`` open windows are answered
too, and with ``late="revise"`` closed ones again. Then every answer has a `status`, and a reader
who takes the newest answer of each window and key ends with the final ones. With ``why=True`` every
answer says in `closed_by` what closed its window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.answers.select import projected
from panes.errors import QueryError
from panes.language.query import KEY, WINDOW_COLUMNS
from panes.nodes.arrival import Arrival
from panes.nodes.release import ReleaseQueue
from panes.planning.flush import Flush
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions
from panes.windows.spec import PerRow

STATUS, CLOSED_BY = "status", "closed_by"
Status: TypeAlias = Literal["early", "final", "revised"]


def status_columns(plan: Plan, terms: CheckedOptions) -> tuple[str, ...]:
    """The names of the columns that answers have after what was selected."""
    replaces = plan.query.emits_early or terms.late == "revise"
    names = (STATUS,) * replaces + (CLOSED_BY,) * terms.why
    for name in names:
        if name in plan.schema().names:
            raise QueryError(f"the answers have a column `{name}` of their own; rename it")
    return names


def marked(table: pa.Table, columns: Sequence[str], status: Status, why: str) -> pa.Table:
    """Answers with their status columns."""
    text = {STATUS: status, CLOSED_BY: why}
    for name in columns:
        table = table.append_column(name, pa.repeat(pa.scalar(text[name]), len(table)))
    return table


def next_early(every: int, newest: int) -> int:
    """Where open windows are answered next, if they are answered every so much of the axis."""
    return (newest // every + 1) * every


class Answers:
    """The answers of one query that have been found and not yet been given."""

    def __init__(self, plan: Plan, terms: CheckedOptions) -> None:
        self._plan, self._status_columns = plan, status_columns(plan, terms)
        self._early = plan.query.early
        self._next_early: int | None = None
        self._found: list[pa.Table] = []
        self._line = None if terms.flush is None else self._new_line(terms.flush)
        texts = [(name, pa.string()) for name in self._status_columns]
        self.schema = pa.schema([*plan.schema(), *texts])

    @property
    def waiting(self) -> int:
        """How many answers wait in line."""
        return 0 if self._line is None else len(self._line)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the answers that wait in line."""
        return 0 if self._line is None else self._line.nbytes

    def close(self, lowered: pa.Table, why: str) -> None:
        """Windows have been closed, by what `why` says."""
        if len(lowered):
            self._found.append(self._marked(lowered, "final", why))

    def revise(self, lowered: pa.Table) -> None:
        """Windows that were closed have changed."""
        if len(lowered):
            self._found.append(self._marked(lowered, "revised", "a late row"))

    def early(self, open_windows: pa.Table) -> pa.Table:
        """The windows that are open, as they are now."""
        return self._marked(open_windows, "early", "nothing yet")

    def offer_early(self, open_windows: Callable[[], pa.Table], newest: int) -> None:
        """After a batch, the newest row of which is known: answer open windows if it is time to."""
        if self._early is None:
            return
        if self._early.every is not None:
            if self._next_early is not None and newest < self._next_early:
                return
            self._next_early = next_early(self._early.every, newest)
        self._found.append(self.early(open_windows()))

    def released(self, arrival: Arrival | None, progress: int) -> pa.Table:
        """The answers to give now, after these rows have come, if any have."""
        found = self.taken()
        if self._line is None:
            return found
        self._line.wait(found, ends_of(found))
        if arrival is None or not len(arrival.passing_at):
            return self._line.released([], 0, progress)
        keys = arrival.columns[: len(self._plan.key_types)]
        return self._line.released(keys, len(arrival.passing_at), progress)

    def rest(self) -> pa.Table:
        """All that is left."""
        found = self.taken()
        if self._line is None:
            return found
        self._line.wait(found, ends_of(found))
        return self._line.everybody()

    def taken(self) -> pa.Table:
        """What has been found and not been given; it does not get in line."""
        found, self._found = self._found, []
        if len(found) == 1:
            return found[0]
        return pa.concat_tables([self.schema.empty_table(), *found])

    def _marked(self, lowered: pa.Table, status: Status, why: str) -> pa.Table:
        return marked(projected(self._plan, lowered), self._status_columns, status, why)

    def _new_line(self, flush: Flush) -> ReleaseQueue:
        require_flushable(self._plan)
        lowered = [column.lowered for column in self._plan.answer_columns]
        keys = range(len(self._plan.query.keys))
        return ReleaseQueue(flush, tuple(lowered.index(f"{KEY}{i}") for i in keys))


def require_flushable(plan: Plan) -> None:
    """Refuse a flush whose answers would not name their window and key while they wait."""
    if isinstance(plan.window.spec, PerRow):
        raise QueryError("a flush is for windows of many keys; a per-row window has one answer")
    if len(plan.query.shown_keys) < len(plan.query.keys):
        raise QueryError("a flush needs every key in the answers under its own name")


def ends_of(answers: pa.Table) -> NDArray[np.int64]:
    """Where the windows of answers end, in ticks."""
    column = answers.column(WINDOW_COLUMNS[1]).combine_chunks()
    ends: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return ends
