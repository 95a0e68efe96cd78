"""One shard of a streaming query: the pane store at a host that keeps its state.

Each batch, a shard is given the packages of all tasks, takes what it needs of its state, answers
the windows that are complete now, and puts back what changed. Between batches it is nothing but
bytes under names: one `about` and a few blocks of panes, each block a parcel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.admit.arrival import Arrival
from panes.admit.set_aside import late_reasons
from panes.answers.release import Line
from panes.answers.status import ends_of, marked, next_early, status_columns
from panes.axis import BEGINNING, FOREVER
from panes.errors import StateError
from panes.pipelines.choose import pipeline_of
from panes.planning.describe import describe
from panes.planning.flush import shared_by
from panes.planning.plan import Plan
from panes.planning.terms import Terms
from panes.progress.promise import Promise, meld
from panes.shards.blocks import MOST_BLOCKS, block_span
from panes.shards.combiner import (
    AT,
    EVERY_SOURCE,
    KEPT,
    MARKS,
    REJECTED,
    ROW,
    ROWS,
    SOURCE,
    WATCH,
    column_name,
)
from panes.shards.recall import Recall, digest
from panes.stores import codec
from panes.stores.parcel import Parcel, from_tables, to_tables, widened
from panes.windows.spec import Landmark

ABOUT = "about"
RECALL: Recall[Parcel] = Recall()
_QUERY, _PROGRESS, _SOURCES, _BLOCKS = "query", "progress", "sources", "blocks"
_ROWS, _LINE = "rows", "line"


class State(Protocol):
    """Where a host keeps a shard's bytes, by name. A dict is one."""

    def get(self, name: str, /) -> bytes | None: ...
    def __setitem__(self, name: str, data: bytes, /) -> None: ...
    def __delitem__(self, name: str, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch gave: answers before the SELECT's expressions, rows set apart, and sizes."""

    answers: pa.Table
    late: pa.Table
    rejected: pa.Table
    progress: int
    partials: int
    nbytes: int


@dataclass(slots=True)
class _About:
    """What a shard remembers beside its panes."""

    promises: list[Promise]
    span: int
    first_open: int = BEGINNING
    first_kept: int = BEGINNING
    newest: int = BEGINNING
    next_early: int | None = None
    blocks: dict[int, _Block] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Block:
    """What is known of a block without fetching it."""

    partials: int
    nbytes: int
    digest: bytes


class Shard:
    """A shard's part of one query, for one batch."""

    def __init__(self, plan: Plan, terms: Terms, state: State, *, shards: int) -> None:
        self._plan, self._terms, self._state, self._shards = plan, terms, state, shards
        ranked = _is_ranked(plan)
        self._rewrites_all = isinstance(plan.spec, Landmark) or ranked
        self._about = self._remembered()
        self._status_columns = status_columns(plan, terms)
        about = self._about
        self._pipeline = pipeline_of(plan, revisable=terms.keeps)
        self._pipeline.resume(about.first_open, about.newest, about.first_kept)
        self._put_back_rows()
        self._loaded: set[int] = set()

    def take(self, packages: Sequence[bytes]) -> Outcome:
        """Take in one batch; gives the answers that are final from now on."""
        opened = [codec.unpack(data) for data in packages]
        late = [found for tables in opened for found in self._late(tables)]
        rejected = [t[REJECTED] for t in opened if REJECTED in t]
        parcels = [p for t in opened if (p := from_tables(self._plan.pieces, t)) is not None]
        self._pipeline.take(parcels)
        for tables in opened:
            if ROWS in tables:
                self._add_rows(tables[ROWS])
        touched = self._touched()
        for tables in opened:
            self._note(tables[MARKS])
        self._load(touched)
        progress, why = self._progress
        answers = [marked(self._revised(parcels), self._status_columns, "revised", "a late row")]
        if progress != BEGINNING and self._pipeline.closes_any(progress):
            self._load_before(progress)
            closed = self._pipeline.close(progress, in_order=False)
            answers.append(marked(closed, self._status_columns, "final", why))
        answers.append(marked(self._early(), self._status_columns, "early", "nothing yet"))
        released = self._released(pa.concat_tables(answers), parcels)
        self._keep(touched)
        return self._outcome(released, late, rejected)

    def _load_before(self, at: int) -> None:
        """Fetch the blocks of all panes before a position."""
        last = None if self._rewrites_all else self._block(at)
        self._load(b for b in self._about.blocks if last is None or b <= last)

    def _revised(self, parcels: Sequence[Parcel]) -> pa.Table:
        """Closed windows that have panes among these, which late rows have brought."""
        pipeline = self._pipeline
        nothing = self._plan.lowered_schema().empty_table()
        if self._terms.late != "revise" or pipeline.first_open == BEGINNING:
            return nothing
        behind = [(p, np.flatnonzero(p.starts < pipeline.ended)) for p in parcels]
        late = [(p, which) for p, which in behind if len(which)]
        if not late:
            return nothing
        self._load_before(pipeline.ended)
        at = np.concatenate([p.starts[which] for p, which in late])
        taken = [[k.take(pa.array(p.groups[which])) for k in p.keys] for p, which in late]
        return pipeline.revised(at, [pa.concat_arrays(c) for c in zip(*taken, strict=True)])

    def _early(self) -> pa.Table:
        """Open windows as they are now, if it is time to tell."""
        early, pipeline = self._plan.query.early, self._pipeline
        nothing = self._plan.lowered_schema().empty_table()
        if early is None or pipeline.newest == BEGINNING:
            return nothing
        if early.every is not None:
            due = self._about.next_early
            if due is not None and pipeline.newest < due:
                return nothing
            self._about.next_early = next_early(early.every, pipeline.newest)
        self._load(list(self._about.blocks))
        return pipeline.open_windows()

    def _released(self, found: pa.Table, parcels: Sequence[Parcel] | None) -> pa.Table:
        """Answers to give now; the others wait in the state. At the end there are no parcels."""
        flush = self._terms.flush
        if flush is None:
            return found
        keys = len(self._plan.query.keys)
        line = Line(shared_by(flush, self._shards), tuple(range(2, 2 + keys)))
        stored = self._state.get(_LINE)
        if stored is not None:
            waiting = codec.unpack(stored)[_LINE].cast(found.schema)
            line.wait(waiting, ends_of(waiting))
        line.wait(found, ends_of(found))
        if parcels is None:
            released = line.everybody()
        else:
            seen = [p.keys for p in parcels if p.keys and len(p.keys[0])]
            columns = [pa.concat_arrays(c) for c in zip(*seen, strict=True)]
            rows = len(columns[0]) if columns else sum(len(p.starts) for p in parcels)
            released = line.released(columns, rows, self._progress[0])
        if len(line):
            self._state[_LINE] = codec.pack({_LINE: line.everybody()})
        elif stored is not None:
            del self._state[_LINE]
        return released

    def finish(self) -> Outcome:
        """The stream has ended: every window that holds a row is answered and forgotten."""
        self._load(list(self._about.blocks))
        closed = self._pipeline.close_all(in_order=False)
        answers = marked(closed, self._status_columns, "final", "the end of the stream")
        released = self._released(answers, None)
        if self._pipeline.newest != BEGINNING:
            for promise in self._about.promises:
                promise.punctuate(self._pipeline.ended)
        # A landmark window never lets go of its rows: if the stream goes on after all, they count.
        self._keep(set(self._about.blocks))
        return self._outcome(released, [], [])

    def _outcome(
        self, answers: pa.Table, late: Sequence[pa.Table], rejected: Sequence[pa.Table]
    ) -> Outcome:
        blocks = self._about.blocks.values()
        return Outcome(
            answers=answers,
            late=pa.concat_tables(late) if late else _NOTHING_APART,
            rejected=pa.concat_tables(rejected) if rejected else _NOTHING_APART,
            progress=self._progress[0],
            partials=sum(b.partials for b in blocks),
            nbytes=sum(b.nbytes for b in blocks),
        )

    @property
    def _progress(self) -> tuple[int, str]:
        """What is promised of all sources together, and why."""
        streams = self._plan.query.streams
        return meld(dict(zip(streams, self._about.promises, strict=True)))

    def _late(self, tables: Mapping[str, pa.Table]) -> Iterator[pa.Table]:
        """Rows that break a promise made before this batch."""
        for mark in tables[MARKS].to_pylist():
            number = mark[SOURCE]
            watched = tables.get(f"{WATCH}{number}")
            if watched is None:
                continue
            promise = self._about.promises[number]
            at = mark["low"] + widened(watched.column(AT).combine_chunks())
            which = np.flatnonzero(at < promise.at)
            if not len(which):
                continue
            is_open = self._pipeline.has_open_window(at[which])
            late = self._terms.late
            reasons = late_reasons(self._plan.placing, promise.at, is_open, late=late)
            columns = {"reason": pa.array(reasons)}
            if ROW in watched.column_names:
                columns[ROW] = watched.column(ROW).take(pa.array(which))
            yield pa.table(columns)

    def _add_rows(self, table: pa.Table) -> None:
        """Rows that were not filled before: those that keep every promise count."""
        source, at = _numbers(table, SOURCE), _numbers(table, AT)
        kept = np.ones(len(table), dtype=np.bool_)
        if self._terms.drops_late:
            kept = at >= np.array([p.at for p in self._about.promises])[source]
        if KEPT in table.column_names:
            kept &= table.column(KEPT).to_numpy()
        which = np.flatnonzero(kept)
        names = [column_name(i) for i in range(len(self._plan.row_types))]
        columns = [table.column(n).combine_chunks() for n in names]
        taken = [c.take(pa.array(which)) for c in columns]
        partition = [columns[c] for c in self._plan.partition_columns]
        self._pipeline.add(Arrival(at, taken, which, partition))

    def _note(self, marks: pa.Table) -> None:
        """What a task says of how far its rows reach."""
        for mark in marks.to_pylist():
            number = mark[SOURCE]
            of = self._about.promises if number == EVERY_SOURCE else [self._about.promises[number]]
            for promise in of:
                if mark["high"] is not None:
                    promise.observe(np.array([mark["high"]]))
                if mark["promise"] is not None:
                    promise.punctuate(mark["promise"])
            if mark["newest"] is not None:
                self._pipeline.reach(mark["newest"])

    def _block(self, at: int) -> int:
        return (at - self._plan.spec.origin) // self._about.span

    def _blocks(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        return (starts - self._plan.spec.origin) // self._about.span

    def _touched(self) -> set[int]:
        """Blocks that this batch adds to; all of them, where closing windows rewrites panes."""
        starts = self._pipeline.panes.pane_starts()
        touched = set(np.unique(self._blocks(starts)).tolist())
        return touched | self._about.blocks.keys() if self._rewrites_all else touched

    def _load(self, blocks: Iterable[int]) -> None:
        wanted = (self._about.blocks.keys() & set(blocks)) - self._loaded
        parcels = [self._parcel(b) for b in sorted(wanted)]
        self._loaded |= wanted
        if parcels:
            self._pipeline.take(parcels)

    def _parcel(self, block: int) -> Parcel:
        about = self._about.blocks[block]
        known = RECALL.get(about.digest)
        if known is not None:
            return known
        data = self._state.get(_name(block))
        parcel = None if data is None else from_tables(self._plan.pieces, codec.unpack(data))
        if parcel is None:
            raise StateError(f"block {block} of the state is missing")
        RECALL.put(about.digest, parcel, about.nbytes)
        return parcel

    def _keep(self, touched: set[int]) -> None:
        """Put back the blocks that changed, drop those without an open window, and remember."""
        about = self._about
        about.first_open, about.newest = self._pipeline.first_open, self._pipeline.newest
        about.first_kept = self._pipeline.first_needed
        parcels = {}
        if touched or self._rewrites_all:
            parcels = self._pipeline.split(lambda starts, _: self._blocks(starts))
        if self._rewrites_all:
            touched = touched | parcels.keys()
        for block in touched:
            self._put(block, parcels.get(block))
        self._loaded |= touched
        ends = {b: self._plan.spec.origin + (b + 1) * about.span for b in about.blocks}
        for block, end in ends.items():
            if block not in touched and not self._pipeline.has_open_window(np.array([end - 1]))[0]:
                self._put(block, None)
        if len(about.blocks) > MOST_BLOCKS:
            self._widen()
        self._keep_rows()
        self._state[ABOUT] = codec.pack(self._about_tables())

    def _put_back_rows(self) -> None:
        """Rows that wait for their own window, where windows are those of rows."""
        data = self._state.get(_ROWS) if self._plan.counts_rows else None
        self._had_rows = data is not None
        if data is not None:
            self._pipeline.put_back(codec.unpack(data))

    def _keep_rows(self) -> None:
        tables = self._pipeline.tables()
        if tables:
            self._state[_ROWS] = codec.pack(tables)
        elif self._had_rows:
            del self._state[_ROWS]

    def _put(self, block: int, parcel: Parcel | None) -> None:
        if parcel is not None and len(parcel):
            data = codec.pack(to_tables(self._plan.pieces, parcel))
            self._state[_name(block)] = data
            self._about.blocks[block] = _Block(len(parcel), len(data), digest(data))
            RECALL.put(self._about.blocks[block].digest, parcel, len(data))
        elif self._about.blocks.pop(block, None) is not None:
            del self._state[_name(block)]

    def _widen(self) -> None:
        """Fewer, longer blocks: a state is a handful of them, however much waits."""
        self._load(list(self._about.blocks))
        for block in list(self._about.blocks):
            self._put(block, None)
        self._about.span *= 2
        while True:
            parcels = self._pipeline.split(lambda starts, _: self._blocks(starts))
            if len(parcels) <= MOST_BLOCKS // 2:
                break
            self._about.span *= 2
        for block, parcel in parcels.items():
            self._put(block, parcel)

    def _remembered(self) -> _About:
        data = self._state.get(ABOUT)
        if data is None:
            count = len(self._plan.query.streams)
            promises = [Promise(self._terms.bound()) for _ in range(count)]
            ranked = _is_ranked(self._plan)
            return _About(promises, FOREVER if ranked else block_span(self._plan.spec))
        tables = codec.unpack(data)
        self._require_same_query(tables[_QUERY])
        progress = tables[_PROGRESS].to_pylist()[0]
        promised = tables[_SOURCES].column("promise").to_pylist()
        blocks = tables[_BLOCKS].to_pylist()
        return _About(
            promises=[Promise(self._terms.bound(), at) for at in promised],
            span=progress["span"],
            first_open=progress["first_open"],
            first_kept=progress.get("first_kept", progress["first_open"]),
            next_early=progress.get("next_early"),
            newest=progress["newest"],
            blocks={b.pop("block"): _Block(**b) for b in blocks},
        )

    def _about_tables(self) -> dict[str, pa.Table]:
        about = self._about
        identity = identify(self._plan, self._shards)
        progress = {"first_open": about.first_open, "newest": about.newest, "span": about.span}
        progress |= {"first_kept": about.first_kept}
        progress |= {} if about.next_early is None else {"next_early": about.next_early}
        blocks = [{"block": n, **asdict(block)} for n, block in about.blocks.items()]
        return {
            _QUERY: pa.table({"what": list(identity), "value": list(identity.values())}),
            _PROGRESS: pa.Table.from_pylist([progress]),
            _SOURCES: pa.table({"promise": pa.array([p.at for p in about.promises], pa.int64())}),
            _BLOCKS: pa.Table.from_pylist(blocks, schema=_BLOCK_SCHEMA),
        }

    def _require_same_query(self, kept: pa.Table) -> None:
        before = {row["what"]: row["value"] for row in kept.to_pylist()}
        now = identify(self._plan, self._shards)
        changed = [w for w in {**before, **now} if before.get(w, "") != now.get(w, "")]
        if changed:
            told = "; ".join(
                f"{w} was {before.get(w) or 'nothing'}, is {now.get(w) or 'nothing'}"
                for w in changed
            )
            raise StateError(
                f"the checkpoint holds the state of another query: {told}",
                hint="ask as before (shards= says how many), or start with a new checkpoint",
            )


def identify(plan: Plan, shards: int) -> Mapping[str, str]:
    """What must not change while a state lives on. Lateness, HAVING and the SELECT may."""
    query = plan.query
    keys = (
        f"{k.expression.sql('spark')} {t}" for k, t in zip(query.keys, plan.key_types, strict=True)
    )
    calls = (f"{c.sql} {a.type}" for c, a in zip(query.calls, plan.aggregates, strict=True))
    return {
        "the window": describe(plan.window),
        "FROM": ", ".join(query.streams),
        "WHERE": "" if query.where is None else query.where.sql("spark"),
        "GROUP BY": ", ".join(keys),
        "PA": ", ".join(plan.window.partition),
        "SELECT": ", ".join(calls),
        "the number of shards": str(shards),
    }


def _is_ranked(plan: Plan) -> bool:
    """Whether rows are at their ranks: no two partitions agree on where a block ends."""
    return plan.order is not None


_BLOCK_SCHEMA = pa.schema(
    {"block": pa.int64(), "partials": pa.int64(), "nbytes": pa.int64(), "digest": pa.binary()}
)
_NOTHING_APART = pa.table({"reason": pa.array([], pa.string())})


def _name(block: int) -> str:
    return f"panes/{block}"


def _numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = pc.cast(table.column(name), pa.int64()).combine_chunks().to_numpy()
    return numbers
