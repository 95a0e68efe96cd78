"""A query answered in steps: its answers come in their order, and never all at once.

A table's windows are all due when it ends. In steps, a few of them are closed each time more
answers are asked for, so memory holds what is stored of the rows and the answers of one step. Steps
are for queries that nobody pushes to in between; after one that fails, the query cannot go on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pyarrow as pa

from panes.errors import OptionError
from panes.nodes.closing import THE_END, Closed
from panes.process.all_or_nothing import all_or_nothing
from panes.process.open_query import ARRIVALS, OpenQuery


def push(query: OpenQuery, batches: Mapping[str, object]) -> Iterator[pa.Table]:
    """As `OpenQuery.push`; the batches are taken in at once, answers when they are asked for."""
    if query.watcher is not None:
        query.watcher.began()
    begin = time.perf_counter()
    with query._turn.taken(), all_or_nothing(query):
        arrival = query._take_in(batches)
        query._beat()
        progress, why = query._reached()
        assert query._pipeline is not None
        query._pipeline = query._pipeline.settled(progress)
        for chain in query._inputs.chains.values():
            chain.forget(progress)
    yield from _steps(query, query._closing.advance_in_steps(query._pipeline, progress, why))
    with query._turn.taken():
        query._promises.forget_passed()
        query._tell_stall(arrival)
        query._offer_early()
        released = query._released(arrival)
        _tell(query, released, time.perf_counter() - begin)
        yield released


def finish(query: OpenQuery) -> Iterator[pa.Table]:
    """As `OpenQuery.finish`."""
    begin = time.perf_counter()
    with query._turn.taken(), all_or_nothing(query):
        pipeline, answers = query._require_begun()
    if pipeline.plan.counts_arrivals:
        closing = ((found, ARRIVALS) for found in pipeline.close_in_steps(query._arrived))
    else:
        closing = ((found, THE_END) for found in pipeline.close_all_in_steps())
    yield from _steps(query, (Closed(*closed) for closed in closing))
    with query._turn.taken():
        rest = query._end(answers)
        _tell(query, rest, time.perf_counter() - begin)
        yield rest


def answers_of(query: OpenQuery, streams: Mapping[str, object]) -> pa.RecordBatchReader:
    """All answers of a query over tables, which are taken in now, as a reader."""
    waiting = push(query, streams)
    first = next(waiting)  # rows are taken in, and whatever is wrong with them is told
    assert query._answers is not None

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.to_batches()
        for table in waiting:
            yield from table.to_batches()
        for table in finish(query):
            yield from table.to_batches()

    return pa.RecordBatchReader.from_batches(query._answers.schema, batches())


def require_steps(store: str | None) -> None:
    """Refuse a store that answers all due windows at once."""
    if store not in (None, "panes"):
        raise OptionError(
            f"batches=True closes windows in steps, and the store `{store}` cannot",
            hint='leave out store, or write store="panes"',
        )


def _steps(query: OpenQuery, closing: Iterator[Closed]) -> Iterator[pa.Table]:
    """What was selected of windows that are closed one step after the other."""
    while True:
        with query._turn.taken(), query._observer.timed():
            closed = next(closing, None)
            if closed is None:
                return
        with query._turn.taken():
            assert query._pipeline is not None
            assert query._answers is not None
            query._observer.closed(query._pipeline, closed.answers)
            query._answers.close(closed.answers, closed.why)
            found = query._answers.taken()
        if len(found):
            _tell(query, found)
            yield found


def _tell(query: OpenQuery, answers: pa.Table, seconds: float | None = None) -> None:
    """Tell who watches of answers; with how long it took, they are the last ones of a push."""
    if query.watcher is not None:
        query.watcher.gave(answers)
        if seconds is not None:
            query.watcher.stepped(None, seconds)
