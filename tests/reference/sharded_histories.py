"""The histories of a register, over shards: every batch finds nothing but bytes of the one before.

What is not there without Spark is left out: sinks, saving, questions for rows (`tests.shards` has
histories of those). A query that fails is found and set aside as the driver does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis.stateful import invariant

from panes.errors import PanesError
from panes.planning.terms import StreamOptions
from panes.sharing.failures import QueriesFailed, failed_reading
from tests.reference.alone import SCHEMA
from tests.reference.histories import Histories
from tests.sharded_register import ShardedRegister

Given = dict[str, pa.Table]


class Driver:
    """A sharded register with what a driver does for it, under the names of one process."""

    def __init__(self, **run: Any) -> None:
        self.sharded = ShardedRegister("t", StreamOptions(**run), SCHEMA)
        self.queries, self.ask = self.sharded.queries, self.sharded.ask
        self._told: dict[str, int | None] | None = None

    @property
    def failed(self) -> dict[str, str]:
        return {name: failed.reason for name, failed in self.sharded._queries.failed.items()}

    def exact_from(self, name: str) -> int | None:
        if self._told is None:
            self._told = self.sharded.exact_froms()
        return self._told[name]

    def remove(self, name: str) -> None:
        self._told = None
        self.sharded.remove(name)

    def add(self, name: str, text: str, deadline: object = None) -> None:
        self._told = None
        self.sharded.add(name, text)
        self.sharded._queries.failed.pop(name, None)

    def put_back(self, name: str) -> None:
        self.add(name, self.sharded._queries.failed[name].text)

    def push(self, batch: pa.Table) -> Given:
        return self._run(lambda: self.sharded.push(batch), batch)

    def punctuate(self, at: int) -> Given:
        return self._run(lambda: self.sharded.punctuate(at), SCHEMA.empty_table())

    def finish(self) -> Given:
        return self.sharded.finish()

    def _run(self, step: Callable[[], Given], batch: pa.Table) -> Given:
        """A batch, again and again without the queries that fail of it; states as they were."""
        self._told = None
        while True:
            before = [dict(state) for state in self.sharded.states]
            try:
                return step()
            except QueriesFailed as failed:
                reasons = failed.reasons
            except PanesError:
                reasons = self._failed_reading(batch)
                if not reasons:
                    raise
            self.sharded.states = before
            for name, reason in reasons.items():
                self.sharded._queries.set_aside(name, reason)
            self.sharded._definition = None

    def _failed_reading(self, batch: pa.Table) -> dict[str, object]:
        at = batch["at"].to_numpy()
        stores = self.sharded._queries.stores.values()
        return {n: e for s in stores for n, e in failed_reading(s, (), at, batch).items()}


class ShardedHistories(Histories):
    """The same histories of a register whose panes are spread over shards."""

    READS_DROPPED = True
    ASIDE = ("ask", "ask", "forget")

    def opened(self) -> Driver:
        self.is_bound = True
        return Driver(lateness=self.lateness, late="drop" if self.drops else "open")

    def step_aside(self, data: Any) -> None:
        """Processes that have run a shard are gone, or still there."""
        self.reg.sharded.forgets = not self.reg.sharded.forgets
        super().step_aside(data)

    def take_in(self, batch: Any) -> None:
        if self.lives:
            super().take_in(batch)

    def promise(self, at: int) -> None:
        if self.lives:
            super().promise(at)

    def it_is_empty(self) -> None:
        """The next batch may still find panes that no window needs."""

    def took(self, given: Given) -> None:
        """There is no sink."""

    def ordered(self, lines: list[list[Any]]) -> list[list[Any]]:
        """Shards answer one after the other, so keys come in any order."""
        return sorted(lines, key=str)

    @invariant()
    def it_says_what_is_so(self) -> None:
        assert self.reg.queries() == {n: life.question.text for n, life in self.lives.items()}
        assert self.reg.failed.keys() == self.failed.keys()

    @invariant()
    def late_rows_are_those_that_broke_a_promise(self) -> None:
        assert sum(map(len, self.reg.sharded.late)) == len(self.late)
