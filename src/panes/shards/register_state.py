"""What a register remembers beside its panes, as tables; and how it takes that up again.

A state is taken up by queries that may have changed since: what they need and the state has is
there from where it was there before, what it does not have is there from now on. Queries that are
gone are not looked for, and what only they needed is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from panes.aggregates.aggregate import Piece
from panes.axis import BEGINNING
from panes.errors import StateError
from panes.register.queries import Queries
from panes.register.shared_store import SharedStore, after
from panes.stores.contents import ValueSet
from panes.windows.cut import Cut, Edges

_PROGRESS, _QUERIES, _STORES, _NEEDS, _CUTS = "progress", "queries", "stores", "needs", "cuts"
_PIECE, _VALUES, _FILTER = "piece", "values", "filter"


@dataclass(frozen=True, slots=True)
class Written:
    """What the panes of a store were written with: pieces and multisets, by what they are."""

    pieces: tuple[str, ...]
    values: tuple[str, ...]

    def known_to(self, store: SharedStore) -> tuple[list[Piece | None], list[ValueSet | None]]:
        """The same in the words of a store; None for what it does not keep."""
        pieces = {repr(p): p for p in store.pieces}
        values = {repr(v): v for v in store.values}
        return [pieces.get(p) for p in self.pieces], [values.get(v) for v in self.values]


def to_tables(queries: Queries) -> dict[str, pa.Table]:
    """Everything that is remembered."""
    promise = queries.promise
    progress = {
        "axis": _axis(queries),
        "promise": promise.at,
        "why": promise.why,
        "newest": queries.newest,
        "closed_at": queries.closed_at,
    }
    first = {name: wid for shape in queries.shapes for name, wid in shape.first_windows().items()}
    asked = list(queries.homes)
    stores = list(queries.stores.values())
    return {
        _PROGRESS: pa.Table.from_pylist([progress]),
        _QUERIES: pa.table(
            {
                "serial": pa.array([queries.asked[n].serial for n in asked], pa.int64()),
                "first_open": pa.array([first[n] for n in asked], pa.int64()),
                "exact_from": pa.array([queries.exact_from[n] for n in asked], pa.int64()),
            }
        ),
        _STORES: pa.table(
            {
                "store": pa.array([s.serial for s in stores], pa.int64()),
                "evicted_before": pa.array([s.evicted_before for s in stores], pa.int64()),
            }
        ),
        _NEEDS: pa.Table.from_pylist([n for s in stores for n in _needs(s)], schema=_NEED),
        _CUTS: pa.Table.from_pylist([c for s in stores for c in _cuts(s)], schema=_CUT),
    }


def _needs(store: SharedStore) -> list[dict[str, object]]:
    return [
        {"store": store.serial, "kind": _kind(n), "what": repr(n), "since": at}
        for n, at in store.since.items()
    ]


def _cuts(store: SharedStore) -> list[dict[str, object]]:
    """Every family of every cut; those of the cut that is in force have no end."""
    cuts = [(store.cut, None), *store.cuts_before.items()]
    return [
        {"store": store.serial, "cut": i, "slide": f.slide, "phase": f.phase, "before": before}
        for i, (cut, before) in enumerate(cuts)
        for f in cut.families
    ]


def take_up(queries: Queries, tables: Mapping[str, pa.Table]) -> dict[int, Written]:
    """Go on where a state ended; gives what the panes of each store were written with."""
    progress = tables[_PROGRESS].to_pylist()[0]
    if queries.axis is not None and progress["axis"] != _axis(queries):
        raise StateError(
            f"the register has run on `{progress['axis']}`, and its queries run on "
            f"`{_axis(queries)}`: what was promised of one says nothing of the other",
            hint="start with a new checkpoint",
        )
    queries.promise.at, queries.promise.why = progress["promise"], progress["why"]
    queries.newest, queries.closed_at = progress["newest"], progress["closed_at"]
    evicted = {row["store"]: row["evicted_before"] for row in tables[_STORES].to_pylist()}
    needs, cuts = tables[_NEEDS].to_pylist(), tables[_CUTS].to_pylist()
    written = {}
    for store in queries.stores.values():
        own = [n for n in needs if n["store"] == store.serial]
        since = {n["what"]: n["since"] for n in own}
        now = after(queries.newest)
        store.since = {need: since.get(repr(need), now) for need in store.since}
        if store.serial in evicted:
            store.evicted_before = evicted[store.serial]
            _take_up_cuts(store, [c for c in cuts if c["store"] == store.serial], now)
        written[store.serial] = Written(
            tuple(n["what"] for n in own if n["kind"] == _PIECE),
            tuple(n["what"] for n in own if n["kind"] == _VALUES),
        )
    _take_up_queries(queries, tables[_QUERIES])
    return written


def _take_up_cuts(store: SharedStore, rows: list[dict[str, int]], now: int) -> None:
    """Panes before now may be those of any cut there has been."""
    families: dict[int, list[Edges]] = {}
    before: dict[int, int | None] = {}
    for row in rows:
        families.setdefault(row["cut"], []).append(Edges(row["slide"], row["phase"]))
        before[row["cut"]] = row["before"]
    for number, edges in families.items():
        cut, at = Cut(tuple(edges)), before[number]
        if at is not None:
            store.note_cut(cut, at)
        elif cut != store.cut and now != BEGINNING:
            store.note_cut(cut, now)


def _take_up_queries(queries: Queries, kept: pa.Table) -> None:
    known = {row["serial"]: row for row in kept.to_pylist()}
    first_open = {}
    for name, (store, shape) in queries.homes.items():
        asked = queries.asked[name]
        row = known.get(asked.serial)
        if row is not None:
            first_open[name], exact_from = row["first_open"], row["exact_from"]
        else:
            first_open[name], exact_from = queries.settled(store, shape, asked.spec)
        queries.exact_from[name] = exact_from
    for shape in queries.shapes:
        shape.resume(first_open)
    queries.forget_schedule()


def _axis(queries: Queries) -> str | None:
    return None if queries.axis is None else queries.axis.column


def _kind(need: Piece | ValueSet | int) -> str:
    if isinstance(need, int):
        return _FILTER
    return _VALUES if isinstance(need, ValueSet) else _PIECE


_NEED = pa.schema(
    {"store": pa.int64(), "kind": pa.string(), "what": pa.string(), "since": pa.int64()}
)
_CUT = pa.schema(dict.fromkeys(["store", "cut", "slide", "phase", "before"], pa.int64()))
