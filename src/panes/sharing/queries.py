"""The queries of a register: each with a shape in a shared store, answered when due, together.

Nothing here knows where rows come from. Whoever drives it puts partials into the stores, moves the
promise, and asks for what that closes.

Invariant: what is known of a query beside its partials (its first open window, what it needs and
since when that is there) follows from the queries and the promises alone, never from the rows, so
hosts that have different keys of one stream agree on it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from panes.aggregates.custom import UserAggregate
from panes.aggregates.identity import identity
from panes.answers.portions import Portion
from panes.answers.select import selected
from panes.arrays.type_names import type_name
from panes.axis import BEGINNING, FOREVER, Axis, Duration, parse_duration
from panes.errors import PanesError, QueryError
from panes.language.parse import parse
from panes.language.query import Query
from panes.planning.plan import Plan
from panes.progress.promise import Promise
from panes.progress.schedule import Schedule
from panes.sharing.columns import Numbering
from panes.sharing.due import Due, Finish
from panes.sharing.failures import blaming, failed_answering
from panes.sharing.keep import Keep
from panes.sharing.pace import Behind, Pace
from panes.sharing.roll_together import answer
from panes.sharing.shape import Member, Shape
from panes.sharing.shareable import require_shareable
from panes.sharing.shared_store import SharedStore
from panes.windows.extent import extent, windows_closed
from panes.windows.limit import require_room
from panes.windows.many import first_from
from panes.windows.spec import Sliding

PlanOf = Callable[[Query], Plan]
ShapeKey = tuple[Query, str]
_GROUPING_VERSION = 1


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as it was added. `deadline` is in microseconds; no two have the same `serial`."""

    name: str
    text: str
    query: Query
    spec: Sliding
    deadline: int | None
    serial: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """A query that was set aside, and why. `deadline` is in microseconds."""

    text: str
    deadline: int | None
    reason: str


@dataclass(slots=True)
class StateNumbers:
    """What names queries, stores and columns in a state: none is ever given twice.

    `stores` are those of a register that is taken up again, by what they group by.
    """

    last: int = 0
    stores: Mapping[str, tuple[int, Numbering]] = field(default_factory=dict)

    def next(self) -> int:
        """A number that nothing has had."""
        self.last += 1
        return self.last


class Queries:
    """Queries over one stream, the stores they share, and how far the stream has come."""

    # Rows and promises change none of these, but for the schedule, which can be made anew.
    UNCHANGED = frozenset({"asked", "exact_from", "failed", "homes", "_schedule", "_shapes"})

    def __init__(self, stream: str, aggregates: Sequence[UserAggregate] = ()) -> None:
        self.stream, self.aggregates = stream, tuple(aggregates)
        self.promise, self.newest = Promise(), BEGINNING
        self.closed_at = BEGINNING
        self.asked: dict[str, Asked] = {}
        self.failed: dict[str, Failed] = {}
        self.behind: list[Behind] = []
        self.hands_over = False  # portion by portion, and not all answers together
        self.keep: Keep | None = None  # rows, for whoever hosts the stores
        self.numbers = StateNumbers()
        self._pace = Pace()
        self.forget_bindings()

    def forget_bindings(self) -> None:
        """No query has a store any more, and nothing is stored."""
        self.axis: Axis | None = None
        self.stores: dict[tuple[exp.Expression, ...], SharedStore] = {}
        self.homes: dict[str, tuple[SharedStore, Shape]] = {}
        self.exact_from: dict[str, int | None] = {}
        self._shapes: dict[ShapeKey, tuple[SharedStore, Shape]] = {}
        self._schedule: Schedule | None = None
        self.due: list[Due] = []  # of the last round

    def __getstate__(self) -> dict[str, object]:
        """What another process needs to store panes of its own: no query as it was written."""
        asked = {
            name: replace(self.asked[name], text="", query=shape.plan.query)
            for name, (_, shape) in self.homes.items()
        }
        left_out: dict[str, object] = {"failed": {}, "_shapes": {}, "_schedule": None, "due": []}
        return vars(self) | {"asked": asked} | left_out

    def copied(self) -> Queries:
        """The same queries over the same stores, to try a change on."""
        fixed = [*self.asked.values(), *(shape.plan for shape in self.shapes), *self.aggregates]
        memo = {id(one): one for one in fixed}
        found = Queries(self.stream, self.aggregates)
        vars(found).update(deepcopy(vars(self), memo))
        return found

    # Queries come and go

    def read(self, name: str, text: str, deadline: Duration | None = None) -> Asked:
        """Read a query, and refuse what cannot be answered from shared panes."""
        return self.asked_as(name, text, parse(text, self.aggregates), deadline)

    def asked_as(
        self, name: str, text: str, query: Query, deadline: Duration | None = None
    ) -> Asked:
        """The same of a query that has been read."""
        if name in self.asked:
            raise QueryError(
                f"a query `{name}` is already registered", hint="remove it first, or rename one"
            )
        spec = require_shareable(name, query, self.stream)
        ticks = None if deadline is None else parse_duration(deadline, option="deadline")
        return Asked(name, text, query, spec, ticks, self.numbers.next())

    def bind(self, asked: Asked, schema: pa.Schema, plan_of: PlanOf) -> None:
        """Give a query its shape in a store, from now on; `plan_of` plans one of each shape."""
        key = _shape_key(asked.query)
        if key not in self._shapes:
            try:
                planned = plan_of(asked.query)
            except PanesError as error:
                raise error.of(f"query `{asked.name}`") from None
            self.require_same_axis(asked.name, planned)
            self.axis = planned.axis
            keys = planned.rows.expressions[: len(planned.query.keys)]
            if keys not in self.stores:
                self.stores[keys] = self._new_store(planned, schema)
            store = self.stores[keys]
            self._shapes[key] = store, store.add_shape(planned, self.newest)
        store, shape = self._shapes[key]
        first, self.exact_from[asked.name] = self.settled(store, shape, asked.spec)
        shape.add(Member(asked.name, asked.spec, asked.deadline, first))
        store.completeness.change_cut(self.newest)
        self.schedule.add(asked.name, asked.spec)
        self.homes[asked.name] = store, shape

    def _new_store(self, planned: Plan, schema: pa.Schema) -> SharedStore:
        title = grouping(planned)
        serial, numbering = self.numbers.stores.get(title, (None, None))
        store = SharedStore(planned, schema, self.aggregates, numbering)
        store.serial = self.numbers.next() if serial is None else serial
        store.title = title
        return store

    def settled(self, store: SharedStore, shape: Shape, spec: Sliding) -> tuple[int, int | None]:
        """The first window that can be answered in full, and where it starts; None: all can."""
        since, progress = store.complete_from(shape, spec, self.newest), self.promise.at
        if since == progress == BEGINNING:
            return BEGINNING, None
        from_panes = BEGINNING if since == BEGINNING else first_from(spec, since)
        still_open = BEGINNING if progress == BEGINNING else windows_closed(spec, progress)
        first = max(from_panes, still_open)
        return first, extent(spec, first).start

    def set_aside(self, name: str, reason: object) -> None:
        """A query has failed: answer it no longer, and remember why."""
        asked = self.asked[name]
        self.remove(name)
        self.failed[name] = Failed(asked.text, asked.deadline, str(reason))

    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget what only it needed."""
        if self.failed.pop(name, None) is not None:
            return
        if name not in self.asked:
            known = ", ".join(sorted(self.asked)) or "none"
            raise QueryError(f"no query `{name}` is registered", hint=f"queries: {known}")
        del self.asked[name]
        if name not in self.homes:
            return
        store, shape = self.homes.pop(name)
        del self.exact_from[name]
        if self._schedule is not None:
            self._schedule.remove(name)
        shape.remove(name)
        if not len(shape):
            self._shapes = {q: home for q, home in self._shapes.items() if home[1] is not shape}
            store.remove_shape(shape)
        if store.shapes:
            store.completeness.change_cut(self.newest)
            store.evict(self.newest)
        else:
            self.stores = {k: s for k, s in self.stores.items() if s is not store}

    def store_of(self, planned: Plan) -> SharedStore:
        """The store that answers a question."""
        keys = planned.rows.expressions[: len(planned.query.keys)]
        if keys in self.stores:
            return self.stores[keys]
        if not planned.query.calls:
            values = ", ".join(key.name for key in planned.query.keys)
            raise QueryError(
                f"nothing is stored that tells which values of {values} are there",
                hint=f"add SELECT DISTINCT {values} with a window; it is answered from the rows "
                "to come",
            )
        raise QueryError(
            "no registered query has that GROUP BY, so nothing is stored for it",
            hint="add one; it is answered from the rows to come",
        )

    def require_same_axis(self, name: str | None, planned: Plan) -> None:
        """Refuse a query, or a question, which has no name, over another column than the others."""
        if self.axis is not None and planned.axis != self.axis:
            raise other_axis(name, planned.axis.column, self.axis.column)

    # Progress moves

    @property
    def schedule(self) -> Schedule:
        """Who waits for what, since windows were last closed."""
        if self._schedule is None:
            self._schedule = Schedule(at=self.closed_at)
            for name in self.homes:
                self._schedule.add(name, self.asked[name].spec)
        return self._schedule

    def forget_schedule(self) -> None:
        """Where windows were last closed has changed."""
        self._schedule = None

    @property
    def shapes(self) -> Iterator[Shape]:
        """All shapes, store by store."""
        return (shape for store in self.stores.values() for shape in store.shapes)

    def open_from(self) -> int:
        """The first position that some query's open window holds; `FOREVER` without a query."""
        return min((s.needed_from() for s in self.shapes), default=FOREVER)

    def last_end(self) -> int:
        """Where the last window ends that the newest row is in; the promise, if that is further."""
        if self.newest == BEGINNING:
            return self.promise.at
        ends = (
            s.rulers.starts(s.rulers.reached(self.newest) - 1) + s.rulers.size for s in self.shapes
        )
        return max([self.promise.at, *(int(e.max()) for e in ends)])

    def answers(self, finish: Finish = selected) -> Iterator[Portion]:
        """What progress has closed, portion by portion, the nearest deadlines first."""
        now = self.promise.at
        if now == BEGINNING or self.axis is None:
            return iter(())
        names: defaultdict[tuple[SharedStore, Shape], list[str]] = defaultdict(list)
        for name in self.schedule.advance(now):
            names[self.homes[name]].append(name)
        self.closed_at = now
        due = [(store, shape, shape.indexes(some)) for (store, shape), some in names.items()]
        return self._answered(due, now, finish)

    def last_answers(self) -> Iterator[Portion]:
        """The stream has ended: every window that holds a row."""
        due = [
            (store, shape, np.arange(len(shape)))
            for store in self.stores.values()
            for shape in store.shapes
        ]
        return self._answered(due, FOREVER, selected)

    def _answered(
        self,
        due: Sequence[tuple[SharedStore, Shape, NDArray[np.int64]]],
        now: int,
        finish: Finish,
    ) -> Iterator[Portion]:
        """The answers of due queries of some shapes; what they alone stored is forgotten."""
        begun, count = time.perf_counter(), 0
        by_store: dict[int, tuple[SharedStore, list[Due]]] = {}
        for store, shape, which in sorted(due, key=lambda d: _least_time(d[1])):
            by_store.setdefault(id(store), (store, []))[1].append(_due(store, shape, which, now))
        self._foresee(by_store.values())
        self.due = [one for _, several in by_store.values() for one in several]
        for store, several in by_store.values():
            wanted = [d for d in several if d.windows]
            for portion in _answers(store, wanted, finish) if wanted else ():
                count += len(portion.table)
                require_room(count)
                yield portion
            if now == FOREVER:
                continue
            for one in several:
                one.shape.close_before(one.which, one.shape.rulers.take(one.which).closed(now))
            store.evict(self.newest)
            store.fold(now, self.newest)
        self._pace.saw(count, time.perf_counter() - begun)

    def _foresee(self, due: Iterable[tuple[SharedStore, list[Due]]]) -> None:
        """Note who will be late, before anything is answered."""
        steps = [
            (one.windows * len(store.panes.groups), _deadlines(one))
            for store, several in due
            for one in several
        ]
        self.behind = self._pace.behind(steps, each=self.hands_over)


def _answers(store: SharedStore, due: Sequence[Due], finish: Finish) -> Iterator[Portion]:
    """The answers of a store, or the queries whose fault it is that there are none."""
    portions = answer(store.panes, due, finish)
    portion: Portion | None
    while True:
        with blaming(lambda: failed_answering(store.panes, due, finish)):
            portion = next(portions, None)
        if portion is None:
            return
        yield portion


def other_axis(name: str | None, column: str | None, others: str | None) -> QueryError:
    """The refusal of a query, or of a question, which has no name, over a column of its own."""
    what = "the question" if name is None else f"query `{name}`"
    return QueryError(
        f"{what} runs on `{column}`, and the register on `{others}`: what is promised of one says "
        "nothing of the other",
        hint="open a second register for it",
    )


def grouping(planned: Plan) -> str:
    """The identity of a store: what it groups by. No two stores of a register have the same."""
    trees = planned.rows.expressions[: len(planned.query.keys)]
    named = zip(trees, planned.key_types, strict=True)
    keys = ", ".join(f"{tree.sql(dialect='spark')} {type_name(t)}" for tree, t in named)
    return identity("group_by", _GROUPING_VERSION, keys)


def _least_time(shape: Shape) -> float:
    return np.inf if shape.least_deadline is None else shape.least_deadline


def _deadlines(one: Due) -> list[tuple[str, int]]:
    if one.shape.least_deadline is None:
        return []
    members = (one.shape.members[i] for i in one.which)
    return [(m.name, m.deadline) for m in members if m.deadline is not None]


def _shape_key(query: Query) -> ShapeKey:
    """What queries that differ only in their windows have in common."""
    window = query.window
    axis = "" if window is None else f"{window.measure} {window.column}"
    return replace(query, text="", window=None), axis


def _due(store: SharedStore, shape: Shape, which: NDArray[np.int64], now: int) -> Due:
    """The windows of some queries that end at or before `now` and may hold a pane."""
    rulers, first = shape.rulers.take(which), shape.first_open(which)
    span = store.panes.fragments.span()
    if span is None:
        return Due(shape, which, first, first)
    first = np.maximum(first, rulers.closed(span[0]))
    end = np.minimum(rulers.closed(now), rulers.reached(span[1]))
    return Due(shape, which, first, np.maximum(first, end))
