"""One shard of a streaming query: the pane store at a host that keeps its state.

Each batch, a shard is given the packages of all tasks, takes what it needs of its state, answers
the windows that are complete now, and puts back what changed. Between batches it is nothing but
bytes under names: what it remembers (`panes.shards.query_state`), a few blocks of panes
(`panes.shards.pipeline_blocks`), rows that wait for their own windows, and answers that wait to be
given out (`panes.shards.waiting_answers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.axis import BEGINNING, FOREVER
from panes.nodes.arrival import Arrival
from panes.nodes.choose import pipeline_of
from panes.nodes.status import marked, next_early, status_columns
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions
from panes.shards.marks import have_ended, late_rows, observe_marks, oldest_late, read_marks
from panes.shards.names import ASIDE, AT, ENDED, PASSING, REJECTED, ROWS, SOURCE, column_name
from panes.shards.pipeline_blocks import PipelineBlocks
from panes.shards.query_state import QueryState
from panes.shards.state import State
from panes.shards.waiting_answers import WaitingAnswers
from panes.stores import codec
from panes.stores.parcel import Parcel, from_tables

_ROWS = "rows"
_NOTHING_SET_ASIDE = pa.Table.from_batches([], pa.schema({"reason": pa.string()}))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch gave: answers before the SELECT's expressions, rows set aside, and sizes.

    `aside` are rows that a shard below has set aside, and that are passed on. `newest` is where the
    newest row lies, and `late_from` the oldest late one of this batch, `FOREVER` if there is none.
    `next_end` says what is promised of answers to come: none is of a window that ends before.
    `ENDED`: no more answers will come. All shards that take the same batches promise the same.
    """

    answers: pa.Table
    late: pa.Table
    rejected: pa.Table
    progress: int
    partials: int
    nbytes: int
    aside: tuple[pa.Table, ...] = ()
    newest: int = BEGINNING
    late_from: int = FOREVER
    next_end: int = BEGINNING


class QueryShard:
    """A shard's part of one query, for one batch."""

    def __init__(
        self,
        plan: Plan,
        terms: CheckedOptions,
        state: State,
        *,
        shards: int,
        after: int = BEGINNING,
    ) -> None:
        """Rows up to `after` came before the state began."""
        self._plan, self._terms, self._state, self._shards = plan, terms, state, shards
        self._about = about = QueryState.of(plan, terms, state, shards, after)
        self._status = status_columns(plan, terms)
        self._pipeline = pipeline_of(plan, revisable=terms.keeps)
        self._pipeline.resume(about.first_open, about.newest, about.first_needed)
        self._had_rows = self._put_back_rows()
        self._panes = PipelineBlocks(plan, self._pipeline, self._about.blocks, state)
        self._waiting = WaitingAnswers(plan, terms, state, shards=shards)

    def take(self, packages: Sequence[bytes], watermark: int | None = None) -> Outcome:
        """Take in one batch; gives the answers that are final from now on.

        A host's own `watermark`, in ticks, is what it says of batches before this one.
        """
        return self.take_opened([codec.unpack(data) for data in packages], watermark)

    @property
    def open_from(self) -> int:
        """The first position that an open window holds."""
        return self._pipeline.open_from

    def take_opened(
        self, opened: Sequence[Mapping[str, pa.Table]], watermark: int | None = None
    ) -> Outcome:
        """Take in one batch, whose packages have been unpacked."""
        pipeline, promises = self._pipeline, self._about.promises
        if watermark is not None and self._progress[0] == BEGINNING:
            self._begin_at_epoch()
        late = [
            found
            for tables in opened
            for found in late_rows(
                tables, promises, self._plan.placing, pipeline.open_from, self._terms.late
            )
        ]
        late_from = oldest_late(opened, promises) if late else FOREVER
        rejected = [t[REJECTED] for t in opened if REJECTED in t]
        parcels = [p for t in opened if (p := from_tables(self._plan.pieces, t)) is not None]
        pipeline.take(parcels)
        for tables in opened:
            if ROWS in tables:
                self._add_rows(tables[ROWS])
        touched = self._panes.touched()
        seen = [read_marks(tables) for tables in opened]
        for marks in seen:
            observe_marks(marks, promises)
            for mark in marks.values():
                if mark.newest is not None:
                    pipeline.reach(mark.newest)
        for promise in promises if watermark is not None else ():
            assert watermark is not None
            promise.punctuate(watermark, "watermark")
        self._panes.fetch(touched)
        answers = self._answers(parcels)
        released = self._waiting.released(answers, parcels, self._progress[0])
        self._write(touched)
        aside = tuple(tables[ASIDE] for tables in opened if ASIDE in tables)
        outcome = self._outcome(released, late, rejected)
        given = replace(outcome, aside=aside, late_from=late_from)
        return self._and_the_rest(given) if have_ended(seen) else given

    def _and_the_rest(self, given: Outcome) -> Outcome:
        """A batch that is the last one, as its packages say: what it gave, and all that is left."""
        shard = QueryShard(self._plan, self._terms, self._state, shards=self._shards)
        rest = shard.finish()
        answers = pa.concat_tables([given.answers, rest.answers])
        return replace(rest, answers=answers, late=given.late, rejected=given.rejected,
                       aside=given.aside, late_from=given.late_from)  # fmt: skip

    def _begin_at_epoch(self) -> None:
        """A host's watermark stands at the epoch before there is any, and rows can be late then."""
        for promise in self._about.promises:
            promise.punctuate(0, "watermark")
        self._pipeline.close(0, in_order=False)

    def finish(self) -> Outcome:
        """The stream has ended: every window that holds a row is answered and forgotten."""
        self._panes.fetch_all()
        closed = self._pipeline.close_all(in_order=False)
        answers = marked(closed, self._status, "final", "the end of the stream")
        released = self._waiting.everybody(answers)
        if self._pipeline.newest != BEGINNING:
            for promise in self._about.promises:
                promise.punctuate(self._pipeline.ended)
        # A landmark window never lets go of its rows: if the stream goes on after all, they count.
        self._write(self._about.blocks.numbers)
        return replace(self._outcome(released, [], []), next_end=ENDED)

    def _outcome(
        self, answers: pa.Table, late: Sequence[pa.Table], rejected: Sequence[pa.Table]
    ) -> Outcome:
        return Outcome(
            answers=answers,
            late=pa.concat_tables(late) if late else _NOTHING_SET_ASIDE,
            rejected=pa.concat_tables(rejected) if rejected else _NOTHING_SET_ASIDE,
            progress=self._progress[0],
            partials=self._about.blocks.partials,
            nbytes=self._about.blocks.nbytes,
            newest=self._pipeline.newest,
            next_end=self._pipeline.next_end,
        )

    @property
    def _progress(self) -> tuple[int, str]:
        """What is promised of all sources together, and why."""
        return self._about.progress(self._plan)

    # Answers

    def _answers(self, parcels: Sequence[Parcel]) -> pa.Table:
        """What the batch revises, closes, and tells early, each with its status."""
        progress, why = self._progress
        answers = [marked(self._revised(parcels), self._status, "revised", "a late row")]
        if progress != BEGINNING and self._pipeline.closes_any(progress):
            self._panes.fetch_before(progress)
            closed = self._pipeline.close(progress, in_order=False)
            answers.append(marked(closed, self._status, "final", why))
        answers.append(marked(self._early(), self._status, "early", "nothing yet"))
        return pa.concat_tables(answers)

    def _revised(self, parcels: Sequence[Parcel]) -> pa.Table:
        """Closed windows that have panes among these, which late rows have brought."""
        pipeline = self._pipeline
        nothing = self._plan.lowered_schema().empty_table()
        if self._terms.late != "revise" or pipeline.first_open == BEGINNING:
            return nothing
        behind = [(p, np.flatnonzero(p.starts < pipeline.ended)) for p in parcels]
        late = [(p, which) for p, which in behind if len(which)]
        if not late:
            return nothing
        self._panes.fetch_before(pipeline.ended)
        at = np.concatenate([p.starts[which] for p, which in late])
        taken = [[k.take(pa.array(p.groups[which])) for k in p.keys] for p, which in late]
        return pipeline.revised(at, [pa.concat_arrays(c) for c in zip(*taken, strict=True)])

    def _early(self) -> pa.Table:
        """Open windows as they are now, if it is time to tell."""
        early, pipeline = self._plan.query.early, self._pipeline
        nothing = self._plan.lowered_schema().empty_table()
        if early is None or pipeline.newest == BEGINNING:
            return nothing
        if early.every is not None:
            due = self._about.next_early
            if due is not None and pipeline.newest < due:
                return nothing
            self._about.next_early = next_early(early.every, pipeline.newest)
        self._panes.fetch_all()
        return pipeline.open_windows()

    # Rows

    def _add_rows(self, table: pa.Table) -> None:
        """Rows that were not filled before: those that keep every promise count."""
        source, at = _numbers(table, SOURCE), _numbers(table, AT)
        counts = np.ones(len(table), dtype=np.bool_)
        if self._terms.drops_late:
            counts = at >= np.array([p.at for p in self._about.promises])[source]
        if PASSING in table.column_names:
            counts &= table.column(PASSING).to_numpy()
        which = np.flatnonzero(counts)
        names = [column_name(i) for i in range(len(self._plan.row_types))]
        columns = [table.column(n).combine_chunks() for n in names]
        taken = [c.take(pa.array(which)) for c in columns]
        partition = [columns[c] for c in self._plan.partition_columns]
        self._pipeline.add(Arrival(at, taken, which, partition))

    def _put_back_rows(self) -> bool:
        """Rows that wait for their own window, where windows are those of rows, if there are."""
        data = self._state.get(_ROWS)
        if data is not None:
            self._pipeline.put_back(codec.unpack(data))
        return data is not None

    # The state

    def _write(self, touched: set[int]) -> None:
        """Put back the blocks that changed and the rows that wait, and remember the rest."""
        about, pipeline = self._about, self._pipeline
        about.first_open, about.newest = pipeline.first_open, pipeline.newest
        about.first_needed = pipeline.first_needed
        self._panes.put_back(touched)
        tables = pipeline.tables()
        if tables:
            self._state[_ROWS] = codec.pack(tables)
        elif self._had_rows:
            del self._state[_ROWS]
        about.write(self._plan, self._state, self._shards)


def _numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = pc.cast(table.column(name), pa.int64()).combine_chunks().to_numpy()
    return numbers
