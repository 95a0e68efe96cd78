"""The manifest of a register: its queries and the numbers that name things in its state.

One line of JSON with a checksum, without any panes. Queries, stores and columns keep their numbers
for life.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from panes.errors import StateError
from panes.sharing.columns import Numbering
from panes.sharing.queries import Asked, Failed, Queries, StateNumbers
from panes.stores.state_format import require_version

_FORMAT, _READ = 3, (2, 3)


@dataclass(frozen=True, slots=True)
class QueryEntry:
    """A query as it was added. `watched`: it came from the watched folder, and goes with it.

    `key` is that of its own part of a state; a query that shares the panes of its stream has none.
    """

    name: str
    text: str
    serial: int
    deadline: int | None = None
    sink: str | None = None
    watched: bool = False
    key: str = ""


@dataclass(frozen=True, slots=True)
class FailedEntry:
    """A query that was set aside, and why. `deadline` is in microseconds."""

    name: str
    text: str
    deadline: int | None
    reason: str
    sink: str | None = None
    watched: bool = False


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """The number of a store, the numbers of its columns, and the first that no column has had."""

    serial: int
    columns: Mapping[str, int]
    end: int


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """The windows of one stream: their column, their stores, and the last number in their state."""

    column: str
    last: int
    stores: Mapping[str, StoreEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A register at rest. `removed` are queries that were removed while it ran, by name.

    Stores are listed by their identities, questions that rows are kept for by their texts.
    `streams` are those with windows that share panes, where a register has several or knows their
    column; `last` and `stores` are those of the only stream. Without `levels`, there are as many as
    joins need that may come.
    """

    stream: str
    shards: int
    last: int
    queries: Sequence[QueryEntry] = ()
    stores: Mapping[str, StoreEntry] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    failed: Sequence[FailedEntry] = ()
    version: int = 0
    prepared: Sequence[str] = ()
    streams: Mapping[str, StreamEntry] = field(default_factory=dict)
    levels: int | None = None


def to_json(manifest: Manifest) -> str:
    """A manifest as text."""
    said = json.dumps(asdict(manifest))
    checksum = _checksum(_FORMAT, said)
    return json.dumps({"format": _FORMAT, "crc32": checksum, "register": said})


def from_json(text: str, place: str) -> Manifest:
    """What `to_json` wrote; `place` is where it was found."""
    try:
        read = json.loads(text)
        found, checksum, said = (read.get(name) for name in ("format", "crc32", "register"))
    except (ValueError, AttributeError) as error:
        raise _damaged(place) from error
    if found not in _READ:
        require_version("a register", found, _FORMAT)
    if not isinstance(said, str) or _checksum(found, said) != checksum:
        raise _damaged(place)
    register = json.loads(said)
    register["queries"] = [QueryEntry(**q) for q in register["queries"]]
    register["failed"] = [FailedEntry(**q) for q in register["failed"]]
    register["stores"] = _stores(register["stores"])
    register["streams"] = {
        name: StreamEntry(**{**one, "stores": _stores(one["stores"])})
        for name, one in register.get("streams", {}).items()
    }
    return Manifest(**register)


def _checksum(written_in: int, said: str) -> int:
    """From format 3 on it is of the format, too: a bit makes one that is read of another."""
    return zlib.crc32((said if written_in == 2 else f"{written_in} {said}").encode())


def _stores(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, StoreEntry]:
    return {title: StoreEntry(**store) for title, store in entries.items()}


def _damaged(place: str) -> StateError:
    return StateError(
        f"the list of queries in {place} is damaged",
        hint="take it from a backup, or start with a new checkpoint",
    )


def store_entries(queries: Queries) -> dict[str, StoreEntry]:
    """The numbers of all stores and their columns."""
    numbered = [(s.title, s.serial, s.rows.numbering) for s in queries.stores.values()]
    return {title: StoreEntry(serial, n.columns, n.end) for title, serial, n in numbered}


def failed_entries(queries: Queries) -> list[FailedEntry]:
    """The queries that were set aside."""
    return [FailedEntry(n, f.text, f.deadline, f.reason) for n, f in queries.failed.items()]


def take_up_queries(
    manifest: Manifest,
    queries: Queries,
    entries: Iterable[QueryEntry],
    bind: Callable[[Asked], None],
    refusals: tuple[type[Exception], ...] = (),
    read: Callable[[QueryEntry], Asked] | None = None,
) -> None:
    """Add queries again, under the numbers that they had; `read` says what each one asks.

    One that is refused by such an error is set aside, and the others go on.
    """
    stores = {t: (s.serial, Numbering(s.columns, s.end)) for t, s in manifest.stores.items()}
    queries.numbers = StateNumbers(manifest.last, stores)
    queries.failed = {f.name: Failed(f.text, f.deadline, f.reason) for f in manifest.failed}
    for entry in entries:
        try:
            asked = queries.read(entry.name, entry.text) if read is None else read(entry)
            bind(replace(asked, serial=entry.serial, deadline=entry.deadline))
        except refusals as error:
            queries.failed[entry.name] = Failed(entry.text, entry.deadline, str(error))
