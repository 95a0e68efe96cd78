"""A register: many queries over one stream, which share its read, its panes and its partials.

Each batch is placed on the axis once, late rows are set apart once, and every store (one for each
GROUP BY) takes it in once. When progress moves, the schedule names the queries that have windows
due, and these are answered in one pass per store (`panes.engine.burst`).

Every answer is what the query would get alone. Queries come and go while the stream runs; one
that comes late is answered from its first window that the panes there can answer in full.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from panes.aggregates.custom import UserAggregate
from panes.axis import Duration, parse_duration, parse_instant
from panes.engine.admit import Gate
from panes.engine.apart import set_apart
from panes.engine.ask import RowTail, ask_panes
from panes.engine.burst import Due, answer
from panes.engine.pace import Behind, Pace
from panes.engine.preparable import as_width
from panes.engine.prepared import Prepared, ask_prepared
from panes.engine.register_text import explain_stores
from panes.engine.shape import NEVER, Member, Shape
from panes.engine.shared_store import SharedStore
from panes.engine.stream import Instant
from panes.engine.terms import Run, Terms, agree, require_lateness
from panes.errors import InputError, OptionError, PanesError, QueryError
from panes.frames import differences, to_table
from panes.language.parse import parse
from panes.language.query import Query
from panes.operators.operator import Chain
from panes.planning.plan import Plan, plan
from panes.planning.scalar import Projection
from panes.progress.promise import EVERYTHING, NOTHING, Promise
from panes.schedule.schedule import Schedule
from panes.windows.extent import extent, windows_closed
from panes.windows.many import first_from
from panes.windows.spec import Sliding

Answers = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as it was added. `deadline` is in microseconds."""

    name: str
    text: str
    query: Query
    spec: Sliding
    deadline: int | None


class Added:
    """What became of a query that was added."""

    def __init__(self, register: Register, name: str) -> None:
        self.name = name
        self._register = register

    @property
    def exact_from(self) -> object | None:
        """Where the first window starts that is answered, as the axis shows positions.

        Every window from there on is answered in full, none before it. None means that all are:
        from the beginning of the stream.
        """
        return self._register.exact_from(self.name)

    def __repr__(self) -> str:
        return f"Added(name={self.name!r}, exact_from={self.exact_from!r})"


class Register:
    """Queries over one stream, run together. See `panes.register`."""

    def __init__(
        self,
        stream: str,
        run: Run = Run(),  # noqa: B008 - frozen
        *,
        schema: pa.Schema | None = None,
        aggregates: Sequence[UserAggregate] = (),
        keep_rows: int = 0,
        hand_over: Callable[[str, pa.Table], None] | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        if run.late == "revise":
            raise OptionError(
                "a register answers every window once, so late must be 'open' or 'drop'",
                hint="panes.open(..., late='revise') for a query of its own",
            )
        self.stream = stream
        self._run, self._aggregates = run, tuple(aggregates)
        self._hand_over, self._now = hand_over, now
        self._schema = None if schema is None else schema.remove_metadata()
        self._terms: Terms | None = None
        self._reading: Plan | None = None
        self._promise = Promise()
        self._newest = NEVER
        self._finished = False
        self._late: list[pa.Table] = []
        self._rejected: list[pa.Table] = []
        self._tail = RowTail(keep_rows) if keep_rows else None
        self._pace = Pace()
        self.behind: list[Behind] = []
        self._asked: dict[str, Asked] = {}
        self._forget_bindings()
        self._prepared = Prepared(stream, aggregates)
        if self._schema is not None:
            self._prepared.bind(self._schema, self._settle_axis)

    def _forget_bindings(self) -> None:
        self._home: dict[str, tuple[SharedStore, Shape]] = {}
        self._shapes: dict[tuple[Query, str], tuple[SharedStore, Shape]] = {}
        self._stores: dict[tuple[exp.Expression, ...], SharedStore] = {}
        self._exact_from: dict[str, int | None] = {}
        self._schedule = Schedule(at=self._promise.at)

    # Queries

    def add(self, name: str, text: str, *, deadline: Duration | None = None) -> Added:
        """Answer one more query from now on; says from where its answers are exact.

        With a `deadline`, it is answered before those that have more time, and `behind` tells
        beforehand if it will be late.
        """
        self._require_running()
        if name in self._asked:
            raise QueryError(
                f"a query `{name}` is already registered", hint="remove it first, or rename one"
            )
        query = parse(text, self._aggregates)
        spec = _require_shareable(name, query, self.stream)
        terms = agree(query, self._run)
        ticks = None if deadline is None else parse_duration(deadline, option="deadline")
        asked = Asked(name, text, query, spec, ticks)
        if self._schema is not None:
            self._bind(asked, self._schema, terms)
        elif self._terms is None:
            self._terms, self._promise = terms, Promise(terms.bound())
        self._asked[name] = asked
        return Added(self, name)

    def remove(self, name: str) -> None:
        """Answer a query no longer, and forget what only it needed."""
        if name not in self._asked:
            known = ", ".join(sorted(self._asked)) or "none"
            raise QueryError(f"no query `{name}` is registered", hint=f"queries: {known}")
        del self._asked[name]
        if name not in self._home:
            return
        store, shape = self._home.pop(name)
        del self._exact_from[name]
        self._schedule.remove(name)
        shape.remove(name)
        if not len(shape):
            self._shapes = {q: home for q, home in self._shapes.items() if home[1] is not shape}
            store.trim(shape)
        if store.shapes:
            store.change_cut(self._newest)
            store.evict()
        else:
            self._stores = {k: s for k, s in self._stores.items() if s is not store}

    def queries(self) -> dict[str, str]:
        """The texts of all queries, by name, in the order in which they came."""
        return {name: asked.text for name, asked in self._asked.items()}

    def exact_from(self, name: str) -> object | None:
        """Where the first answered window of a query starts; None: at the stream's beginning."""
        at = self._exact_from.get(name)
        if at is None or self._reading is None:
            return None
        return self._reading.axis.label(np.array([at]))[0].as_py()

    # The stream

    def push(self, batch: object) -> Answers:
        """Take in a batch; gives the answers that are final from now on, by query.

        All or nothing: if the batch is refused, the register is as it was before.
        """
        self._require_running()
        table = to_table(batch, self.stream)
        schema = table.schema.remove_metadata()
        self._require_terms()
        self._bind_waiting(schema)
        terms = self._require_terms()
        assert self._reading is not None
        gate = Gate(self._reading, terms, self._now, self._promised, self._is_open)
        admitted = gate.admit(self.stream, table, Chain(), 0)
        rows = pa.table(admitted.columns, names=schema.names)
        filled = [(store, store.fill(admitted.at, rows)) for store in self._stores.values()]
        prepared = self._prepared.read(rows)
        for store, partials in filled:
            store.add(partials)
        if self._tail is not None:
            self._tail.push(rows)
        self._late += admitted.late
        self._rejected += admitted.rejected
        self._newest = max(self._newest, int(admitted.placed.max(initial=NEVER)))
        self._prepared.push(admitted.at, prepared, self._newest)
        self._promise.observe(admitted.placed)
        if admitted.promise is not None:
            self._promise.punctuate(admitted.promise)
        return self._advance()

    def punctuate(self, at: Instant) -> Answers:
        """Promise that no later row lies before an instant; gives what that closes."""
        self._require_running()
        self._require_terms()
        measures = {a.query.window.measure for a in self._asked.values() if a.query.window}
        is_number = isinstance(at, int | np.integer)
        if measures == {"integer"} and not is_number:
            raise OptionError(
                f"`{self.stream}` has no time axis: a promise is a whole number there"
            )
        self._promise.punctuate(parse_instant(at))
        return self._advance()

    def finish(self) -> Answers:
        """The stream has ended: gives all answers that are left, and forgets everything."""
        self._require_running()
        self._finished = True
        due = [
            (store, shape, np.arange(len(shape)))
            for store in self._stores.values()
            for shape in store.shapes
        ]
        found = self._answered(due, EVERYTHING)
        self._promise.punctuate(EVERYTHING, "the end")
        self._forget_bindings()
        self._prepared = Prepared(self.stream)
        return found

    @property
    def progress(self) -> int:
        """What is promised of the stream, in ticks of the axis."""
        return self._promise.at

    @property
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason. They are those of the stream."""
        return set_apart(self._late, [self._schema] if self._schema is not None else [])

    @property
    def rejected(self) -> pa.Table:
        """Rows that have no place on the axis, with the reason."""
        return set_apart(self._rejected, [self._schema] if self._schema is not None else [])

    @property
    def state(self) -> Mapping[str, int]:
        """How much is held: queries, stores, keys, partials and their bytes; prepared questions."""
        stores = self._stores.values()
        return {
            "queries": len(self._asked),
            "stores": len(self._stores),
            "keys": sum(len(s.groups) for s in stores if len(s)),
            "partials": sum(len(s) for s in stores),
            "bytes": sum(s.nbytes for s in stores),
            "rows": 0 if self._tail is None else len(self._tail),
            "prepared": len(self._prepared),
            "prepared_bytes": self._prepared.nbytes,
        }

    @property
    def stores(self) -> Sequence[SharedStore]:
        """The stores, one for each GROUP BY."""
        return list(self._stores.values())

    # Asking

    def prepare(self, text: str, *, within: float | None = None) -> None:
        """Say that a question will be asked: what answers it is kept up to date from now on.

        Min and max over ``[ROWS n]`` are exact. With `within`, a width of values, count, sum, avg,
        min and max over ROWS or RANGE are known by an interval, which a TimeGram gives. Questions
        over the same argument and filter share a structure, whatever their sizes.
        """
        self._require_running()
        width = as_width(within)
        query = parse(text, self._aggregates, once=True)
        is_placed = query.window is not None and query.window.measure != "rows"
        terms = agree(query, self._run) if is_placed else None
        self._prepared.add((text, width), query, tail=self._tail, settle=self._settle_axis)
        if self._terms is None and terms is not None:
            self._terms, self._promise = terms, Promise(terms.bound())

    def forget(self, text: str, *, within: float | None = None) -> None:
        """Keep no longer what only this prepared question needs."""
        self._prepared.forget((text, as_width(within)))

    def prepared(self) -> list[tuple[str, float | None]]:
        """The prepared questions: text and `within`, in the order in which they came."""
        return self._prepared.asked

    def ask(self, text: str, *, within: float | None = None) -> pa.Table:
        """An answer now, from what is stored: of the newest panes, or of the last rows.

        ``[RANGE 10 minutes WATTR ts]`` ends with the pane of the newest row. ``[ROWS 500]`` needs
        to be prepared, or a register with ``keep_rows``. `within` asks for the interval that was
        prepared with that width; RANGE windows end just after the newest row then.
        """
        self._require_running()
        width = as_width(within)
        question = self._prepared.find((text, width))
        if question is not None and self._prepared.refusal(question) is None:
            return self._prepared.answer(question)
        query = parse(text, self._aggregates, once=True)
        if self._schema is None or query.streams != (self.stream,) or query.window is None:
            raise QueryError(
                f"only windows over `{self.stream}` can be asked for, once it has sent a batch"
            )
        bound = plan(query, {self.stream: self._schema}, self._aggregates)
        spec = bound.window.spec
        if not isinstance(spec, Sliding):
            raise QueryError("what is asked for now is one window: RANGE or ROWS")
        if bound.axis.column is not None:
            self._require_same_axis("asked", bound)
        if bound.axis.column is None or width is not None:
            return ask_prepared(bound, spec.size, width, self._prepared, self._tail)
        store = self._stores.get(bound.rows.expressions[: len(bound.query.keys)])
        if store is None:
            raise QueryError(
                "no registered query has that GROUP BY, so nothing is stored for it",
                hint="add one; it is answered from the rows to come",
            )
        return ask_panes(bound, store, spec.size, self._newest)

    def explain(self) -> str:
        """What is shared with whom, how panes are cut, and what that saves."""
        return explain_stores(self.stream, self.stores, list(self._prepared.explain()))

    # What is due

    def _advance(self) -> Answers:
        """Answer the windows that progress has reached."""
        now = self._promise.at
        if now == NOTHING or self._reading is None:
            return {}
        names: dict[int, list[str]] = {}
        home: dict[int, tuple[SharedStore, Shape]] = {}
        for name in self._schedule.advance(now):
            found = self._home[name]
            names.setdefault(id(found[1]), []).append(name)
            home[id(found[1])] = found
        due = [(*home[i], home[i][1].places(some)) for i, some in names.items()]
        return self._answered(due, now)

    def _answered(
        self, due: Sequence[tuple[SharedStore, Shape, NDArray[np.int64]]], now: int
    ) -> Answers:
        """The answers of due queries of some shapes; what they alone held is forgotten."""
        begun = time.perf_counter()
        by_store: dict[int, tuple[SharedStore, list[Due]]] = {}
        for store, shape, which in sorted(due, key=lambda d: self._least_time(d[1])):
            by_store.setdefault(id(store), (store, []))[1].append(_due(store, shape, which, now))
        self._foresee(by_store.values())
        found: Answers = {}
        for store, several in by_store.values():
            wanted = [d for d in several if d.windows]
            for _, tables in answer(store, wanted) if wanted else ():
                found.update(tables)
                if self._hand_over is not None:
                    for name, table in tables.items():
                        self._hand_over(name, table)
            for one in several:
                if now == EVERYTHING:
                    break
                one.shape.close_before(one.which, one.shape.rulers.take(one.which).closed(now))
            if now != EVERYTHING:
                store.evict()
                store.fold(now)
        self._pace.saw(sum(len(t) for t in found.values()), time.perf_counter() - begun)
        return found

    def _least_time(self, shape: Shape) -> float:
        return min((m.deadline for m in shape.members if m.deadline is not None), default=np.inf)

    def _foresee(self, due: Iterable[tuple[SharedStore, list[Due]]]) -> None:
        """Note who will be late, before anything is answered."""
        steps = [
            (one.windows * len(store.groups), self._deadlines_of(one))
            for store, several in due
            for one in several
        ]
        self.behind = self._pace.behind(steps, each=self._hand_over is not None)

    def _deadlines_of(self, one: Due) -> list[tuple[str, int]]:
        members = (one.shape.members[i] for i in one.which)
        return [(m.name, m.deadline) for m in members if m.deadline is not None]

    # Binding

    def _bind_waiting(self, schema: pa.Schema) -> None:
        """Queries that were added before the columns were known; all of them or none."""
        if self._schema is not None and not schema.equals(self._schema):
            raise InputError(
                f"a batch of stream `{self.stream}` has other columns than the first one: "
                f"{differences(self._schema, schema)}"
            )
        if self._schema is None:
            try:
                for asked in self._asked.values():
                    self._bind(asked, schema, self._require_terms())
                self._prepared.bind(schema, self._settle_axis)
            except PanesError:
                self._forget_bindings()
                self._reading = None
                raise
            self._schema = schema

    def _bind(self, asked: Asked, schema: pa.Schema, terms: Terms) -> None:
        """Give a query its place in a store, from now on."""
        kind = _shape_key(asked.query)
        if kind not in self._shapes:
            try:
                bound = plan(asked.query, {self.stream: schema}, self._aggregates)
                require_lateness(self._run.lateness, bound.axis.kind)
                self._require_same_axis(asked.name, bound)
            except PanesError as error:
                error.add_note(f"in query `{asked.name}`: {asked.text}")
                raise
            if self._terms is None:
                self._terms, self._promise = terms, Promise(terms.bound())
            if self._reading is None:
                self._reading = _reading(bound, schema)
            keys = bound.rows.expressions[: len(bound.query.keys)]
            if keys not in self._stores:
                self._stores[keys] = SharedStore(bound, schema, self._aggregates)
            store = self._stores[keys]
            self._shapes[kind] = store, store.shape_of(bound, self._newest)
        self._settle(asked, *self._shapes[kind])

    def _settle(self, asked: Asked, store: SharedStore, shape: Shape) -> None:
        """Find the first window of a query that can be answered in full."""
        since, progress = store.complete_from(shape, asked.spec, self._newest), self._promise.at
        first, exact_from = NEVER, None
        if since != NEVER or progress != NOTHING:
            from_panes = NEVER if since == NEVER else first_from(asked.spec, since)
            still_open = NEVER if progress == NOTHING else windows_closed(asked.spec, progress)
            first = max(from_panes, still_open)
            exact_from = extent(asked.spec, first).start
        shape.add(Member(asked.name, asked.spec, asked.deadline, first))
        store.change_cut(self._newest)
        self._schedule.add(asked.name, asked.spec)
        self._home[asked.name] = store, shape
        self._exact_from[asked.name] = exact_from

    def _settle_axis(self, bound: Plan, schema: pa.Schema) -> None:
        """A prepared question over a column has the axis of all, or is the first to say which."""
        if bound.axis.column is not None:
            require_lateness(self._run.lateness, bound.axis.kind)
            self._require_same_axis("asked", bound)
            if self._reading is None:
                self._reading = _reading(bound, schema)

    def _require_same_axis(self, name: str, bound: Plan) -> None:
        if self._reading is not None and bound.axis != self._reading.axis:
            raise QueryError(
                f"query `{name}` runs on `{bound.axis.column}`, and the register on "
                f"`{self._reading.axis.column}`: what is promised of one says nothing of the other",
                hint="open a second register for it",
            )

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the register has finished; open another one to go on")

    def _require_terms(self) -> Terms:
        if self._terms is None:
            raise InputError(
                f"the register of `{self.stream}` has no query yet, so it cannot know which column "
                "orders the rows",
                hint='add one first: reg.add("hot", "SELECT ...")',
            )
        return self._terms

    def _promised(
        self,
        stream: str,  # noqa: ARG002 - as a Gate asks
        keys: Sequence[pa.Array],  # noqa: ARG002
        rows: int,
    ) -> NDArray[np.int64] | None:
        """What was promised of rows before they came: the same of all."""
        at = self._promise.at
        return None if at == NOTHING else np.broadcast_to(np.int64(at), rows)

    def _is_open(
        self,
        at: NDArray[np.int64],
        keys: Sequence[pa.Array],  # noqa: ARG002 - as a Gate asks
    ) -> NDArray[np.bool_]:
        """Which late rows some query still has an open window for."""
        needed = [s.needed_from() for store in self._stores.values() for s in store.shapes]
        return at >= min(needed, default=EVERYTHING)


def _shape_key(query: Query) -> tuple[Query, str]:
    """What queries that differ only in their windows have in common."""
    window = query.window
    axis = "" if window is None else f"{window.measure} {window.column}"
    return replace(query, text="", window=None), axis


def _reading(bound: Plan, schema: pa.Schema) -> Plan:
    """A plan that only places rows: all columns of the stream, no filter, no key."""
    every = tuple(exp.column(exp.to_identifier(name, quoted=True)) for name in schema.names)
    query = replace(bound.query, keys=(), where=None)
    return replace(bound, query=query, rows=Projection(every, None), row_types=tuple(schema.types))


def _require_shareable(name: str, query: Query, stream: str) -> Sliding:
    """Refuse, before the first row, what cannot be answered from shared panes."""
    window = query.window
    if query.streams != (stream,) or any(i is not None for i in query.inner):
        read = ", ".join(query.streams)
        raise QueryError(
            f"query `{name}` reads {read}, and the register answers queries over `{stream}` alone",
            hint=f"FROM {stream} [RANGE ...], without a SELECT inside FROM",
        )
    if (
        window is None
        or window.measure == "rows"
        or window.origin_first
        or not isinstance(window.spec, Sliding)
    ):
        raise QueryError(
            f"query `{name}` has no sliding or tumbling window over a column with a fixed origin, "
            "and only such windows share panes",
            hint="panes.open(...) runs it by itself",
        )
    if query.emits_early:
        raise QueryError(
            f"query `{name}` emits early, and a register gives final answers only",
            hint="panes.open(...) runs it by itself",
        )
    return window.spec


def _due(store: SharedStore, shape: Shape, which: NDArray[np.int64], now: int) -> Due:
    """The windows of some queries that end at or before `now` and may hold a pane."""
    rulers, first = shape.rulers.take(which), shape.first_open(which)
    held = store.fragments.everything()
    if not len(held):
        return Due(shape, which, first, first)
    first = np.maximum(first, rulers.closed(int(held.starts[0])))
    end = np.minimum(rulers.closed(now), rulers.reached(int(held.starts[-1])))
    return Due(shape, which, first, np.maximum(first, end))
