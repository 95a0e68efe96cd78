"""The public functions: query tables, open a query on a stream, run many, explain one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import Duration
from panes.errors import OptionError, QueryError, RejectedRowsWarning, warn
from panes.frames import is_spark, require_streams, to_table, together
from panes.html import Explained
from panes.index.g_index import GROUPS
from panes.language.join_query import JoinQuery
from panes.language.query_graph import QueryGraph, read_graph
from panes.live.live_page import LivePage, feed_of
from panes.nodes.inner import derived_schemas, joined_schemas
from panes.planning.choose_store import choose_store
from panes.planning.explain import explain as explain_plan
from panes.planning.explain import explain_unbound
from panes.planning.explain_join import explain_join
from panes.planning.flush import Flush
from panes.planning.join_query_plan import plan_join_query
from panes.planning.options import require_options
from panes.planning.plan import plan
from panes.planning.terms import Late, Run
from panes.process.in_steps import answers_of, require_steps
from panes.process.open_graph import OpenGraph
from panes.process.open_join import OpenJoin
from panes.process.open_query import OpenQuery
from panes.process.opened import RunningQuery, opened
from panes.process.register import Register
from panes.process.window_index import WindowIndex
from panes.progress.stall import MOST_STALLED
from panes.windows.limit import MOST_ANSWERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from panes.spark.join.register import SparkJoinRegister
    from panes.spark.register.register import SparkRegister


class RegisterOptions(TypedDict, total=False):
    """The options of `register`."""

    lateness: Duration | None
    late: Late
    max_ahead: Duration | None
    punctuation: str | None
    rows_late: int | None
    schema: pa.Schema | None
    aggregates: Sequence[UserAggregate]
    keep_rows: int
    hand_over: Callable[[str, pa.Table], None] | None
    saved: str | Path | None
    heartbeat: Duration | None
    shards: int | None
    name: str | None
    max_answers: int | None
    stall_rows: int | None


@overload
def sql(
    text: str,
    frames: Mapping[str, DataFrame] | None = None,
    /,
    *,
    lateness: Duration | None = None,
    late: Late = "open",
    punctuation: str | None = None,
    max_ahead: Duration | None = "1 day",
    aggregates: Sequence[UserAggregate] = (),
    bounded: bool = False,
    heartbeat: Duration | None = None,
    shards: int | None = None,
    with_late: bool = False,
    name: str | None = None,
    store: str | None = None,
    revise_within: Duration | None = None,
    flush: Flush | None = None,
    why: bool = False,
    max_answers: int | None = MOST_ANSWERS,
    batches: Literal[False] = False,
    **streams: DataFrame,
) -> DataFrame: ...


@overload
def sql(
    text: str,
    frames: Mapping[str, object] | None = None,
    /,
    *,
    lateness: Duration | None = None,
    late: Late = "open",
    punctuation: str | None = None,
    max_ahead: Duration | None = "1 day",
    aggregates: Sequence[UserAggregate] = (),
    bounded: bool = False,
    heartbeat: Duration | None = None,
    shards: int | None = None,
    with_late: bool = False,
    name: str | None = None,
    store: str | None = None,
    revise_within: Duration | None = None,
    flush: Flush | None = None,
    why: bool = False,
    max_answers: int | None = MOST_ANSWERS,
    batches: Literal[True],
    **streams: object,
) -> pa.RecordBatchReader: ...


@overload
def sql(
    text: str,
    frames: Mapping[str, object] | None = None,
    /,
    *,
    lateness: Duration | None = None,
    late: Late = "open",
    punctuation: str | None = None,
    max_ahead: Duration | None = "1 day",
    aggregates: Sequence[UserAggregate] = (),
    bounded: bool = False,
    heartbeat: Duration | None = None,
    shards: int | None = None,
    with_late: bool = False,
    name: str | None = None,
    store: str | None = None,
    revise_within: Duration | None = None,
    flush: Flush | None = None,
    why: bool = False,
    max_answers: int | None = MOST_ANSWERS,
    batches: bool = False,
    **streams: object,
) -> pa.Table: ...


def sql(
    text: str,
    frames: Mapping[str, object] | None = None,
    /,
    *,
    lateness: Duration | None = None,
    late: Late = "open",
    punctuation: str | None = None,
    max_ahead: Duration | None = "1 day",
    aggregates: Sequence[UserAggregate] = (),
    bounded: bool = False,
    heartbeat: Duration | None = None,
    shards: int | None = None,
    with_late: bool = False,
    name: str | None = None,
    store: str | None = None,
    revise_within: Duration | None = None,
    flush: Flush | None = None,
    why: bool = False,
    max_answers: int | None = MOST_ANSWERS,
    batches: bool = False,
    **streams: object,
) -> Any:
    """Answer a window query over tables or over Spark DataFrames.

    Tables (pyarrow, pandas, Polars) give an Arrow table. It has an answer for every window that
    holds a row, ordered by window and then by key. A table counts as one batch, so no row of it is
    late. Rows whose position is NULL or out of range are left out; a `RejectedRowsWarning` counts
    them.

    Spark DataFrames give a DataFrame, bounded or streaming like the one that was given. The
    options below are for streaming DataFrames. For others they change nothing.

    Parameters
    ----------
    text
        One SELECT with a window clause. See docs/reference/language.md.
    frames, streams
        The tables or DataFrames, by the names that the query uses: ``bids=table``, or
        ``{"bids": table}``, for example where a stream is called like an option.
    lateness, late, max_ahead, revise_within, flush, why, max_answers
        As for `open`. On Spark, a step is what one task answers.
    punctuation
        A column with watermarks. Its value promises that no older row will come. A row without a
        position of its own is such a promise and nothing else.
    aggregates
        Your own aggregates: `CustomAggregate` and `WindowFunction`.
    bounded
        The stream ends (Spark: ``trigger(availableNow=True)``). At its end every window is
        answered.
    heartbeat
        While no rows come, progress follows the clock, this far behind it.
    shards
        How many parts the state has. Default: one per shuffle partition.
    with_late
        Also return late and rejected rows: the DataFrame has the columns ``answer`` and
        ``apart``. `panes.spark.split` writes each to its own sink.
    name
        The name of the query's metrics in Spark's progress reports. Default: ``panes_`` and eight
        letters that follow from the query and what it reads.
    store
        As for `open`. On Spark only ``"panes"`` is possible.
    batches
        Give the answers of tables as a `pyarrow.RecordBatchReader`, in the same order. Windows are
        closed while it is read, so the answers need not fit in memory. `max_answers` is for each
        batch then, and 100 such batches for all of them.

    Examples
    --------
    >>> bids = pa.table({"at": [1, 2, 12], "item": ["a", "b", "a"], "price": [5.0, 3.0, 4.0]})
    >>> answers = sql("SELECT item, max(price) AS high FROM bids [TUMBLING 10 WATTR at] "
    ...               "GROUP BY item", bids=bids)
    >>> answers.to_pylist()[0]
    {'window_start': 0, 'window_end': 10, 'item': 'a', 'high': 5.0}
    """
    require_options(text=text, frames=frames, aggregates=aggregates, batches=batches)
    streams = together(frames, streams)
    run = Run(
        lateness=lateness,
        late=late,
        max_ahead=max_ahead,
        punctuation=punctuation,
        bounded=bounded,
        heartbeat=heartbeat,
        shards=shards,
        with_late=with_late,
        name=name,
        store=store,
        revise_within=revise_within,
        flush=flush,
        why=why,
        max_answers=max_answers,
    )
    if any(is_spark(frame) for frame in streams.values()):
        if batches:
            raise OptionError(
                "batches=True is for tables: the answers of a DataFrame are a DataFrame",
                hint="to read it piece by piece: answers.toLocalIterator()",
            )
        return importlib.import_module("panes.spark.query").answer(text, streams, aggregates, run)
    if with_late:
        raise OptionError(
            "with_late is for streaming DataFrames: no row of a table is late",
            hint="for a stream in this process: panes.open(...).late",
        )
    alone = replace(run, bounded=True, max_ahead=None, late="open" if late == "revise" else late)
    if batches:
        alone = replace(alone, flush=None)
    query = opened(text, alone, aggregates)
    require_streams(query.query.streams, streams)
    if query.query.emits_early:
        raise QueryError(
            "EMIT EARLY is for streams; the windows of a table are all complete",
            hint="leave out EMIT EARLY",
        )
    if batches and not isinstance(query, OpenQuery):
        raise OptionError(
            "batches=True is for windows over one stream or a union, not for joins and for queries "
            "with queries inside"
        )
    if isinstance(query, OpenJoin):
        answers = query.answer(**streams)
    elif isinstance(query, OpenQuery) and batches:
        require_steps(store)
        answers = answers_of(query, streams)
    else:
        answers = pa.concat_tables([query.push(**streams), query.finish()])
    rejected = query.rejected
    if len(rejected):
        counts = rejected.group_by("reason").aggregate([([], "count_all")]).to_pylist()
        reasons = "; ".join(f"{c['count_all']} rows: {c['reason']}" for c in counts)
        warn(f"left out {reasons}", RejectedRowsWarning)
    return answers


def open(
    text: str,
    /,
    *,
    lateness: Duration | None = None,
    late: Late = "open",
    max_ahead: Duration | None = "1 day",
    punctuation: str | None = None,
    heartbeat: Duration | None = None,
    rows_late: int | None = None,
    revise_within: Duration | None = None,
    schema: pa.Schema | Mapping[str, pa.Schema] | None = None,
    aggregates: Sequence[UserAggregate] = (),
    store: str | None = None,
    flush: Flush | None = None,
    why: bool = False,
    max_answers: int | None = MOST_ANSWERS,
    stall_rows: int | None = MOST_STALLED,
) -> RunningQuery:
    """Open a window query on a stream: push batches, take final answers.

    Threads may share an `OpenQuery`: they take turns.

    Parameters
    ----------
    text
        One SELECT with a window clause. See docs/reference/language.md.
    lateness
        How far a row may be behind the newest row, for example ``"10 seconds"``; 0 for a stream
        in order. Without it, windows close only by punctuation or at the end of the stream.
    late
        What to do with a row that comes later than that. ``"open"``: count it in its windows that
        are still open. ``"drop"``: do not count it. ``"revise"``: also answer its closed windows
        again. In every case the row is in `OpenQuery.late`.
    max_ahead
        With a `lateness`, reject rows that are further ahead of the clock than this. One wrong
        timestamp then cannot close all windows. An integer axis has no clock: there, a whole
        number rejects rows that are further ahead of all rows so far. None accepts every row.
    punctuation
        A column with watermarks. Its value promises that no older row will come. A row without a
        position of its own is such a promise and nothing else.
    heartbeat
        While no rows come, progress follows the clock, this far behind it: with every push, and
        with `OpenQuery.beat`.
    rows_late
        Instead of `lateness`: how many rows late a row may come.
    revise_within
        With ``late="revise"``, how far behind progress a window can still be answered again.
        Without it, always, and nothing is ever deleted.
    schema
        The columns of the stream, or of each stream by its name. With it, the query is checked at
        once. Without it, the columns are those of the first batch.
    aggregates
        Your own aggregates: `CustomAggregate` and `WindowFunction`.
    store
        How rows are stored until their windows close: ``"panes"`` (the default), ``"eager"``,
        ``"buffered"``, ``"adaptive"``, ``"adaptive-panes"`` or ``"bins"``. All give the same
        answers.
    flush
        `SlowFlush` or `LazyFlush`: spread the answers of a window with very many keys over
        several pushes.
    why
        Add a last column, ``closed_by``, that says what closed the window.
    max_answers
        Refuse a step that would give more answers at once. None: give all of them.
    stall_rows
        Warn (`NoProgressWarning`) when so many rows have come since progress last moved. None:
        never.

    Examples
    --------
    >>> query = open("SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR at]", lateness=2)
    >>> query.push(bids=pa.table({"at": [1, 5, 12]})).to_pylist()
    [{'window_start': 0, 'window_end': 10, 'n': 2}]
    >>> query.finish().to_pylist()
    [{'window_start': 10, 'window_end': 20, 'n': 1}]
    """
    require_options(text=text, aggregates=aggregates, schemas=schema)
    run = Run(
        lateness=lateness,
        late=late,
        max_ahead=max_ahead,
        punctuation=punctuation,
        heartbeat=heartbeat,
        rows_late=rows_late,
        revise_within=revise_within,
        store=store,
        flush=flush,
        why=why,
        max_answers=max_answers,
        stall_rows=stall_rows,
    )
    return opened(text, run, aggregates, schema)


@overload
def register(stream: str | Sequence[str], /, **options: Unpack[RegisterOptions]) -> Register: ...


@overload
def register(
    stream: str, frame: DataFrame, /, **options: Unpack[RegisterOptions]
) -> SparkRegister: ...


@overload
def register(
    stream: Sequence[str], frame: Mapping[str, DataFrame], /, **options: Unpack[RegisterOptions]
) -> SparkJoinRegister: ...


def register(
    stream: str | Sequence[str],
    frame: object = None,
    /,
    *,
    lateness: Duration | None = None,
    late: Late = "open",
    max_ahead: Duration | None = "1 day",
    punctuation: str | None = None,
    rows_late: int | None = None,
    schema: pa.Schema | None = None,
    aggregates: Sequence[UserAggregate] = (),
    keep_rows: int = 0,
    hand_over: Callable[[str, pa.Table], None] | None = None,
    saved: str | Path | None = None,
    heartbeat: Duration | None = None,
    shards: int | None = None,
    name: str | None = None,
    max_answers: int | None = MOST_ANSWERS,
    stall_rows: int | None = MOST_STALLED,
) -> Any:
    """Open a register: many queries over one stream or several, each of which is read once.

    It takes every query that `open` takes. Sliding windows over a stream share the read and the
    panes, queries over joins share the join, and what several queries contain runs once. You can
    add and remove queries while the streams run. Every query gets the answers that it would get
    alone. Threads may share a `Register`: they take turns.

    Parameters
    ----------
    stream
        The name of the stream in the queries, or the names of several streams: then rows come by
        ``push(l=..., r=...)``. On Spark, queries of several streams are over joins of them.
    frame
        A streaming Spark DataFrame; for several streams, a mapping from their names to DataFrames.
        Without it, rows come by `Register.push`.
    lateness, late, max_ahead, punctuation, rows_late, aggregates
        As for `open`. ``late="revise"`` is refused, because a register answers a window once.
    schema
        The columns of the stream. With it, `add` checks a query at once. Without it, queries are
        checked when the first batch comes.
    keep_rows
        How many of the newest rows are stored, so that `Register.ask` can answer ``[ROWS n]``.
        Questions given to `Register.prepare` do not need it.
    hand_over
        A function that gets the name and the answers of each query as soon as they are ready,
        the nearest deadline first. Without it, `push` returns all answers together.
    saved
        A file written by `Register.save`. The register continues from there, with its queries.
    heartbeat, shards, name
        On Spark, as for `sql`.
    max_answers
        A query that would give more answers at once is set aside.
    stall_rows
        As for `open`, in one process.

    Examples
    --------
    >>> reg = register("bids", lateness=0)
    >>> reg.add("all", "SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR at]")
    Added(name='all', exact_from=None)
    >>> reg.add("dear", "SELECT count(*) AS n FROM bids [RANGE 20 SLIDE 5 WATTR at] "
    ...                 "WHERE price > 3")
    Added(name='dear', exact_from=None)
    >>> answers = reg.push(pa.table({"at": [1, 4, 12], "price": [5, 2, 9]}))
    >>> {name: table.to_pylist() for name, table in answers.items()}
    {'all': [{'window_start': 0, 'window_end': 10, 'n': 2}],
     'dear': [{'window_start': -15, 'window_end': 5, 'n': 1},
              {'window_start': -10, 'window_end': 10, 'n': 1}]}
    """
    require_options(stream=stream, schema=schema, aggregates=aggregates, keep_rows=keep_rows,
                    hand_over=hand_over, saved=saved)  # fmt: skip
    run = Run(
        lateness=lateness,
        late=late,
        max_ahead=max_ahead,
        punctuation=punctuation,
        rows_late=rows_late,
        heartbeat=heartbeat,
        shards=shards,
        name=name,
        max_answers=max_answers,
        stall_rows=stall_rows,
    )
    if not isinstance(stream, str):
        _refuse({"schema": schema, "keep_rows": keep_rows or None, "hand_over": hand_over,
                 "saved": saved}, "is for a register of one stream")  # fmt: skip
        if frame is not None:
            return _join_register_on_spark(stream, frame, run, aggregates)
        _refuse({"shards": shards}, "is for a register on Spark")
        return Register(stream, run, aggregates=aggregates)
    if frame is not None:
        if not is_spark(frame):
            raise QueryError(
                f"a register takes a streaming Spark DataFrame, got {type(frame).__name__}",
                hint='for tables, leave it out and push them: panes.register("bids").push(table)',
            )
        _refuse({"schema": schema, "keep_rows": keep_rows or None, "hand_over": hand_over,
                 "saved": saved}, "is for a register in one process")  # fmt: skip
        on_spark = importlib.import_module("panes.spark.register.register").SparkRegister
        return on_spark(stream, frame, run, aggregates)
    _refuse({"heartbeat": heartbeat, "shards": shards}, "is for a register on Spark")
    reg = Register(
        stream, run, schema=schema, aggregates=aggregates, keep_rows=keep_rows, hand_over=hand_over
    )
    if saved is not None:
        reg.take_up(saved)
    return reg


def _join_register_on_spark(
    names: Sequence[str], frames: object, run: Run, aggregates: Sequence[UserAggregate]
) -> Any:
    """A register over joins of streaming DataFrames, which are given by name."""
    if not isinstance(frames, Mapping) or set(frames) != set(names):
        raise QueryError(
            "a register of several streams takes a mapping from their names to DataFrames",
            hint='panes.register(("l", "r"), {"l": left, "r": right})',
        )
    for name, frame in frames.items():
        if not is_spark(frame):
            raise QueryError(
                f"a register takes streaming Spark DataFrames, and `{name}` is a "
                f"{type(frame).__name__}",
                hint='for tables, leave it out and push them: panes.register(("l", "r"))',
            )
    on_spark = importlib.import_module("panes.spark.join.register").SparkJoinRegister
    return on_spark({name: frames[name] for name in names}, run, aggregates)


def _refuse(options: Mapping[str, object], why: str) -> None:
    """Refuse options that would change nothing where they were given."""
    for name, value in options.items():
        if value is not None:
            raise OptionError(f"{name} {why}")


def window_index(
    schema: pa.Schema,
    /,
    *,
    at: str | None,
    size: Duration,
    basic: Duration,
    on: str,
    kind: str | None = None,
    groups: int = GROUPS,
    questions: Mapping[str, float] | None = None,
    values: int | None = None,
) -> WindowIndex:
    """Open a window one can look into: its values, their counts, and their rows.

    `WindowIndex.add` takes rows in, in any order; `WindowIndex.advance` seals basic windows. The
    window is the last sealed ones, as many as fit `size`. Rows of a basic window are seen when it
    is sealed, all at once. See docs/indexes.md.

    Parameters
    ----------
    schema
        The columns of the rows.
    at
        The column that rows are ordered by: a timestamp, date or integer. None: rows count in the
        order they come, `size` and `basic` are numbers of rows, and basic windows are sealed as
        they fill up.
    size
        How long the window is: a whole number of basic windows.
    basic
        How long a basic window is: the window slides by it.
    on
        The column whose values are asked for.
    kind
        The index: ``"list"``, ``"tree"``, ``"hash"``, ``"group"``, ``"ring"``, ``"aux"``,
        ``"bw"``, ``"db"``, or ``"scan"`` for none. None: the cheapest is chosen when the first
        basic window is sealed. All give the same answers.
    groups
        With ``kind="group"``: how many groups of values there are.
    questions
        How many questions you will ask while a basic window fills, by the names of the methods:
        ``{"count": 1000, "values": 1}``. The choice follows it.
    values
        How many different values a window will have, if you know it.

    Examples
    --------
    >>> bids = pa.schema([("at", pa.int64()), ("price", pa.float64())])
    >>> w = window_index(bids, at="at", size=60, basic=10, on="price")
    >>> w.add(pa.table({"at": [1, 12, 15, 21], "price": [7.5, 5.0, 7.5, 9.0]}))
    >>> w.advance(20)
    >>> w.values().to_pylist()
    [{'value': 5.0, 'count': 1}, {'value': 7.5, 'count': 2}]
    >>> w.rows(7.5).to_pylist()
    [{'at': 1, 'price': 7.5}, {'at': 15, 'price': 7.5}]
    """
    require_options(columns=schema, at=at, size=size, basic=basic, on=on, kind=kind,
                    groups=groups, questions=questions, values=values)  # fmt: skip
    return WindowIndex(
        schema,
        at=at,
        size=size,
        basic=basic,
        on=on,
        kind=kind,
        groups=groups,
        questions=questions,
        values=values,
    )


def live(
    query: object,
    /,
    *,
    title: str = "",
    port: int = 0,
    token: str | None = None,
    edit: bool = False,
) -> LivePage:
    """Open a page in the browser beside a query or register of this process.

    It shows, as it happens, panes that fill and windows that close, rows against the promise,
    speed and state, answers, and rows set aside. The address is `LivePage.url`. The page is for
    this machine and for whoever has the token in the address. It never slows the query down: what
    a page cannot take in is left out. See docs/guides/live.md.

    Parameters
    ----------
    query
        What `open` or `register` gave.
    title
        What the page is called. Default: the names of the streams.
    port
        The port. Default: a free one.
    token
        The token in the address. Default: a new one. With your own `port` and `token`, a page
        that is open goes on when your program is started again.
    edit
        Queries of a register may be added and removed in the page.

    Examples
    --------
    >>> query = open("SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR at]", lateness=2)
    >>> with live(query) as page:
    ...     page.url.startswith("http://127.0.0.1:")
    True
    """
    require_options(title=title, edit=edit)
    return LivePage(feed_of(query, title, edit=edit), port=port, token=token, edit=edit)


def explain(
    text: str,
    frames: Mapping[str, object] | None = None,
    /,
    *,
    aggregates: Sequence[UserAggregate] = (),
    store: str | None = None,
    run: bool = False,
    details: bool = False,
    **streams: object,
) -> str:
    """Explain how a query is answered, as text. The same query gives the same text.

    Parameters
    ----------
    text
        One SELECT with a window clause.
    frames, streams
        Tables or DataFrames, by name, as for `sql`. Only their columns are read. Without them,
        the text says only what follows from the query alone.
    aggregates, store
        As for `open`.
    run
        Also answer the query over the given tables. The text then ends with the estimated costs of
        each store and the measured costs of the chosen one. Seconds differ from run to run.
    details
        Also print what is inside: columns of partial results, algorithms, and the formulas behind
        the costs.

    Examples
    --------
    >>> print(explain("SELECT count(*) FROM bids [RANGE 10 SLIDE 4 WATTR at]"))
    query      SELECT count(*) FROM bids [RANGE 10 SLIDE 4 WATTR at]
    streams    bids
    window     sliding, RANGE 10 SLIDE 4 on `at`
    panes      panes begin where windows start and where they end, two in 4
               5 panes per window; each row counts in up to 3 windows
    more       give the streams to see types and sizes
    <BLANKLINE>
    """
    require_options(
        text=text, frames=frames, aggregates=aggregates, store=store, run=run, details=details
    )
    streams = together(frames, streams)
    graph = read_graph(text, aggregates)
    if not graph.is_single:
        return _explained_graph(graph, streams, aggregates, details=details)
    query = graph.asked
    if isinstance(query, JoinQuery):
        return _explained_join(query, streams, aggregates, details=details)
    if not streams:
        return Explained(explain_unbound(query, details=details))
    if any(is_spark(frame) for frame in streams.values()):
        bound = importlib.import_module("panes.spark.bind").bind(text, streams, aggregates)
        return Explained(explain_plan(bound.plan, details=details))
    if run:
        asked = OpenQuery(
            text, Run(bounded=True, max_ahead=None, store=store), aggregates=aggregates
        )
        require_streams(asked.query.streams, streams)
        asked.push(**streams)
        asked.finish()
        return asked.explain(details=details)
    schemas = {name: to_table(frame, name).schema for name, frame in streams.items()}
    bound = plan(query, derived_schemas(query, schemas), aggregates)
    return Explained(explain_plan(bound, choose_store(bound, store), details=details))


def _explained_graph(
    graph: QueryGraph,
    streams: Mapping[str, object],
    aggregates: Sequence[UserAggregate],
    *,
    details: bool,
) -> str:
    if not streams:
        raise QueryError(
            "what a query with queries inside does follows from the columns of its streams",
            hint=f"give them: panes.explain(text, {graph.streams[0]}=...)",
        )
    require_streams(graph.streams, streams)
    if any(is_spark(frame) for frame in streams.values()):
        columns = importlib.import_module("panes.spark.bind").arrow_schema
        streams = {name: columns(frame).empty_table() for name, frame in streams.items()}
    schemas = {name: to_table(frame, name).schema for name, frame in streams.items()}
    asked = OpenGraph(graph, Run(bounded=True), aggregates=aggregates, schemas=schemas)
    asked.push(**{name: schema.empty_table() for name, schema in schemas.items()})
    return asked.explain(details=details)


def _explained_join(
    query: JoinQuery,
    streams: Mapping[str, object],
    aggregates: Sequence[UserAggregate],
    *,
    details: bool,
) -> str:
    if not streams:
        raise QueryError(
            "what a join does follows from the columns of its streams",
            hint="give them: panes.explain(text, l=l, r=r)",
        )
    if any(is_spark(frame) for frame in streams.values()):
        explained = importlib.import_module("panes.spark.join.explain").explain_join_on_spark
        text: str = explained(query, streams, aggregates, details=details)
        return Explained(text)
    schemas = {name: to_table(frame, name).schema for name, frame in streams.items()}
    bound = plan_join_query(query, joined_schemas(query.join, schemas), aggregates)
    return Explained(explain_join(bound, details=details))
