"""The parts of a register, as tasks and shards get them: what runs beside what.

    windows of a stream   All queries whose windows share panes, with one store for each GROUP BY.
    a query alone         A query that shares no panes: windows of rows, landmark and per-row
                          windows, unions, another axis column, EMIT EARLY, windows over windows.
    a join                All queries over one join, which is run once.

Every part has a key, which names its part of a shard's state and the packages that are sent to it.
It has a level, too: parts that read nothing but streams are at level 1, and others above the parts
whose answers they read. The shards of a level send what they give to those of the next.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from panes.nodes.promised_answers import column_read
from panes.nodes.promised_columns import placed_by
from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions
from panes.shards.handed_on import HandedOn, Making, PartReading, StreamAbove
from panes.shards.join_keys import shard_keys
from panes.shards.query_filler import filler_of
from panes.shards.recall import Recall
from panes.shards.register_shard import Definition
from panes.shards.sent_rows import RowFiller, rows_of_schema, rows_of_side
from panes.shards.shared_joins import EVERY_PART, SharedJoin, Source

ALL_STATE = "-" * len(EVERY_PART)
"""The key of the windows of the one stream of a register."""


@dataclass(frozen=True, slots=True)
class StreamWindows:
    """The windows of one stream that share panes; `number` is that of the stream.

    With `ALL_STATE` for a key, the names in its state have no prefix.
    """

    key: str
    number: int
    stream: str
    column: str
    definition: Definition
    terms: CheckedOptions
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AloneQuery:
    """A query that shares no panes with others; `names` are the register's queries that need it.

    What it reads are streams, or the parts of these keys, in the order of its sources. One that is
    `inner` is read by other parts, and is no query of the register itself.
    """

    key: str
    names: tuple[str, ...]
    plan: Plan
    terms: CheckedOptions
    level: int = 1
    parts: Mapping[int, str] = field(default_factory=dict)
    inner: bool = False

    @property
    def streams(self) -> list[str]:
        """The stream of each source that is one; a union may read one several times."""
        return [stream for stream, _ in self.sources if stream not in self.parts.values()]

    @property
    def sources(self) -> list[tuple[str, str | None]]:
        """The stream or part of each source, and the column that places its rows."""
        query, again = self.plan.query, dict(self.plan.query.again)
        return [
            (self.parts[i], column_read(query, name))
            if i in self.parts
            else (again.get(name, name), placed_by(query.inner[i], self.plan.placing.column))
            for i, name in enumerate(query.streams)
        ]


@dataclass(frozen=True, slots=True)
class DifferentRows:
    """The different rows of one place in FROM, which is read by a part as a stream would be.

    They are selected from a stream, or from the answers of `part`; `source` is either of these, and
    what places its rows. `plan` is that of who reads them; `within` is how long they are remembered
    behind what is promised, None: always.
    """

    key: str
    names: tuple[str, ...]
    name: str
    schema: pa.Schema
    within: int | None
    plan: Plan
    terms: CheckedOptions
    source: Source
    level: int = 1
    part: str | None = None

    @property
    def sources(self) -> list[Source]:
        """What it reads."""
        return [self.source]

    @property
    def filler(self) -> Callable[[], RowFiller]:
        """What sends rows to the shard of rows like them."""
        return partial(rows_of_schema, self.plan.placing.column, self.schema)


@dataclass(frozen=True, slots=True)
class RegisterParts:
    """All parts of a register, and how each reads others.

    `contents` are the numbers of answer columns, by query.
    """

    windows: tuple[StreamWindows, ...] = ()
    alone: tuple[AloneQuery, ...] = ()
    joins: tuple[SharedJoin, ...] = ()
    join_terms: CheckedOptions = field(default_factory=CheckedOptions)
    contents: Mapping[str, int] = field(default_factory=dict)
    distinct: tuple[DifferentRows, ...] = ()
    readings: tuple[PartReading, ...] = ()
    streams_above: tuple[StreamAbove, ...] = ()

    @classmethod
    def of(
        cls,
        windows: tuple[StreamWindows, ...],
        alone: tuple[AloneQuery, ...],
        joins: tuple[SharedJoin, ...],
        join_terms: CheckedOptions,
        contents: Mapping[str, int],
        schemas: Mapping[str, pa.Schema],
        distinct: tuple[DifferentRows, ...] = (),
    ) -> RegisterParts:
        """All parts; `schemas` are the columns of answers that others read, by the part's key."""
        made: dict[str, Making] = {one.key: "before" for one in distinct}
        readings = [r for one in alone for r in _read_by_windows(one, schemas, made)]
        readings += [r for one in joins for r in _read_by_join(one, schemas, made)]
        readings += [
            PartReading(one.part, one.key, one.names, one.level, 0, one.name, schemas[one.part],
                    one.plan, one.filler, "whole")
            for one in distinct if one.part is not None
        ]  # fmt: skip
        reading: list[AloneQuery | SharedJoin | DifferentRows] = [*alone, *joins, *distinct]
        above = [
            StreamAbove(stream, column, one.key, one.names, one.level, i)
            for one in reading
            for i, (stream, column) in enumerate(one.sources)
            if one.level > 1 and stream not in schemas
        ]
        return cls(
            windows, alone, joins, join_terms, contents, distinct, tuple(readings), tuple(above)
        )

    @property
    def levels(self) -> int:
        """How many levels there are."""
        above = [shared.level + 1 for shared in self.joins]
        return max([1, *above, *(one.level for one in self.alone)])

    def handed_on(
        self, key: str, given: HandedOn, level: int, shards: int
    ) -> Iterator[tuple[int, bytes]]:
        """What the shards of those that read a part are sent."""
        for reading in self.readings:
            if reading.of == key:
                yield from reading.packages(given, level=level, shards=shards)


def _read_by_windows(
    one: AloneQuery, schemas: Mapping[str, pa.Schema], made: Mapping[str, Making]
) -> Iterator[PartReading]:
    for number, key in one.parts.items():
        # Rows of a stream may be late, whatever is selected from them; answers never are.
        keep_rows = key in made and one.terms.drops_late
        name, filler = one.plan.query.streams[number], partial(filler_of, one.plan)
        yield PartReading(
            key, one.key, one.names, one.level, number, name, schemas[key], one.plan,
            partial(filler, keep_rows=keep_rows), made.get(key, "selected"),
        )  # fmt: skip


def _read_by_join(
    shared: SharedJoin, schemas: Mapping[str, pa.Schema], made: Mapping[str, Making]
) -> Iterator[PartReading]:
    keys, source = shard_keys(shared.join), 0
    for number, side in enumerate(shared.join.sources):
        filler = partial(rows_of_side, side, number, keys[number])
        for name in side.source.streams:
            key = shared.parts.get(name)
            if key is not None:
                yield PartReading(
                    key, shared.key, shared.names, shared.level, source, name, schemas[key],
                    side.plan, filler, made.get(key, "selected"),
                )  # fmt: skip
            source += 1


@dataclass(frozen=True, slots=True)
class SentParts:
    """The parts as other processes get them.

    They go with a job's functions, as these do, and are never stored: states are Arrow.
    Compressed: Spark sends what is larger than a megabyte in a way that its stateful processors
    cannot read.
    """

    data: bytes

    @classmethod
    def of(cls, parts: RegisterParts, dumps: Callable[[object], bytes]) -> SentParts:
        """Parts, to be sent as the host sends objects: a user's functions may be among them."""
        return cls(zlib.compress(dumps(parts)))

    def parts(self) -> RegisterParts:
        """The parts, which this process remembers."""
        found = RECALL.get(self.data)
        if found is None:
            found = pickle.loads(zlib.decompress(self.data))
            RECALL.put(self.data, found, len(self.data))
        return found


RECALL: Recall[RegisterParts] = Recall()
"""Parts that this process has been sent lately."""
