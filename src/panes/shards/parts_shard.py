"""One shard of a register: all its parts over some of the keys, at a host that keeps its state.

    packages --by key--> windows that share panes, queries alone --> answers, rows set aside
                    '--> joins --> packages for windows above

Windows above joins are answered by other shards (`AboveShard`), since joined rows go where their
groups are. In a register that may have joins all answers take this way, on which those that are
there already are passed on.

Between batches a shard is bytes under names, which begin with the key of their part
(`panes.shards.many_states`). A part that comes has a state of its own from then on, and that of one
that has gone is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from panes.axis import BEGINNING, FOREVER
from panes.planning.terms import CheckedOptions
from panes.shards.many_states import ManyStates
from panes.shards.marks import read_marks
from panes.shards.missed_queries import MissedQueries, Source
from panes.shards.query_shard import Outcome, QueryShard
from panes.shards.register_parts import ALL_STATE, AloneQuery, RegisterParts, StreamWindows
from panes.shards.register_shard import RegisterOutcome, RegisterShard
from panes.shards.register_state import newest_row
from panes.shards.sent_answers import (
    LATE,
    REJECTED,
    SentAnswers,
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
from panes.shards.shared_join_shard import JoinsOutcome, SharedJoinShard, Tables
from panes.shards.shared_joins import EVERY_PART, address, addressed, part_key
from panes.shards.state import ABOUT, State
from panes.shards.windows_above_shard import WindowsAboveShard
from panes.sharing.failures import QueriesFailed, noted, require_none
from panes.stores import codec

PARTS = "queries"
"""The part of a state that says what each part has missed."""
_PASSED_ON = part_key("passed on")


class PartSizes(Protocol):
    """What every part tells of itself."""

    @property
    def progress(self) -> int: ...
    @property
    def partials(self) -> int: ...
    @property
    def nbytes(self) -> int: ...


@dataclass(slots=True)
class PartsOutcome:
    """What a batch gave: answers on their way to sinks, packages for shards above, and sizes."""

    sent: list[SentAnswers] = field(default_factory=list)
    packages: list[tuple[int, bytes]] = field(default_factory=list)
    answers: int = 0
    late: int = 0
    rejected: int = 0
    progress: int = FOREVER
    partials: int = 0
    nbytes: int = 0
    newest: int = BEGINNING
    late_from: int = FOREVER

    def count(self, part: PartSizes, *, late: int = 0, rejected: int = 0) -> None:
        """Add the sizes of what one part gave, and the rows that it set aside."""
        self.progress = min(self.progress, part.progress)
        self.partials += part.partials
        self.nbytes += part.nbytes
        self.newest = max(self.newest, getattr(part, "newest", BEGINNING))
        self.late += late
        self.rejected += rejected


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
        opened: dict[str, list[Tables]] = {}
        for package in packages:
            key, data = address(package)
            opened.setdefault(key, []).append(codec.unpack(data))
        of_all, given = opened.get(EVERY_PART, []), PartsOutcome()
        open_from = {w.stream: FOREVER for w, _ in self._windows}
        for query, alone in self._alone:
            mine = [*opened.get(query.key, ()), *of_all]
            self._note_newest(query.sources, mine)
            for stream in query.streams:
                open_from[stream] = min(open_from.get(stream, FOREVER), alone.open_from)
            with noted(self._failing, [query.name]):
                self._give(given, query, alone.take_opened(mine))
        for windows, shard in self._windows:
            mine = [*opened.get(windows.key, ()), *of_all]
            with noted(self._failing, ()):
                self._give_windows(
                    given, windows, shard.take_opened(mine, open_from[windows.stream])
                )
        return self._outcome(given, self._joins.take(opened, of_all))

    def finish(self) -> PartsOutcome:
        """The streams have ended."""
        given = PartsOutcome()
        for query, alone in self._alone:
            self._note_newest(query.sources, ())
            with noted(self._failing, [query.name]):
                self._give(given, query, alone.finish())
        for windows, shard in self._windows:
            with noted(self._failing, ()):
                self._give_windows(given, windows, shard.finish())
        return self._outcome(given, self._joins.finish())

    def _alone_shard(self, query: AloneQuery) -> Iterator[tuple[AloneQuery, QueryShard]]:
        """The shard of a query alone, unless it cannot be answered."""
        with noted(self._failing, [query.name]):
            after = max(self._missed.upto(query.key, [[source] for source in query.sources]))
            state = self._states.of(query.key)
            shard = QueryShard(query.plan, query.terms, state, shards=self._shards, after=after)
            yield query, shard

    def _note_newest(self, sources: Sequence[Source], opened: Sequence[Tables]) -> None:
        """How far the rows of a query's sources have come."""
        newest = dict.fromkeys(sources, BEGINNING)
        for tables in opened:
            for number, mark in read_marks(tables).items():
                if number >= 0 and mark.high is not None:
                    newest[sources[number]] = max(newest[sources[number]], mark.high)
        self._missed.came(newest)

    def _give(self, given: PartsOutcome, query: AloneQuery, outcome: Outcome) -> None:
        """Send what a query alone gave; rows that come late are told of once, by the stream."""
        content = self._parts.contents[query.name]
        given.answers += len(outcome.answers)
        given.sent += sent_answers(content, [query.name], with_ticks(outcome.answers))
        given.count(outcome)

    def _give_windows(
        self, given: PartsOutcome, windows: StreamWindows, outcome: RegisterOutcome
    ) -> None:
        """Send what the windows of a stream gave, and its late and rejected rows."""
        given.answers += sum(len(portion.table) for portion in outcome.answers)
        given.sent += sent_portions(outcome.answers)
        given.sent += sent_set_aside(set_aside_content(LATE, windows.number), outcome.late)
        given.sent += sent_set_aside(set_aside_content(REJECTED, windows.number), outcome.rejected)
        given.late_from = min(given.late_from, outcome.late_from)
        late, rejected = (sum(map(len, some)) for some in (outcome.late, outcome.rejected))
        given.count(outcome, late=late, rejected=rejected)

    def _outcome(self, given: PartsOutcome, joined: JoinsOutcome) -> PartsOutcome:
        require_none(self._failing)
        given.packages += joined.packages
        for outcome in joined.outcomes:
            given.answers += len(outcome.answers)
            given.count(outcome, late=len(outcome.late), rejected=len(outcome.rejected))
        self._missed.write()
        self._states.write()
        if self._above is not None and given.sent:
            to = int(shards_of([pa.array([given.sent[0].package])], self._above)[0])
            given.packages.append((to, addressed(_PASSED_ON, passed_on(given.sent))))
            given.sent = []
        return given


def newest_of(windows: Mapping[str, Source], state: State) -> dict[Source, int]:
    """Where the newest rows lie that the windows of streams know of, by the keys of these."""
    states, found = ManyStates(state), {}
    for key, source in windows.items():
        data = (state if key == ALL_STATE else states.of(key)).get(ABOUT)
        if data is not None:
            found[source] = newest_row(codec.unpack(data))
    return found


class AboveShard:
    """One shard above those of a register, for one batch: windows above joins, all answers."""

    def __init__(
        self, parts: RegisterParts, terms: CheckedOptions, state: State, *, shards: int
    ) -> None:
        self._parts = parts
        self._windows = WindowsAboveShard(parts.joins, terms, state, shards=shards)

    def take(self, packages: Sequence[bytes]) -> PartsOutcome:
        """Take in one batch."""
        queries = {q.name: q for shared in self._parts.joins for q in shared.queries}
        try:
            above = self._windows.take(packages)
        except QueriesFailed as failed:
            found = failed.reasons.items()
            raise QueriesFailed({n: why for of, why in found for n in queries[of].twins}) from None
        given = PartsOutcome()
        for package in packages:
            key, data = address(package)
            if key == _PASSED_ON:
                given.sent += arrived(data)
        passed = sum(counts(given.sent).values())
        for name, table in above.answers.items():
            twins = queries[name].twins
            given.sent += sent_answers(self._parts.contents[name], twins, table)
            given.answers += len(twins) * len(table)
        given.answers += passed
        given.count(above, late=above.late, rejected=above.rejected)
        return given

    def finish(self) -> PartsOutcome:
        """Never called: shards below say in a package that there is no more to come."""
        raise AssertionError("windows above a join end when the join does")
