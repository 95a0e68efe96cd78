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
from panes.process.all_or_nothing import all_or_nothing
from panes.process.running_query import OpenQuery
from panes.process.step import Steps


def push(query: OpenQuery, batches: Mapping[str, object]) -> Iterator[pa.Table]:
    """As `OpenQuery.push`; the batches are taken in at once, answers when they are asked for."""
    return _given(query, query._push_in_steps(batches))


def finish(query: OpenQuery) -> Iterator[pa.Table]:
    """As `OpenQuery.finish`."""
    return _given(query, query._finish_in_steps())


def answers_of(query: OpenQuery, streams: Mapping[str, object]) -> pa.RecordBatchReader:
    """All answers of a query over tables, which are taken in now, as a reader."""
    waiting = push(query, streams)
    first = next(waiting)  # rows are taken in, and whatever is wrong with them is told

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.to_batches()
        for table in waiting:
            yield from table.to_batches()
        for table in finish(query):
            yield from table.to_batches()

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def require_steps(store: str | None) -> None:
    """Refuse a store that answers all due windows at once."""
    if store not in (None, "panes"):
        raise OptionError(
            f"batches=True closes windows in steps, and the store `{store}` cannot",
            hint='leave out store, or write store="panes"',
        )


def _given(query: OpenQuery, steps: Steps) -> Iterator[pa.Table]:
    """What each step gives, in a turn of its own; one that fails before the first pause is undone.

    Who watches is told of all of them, and with the last ones of how long they took.
    """
    begin = time.perf_counter()
    if query.watcher is not None:
        query.watcher.began()
    with query._turn.taken(), all_or_nothing(query):
        next(steps)
    while True:
        with query._turn.taken():
            try:
                next(steps)
                found, is_last = query._taken(), False
            except StopIteration as end:
                found, is_last = end.value, True
        if query.watcher is not None and (is_last or len(found)):
            query.watcher.gave(found)
            if is_last:
                query.watcher.stepped(None, time.perf_counter() - begin)
        if is_last or len(found):
            yield found
        if is_last:
            return
