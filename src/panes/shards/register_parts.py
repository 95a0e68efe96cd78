"""The parts of a register, as tasks and shards get them: what runs beside what.

    windows of a stream   All queries whose windows share panes, with one store for each GROUP BY.
    a query alone         A query that shares no panes: windows of rows, landmark and per-row
                          windows, unions, another axis column, EMIT EARLY.
    a join                All queries over one join, which is run once.

Every part has a key, which names its part of a shard's state and the packages that are sent to it.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from panes.planning.plan import Plan
from panes.planning.terms import CheckedOptions
from panes.shards.recall import Recall
from panes.shards.register_shard import Definition
from panes.shards.shared_joins import EVERY_PART, SharedJoin

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
    """A query that shares no panes with others; `name` is unique in its register."""

    key: str
    name: str
    plan: Plan
    terms: CheckedOptions

    @property
    def streams(self) -> list[str]:
        """The stream of each source; a union may read one several times."""
        again = dict(self.plan.query.again)
        return [again.get(name, name) for name in self.plan.query.streams]

    @property
    def sources(self) -> list[tuple[str, str | None]]:
        """The stream of each source, and the column that places its rows."""
        return [(stream, self.plan.placing.column) for stream in self.streams]


@dataclass(frozen=True, slots=True)
class RegisterParts:
    """All parts of a register. `contents` are the numbers of answer columns, by query."""

    windows: tuple[StreamWindows, ...] = ()
    alone: tuple[AloneQuery, ...] = ()
    joins: tuple[SharedJoin, ...] = ()
    join_terms: CheckedOptions = field(default_factory=CheckedOptions)
    contents: Mapping[str, int] = field(default_factory=dict)


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
