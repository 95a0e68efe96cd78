"""The manifest of a register: its queries and the numbers that name things in its state.

One line of JSON, without any panes. Queries, stores and columns keep their numbers for life.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from panes.register.columns import Numbering
from panes.register.queries import Asked, Numbers, Queries
from panes.stores.state_format import require_version

_FORMAT = 2


@dataclass(frozen=True, slots=True)
class QueryEntry:
    """A query as it was added. `watched`: it came from the watched folder, and goes with it."""

    name: str
    text: str
    serial: int
    deadline: int | None = None
    sink: str | None = None
    watched: bool = False


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """The number of a store, the numbers of its columns, and the first that no column has had."""

    serial: int
    columns: Mapping[str, int]
    end: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A register at rest. `removed` are queries that were removed while it ran, by name.

    Stores are listed by their identities.
    """

    stream: str
    shards: int
    last: int
    queries: Sequence[QueryEntry] = ()
    stores: Mapping[str, StoreEntry] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    version: int = 0


def to_json(manifest: Manifest) -> str:
    """A manifest as text."""
    return json.dumps({"format": _FORMAT, **asdict(manifest)})


def from_json(text: str) -> Manifest:
    """What `to_json` wrote."""
    read = json.loads(text)
    require_version("a register", read.pop("format", None), _FORMAT)
    read["queries"] = [QueryEntry(**q) for q in read["queries"]]
    read["stores"] = {title: StoreEntry(**s) for title, s in read["stores"].items()}
    return Manifest(**read)


def store_entries(queries: Queries) -> dict[str, StoreEntry]:
    """The numbers of all stores and their columns."""
    numbered = [(s.title, s.serial, s.rows.numbering) for s in queries.stores.values()]
    return {title: StoreEntry(serial, n.columns, n.end) for title, serial, n in numbered}


def take_up_queries(
    manifest: Manifest,
    queries: Queries,
    entries: Iterable[QueryEntry],
    bind: Callable[[Asked], None],
) -> None:
    """Add queries again, under the numbers that they had."""
    stores = {t: (s.serial, Numbering(s.columns, s.end)) for t, s in manifest.stores.items()}
    queries.numbers = Numbers(manifest.last, stores)
    for entry in entries:
        asked = queries.read(entry.name, entry.text)
        bind(replace(asked, serial=entry.serial, deadline=entry.deadline))
