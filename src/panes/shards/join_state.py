"""What a shard of a join remembers between batches, beside the rows it stores.

It is written under one name, with the format and the identity of the join: a state of another
format or of another join is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from panes.axis import BEGINNING
from panes.join.partner_runs import PartnerRunsJoin
from panes.nodes.join_stage import JoinStage
from panes.planning.join_plan import JoinPlan
from panes.planning.terms import CheckedOptions
from panes.progress.promise import Promise
from panes.shards.join_identity import identify_join
from panes.shards.query_identity import require_same, to_table
from panes.shards.state import ABOUT, State
from panes.shards.stored_runs import StoredRuns, about_table, ledger_table
from panes.stores import codec
from panes.stores.state_format import FORMAT, format_table, require_format

_WHAT, _FORMAT = "a join", 1
_JOIN, _SOURCES, _SIDES, _RUNS = "join", "sources", "sides", "runs"


class JoinState:
    """How far the sources of a join have come, and the rows that each of its sides stores."""

    def __init__(
        self,
        join: JoinPlan,
        terms: CheckedOptions,
        state: State,
        *,
        shards: int,
        came: Sequence[int | None] = (),
    ) -> None:
        """The newest rows of sources lay where they `came` to before the state began, if known."""
        self.stage = JoinStage(join)
        self._join, self._state, self._shards = join, state, shards
        self._stored = list(_stored(self.stage, terms.lateness or 0, state))
        sources = [name for side in join.sources for name in side.source.streams]
        promised, newest = [BEGINNING] * len(sources), [BEGINNING] * len(sources)
        data = state.get(ABOUT)
        if data is not None:
            tables = codec.unpack(data)
            require_format(tables, _WHAT, _FORMAT)
            require_same(tables[_JOIN], identify_join(join, shards))
            promised = tables[_SOURCES].column("promise").to_pylist()
            newest = tables[_SOURCES].column("newest").to_pylist()
            runs = tables[_RUNS].to_pylist()
            for stored, about in zip(self._stored, tables[_SIDES].to_pylist(), strict=True):
                stored.restore(about, [run for run in runs if run["side"] == stored.name])
        named = zip(sources, promised, strict=True)
        self.promises = [Promise(terms.of(name).bound(), at) for name, at in named]
        self.newest: list[int] = newest
        for promise, at in zip(self.promises, came, strict=False) if data is None else ():
            promise.observe(np.array([] if at in (None, BEGINNING) else [at], dtype=np.int64))
        self.stage.resume(self.promised())

    def promised(self) -> dict[str, int]:
        """What is promised of each side: the least that one of its sources has promised."""
        found, first = {}, 0
        for side in self._join.sources:
            last = first + len(side.source.streams)
            found[side.name] = min(p.at for p in self.promises[first:last])
            first = last
        return found

    @property
    def progress(self) -> int:
        """What is promised of all sources together."""
        return min(p.at for p in self.promises)

    @property
    def rows(self) -> int:
        """How many rows are stored."""
        return sum(len(stored) for stored in self._stored)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return sum(stored.nbytes for stored in self._stored)

    def end(self) -> None:
        """The streams have ended.

        If they go on after all, what can be joined with nothing that was forgotten is in time.
        """
        if max(self.newest) != BEGINNING:
            for promise in self.promises:
                promise.punctuate(max(self.newest) + self._join.reach + 1)

    def write(self) -> None:
        """Put everything that is new into the state."""
        for stored in self._stored:
            stored.write()
        sources = {
            "promise": pa.array([p.at for p in self.promises], pa.int64()),
            "newest": pa.array(self.newest, pa.int64()),
        }
        self._state[ABOUT] = codec.pack(
            {
                FORMAT: format_table(_WHAT, _FORMAT),
                _JOIN: to_table(identify_join(self._join, self._shards)),
                _SOURCES: pa.table(sources),
                _SIDES: about_table(self._stored),
                _RUNS: ledger_table(self._stored),
            }
        )


def _stored(stage: JoinStage, lateness: int, state: State, depth: int = 0) -> Iterator[StoredRuns]:
    """The rows of all sides of a join and of those below, which are kept in a state from now on."""
    reach = stage.plan.partners.width + lateness
    left, right = (StoredRuns(f"{side}{depth}", reach, state) for side in ("left", "right"))
    assert not isinstance(stage.join, PartnerRunsJoin)
    stage.join.keep_in(left, right)
    yield from (left, right)
    if stage.below is not None:
        yield from _stored(stage.below, lateness, state, depth + 1)
