"""The public functions: ask a question of tables, open one on a stream, explain it."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.axis import Duration
from panes.engine.open_query import OpenQuery
from panes.engine.register import Register
from panes.errors import OptionError, QueryError, RejectedRowsWarning
from panes.frames import is_spark, require_streams, to_table
from panes.language.parse import parse
from panes.operators.inner import derived_schemas
from panes.planning.choose_store import choose_store
from panes.planning.explain import explain as explain_plan
from panes.planning.explain import explain_unbound
from panes.planning.flush import Flush
from panes.planning.plan import plan
from panes.planning.terms import Late, Run


def sql(
    text: str,
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
    name: str = "panes",
    store: str | None = None,
    revise_within: Duration | None = None,
    flush: Flush | None = None,
    why: bool = False,
    **streams: object,
) -> pa.Table:
    """Answer a window query over tables, or over Spark DataFrames, bounded or streaming.

    Tables give an Arrow table: every window that holds a row is answered, ordered by window and
    then by key. Rows without a place on the axis are left out with a `RejectedRowsWarning` that
    counts them. A bounded table is one batch, so no row of it is late.

    Spark DataFrames give a DataFrame. The options below are for streaming ones; elsewhere they
    change nothing.

    Parameters
    ----------
    lateness, late, max_ahead, revise_within, flush, why
        As for `open`.
    punctuation
        A column in which rows promise that nothing before its value is still to come. A row that
        has no position of its own is a promise and nothing else.
    bounded
        The stream is run to its end (``availableNow``), and then every window is answered.
    heartbeat
        During lulls, the axis advances to the clock less this duration.
    shards
        How many parts the state has: one per shuffle partition unless said otherwise.
    with_late
        Give late and rejected rows beside the answers, as columns ``answer`` and ``apart``;
        `panes.spark.split` sends each to a sink of its own.
    name
        The name of the query's metrics in Spark's progress.
    store
        As for `open`; on Spark, state is held in panes.

    Examples
    --------
    >>> bids = pa.table({"at": [1, 2, 12], "item": ["a", "b", "a"], "price": [5.0, 3.0, 4.0]})
    >>> answers = sql("SELECT item, max(price) AS high FROM bids [TUMBLING 10 WATTR at] "
    ...               "GROUP BY item", bids=bids)
    >>> answers.to_pylist()[0]
    {'window_start': 0, 'window_end': 10, 'item': 'a', 'high': 5.0}
    """
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
    )
    if any(is_spark(frame) for frame in streams.values()):
        return importlib.import_module("panes.spark.query").answer(text, streams, aggregates, run)
    if with_late:
        raise OptionError("no row of a table is late", hint="panes.open(...).late, for a stream")
    alone = replace(run, bounded=True, max_ahead=None, late="open" if late == "revise" else late)
    query = OpenQuery(text, alone, aggregates=aggregates)
    require_streams(query.query, streams)
    if query.query.emits_early:
        raise QueryError("EMIT EARLY is for streams, and a table has come to its end")
    before = query.push(**streams)
    answers = pa.concat_tables([before, query.finish()])
    rejected = query.rejected
    if len(rejected):
        counts = rejected.group_by("reason").aggregate([([], "count_all")]).to_pylist()
        told = "; ".join(f"{c['count_all']} rows: {c['reason']}" for c in counts)
        warnings.warn(f"left out {told}", RejectedRowsWarning, stacklevel=2)
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
    aggregates: Sequence[UserAggregate] = (),
    store: str | None = None,
    flush: Flush | None = None,
    why: bool = False,
) -> OpenQuery:
    """Open a window query on a stream; push batches, take final answers.

    Parameters
    ----------
    lateness
        How far a row may lie behind the newest one seen; 0 for a stream in order. Without it,
        only punctuation and the end of the stream close windows.
    late
        ``"open"``: a row that comes later than promised still counts in its open windows;
        ``"drop"``: in none; ``"revise"``: closed windows that hold it are answered again. In any
        case it is kept in `OpenQuery.late`.
    max_ahead
        With a `lateness`, rows further ahead of the clock than this are rejected, so that one
        absurd timestamp closes nothing. None believes everything.
    punctuation
        A column in which rows promise that nothing before its value is still to come. A row that
        has no position of its own is a promise and nothing else.
    heartbeat
        During lulls, progress follows the clock less this duration: with every push, and with
        `OpenQuery.beat`.
    rows_late
        Instead of a lateness: how many rows later than in order a row may come.
    revise_within
        With ``late="revise"``, how far behind progress windows can be revised. Without it they
        always can, and nothing is ever forgotten.
    store
        What is kept until windows close: ``"panes"``, which is what the planner takes, ``"eager"``,
        ``"buffered"``, ``"adaptive"``, ``"adaptive-panes"`` or ``"bins"``. Answers are the same.
    flush
        `SlowFlush` or `LazyFlush`: answers of a window with very many keys are released over
        several pushes.
    why
        Answers get a last column, ``closed_by``: what closed their window.

    Examples
    --------
    >>> query = open("SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR at]", lateness=2)
    >>> query.push(bids=pa.table({"at": [1, 5, 12]})).to_pylist()
    [{'window_start': 0, 'window_end': 10, 'n': 2}]
    >>> query.finish().to_pylist()
    [{'window_start': 10, 'window_end': 20, 'n': 1}]
    """
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
    )
    return OpenQuery(text, run, aggregates=aggregates)


def register(
    stream: str,
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
    name: str = "panes",
) -> Any:
    """Open a register: many queries over one stream, which share its read and its panes.

    Queries are added and removed while the stream runs. Each is answered as it would be alone.

    Parameters
    ----------
    lateness, late, max_ahead, punctuation, rows_late
        As for `open`, except that no window is answered twice: ``late="revise"`` is refused.
    schema
        The columns of the stream. With it, a query is checked when it is added; without it, those
        added before the first batch are checked then.
    keep_rows
        How many of the last rows are kept, for `Register.ask` with ``[ROWS n]``; what
        `Register.prepare` takes needs none.
    hand_over
        Called with the name and the answers of each query as soon as they are there, those with
        the nearest deadline first. Without it answers are handed over together, by `push`.
    saved
        A file that `Register.save` wrote: the register goes on from there, queries and all.
    heartbeat, shards, name
        On Spark, as for `sql`.

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
    run = Run(
        lateness=lateness,
        late=late,
        max_ahead=max_ahead,
        punctuation=punctuation,
        rows_late=rows_late,
        heartbeat=heartbeat,
        shards=shards,
        name=name,
    )
    if frame is not None:
        if not is_spark(frame):
            raise QueryError(
                "a register takes a streaming DataFrame, or nothing and then rows by push"
            )
        on_spark = importlib.import_module("panes.spark.register.register").SparkRegister
        return on_spark(stream, frame, run, aggregates)
    opened = Register(
        stream, run, schema=schema, aggregates=aggregates, keep_rows=keep_rows, hand_over=hand_over
    )
    if saved is not None:
        opened.take_up(saved)
    return opened


def explain(
    text: str,
    /,
    *,
    aggregates: Sequence[UserAggregate] = (),
    store: str | None = None,
    run: bool = False,
    **streams: object,
) -> str:
    """How a query would be answered, as text; the same question gives the same text.

    Streams are looked at for their columns only. Without them, only what the text decides is said.
    With ``run=True`` tables are answered too, and the text ends with what each store was estimated
    to cost, by what was seen, and what the chosen one did: seconds are never the same twice.

    Examples
    --------
    >>> print(explain("SELECT count(*) FROM bids [RANGE 10 SLIDE 4 WATTR at]"))
    query      SELECT count(*) FROM bids [RANGE 10 SLIDE 4 WATTR at]
    streams    bids
    window     sliding, RANGE 10 SLIDE 4 on `at`; context free
    cut        panes begin every 4 and every 4, where windows start and where they end
               5 panes per window; each row counts in up to 3 windows
    more       give the streams to see partial columns, kernels and sizes
    <BLANKLINE>
    """
    query = parse(text, aggregates)
    if not streams:
        return explain_unbound(query)
    if any(is_spark(frame) for frame in streams.values()):
        bound = importlib.import_module("panes.spark.bind").bind(text, streams, aggregates)
        return explain_plan(bound.plan)
    if run:
        asked = OpenQuery(
            text, Run(bounded=True, max_ahead=None, store=store), aggregates=aggregates
        )
        require_streams(asked.query, streams)
        asked.push(**streams)
        asked.finish()
        return asked.explain()
    schemas = {name: to_table(frame, name).schema for name, frame in streams.items()}
    bound = plan(query, derived_schemas(query, schemas), aggregates)
    return explain_plan(bound, choose_store(bound, store))
