"""The queries of a register at rest, without their panes: one line of JSON.

Queries, stores and columns keep their numbers, which is what names them in a state.
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
class KeptQuery:
    """A query as it was added. `watched`: it came from the watched place, and goes with it."""

    name: str
    text: str
    serial: int
    deadline: int | None = None
    sink: str | None = None
    watched: bool = False


@dataclass(frozen=True, slots=True)
class KeptStore:
    """The numbers of a store and of its columns, by what they are."""

    serial: int
    columns: Mapping[str, int]
    end: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A register at rest. `removed` are queries that were removed while it ran, by name."""

    stream: str
    shards: int
    last: int
    queries: Sequence[KeptQuery] = ()
    stores: Mapping[str, KeptStore] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    version: int = 0


def to_json(kept: Kept) -> str:
    """A register at rest, as text."""
    return json.dumps({"format": _FORMAT, **asdict(kept)})


def from_json(text: str) -> Kept:
    """What `to_json` wrote."""
    kept = json.loads(text)
    require_version("a register", kept.pop("format", None), _FORMAT)
    kept["queries"] = [KeptQuery(**q) for q in kept["queries"]]
    kept["stores"] = {title: KeptStore(**s) for title, s in kept["stores"].items()}
    return Kept(**kept)


def kept_stores(queries: Queries) -> dict[str, KeptStore]:
    """The numbers of all stores and their columns."""
    numbered = [(s.title, s.serial, s.rows.numbering) for s in queries.stores.values()]
    return {title: KeptStore(serial, n.columns, n.end) for title, serial, n in numbered}


def taken_up(
    kept: Kept, queries: Queries, wanted: Iterable[KeptQuery], bind: Callable[[Asked], None]
) -> None:
    """Ask again what was kept, under the same numbers."""
    stores = {t: (s.serial, Numbering(s.columns, s.end)) for t, s in kept.stores.items()}
    queries.numbers = Numbers(kept.last, stores)
    for old in wanted:
        asked = queries.read(old.name, old.text)
        bind(replace(asked, serial=old.serial, deadline=old.deadline))
