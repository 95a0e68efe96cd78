"""One shard above those of a register: a pane store for each query with windows above a join.

Answers that are there already come here too, on their way to the sink, and are passed on. What
leaves is what was asked for, query by query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from panes.answers.select import projected
from panes.nodes.joined_rows import named_windows
from panes.nodes.missed_rows import whole_windows
from panes.planning.terms import CheckedOptions
from panes.shards.many_states import ManyStates
from panes.shards.outcome import PartsOutcome
from panes.shards.query_shard import QueryShard
from panes.shards.register_parts import RegisterParts
from panes.shards.sent_answers import arrived, counts, sent_answers
from panes.shards.shared_join_shard import ANSWERS, MISSED
from panes.shards.shared_joins import SharedQuery, by_part, part_key
from panes.shards.state import State
from panes.sharing.failures import noted, require_none
from panes.stores import codec

PASSED_ON = part_key("passed on")
"""The key of packages with answers that are passed on."""


class AboveShard:
    """A shard's part of all windows above the joins of a register, for one batch."""

    def __init__(
        self, parts: RegisterParts, terms: CheckedOptions, state: State, *, shards: int
    ) -> None:
        self._parts, self._terms, self._shards = parts, terms, shards
        self._states = ManyStates(state)

    def take(self, packages: Sequence[bytes]) -> PartsOutcome:
        """Take in one batch."""
        sent, given = by_part(packages), PartsOutcome()
        given.sent = [one for data in sent.get(PASSED_ON, ()) for one in arrived(data)]
        given.answers = sum(counts(given.sent).values())
        failing: dict[str, Exception] = {}
        for query in (query for shared in self._parts.joins for query in shared.queries):
            with noted(failing, query.twins):
                found = [t for t in self._answers(query, sent, given) if len(t)]
                if found:
                    answers = pa.concat_tables(found)
                    content = self._parts.contents[query.name]
                    given.sent += sent_answers(content, query.twins, answers)
                    given.answers += len(query.twins) * len(answers)
        require_none(failing)
        self._states.write()
        return given

    def finish(self) -> PartsOutcome:
        """Never called: the joins say in a package that there is no more to come."""
        raise AssertionError("windows above a join end when the join does")

    def _answers(
        self, query: SharedQuery, sent: Mapping[str, Sequence[bytes]], given: PartsOutcome
    ) -> Iterator[pa.Table]:
        """What was selected: joined rows as they have come, or answers of windows."""
        mine = sent.get(query.key, [])
        if query.windows is None:
            yield from (codec.unpack(data)[ANSWERS] for data in mine)
            return
        state = self._states.of(query.key)
        outcome = QueryShard(query.windows, self._terms, state, shards=self._shards).take(mine)
        given.count(outcome)
        assert query.plan.aggregation is not None
        answers = projected(query.windows, outcome.answers)
        named = named_windows(query.plan, query.plan.aggregation.by, answers)
        yield _whole(query, sent.get(query.missed_key, []), named)


def _whole(query: SharedQuery, missed: Sequence[bytes], answers: pa.Table) -> pa.Table:
    """Answers without those of windows that may miss rows, as packages from below say."""
    if not missed:
        return answers
    upto = max(codec.unpack(data)[MISSED].column(MISSED)[0].as_py() for data in missed)
    return whole_windows(query.plan, upto, answers)
