"""One shard of a streaming query: the pane store at a host that keeps its state.

Each batch, a shard is given the packages of all tasks, takes what it needs of its state, answers
the windows that are complete now, and puts back what changed. Between batches it is nothing but
bytes under names: what it remembers (`panes.shards.query_state`), a few blocks of panes
(`panes.shards.pipeline_blocks`), rows that wait for their own windows, and answers that wait to be
given out (`panes.shards.waiting_answers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from panes.arrays.columns import column_of
from panes.axis import BEGINNING, FOREVER
from panes.nodes.choose import pipeline_of
from panes.nodes.status import marked, next_early, status_columns
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions
from panes.shards.names import AT, ROWS, SOURCE
from panes.shards.outcome import ShardOutcome
from panes.shards.packages import Packages
from panes.shards.pipeline_blocks import PipelineBlocks
from panes.shards.query_state import QueryState
from panes.shards.sent_rows import arrival_of
from panes.shards.state import State
from panes.shards.waiting_answers import WaitingAnswers
from panes.stores import codec
from panes.stores.parcel import Parcel, from_tables

_ROWS = "rows"


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

    @property
    def open_from(self) -> int:
        """The first position that an open window holds."""
        return self._pipeline.open_from

    @property
    def next_end(self) -> int:
        """Where the first window ends that is yet to be answered."""
        return self._pipeline.next_end

    def take(self, packages: Sequence[bytes], watermark: int | None = None) -> ShardOutcome:
        """Take in one batch; gives the answers that are final from now on.

        A host's own `watermark`, in ticks, is what it says of batches before this one.
        """
        return self.take_opened(Packages.of(packages), watermark)

    def take_opened(self, packages: Packages, watermark: int | None = None) -> ShardOutcome:
        """Take in one batch, whose packages have been unpacked."""
        pipeline, promises = self._pipeline, self._about.promises
        if watermark is not None and self._progress[0] == BEGINNING:
            self._begin_at_epoch()
        placing, open_from = self._plan.placing, pipeline.open_from
        late = packages.late_rows(promises, placing, open_from, self._terms.late)
        late_from = packages.oldest_late(promises) if late else FOREVER
        parcels = [p for t in packages if (p := from_tables(self._plan.pieces, t)) is not None]
        pipeline.take(parcels)
        for rows in packages.named(ROWS):
            self._add_rows(rows)
        touched = self._panes.touched()
        packages.observe(promises)
        for newest in packages.highest("newest").values():
            pipeline.reach(newest)
        for promise in promises if watermark is not None else ():
            assert watermark is not None
            promise.punctuate(watermark, "watermark")
        self._panes.fetch(touched)
        answers = self._answers(parcels)
        released = self._waiting.released(answers, parcels, self._progress[0])
        self._write(touched)
        given = replace(self._outcome(released).beside(packages, late), late_from=late_from)
        if not packages.have_ended:
            return given
        again = QueryShard(self._plan, self._terms, self._state, shards=self._shards)
        return given.followed_by(again.finish())

    def _begin_at_epoch(self) -> None:
        """A host's watermark stands at the epoch before there is any, and rows can be late then."""
        for promise in self._about.promises:
            promise.punctuate(0, "watermark")
        self._pipeline.close(0, in_order=False)

    def finish(self) -> ShardOutcome:
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
        return replace(self._outcome(released), has_ended=True)

    def _outcome(self, answers: pa.Table) -> ShardOutcome:
        return ShardOutcome(
            answers=answers,
            progress=self._progress[0],
            partials=self._about.blocks.partials,
            nbytes=self._about.blocks.nbytes,
            newest=self._pipeline.newest,
            promised={"end": self._pipeline.next_end},
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
        in_time = None
        if self._terms.drops_late:
            source, at = (column_of(table, name).to_numpy() for name in (SOURCE, AT))
            in_time = at >= np.array([p.at for p in self._about.promises])[source]
        self._pipeline.add(arrival_of(self._plan, table, in_time))

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
