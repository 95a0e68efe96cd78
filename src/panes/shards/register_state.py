"""What a register remembers beside its panes, as tables; and how it takes that up again.

A state is taken up by queries that may have changed since. There are three cases, and the
number that every query has for life tells which one it is:

- a query that the state knows must be what it was: the same window over the same store, needing
  the same pieces, multisets and filters. Anything else is refused, with what has changed;
- a query that is new to the state is answered from what the state has, and what the state does
  not have for it is there from now on. So it is with what a state of an older version does not
  tell: of which rows expressions were computed;
- a query that is gone is not looked for, and what only it needed is not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from panes.aggregates.aggregate import Piece
from panes.aggregates.identity import Identity, difference
from panes.axis import BEGINNING
from panes.errors import StateError
from panes.sharing.completeness import after
from panes.sharing.needs import Stored, identity_of, implying, read_by
from panes.sharing.queries import Queries
from panes.sharing.shape import Computed, Shape
from panes.sharing.shared_store import SharedStore
from panes.stores.contents import ValueSet
from panes.stores.state_format import FORMAT, format_table, require_format
from panes.windows.cut import Cut, Edges
from panes.windows.spec import Sliding

_WHAT, _FORMAT = "a register", 2
_PROGRESS, _QUERIES, _SHAPES, _STORES = "progress", "queries", "shapes", "stores"
_NEEDS, _CUTS = "needs", "cuts"
_PIECE, _VALUES, _FILTER, _COMPUTED = "piece", "values", "filter", "computed"
_WHATS: dict[type, str] = {int: _FILTER, ValueSet: _VALUES, Computed: _COMPUTED}


@dataclass(frozen=True, slots=True)
class Written:
    """What the panes of a store were written with: the identities of pieces and multisets."""

    pieces: tuple[str, ...]
    values: tuple[str, ...]

    def known_to(self, store: SharedStore) -> tuple[list[Piece | None], list[ValueSet | None]]:
        """The pieces and multisets of a store; None for those that no query needs any more."""
        pieces = {p.identity: p for p in store.panes.pieces}
        values = {identity_of(v, store.rows): v for v in store.panes.values}
        return [pieces.get(p) for p in self.pieces], [values.get(v) for v in self.values]


# Writing


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
    stores = list(queries.stores.values())
    needs = [(store, need) for store in stores for need in store.needs.since]
    return {
        FORMAT: format_table(_WHAT, _FORMAT),
        _PROGRESS: pa.Table.from_pylist([progress]),
        _QUERIES: _query_table(queries),
        _SHAPES: _shape_table(stores, needs),
        _STORES: pa.table(
            {
                "store": pa.array([s.serial for s in stores], pa.int64()),
                "identity": pa.array([s.title for s in stores], pa.string()),
                "evicted_before": pa.array(
                    [s.completeness.evicted_before for s in stores], pa.int64()
                ),
            }
        ),
        _NEEDS: pa.Table.from_pylist([_need(*n) for n in needs], schema=_NEED),
        _CUTS: pa.Table.from_pylist([c for s in stores for c in _cuts(s)], schema=_CUT),
    }


def _query_table(queries: Queries) -> pa.Table:
    first = {name: wid for shape in queries.shapes for name, wid in shape.first_windows().items()}
    number = {id(shape): i for i, shape in enumerate(queries.shapes)}
    asked = [queries.asked[name] for name in queries.homes]
    columns = {
        "serial": [a.serial for a in asked],
        "shape": [number[id(shape)] for _, shape in queries.homes.values()],
        "size": [a.spec.size for a in asked],
        "slide": [a.spec.slide for a in asked],
        "origin": [a.spec.origin for a in asked],
        "first_open": [first[a.name] for a in asked],
        "exact_from": [queries.exact_from[a.name] for a in asked],
    }
    return pa.table({name: pa.array(column, pa.int64()) for name, column in columns.items()})


def _shape_table(
    stores: Sequence[SharedStore], needs: Sequence[tuple[SharedStore, Stored]]
) -> pa.Table:
    """What each shape reads, by the rows of the table of needs."""
    row = {(store.serial, need): i for i, (store, need) in enumerate(needs)}
    shapes = [(store, shape) for store in stores for shape in store.shapes]
    used = [sorted(row[s.serial, n] for n in read_by(shape)) for s, shape in shapes]
    return pa.table(
        {
            "store": pa.array([store.serial for store, _ in shapes], pa.int64()),
            "needs": pa.array(used, pa.list_(pa.int64())),
        }
    )


def _need(store: SharedStore, need: Stored) -> dict[str, object]:
    return {
        "store": store.serial,
        "what": _WHATS.get(type(need), _PIECE),
        "identity": identity_of(need, store.rows),
        "since": store.needs.since[need],
    }


def _cuts(store: SharedStore) -> list[dict[str, object]]:
    """Every family of every cut; those of the cut that is in force have no end."""
    cuts = [(store.cut, None), *store.completeness.cuts_before.items()]
    return [
        {"store": store.serial, "cut": i, "slide": f.slide, "phase": f.phase, "before": before}
        for i, (cut, before) in enumerate(cuts)
        for f in cut.families
    ]


# Taking up


def require_register(tables: Mapping[str, pa.Table]) -> None:
    """Refuse what is no state of a register in the format that is read here."""
    require_format(tables, _WHAT, _FORMAT)


def take_up(queries: Queries, tables: Mapping[str, pa.Table]) -> dict[int, Written]:
    """Go on where a state ended; gives what the panes of each store were written with."""
    require_register(tables)
    progress = tables[_PROGRESS].to_pylist()[0]
    if queries.axis is not None and progress["axis"] != _axis(queries):
        raise StateError(
            f"the register has run on `{progress['axis']}`, and its queries run on "
            f"`{_axis(queries)}`: what was promised of one says nothing of the other",
            hint="start with a new checkpoint",
        )
    _Agreement(tables).require(queries)
    queries.promise.at, queries.promise.why = progress["promise"], progress["why"]
    queries.newest, queries.closed_at = progress["newest"], progress["closed_at"]
    evicted = {row["store"]: row["evicted_before"] for row in tables[_STORES].to_pylist()}
    needs, cuts = tables[_NEEDS].to_pylist(), tables[_CUTS].to_pylist()
    written = {}
    for store in queries.stores.values():
        own = [n for n in needs if n["store"] == store.serial]
        since = {n["identity"]: n["since"] for n in own}
        now = after(queries.newest)
        store.needs.since = {
            need: min(since.get(identity_of(n, store.rows), now) for n in implying(need))
            for need in store.needs.since
        }
        if store.serial in evicted:
            store.completeness.evicted_before = evicted[store.serial]
            _take_up_cuts(store, [c for c in cuts if c["store"] == store.serial], now)
        written[store.serial] = Written(
            tuple(n["identity"] for n in own if n["what"] == _PIECE),
            tuple(n["identity"] for n in own if n["what"] == _VALUES),
        )
    _settle(queries, {row["serial"]: row for row in tables[_QUERIES].to_pylist()})
    return written


def begin_after(queries: Queries, newest: int) -> None:
    """Begin behind a row that came before: what begins earlier is not answered."""
    if newest == BEGINNING:
        return
    queries.newest = newest
    for store in queries.stores.values():
        store.needs.since = dict.fromkeys(store.needs.since, after(newest))
    _settle(queries, {})


def newest_row(tables: Mapping[str, pa.Table]) -> int:
    """Where the newest row lies that a state knows of."""
    require_register(tables)
    return int(tables[_PROGRESS].column("newest")[0].as_py())


class _Agreement:
    """What a state says of its queries, to be compared with what they are now."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        needs = tables[_NEEDS].column("identity").to_pylist()
        shapes = tables[_SHAPES].to_pylist()
        self._stores = {row["store"]: row["identity"] for row in tables[_STORES].to_pylist()}
        self._shapes = [(row["store"], {needs[i] for i in row["needs"]}) for row in shapes]
        self._queries = {row["serial"]: row for row in tables[_QUERIES].to_pylist()}
        self._agreed: set[tuple[int, int]] = set()

    def require(self, queries: Queries) -> None:
        """Refuse a state in which a query that is still there was something else."""
        for name, (store, shape) in queries.homes.items():
            asked = queries.asked[name]
            row = self._queries.get(asked.serial)
            if row is None:
                continue
            spec = Sliding(size=row["size"], slide=row["slide"], origin=row["origin"])
            if spec != asked.spec:
                raise _changed(name, f"its window was {_window(spec)}, is {_window(asked.spec)}")
            if (row["shape"], id(shape)) not in self._agreed:
                self._require_shape(name, row["shape"], store, shape)
                self._agreed.add((row["shape"], id(shape)))

    def _require_shape(self, name: str, number: int, store: SharedStore, shape: Shape) -> None:
        serial, before = self._shapes[number]
        if (serial, self._stores[serial]) != (store.serial, store.title):
            raise _changed(name, _regrouped(self._stores[serial], store.title))
        now = {identity_of(n, store.rows) for n in read_by(shape)}
        if before != now:
            columns = ", ".join(f"{c} is {store.rows.text(c)}" for c in sorted(shape.columns))
            raise _changed(name, _differences(before - now, now - before), columns)


def _regrouped(before: str, now: str) -> str:
    old, new = Identity.of(before), Identity.of(now)
    if old.parts == new.parts:
        return difference(before, now)
    return f"its GROUP BY was {old.parts or 'nothing'}, is {new.parts or 'nothing'}"


def _differences(before: set[str], now: set[str]) -> str:
    """What is stored no longer fits, piece by piece: those of one name are compared."""
    words, rest = [], sorted(now)
    for old in sorted(before):
        same = next((new for new in rest if Identity.of(new).name == Identity.of(old).name), None)
        if same is None:
            words.append(f"{old} is stored, which this version of panes does not need for it")
            continue
        rest.remove(same)
        words.append(difference(old, same))
    words += [f"{new} is needed, and was never stored" for new in rest]
    return "; ".join(words)


def _changed(name: str, words: str, columns: str = "") -> StateError:
    hint = "go on with the version of panes that wrote the state, or add the query anew"
    return StateError(
        f"the state does not fit query `{name}`: {words}",
        hint=f"{hint}; columns: {columns}" if columns else hint,
    )


def _window(spec: Sliding) -> str:
    return f"RANGE {spec.size} SLIDE {spec.slide} ORIGIN {spec.origin} in ticks"


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
            store.completeness.note_cut(cut, at)
        elif cut != store.cut and now != BEGINNING:
            store.completeness.note_cut(cut, now)


def _settle(queries: Queries, known: Mapping[int, Mapping[str, Any]]) -> None:
    """Say of each query which window is its first; those that are known by number go on."""
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


_NEED = pa.schema(
    {"store": pa.int64(), "what": pa.string(), "identity": pa.string(), "since": pa.int64()}
)
_CUT = pa.schema(dict.fromkeys(["store", "cut", "slide", "phase", "before"], pa.int64()))
