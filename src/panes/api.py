"""The public functions: query tables, open a query on a stream, run many, explain one."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import Duration
from panes.errors import OptionError, QueryError
from panes.explained import explained
from panes.frames import is_spark, together
from panes.live.live_page import LivePage, feed_of
from panes.planning.flush import Flush
from panes.planning.options import require_options
from panes.planning.public_options import (
    IndexOptions,
    OpenOptions,
    RegisterOptions,
    SqlOptions,
    meanings,
    refuse_misspelt,
    settled,
    stream_options,
    with_options,
)
from panes.planning.terms import Late, StreamOptions
from panes.process.keeper import keep
from panes.process.opened import opened
from panes.process.register import Register
from panes.process.running_query import RunningQuery
from panes.process.tables import answered
from panes.process.window_index import WindowIndex
from panes.windows.limit import MOST_ANSWERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from panes.spark.register.register import SparkRegister


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
    batches: Literal[True],
    **streams: object,
) -> pa.RecordBatchReader: ...


@overload
def sql(
    text: str,
    frames: Mapping[str, object] | None = None,
    /,
    *,
    aggregates: Sequence[UserAggregate] = (),
    store: str | None = None,
    max_answers: int | None = MOST_ANSWERS,
    batches: bool = False,
    **streams: object,
) -> pa.Table: ...


@with_options(SqlOptions)
def sql(text: str, frames: Mapping[str, object] | None = None, /, **streams: Any) -> Any:
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
    **options
        Those of `panes.planning.public_options.SqlOptions`.

    Examples
    --------
    >>> bids = pa.table({"at": [1, 2, 12], "item": ["a", "b", "a"], "price": [5.0, 3.0, 4.0]})
    >>> answers = sql("SELECT item, max(price) AS high FROM bids [TUMBLING 10 WATTR at] "
    ...               "GROUP BY item", bids=bids)
    >>> answers.to_pylist()[0]
    {'window_start': 0, 'window_end': 10, 'item': 'a', 'high': 5.0}
    """
    options = {name: streams.pop(name) for name in meanings(SqlOptions) if name in streams}
    given = settled("sql", SqlOptions, options)
    aggregates, batches = given["aggregates"], given["batches"]
    require_options(text=text, frames=frames, aggregates=aggregates, batches=batches)
    refuse_misspelt(streams)
    streams = together(frames, streams)
    run = stream_options(given)
    if any(is_spark(frame) for frame in streams.values()):
        if batches:
            raise OptionError(
                "batches=True is for tables: the answers of a DataFrame are a DataFrame",
                hint="to read it piece by piece: answers.toLocalIterator()",
            )
        return importlib.import_module("panes.spark.query").answer(text, streams, aggregates, run)
    return answered(text, streams, run, aggregates, batches=batches)


@with_options(OpenOptions)
def open(text: str, /, **options: Unpack[OpenOptions]) -> RunningQuery:
    """Open a window query on a stream: push batches, take final answers.

    Threads may share an `OpenQuery`: they take turns.

    Parameters
    ----------
    text
        One SELECT with a window clause. See docs/reference/language.md.
    **options
        Those of `panes.planning.public_options.OpenOptions`.

    Examples
    --------
    >>> query = open("SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR at]", lateness=2)
    >>> query.push(bids=pa.table({"at": [1, 5, 12]})).to_pylist()
    [{'window_start': 0, 'window_end': 10, 'n': 2}]
    >>> query.finish().to_pylist()
    [{'window_start': 10, 'window_end': 20, 'n': 1}]
    """
    given = settled("open", OpenOptions, options)
    aggregates, schema = given["aggregates"], given["schema"]
    kept = {name: given[name] for name in ("state", "checkpoint_every")}
    require_options(text=text, aggregates=aggregates, schemas=schema, **kept)
    return opened(text, stream_options(given), aggregates, schema, **kept)


@overload
def register(stream: str | Sequence[str], /, **options: Unpack[RegisterOptions]) -> Register: ...


@overload
def register(
    stream: str, frame: DataFrame, /, **options: Unpack[RegisterOptions]
) -> SparkRegister: ...


@overload
def register(
    stream: Sequence[str], frame: Mapping[str, DataFrame], /, **options: Unpack[RegisterOptions]
) -> SparkRegister: ...


@with_options(RegisterOptions)
def register(
    stream: str | Sequence[str], frame: object = None, /, **options: Unpack[RegisterOptions]
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
    **options
        Those of `panes.planning.public_options.RegisterOptions`.

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
    given = settled("register", RegisterOptions, options)
    aggregates, run = given["aggregates"], stream_options(given)
    of_one = {name: given[name] for name in ("schema", "keep_rows", "hand_over")}
    here = {name: given[name] for name in ("saved", "state", "checkpoint_every")}
    require_options(stream=stream, aggregates=aggregates, **of_one, **here)
    elsewhere = {**of_one, "keep_rows": of_one["keep_rows"] or None}
    if frame is not None:
        every = None if here["checkpoint_every"] == 1 else here["checkpoint_every"]
        elsewhere |= {**here, "checkpoint_every": every}
    if not isinstance(stream, str):
        _refuse(elsewhere, "is for a register of one stream")
        if frame is not None:
            return _several_on_spark(stream, frame, run, aggregates)
        _refuse({"shards": run.shards, "levels": run.levels}, "is for a register on Spark")
        return _kept(Register(stream, run, aggregates=aggregates), **here)
    if frame is not None:
        if not is_spark(frame):
            raise QueryError(
                f"a register takes a streaming Spark DataFrame, got {type(frame).__name__}",
                hint='for tables, leave it out and push them: panes.register("bids").push(table); '
                'several streams are panes.register(("bids", "asks"))',
            )
        _refuse(elsewhere, "is for a register in one process")
        return _register_on_spark({stream: frame}, run, aggregates)
    on_spark = {"heartbeat": run.heartbeat, "shards": run.shards, "levels": run.levels}
    _refuse(on_spark, "is for a register on Spark")
    return _kept(Register(stream, run, aggregates=aggregates, **of_one), **here)


def _kept(
    reg: Register, *, saved: str | Path | None, state: str | Path | None, checkpoint_every: int
) -> Register:
    """A register that goes on where a file or folder ends, if there is to be one."""
    if state is not None:
        _refuse({"saved": saved}, "and state are two ways to go on")
    if saved is not None:
        reg.take_up(saved)
    keep(reg, state, checkpoint_every, reg.said)
    return reg


def _several_on_spark(
    names: Sequence[str], frames: object, run: StreamOptions, aggregates: Sequence[UserAggregate]
) -> Any:
    """A register of several streaming DataFrames, which are given by name."""
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
    return _register_on_spark({name: frames[name] for name in names}, run, aggregates)


def _register_on_spark(
    frames: Mapping[str, object], run: StreamOptions, aggregates: Sequence[UserAggregate]
) -> Any:
    on_spark = importlib.import_module("panes.spark.register.register").SparkRegister
    return on_spark(frames, run, aggregates)


def _refuse(options: Mapping[str, object], why: str) -> None:
    """Refuse options that would change nothing where they were given."""
    for name, value in options.items():
        if value is not None:
            raise OptionError(f"{name} {why}")


@with_options(IndexOptions)
def window_index(schema: pa.Schema, /, **options: Unpack[IndexOptions]) -> WindowIndex:
    """Open a window one can look into: its values, their counts, and their rows.

    `WindowIndex.add` takes rows in, in any order; `WindowIndex.advance` seals basic windows. The
    window is the last sealed ones, as many as fit `size`. Rows of a basic window are seen when it
    is sealed, all at once. See docs/indexes.md.

    Parameters
    ----------
    schema
        The columns of the rows.
    **options
        Those of `panes.planning.public_options.IndexOptions`.

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
    require_options(columns=schema, **settled("window_index", IndexOptions, options))
    return WindowIndex(schema, **options)


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
    return explained(
        text, together(frames, streams), aggregates, store=store, run=run, details=details
    )
