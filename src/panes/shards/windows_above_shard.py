"""One shard of the windows above the joins of a register: a pane store for each of its queries.

Answers of queries without windows come here too, on their way to the sink, and are passed on. What
leaves is what was asked for, query by query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from panes.answers.select import projected
from panes.axis import FOREVER
from panes.nodes.joined_rows import named_windows
from panes.nodes.missed_rows import whole_windows
from panes.planning.terms import CheckedOptions
from panes.shards.many_states import ManyStates
from panes.shards.query_shard import Outcome, QueryShard
from panes.shards.shared_join_shard import ANSWERS, MISSED
from panes.shards.shared_joins import SharedJoin, SharedQuery, address
from panes.shards.state import State
from panes.sharing.failures import noted, require_none
from panes.stores import codec


@dataclass(frozen=True, slots=True)
class AboveOutcome:
    """What a batch gave: the answers of each query that has any, and sizes."""

    answers: dict[str, pa.Table]
    late: int
    rejected: int
    progress: int
    partials: int
    nbytes: int


class WindowsAboveShard:
    """A shard's part of all windows above the joins of a register, for one batch."""

    def __init__(
        self, joins: Sequence[SharedJoin], terms: CheckedOptions, state: State, *, shards: int
    ) -> None:
        self._queries = [query for shared in joins for query in shared.queries]
        self._terms, self._shards = terms, shards
        self._states = ManyStates(state)

    def take(self, packages: Sequence[bytes]) -> AboveOutcome:
        """Take in one batch."""
        sent: dict[str, list[bytes]] = {}
        for package in packages:
            key, data = address(package)
            sent.setdefault(key, []).append(data)
        answers: dict[str, pa.Table] = {}
        outcomes: list[Outcome] = []
        failing: dict[str, Exception] = {}
        for query in self._queries:
            mine = sent.get(query.key, [])
            with noted(failing, [query.name]):
                if query.windows is None:
                    tables = [codec.unpack(data)[ANSWERS] for data in mine]
                else:
                    state = self._states.of(query.key)
                    shard = QueryShard(query.windows, self._terms, state, shards=self._shards)
                    outcomes.append(shard.take(mine))
                    answered = _finished(query, outcomes[-1].answers)
                    tables = [_whole(query, sent.get(query.missed_key, []), answered)]
                found = [table for table in tables if len(table)]
                if found:
                    answers[query.name] = pa.concat_tables(found)
        require_none(failing)
        self._states.write()
        return AboveOutcome(
            answers,
            late=sum(len(o.late) for o in outcomes),
            rejected=sum(len(o.rejected) for o in outcomes),
            progress=min((o.progress for o in outcomes), default=FOREVER),
            partials=sum(o.partials for o in outcomes),
            nbytes=sum(o.nbytes for o in outcomes),
        )

    def finish(self) -> AboveOutcome:
        """Never called: the joins say in a package that there is no more to come."""
        raise AssertionError("windows above a join end when the join does")


def _whole(query: SharedQuery, missed: Sequence[bytes], answers: pa.Table) -> pa.Table:
    """Answers without those of windows that may miss rows, as packages from below say."""
    if not missed:
        return answers
    upto = max(codec.unpack(data)[MISSED].column(MISSED)[0].as_py() for data in missed)
    return whole_windows(query.plan, upto, answers)


def _finished(query: SharedQuery, lowered: pa.Table) -> pa.Table:
    """What was selected, of answers that HAVING keeps, in the windows of the join."""
    assert query.windows is not None
    assert query.plan.aggregation is not None
    answers = projected(query.windows, lowered)
    return named_windows(query.plan, query.plan.aggregation.by, answers)
