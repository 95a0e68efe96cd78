"""Windows above the joins of a register, in the shards of the level above these.

Answers of joins without windows above come here too, on their way to the sink.
"""

from __future__ import annotations

import pyarrow as pa

from panes.answers.select import projected
from panes.nodes.joined_rows import named_windows
from panes.nodes.missed_rows import whole_windows
from panes.nodes.promised_answers import as_rows, promised_above
from panes.planning.terms import CheckedOptions
from panes.shards.handed_on import HandedOn
from panes.shards.many_states import ManyStates
from panes.shards.outcome import PartsOutcome
from panes.shards.packages import Packages
from panes.shards.query_shard import QueryShard
from panes.shards.register_parts import RegisterParts
from panes.shards.sent_answers import sent_answers
from panes.shards.shared_join_shard import ANSWERS, MISSED, Sent
from panes.shards.shared_joins import SharedQuery
from panes.sharing.failures import noted


class AboveJoins:
    """A shard's part of all windows above the joins of the level below, for one batch."""

    def __init__(
        self, parts: RegisterParts, states: ManyStates, *, shards: int, level: int
    ) -> None:
        self._parts, self._states, self._shards, self._level = parts, states, shards, level
        self._queries = [q for s in parts.joins if s.level == level - 1 for q in s.queries]
        self._terms = CheckedOptions(max_ahead=None, max_answers=parts.join_terms.max_answers)

    def step(self, given: PartsOutcome, sent: Sent, failing: dict[str, Exception]) -> None:
        """Take in one batch."""
        for query in self._queries:
            with noted(failing, query.twins):
                mine = sent(query.key)
                answers = mine.named(ANSWERS)
                if query.windows is not None:
                    answers = [self._answers(query, mine, sent(query.missed_key), given)]
                for table in (t for t in answers if len(t) and not query.inner):
                    content = self._parts.contents[query.name]
                    given.sent += sent_answers(content, query.twins, table)
                    given.answers += len(query.twins) * len(table)

    def _answers(
        self, query: SharedQuery, mine: Packages, missed: Packages, given: PartsOutcome
    ) -> pa.Table:
        """What windows answer; those who read them are handed it on."""
        assert query.windows is not None
        assert query.plan.aggregation is not None
        state = self._states.of(query.key)
        shard = QueryShard(query.windows, self._terms, state, shards=self._shards)
        before = shard.next_end
        outcome = shard.take_opened(mine)
        given.count(outcome)
        answers = projected(query.windows, outcome.answers)
        answers = named_windows(query.plan, query.plan.aggregation.by, answers)
        upto = [table.column(MISSED)[0].as_py() for table in missed.named(MISSED)]
        if upto:
            answers = whole_windows(query.plan, max(upto), answers)
        if query.inner:
            handed = HandedOn(
                as_rows(answers),
                promised_above(query.plan, outcome.promised["end"]),
                promised_above(query.plan, before),
                has_ended=outcome.has_ended,
                is_unknown=bool(upto),
            )
            given.packages += self._parts.handed_on(query.key, handed, self._level, self._shards)
        return answers
