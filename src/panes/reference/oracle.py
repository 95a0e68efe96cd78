"""The oracle: sort, assign by `extent`, fold. Short, obvious and slow.

It shares the language and the evaluation of scalar expressions with the engine, and the window
definitions of `panes.windows.extent`; everything else is said again, as plainly as possible. What
it shares is proved elsewhere: by brute force, and against DuckDB SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from panes.aggregates.custom import CustomAggregate, UserAggregate
from panes.errors import ArithmeticOverflowError, InputError, PanesError
from panes.frames import require_streams, to_table, together
from panes.language.join_query import JoinQuery
from panes.language.query import KEY, WINDOW_COLUMNS, WINDOW_TIME, AggregateCall, Query
from panes.language.query_graph import read_graph
from panes.planning.options import require_options
from panes.planning.plan import Plan, plan
from panes.reference.derived import derived
from panes.reference.folds import FOLDS, Row, distinct, order
from panes.reference.join_oracle import join_answers
from panes.reference.sketch_folds import SKETCH_FOLDS, with_bytes
from panes.reference.spark_folds import SPARK_FOLDS
from panes.reference.tuple_folds import TUPLE_FOLDS
from panes.windows.extent import extent, windows
from panes.windows.spec import Landmark, PartitionedRows, PerRow, Sliding, Spec

_HASHED = SKETCH_FOLDS | TUPLE_FOLDS
_FOLDS = FOLDS | SPARK_FOLDS | _HASHED


@dataclass(frozen=True, slots=True)
class Tuple:
    """A row of the stream: its place, what it is grouped by, and what is aggregated."""

    at: int
    partition: tuple[Any, ...]
    keys: tuple[Any, ...]
    columns: tuple[Any, ...]
    passes: bool


def oracle(
    text: str,
    frames: Mapping[str, object] | None = None,
    /,
    *,
    aggregates: Sequence[UserAggregate] = (),
    **streams: object,
) -> pa.Table:
    """The answer to a window query over bounded tables, computed the slow way.

    Every window kind and every aggregate is answered, approximate ones exactly.
    """
    require_options(text=text, frames=frames, aggregates=aggregates)
    streams = together(frames, streams)
    graph = read_graph(text, aggregates)
    require_streams(graph.streams, streams)
    given = {n: to_table(t, n) for n, t in streams.items()}
    try:
        for part in graph.parts[:-1]:  # an inner query, as if its answers had been written down
            read = graph.everywhere(given)
            given[part.name] = _written_down(_part_answers(part.query, read, aggregates))
        return _part_answers(graph.asked, graph.everywhere(given), aggregates)
    except PanesError:
        raise
    except OverflowError as failure:
        raise InputError(
            f"the oracle reads values as Python has them, and one is too large: {failure}",
            hint="times lie in the years 1 to 9999",
        ) from None


def _part_answers(
    query: Query | JoinQuery, given: Mapping[str, pa.Table], aggregates: Sequence[UserAggregate]
) -> pa.Table:
    """The answers of a query whose streams are all known."""
    read = {name: given[name] for name in query.streams}
    if isinstance(query, JoinQuery):
        return join_answers(query, read, aggregates, window_answers)
    tables = {n: derived(query.inner[query.streams.index(n)], n, t) for n, t in read.items()}
    return window_answers(query, tables, aggregates)


def _written_down(answers: pa.Table) -> pa.Table:
    """Answers as rows: each lies at the last tick of its window."""
    if "window_end" not in answers.column_names:
        return answers
    ends = answers.column("window_end").combine_chunks()
    last = [end - 1 for end in ends.cast(pa.int64()).to_pylist()]
    return answers.append_column(WINDOW_TIME, pa.array(last, pa.int64()).cast(ends.type))


def window_answers(
    query: Query, tables: Mapping[str, pa.Table], aggregates: Sequence[UserAggregate]
) -> pa.Table:
    """The answers to a query over one stream or a union."""
    bound = plan(query, {n: t.schema for n, t in tables.items()}, aggregates)
    rows = _read(bound, tables)
    user = {u.name.lower(): u for u in aggregates}
    if isinstance(bound.window.spec, PerRow):
        return _per_row(bound, rows, user)
    return _per_window(bound, rows, user)


def _read(bound: Plan, tables: Mapping[str, pa.Table]) -> list[Tuple]:
    """All rows with their place on the axis; rows without one are left out.

    They are in arrival order, or in that of the column which orders a ROWS window.
    """
    result: list[Tuple] = []
    for name in bound.query.streams:
        table = tables[name]
        passing_rows, values = bound.rows(table)
        passing = range(len(table)) if passing_rows is None else passing_rows.tolist()
        read = [c.to_pylist() for c in values]
        computed = {i: tuple(c[n] for c in read) for n, i in enumerate(passing)}
        parts = list(zip(*(c.to_pylist() for c in bound.partition(table)), strict=True))
        positions = _positions(bound, table, len(result))
        keys = len(bound.query.keys)
        for i, at in enumerate(positions):
            if at is not None:
                row = computed.get(i, (None,) * len(read))
                part = parts[i] if parts else ()
                result.append(Tuple(at, part, row[:keys], row, i in computed))
    if bound.order is None:
        return result
    ordered = sorted(result, key=lambda t: t.at)
    return [replace(t, at=number) for number, t in enumerate(ordered)]


def _positions(bound: Plan, table: pa.Table, arrived: int) -> list[int | None]:
    axis = bound.placing
    if axis.kind == "rows":
        return list(range(arrived, arrived + len(table)))
    ticks, missing = axis.ticks(table.column(axis.column).combine_chunks())
    return [None if missing is not None and missing[i] else int(t) for i, t in enumerate(ticks)]


def _per_window(bound: Plan, rows: list[Tuple], user: Mapping[str, UserAggregate]) -> pa.Table:
    spec = _with_origin(bound, rows)
    found: list[tuple[int, tuple[Any, ...], list[Tuple]]] = []
    for partition in _partitions(rows, spec):
        arrived = [t.at for t in partition]
        ranked = isinstance(spec, PartitionedRows)
        for wid in windows(spec, [t.at for t in partition if t.passes or ranked]):
            start, end = extent(spec, wid)
            if bound.axis.kind == "rows" and end > len(arrived):
                continue
            inside = [t for t in partition if t.passes and start <= t.at < end]
            for keys in sorted({tuple(map(order, t.keys)) for t in inside}):
                group = [t for t in inside if tuple(map(order, t.keys)) == keys]
                found.append((wid, keys, group))
    found.sort(key=lambda f: (f[0], f[1]))
    return _answers(bound, spec, found, user)


def _partitions(rows: list[Tuple], spec: Spec) -> Iterator[list[Tuple]]:
    """The rows, split before windowing where the window says so; then places are ranks."""
    if not isinstance(spec, PartitionedRows):
        yield rows
        return
    for part in dict.fromkeys(tuple(map(order, t.partition)) for t in rows):
        mine = [t for t in rows if tuple(map(order, t.partition)) == part]
        yield [replace(t, at=rank) for rank, t in enumerate(mine)]


def _with_origin(bound: Plan, rows: list[Tuple]) -> Spec:
    spec = bound.window.spec
    passing = [t.at for t in rows if t.passes]
    if bound.window.origin_first and passing and isinstance(spec, Sliding | Landmark):
        return replace(spec, origin=spec.origin + min(passing))
    return spec


def _answers(
    bound: Plan,
    spec: Spec,
    found: Sequence[tuple[int, tuple[Any, ...], list[Tuple]]],
    user: Mapping[str, UserAggregate],
) -> pa.Table:
    query, axis = bound.query, bound.axis
    starts = [None if isinstance(spec, Landmark) else extent(spec, w).start for w, _, _ in found]
    ends = [extent(spec, w).end for w, _, _ in found]
    columns = [pa.array(side, pa.int64()).cast(axis.type) for side in (starts, ends)]
    columns += [
        pa.array([g[0].keys[i] for _, _, g in found], t) for i, t in enumerate(bound.key_types)
    ]
    columns += _folded(bound, [g for _, _, g in found], user)
    table = pa.table(columns, schema=bound.lowered_schema())
    passing, outputs = bound.answers(table)
    if passing is not None:
        table = table.take(pa.array(passing))
    shown = [table.column(0), table.column(1)]
    shown += [table.column(f"{KEY}{i}") for i in query.shown_keys]
    names = [*WINDOW_COLUMNS, *(query.keys[i].name for i in query.shown_keys)]
    return pa.table([*shown, *outputs], names=[*names, *(o.name for o in query.outputs)])


def _per_row(bound: Plan, rows: list[Tuple], user: Mapping[str, UserAggregate]) -> pa.Table:
    spec, query = bound.window.spec, bound.query
    assert isinstance(spec, PerRow)
    defined: list[tuple[Tuple, list[Tuple]]] = []
    for part in dict.fromkeys(tuple(map(order, t.partition)) for t in rows):
        mine = [t for t in rows if tuple(map(order, t.partition)) == part]
        passing = [t for t in mine if t.passes]
        counted = mine if spec.counted_by == "arrival" else sorted(mine, key=lambda t: t.at)
        for row in counted[spec.every - 1 :: spec.every]:
            start, end = extent(spec, row.at)
            if row.passes:
                defined.append((row, [t for t in passing if start <= t.at < end]))
    arrival = {id(t): i for i, t in enumerate(rows)}
    defined.sort(key=lambda d: (d[0].at, arrival[id(d[0])]))
    columns = _folded(bound, [inside for _, inside in defined], user)
    for place in bound.defining_columns:
        values = [row.columns[place] for row, _ in defined]
        columns.append(pa.array(values, bound.row_types[place]))
    _, outputs = bound.answers(pa.table(columns, schema=bound.lowered_schema()))
    return pa.table(outputs, names=[o.name for o in query.outputs])


def _folded(
    bound: Plan, groups: Sequence[list[Tuple]], user: Mapping[str, UserAggregate]
) -> list[pa.Array]:
    columns = []
    for call, aggregate, (arguments, where) in zip(
        bound.query.calls, bound.aggregates, bound.call_columns, strict=True
    ):
        answers = []
        for group in groups:
            rows = [
                (t.at, tuple(t.columns[a] for a in arguments))
                for t in group
                if where is None or t.columns[where]
            ]
            types = [bound.row_types[a] for a in arguments]
            answers.append(_fold(call, rows, user, types))
        try:
            columns.append(pa.array(answers, aggregate.type))
        except (OverflowError, pa.ArrowInvalid):
            raise ArithmeticOverflowError(f"{call.sql} does not fit {aggregate.type}") from None
    return columns


def _fold(
    call: AggregateCall,
    rows: Sequence[Row],
    user: Mapping[str, UserAggregate],
    types: Sequence[pa.DataType],
) -> Any:
    own = user.get(call.name)
    if own is not None:
        return _fold_own(own, rows, types)
    if call.distinct:
        rows = distinct(rows)
    fold = _FOLDS[call.name]
    if call.name in _HASHED:
        return fold(with_bytes(rows, types[0]), *call.parameters)
    if call.skip_nulls:
        return fold(rows, skip_nulls=True)
    return fold(rows, *call.parameters)


def _fold_own(own: UserAggregate, rows: Sequence[Row], types: Sequence[pa.DataType]) -> Any:
    present = [values for _, values in rows if None not in values]
    if not isinstance(own, CustomAggregate):
        ranked = sorted((v[0] for v in present), key=order)
        return own.function(pa.array(ranked, types[0]))
    monoid = own.build((), None).pieces[0].monoid
    partial = monoid.empty(1)
    for values in present:
        lifted = own.lift(*(pa.array([v], t) for v, t in zip(values, types, strict=True)))
        partial = monoid.combine(partial, lifted.astype(monoid.dtype))
    return pa.array(own.lower(partial), type=own.type)[0].as_py()
