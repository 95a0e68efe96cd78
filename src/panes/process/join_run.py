"""A join while it runs in this process: its sides are admitted, and its rows joined.

Each side is admitted as the stream of any query is: placed, filtered, late rows set aside. A
`JoinStage` joins what counts. What becomes of joined rows is said elsewhere
(`panes.process.join_answers`), so that several queries may share one join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from panes.axis import BEGINNING, parse_instant
from panes.join.rule import Arrivals
from panes.nodes.fold_stage import FoldStage
from panes.nodes.gate import Admitted, Gate
from panes.nodes.inputs import Inputs
from panes.nodes.join_stage import JoinStage
from panes.nodes.promises import Promises
from panes.nodes.set_aside import SetAside
from panes.planning.join_plan import SourcePlan
from panes.planning.join_query_plan import JoinQueryPlan
from panes.planning.join_terms import COUNTED, FORGOTTEN, require_streamable_join
from panes.planning.terms import CheckedOptions, StreamOptions, check_options, require_terms
from panes.process.node import Instant, position_of
from panes.process.watched import Watcher


class JoinRun:
    """The sides of a join, what they have promised, and the rows that may still be joined.

    A `watcher` is told of the batches of every stream once, however many sides read it; `tells` are
    the streams of which it is told, None: all.
    """

    UNCHANGED = frozenset({"watcher"})

    def __init__(self, plan: JoinQueryPlan, run: StreamOptions, set_aside: SetAside) -> None:
        self.join = plan.join
        if not run.bounded:
            require_streamable_join(plan)
        asked = self.join.right.plan.query
        self._terms = check_options(asked, run)
        require_terms(run, asked, self.join.axis.kind)
        self._sides = [
            JoinSide(source, self._terms, is_bounded=run.bounded) for source in self.join.sources
        ]
        self._set_aside = set_aside
        self.watcher: Watcher | None = None
        self.tells: frozenset[str] | None = None
        fold = None if plan.aggregation is None else plan.aggregation.fold
        self.stage = JoinStage(self.join) if fold is None else FoldStage(self.join, fold)

    @property
    def streams(self) -> frozenset[str]:
        """The streams that any side reads."""
        return frozenset(stream for side in self._sides for stream in side.streams)

    def promised(self) -> dict[str, int]:
        """What is promised of each side."""
        return {side.plan.name: side.promised for side in self._sides}

    def reached(self) -> dict[str, int]:
        """The same; after the end, how far each side had come."""
        return {
            side.plan.name: side.promised if side.ended_at is None else side.ended_at
            for side in self._sides
        }

    def begin_behind(self, newest: Sequence[Mapping[str, int]], told: Mapping[str, int]) -> None:
        """Rows came before, for each side up to a position of its streams, and promises too.

        So nothing counts as in time that comes behind them.
        """
        for side, positions in zip(self._sides, newest, strict=True):
            side.observe(positions)
        for name, at in told.items():
            for side in self._sides:
                if name in side.streams:
                    side.punctuate(name, at, "punctuation")
        self._joined({})  # nothing is stored, and what these promises forget has been forgotten

    def take(
        self,
        rows: Mapping[str, pa.Table],
        told: Mapping[str, Instant],
        now: int,
        *,
        beats: bool = False,
        ends: bool = False,
    ) -> pa.Table:
        """Take in batches and promises; gives joined rows, or answers of a fold.

        With `beats`, the clock promises something too; with `ends`, no more rows come.
        """
        self.require_instants(told)
        arrived = self._admit({n: t for n, t in rows.items() if n in self.streams}, now)
        if rows or beats or ends:
            self._beat(now)
        for name, instant in told.items():
            for side in self._sides:
                if name in side.streams:
                    side.punctuate(name, parse_instant(instant), "punctuation")
        if ends:
            for side in self._sides:
                side.end()
        return self._joined(arrived)

    def _admit(self, rows: Mapping[str, pa.Table], now: int) -> dict[str, list[Arrivals]]:
        """The rows of each side that count."""
        arrived = {}
        untold = self.streams if self.tells is None else self.tells
        for side in self._sides if rows else ():
            name = side.plan.name
            admitted = side.admit(rows, now, self.stage.open_from(name), self._set_aside)
            if self.watcher is not None:
                self.watcher.took([batch for batch in admitted if batch.stream in untold])
            untold = untold - frozenset(side.streams)
            arrived[name] = side.arrivals(admitted)
        return arrived

    def require_instants(self, promised: Mapping[str, Instant]) -> None:
        """Refuse promises that are no positions of the streams of this join."""
        for name, instant in promised.items():
            if name in self.streams:
                position_of(name, instant, self.join.axis.kind)

    def _beat(self, now: int) -> None:
        if self._terms.heartbeat is not None:
            at = self._terms.heartbeat.promise(now)
            for side in self._sides:
                for name in side.streams:
                    if name not in self._terms.inside:
                        side.punctuate(name, at, "heartbeat")

    def _joined(self, rows: Mapping[str, Sequence[Arrivals]]) -> pa.Table:
        promised = self.promised()
        for side in self._sides:
            side.forget(promised[side.plan.name])
        if isinstance(self.stage, FoldStage):
            return self.stage.answers(rows, promised)
        return self.stage.step(rows, promised)


class JoinSide:
    """One side while the query runs: its columns, what it has promised, and its gate."""

    def __init__(self, plan: SourcePlan, terms: CheckedOptions, *, is_bounded: bool) -> None:
        self.plan, self._terms = plan, terms
        query = plan.plan.query
        self._inputs = Inputs.of(query, terms, is_bounded=is_bounded)
        self._promises = Promises(query, terms)
        self._arrived = 0
        self.newest = BEGINNING
        self.ended_at: int | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that this side reads."""
        return self.plan.source.streams

    @property
    def promised(self) -> int:
        """No later row of this side lies before."""
        return self._promises.melded()[0]

    def admit(
        self,
        tables: Mapping[str, pa.Table],
        now: int,
        open_from: int,
        set_aside: SetAside,
    ) -> Sequence[Admitted]:
        """Take in batches of its streams."""
        mine = {name: tables[name] for name in self.streams if name in tables}
        inputs = self._inputs.after(mine)
        promised = self._promises.known(inputs.chains)
        gate = Gate(
            self.plan.plan, self._terms, now, promised, open_from,
            counted=COUNTED, closed=FORGOTTEN,
        )  # fmt: skip
        admitted = gate.admit_all(mine, inputs.chains, self._arrived)
        self._inputs = inputs
        self._promises.settle(inputs.chains)
        for batch in admitted:
            self._arrived += batch.rows
            self.newest = max(self.newest, int(batch.arrival.at.max(initial=BEGINNING)))
            inputs.chains[batch.stream].settle()
            set_aside.add(batch.late, batch.rejected, ahead=batch.ahead)
            self._promises.observe(batch.stream, batch.placed, batch.promise)
        return admitted

    def arrivals(self, admitted: Sequence[Admitted]) -> list[Arrivals]:
        """The rows of batches that count."""
        defining = self.plan.plan.defining_columns
        return [
            Arrivals(b.arrival.at, (), tuple(b.arrival.columns[c] for c in defining))
            for b in admitted
            if len(b.arrival.at)
        ]

    def punctuate(self, stream: str, at: int, why: str) -> None:
        """A stream of this side promises that no row before `at` will come."""
        self._promises.punctuate(stream, at, why, self._inputs.chains)

    def observe(self, newest: Mapping[str, int]) -> None:
        """Rows up to these positions of its streams have come before."""
        for stream, at in newest.items():
            self._promises.observe(stream, np.array([at]), None)

    def end(self) -> None:
        """No stream of this side will send any more."""
        newest = self.newest + (self.newest > BEGINNING)
        self.ended_at = max(self.promised, newest)
        self._promises.end()

    def forget(self, progress: int) -> None:
        """Nothing before `progress` will come out of what FROM makes of the streams."""
        for chain in self._inputs.chains.values():
            chain.forget(progress)
