"""The public functions: ask a question of tables, open one on a stream, explain it."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.engine.stream import Duration, Late, OpenQuery
from panes.errors import RejectedRowsWarning
from panes.frames import in_row_order, is_spark, require_streams, to_table
from panes.language.parse import parse
from panes.planning.explain import explain as explain_plan
from panes.planning.explain import explain_unbound
from panes.planning.plan import plan


def sql(
    text: str,
    /,
    *,
    lateness: Duration | None = None,
    late: Late = "open",
    aggregates: Sequence[UserAggregate] = (),
    **streams: object,
) -> pa.Table:
    """Answer a window query over bounded tables.

    Every window that holds a row is answered, ordered by window and then by key. Rows without a
    place on the axis are left out with a `RejectedRowsWarning` that counts them. A bounded table
    is one batch, so no row of it is late; `lateness` and `late` are checked and change nothing.

    Examples
    --------
    >>> bids = pa.table({"at": [1, 2, 12], "item": ["a", "b", "a"], "price": [5.0, 3.0, 4.0]})
    >>> answers = sql("SELECT item, max(price) AS high FROM bids [TUMBLING 10 WATTR at] "
    ...               "GROUP BY item", bids=bids)
    >>> answers.to_pylist()[0]
    {'window_start': 0, 'window_end': 10, 'item': 'a', 'high': 5.0}
    """
    if any(is_spark(frame) for frame in streams.values()):
        return importlib.import_module("panes.spark.batch").answer(text, streams, aggregates)
    query = OpenQuery(
        text,
        lateness=lateness,
        late=late,
        max_ahead=None,
        aggregates=aggregates,
        bounded=True,
    )
    require_streams(query.query, streams)
    before = query.push(**in_row_order(query.query, streams))
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
    aggregates: Sequence[UserAggregate] = (),
) -> OpenQuery:
    """Open a window query on a stream; push batches, take final answers.

    Parameters
    ----------
    lateness
        How far a row may lie behind the newest one seen. Without it, only punctuation and the
        end of the stream close windows.
    late
        ``"open"``: a row that comes later than promised still counts in its open windows;
        ``"drop"``: in none. Either way it is kept in `OpenQuery.late`.
    max_ahead
        With a `lateness`, rows further ahead of the clock than this are rejected, so that one
        absurd timestamp closes nothing. None believes everything.

    Examples
    --------
    >>> query = open("SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR at]", lateness=2)
    >>> query.push(bids=pa.table({"at": [1, 5, 12]})).to_pylist()
    [{'window_start': 0, 'window_end': 10, 'n': 2}]
    >>> query.finish().to_pylist()
    [{'window_start': 10, 'window_end': 20, 'n': 1}]
    """
    return OpenQuery(text, lateness=lateness, late=late, max_ahead=max_ahead, aggregates=aggregates)


def explain(text: str, /, *, aggregates: Sequence[UserAggregate] = (), **streams: object) -> str:
    """How a query would be answered, as text; the same question gives the same text.

    Streams are looked at for their columns only. Without them, only what the text decides is said.

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
    schemas = {name: to_table(frame, name).schema for name, frame in streams.items()}
    return explain_plan(plan(query, schemas, aggregates))
