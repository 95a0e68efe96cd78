"""One shard of a register: the parts of one level over some keys, at a host that keeps its state.

    packages --by key--> windows that share panes, queries alone --> answers, rows set aside
                    |--> joins                     --> packages for windows above
                    '--> parts that others read    --> packages for these

What reads answers or joined rows is in the shards of another level, since rows go where their
groups are. All answers take this way: those that are there already are passed on.

Between batches a shard is bytes under names, which begin with the key of their part
(`panes.shards.many_states`). A part that comes has a state of its own from then on, and that of one
that has gone is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from panes.axis import BEGINNING, FOREVER
from panes.shards.above_joins import AboveJoins
from panes.shards.distinct_shard import DistinctShard
from panes.shards.handed_on import (
    ONWARD,
    handed_on_by_rows,
    handed_on_by_windows,
    sent_onward,
)
from panes.shards.many_states import ManyStates
from panes.shards.missed_queries import MissedQueries
from panes.shards.names import ENDED, EVERY_SOURCE
from panes.shards.outcome import PartsOutcome, ShardOutcome
from panes.shards.packages import Packages
from panes.shards.query_shard import QueryShard
from panes.shards.register_parts import (
    ALL_STATE,
    AloneQuery,
    DifferentRows,
    RegisterParts,
    StreamWindows,
)
from panes.shards.register_shard import RegisterShard
from panes.shards.register_state import newest_row
from panes.shards.sent_answers import (
    LATE,
    PASSED_ON,
    REJECTED,
    arrived,
    counts,
    passed_on,
    sent_answers,
    sent_portions,
    sent_set_aside,
    set_aside_content,
    with_ticks,
)
from panes.shards.shard_of import shards_of
from panes.shards.shared_join_shard import Sent, SharedJoinShard
from panes.shards.shared_joins import EVERY_PART, Source, addressed, by_part
from panes.shards.state import ABOUT, State
from panes.sharing.failures import noted, require_none
from panes.stores import codec

PARTS = "queries"
"""The part of a state that says what each part has missed."""


class PartsShard:
    """A shard's part of a register at one of its levels, for one batch."""

    def __init__(
        self, parts: RegisterParts, state: State, *, shards: int, level: int = 1, levels: int = 1
    ) -> None:
        self._parts, self._shards = parts, shards
        self._level, self._levels = level, levels
        self._states = ManyStates(state)
        self._failing: dict[str, Exception] = {}
        before: dict[Source, int] = {}
        self._windows: list[tuple[StreamWindows, RegisterShard]] = []
        new: list[tuple[StreamWindows, State]] = []
        for one in parts.windows if level == 1 else ():
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

    def take(self, packages: Sequence[bytes]) -> PartsOutcome:
        """Take in one batch."""
        sent = by_part(packages)
        given = PartsOutcome()
        given.packages = [sent_onward(data, self._level) for data in sent.pop(ONWARD, ())]
        given.sent = [one for data in sent.pop(PASSED_ON, ()) for one in arrived(data)]
        given.answers = sum(counts(given.sent).values())
        opened = {key: Packages.of(data) for key, data in sent.items()}
        of_all = opened.pop(EVERY_PART, Packages())
        return self._step(given, lambda key: opened.get(key, Packages()) + of_all)

    def finish(self) -> PartsOutcome:
        """The streams have ended; shards further up are told so by those below."""
        assert self._level == 1
        return self._step(PartsOutcome(), None)

    def _step(self, given: PartsOutcome, sent: Sent | None) -> PartsOutcome:
        """A batch, as it was sent to each part; None: there is no more."""
        self._tell_streams(given, sent)
        open_from = {w.stream: FOREVER for w, _ in self._windows}
        for rows in (one for one in self._parts.distinct if one.level == self._level):
            with noted(self._failing, rows.names):
                self._step_rows(given, rows, None if sent is None else sent(rows.key))
        for query in (one for one in self._parts.alone if one.level == self._level):
            with noted(self._failing, query.names):
                mine = None if sent is None else sent(query.key)
                opened = self._step_alone(given, query, mine)
                for stream in query.streams:
                    open_from[stream] = min(open_from.get(stream, FOREVER), opened)
        for windows, shard in self._windows:
            with noted(self._failing, ()):
                if sent is None:
                    outcome = shard.finish()
                else:
                    outcome = shard.take_opened(sent(windows.key), open_from[windows.stream])
                self._give_windows(given, windows, outcome)
        joins = SharedJoinShard(
            self._parts, self._states, self._missed, self._failing,
            shards=self._shards, level=self._level,
        )  # fmt: skip
        joins.step(given, sent)
        if sent is not None and self._level > 1:
            above = AboveJoins(self._parts, self._states, shards=self._shards, level=self._level)
            above.step(given, sent, self._failing)
        require_none(self._failing)
        self._missed.write()
        self._states.write()
        if self._level < self._levels and given.sent:
            to = int(shards_of([pa.array([given.sent[0].package])], self._shards)[0])
            given.packages.append((to, addressed(PASSED_ON, passed_on(given.sent))))
            given.sent = []
        return given

    def _tell_streams(self, given: PartsOutcome, sent: Sent | None) -> None:
        """Tell parts further up of the streams that they read: of rows that have gone by, and what
        is said of all sources, which nobody else knows.
        """
        if self._level > 1:
            return
        promise = ENDED if sent is None else sent(EVERY_PART).highest("promise").get(EVERY_SOURCE)
        for reading in self._parts.streams_above:
            with noted(self._failing, reading.names):
                newest = self._missed.newest((reading.stream, reading.column))
                given.packages += reading.told(newest, promise, self._shards)

    def _step_rows(
        self, given: PartsOutcome, rows: DifferentRows, packages: Packages | None
    ) -> None:
        """Step different rows, and hand on those that are new."""
        mine, state = packages or Packages(), self._states.of(rows.key)
        if self._level > 1:
            self._missed.know(rows.key, rows.sources, mine)
        newest = self._missed.newest(rows.source)
        self._missed.upto(rows.key, [[rows.source]])
        if self._level == 1:
            self._note_newest(rows.sources, mine)
        shard = DistinctShard(rows.schema, rows.within, rows.terms, state, shards=self._shards)
        outcome = shard.finish() if packages is None else shard.take_opened(mine)
        given.count(outcome, sets_aside=False)
        column = (rows.plan.placing.column or "").lower()
        handed = handed_on_by_rows(rows.schema, column, outcome, newest)
        given.packages += self._parts.handed_on(rows.key, handed, self._level, self._shards)

    def _step_alone(self, given: PartsOutcome, query: AloneQuery, packages: Packages | None) -> int:
        """Step a query alone; gives the first position that an open window held before."""
        mine, state = packages or Packages(), self._states.of(query.key)
        if self._level > 1:
            self._missed.know(query.key, query.sources, mine)
        after = max(self._missed.upto(query.key, [[source] for source in query.sources]))
        shard = QueryShard(query.plan, query.terms, state, shards=self._shards, after=after)
        open_from, before = shard.open_from, shard.next_end
        if self._level == 1:
            self._note_newest(query.sources, mine)
        outcome = shard.finish() if packages is None else shard.take_opened(mine)
        given.count(outcome, sets_aside=False)  # the stream tells of rows that come late
        if query.inner:
            handed = handed_on_by_windows(query.plan, outcome, before)
            given.packages += self._parts.handed_on(query.key, handed, self._level, self._shards)
        else:
            given.answers += len(query.names) * len(outcome.answers)
            answers = with_ticks(outcome.answers)
            given.sent += sent_answers(self._parts.contents[query.names[0]], query.names, answers)
        return open_from

    def _note_newest(self, sources: Sequence[Source], packages: Packages) -> None:
        """How far the rows of a query's sources have come."""
        newest = dict.fromkeys(sources, BEGINNING)
        for number, high in packages.highest().items():
            if number >= 0:
                newest[sources[number]] = max(newest[sources[number]], high)
        self._missed.came(newest)

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
