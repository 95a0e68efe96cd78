"""One shard of a register: all its parts over some of the keys, at a host that keeps its state.

    packages --by key--> windows that share panes, queries alone --> answers, rows set aside
                    '--> joins --> packages for windows above

Windows above joins are answered by other shards (`panes.shards.above_shard`), since joined rows go
where their groups are. In a register that may have joins all answers take this way, on which those
that are there already are passed on.

Between batches a shard is bytes under names, which begin with the key of their part
(`panes.shards.many_states`). A part that comes has a state of its own from then on, and that of one
that has gone is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from panes.axis import BEGINNING, FOREVER
from panes.shards.above_shard import PASSED_ON
from panes.shards.many_states import ManyStates
from panes.shards.missed_queries import MissedQueries, Source
from panes.shards.outcome import PartsOutcome, ShardOutcome
from panes.shards.packages import Packages
from panes.shards.query_shard import QueryShard
from panes.shards.register_parts import ALL_STATE, AloneQuery, RegisterParts, StreamWindows
from panes.shards.register_shard import RegisterShard
from panes.shards.register_state import newest_row
from panes.shards.sent_answers import (
    LATE,
    REJECTED,
    passed_on,
    sent_answers,
    sent_portions,
    sent_set_aside,
    set_aside_content,
    with_ticks,
)
from panes.shards.shard_of import shards_of
from panes.shards.shared_join_shard import Sent, SharedJoinShard
from panes.shards.shared_joins import EVERY_PART, addressed, by_part
from panes.shards.state import ABOUT, State
from panes.sharing.failures import noted, require_none
from panes.stores import codec

PARTS = "queries"
"""The part of a state that says what each part has missed."""


class PartsShard:
    """A shard's part of a register, for one batch; with `above`, so many shards above it."""

    def __init__(
        self, parts: RegisterParts, state: State, *, shards: int, above: int | None = None
    ) -> None:
        self._parts, self._above, self._shards = parts, above, shards
        self._states = ManyStates(state)
        self._failing: dict[str, Exception] = {}
        before: dict[Source, int] = {}
        self._windows: list[tuple[StreamWindows, RegisterShard]] = []
        new: list[tuple[StreamWindows, State]] = []
        for one in parts.windows:
            own = state if one.key == ALL_STATE else self._states.of(one.key)
            if one.key != ALL_STATE and own.get(ABOUT) is None:
                new.append((one, own))
                continue
            shard = RegisterShard(one.definition, one.terms, own)
            self._windows.append((one, shard))
            before[one.stream, one.column] = shard.newest
        self._missed = MissedQueries(self._states.of(PARTS), before)
        for one, own in new:
            with noted(self._failing, one.names):
                [after] = self._missed.upto(one.key, [[(one.stream, one.column)]])
                shard = RegisterShard(one.definition, one.terms, own, after)
                self._windows.append((one, shard))
        self._alone = [found for query in parts.alone for found in self._alone_shard(query)]
        self._joins = SharedJoinShard(
            parts.joins, parts.join_terms, self._states, self._missed, self._failing,
            shards=shards, above=above or 0,
        )  # fmt: skip

    def take(self, packages: Sequence[bytes]) -> PartsOutcome:
        """Take in one batch."""
        opened = {key: Packages.of(data) for key, data in by_part(packages).items()}
        of_all = opened.get(EVERY_PART, Packages())
        return self._step(lambda key: opened.get(key, Packages()) + of_all)

    def finish(self) -> PartsOutcome:
        """The streams have ended."""
        return self._step(None)

    def _step(self, sent: Sent | None) -> PartsOutcome:
        """A batch, as it was sent to each part; None: there is no more."""
        given, open_from = PartsOutcome(), {w.stream: FOREVER for w, _ in self._windows}
        for query, alone in self._alone:
            mine = Packages() if sent is None else sent(query.key)
            self._note_newest(query.sources, mine)
            for stream in query.streams:
                open_from[stream] = min(open_from.get(stream, FOREVER), alone.open_from)
            with noted(self._failing, [query.name]):
                outcome = alone.finish() if sent is None else alone.take_opened(mine)
                self._give(given, query, outcome)
        for windows, shard in self._windows:
            with noted(self._failing, ()):
                if sent is None:
                    outcome = shard.finish()
                else:
                    outcome = shard.take_opened(sent(windows.key), open_from[windows.stream])
                self._give_windows(given, windows, outcome)
        self._joins.step(given, sent)
        require_none(self._failing)
        self._missed.write()
        self._states.write()
        if self._above is not None and given.sent:
            to = int(shards_of([pa.array([given.sent[0].package])], self._above)[0])
            given.packages.append((to, addressed(PASSED_ON, passed_on(given.sent))))
            given.sent = []
        return given

    def _alone_shard(self, query: AloneQuery) -> Iterator[tuple[AloneQuery, QueryShard]]:
        """The shard of a query alone, unless it cannot be answered."""
        with noted(self._failing, [query.name]):
            after = max(self._missed.upto(query.key, [[source] for source in query.sources]))
            state = self._states.of(query.key)
            shard = QueryShard(query.plan, query.terms, state, shards=self._shards, after=after)
            yield query, shard

    def _note_newest(self, sources: Sequence[Source], packages: Packages) -> None:
        """How far the rows of a query's sources have come."""
        newest = dict.fromkeys(sources, BEGINNING)
        for number, high in packages.highest().items():
            if number >= 0:
                newest[sources[number]] = max(newest[sources[number]], high)
        self._missed.came(newest)

    def _give(self, given: PartsOutcome, query: AloneQuery, outcome: ShardOutcome) -> None:
        """Send what a query alone gave; rows that come late are told of once, by the stream."""
        content = self._parts.contents[query.name]
        given.answers += len(outcome.answers)
        given.sent += sent_answers(content, [query.name], with_ticks(outcome.answers))
        given.count(outcome, sets_aside=False)

    def _give_windows(
        self, given: PartsOutcome, windows: StreamWindows, outcome: ShardOutcome
    ) -> None:
        """Send what the windows of a stream gave, and its late and rejected rows."""
        given.answers += sum(len(portion.table) for portion in outcome.portions)
        given.sent += sent_portions(outcome.portions)
        given.sent += sent_set_aside(set_aside_content(LATE, windows.number), outcome.late)
        given.sent += sent_set_aside(set_aside_content(REJECTED, windows.number), outcome.rejected)
        given.count(outcome)


def newest_of(windows: Mapping[str, Source], state: State) -> dict[Source, int]:
    """Where the newest rows lie that the windows of streams know of, by the keys of these."""
    states, found = ManyStates(state), {}
    for key, source in windows.items():
        data = (state if key == ALL_STATE else states.of(key)).get(ABOUT)
        if data is not None:
            found[source] = newest_row(codec.unpack(data))
    return found
