"""A query over tables: streams that have ended, all rows of which are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.errors import OptionError, QueryError, RejectedRowsWarning, warn
from panes.frames import require_streams
from panes.planning.terms import StreamOptions
from panes.process.in_steps import answers_of, require_steps
from panes.process.opened import opened
from panes.process.running_query import OpenJoin, OpenQuery


def answered(
    text: str,
    streams: Mapping[str, object],
    run: StreamOptions,
    aggregates: Sequence[UserAggregate],
    *,
    batches: bool,
) -> Any:
    """All answers, as a table, or with `batches` as a reader; see `panes.sql`."""
    if run.with_late:
        raise OptionError(
            "with_late is for streaming DataFrames: no row of a table is late",
            hint="for a stream in this process: panes.open(...).late",
        )
    alone = replace(
        run, bounded=True, max_ahead=None, late="open" if run.late == "revise" else run.late
    )
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
        require_steps(run.store)
        answers = answers_of(query, streams)
    else:
        answers = pa.concat_tables([query.push(**streams), query.finish()])
    rejected = query.rejected
    if len(rejected):
        counts = rejected.group_by("reason").aggregate([([], "count_all")]).to_pylist()
        reasons = "; ".join(f"{c['count_all']} rows: {c['reason']}" for c in counts)
        warn(f"left out {reasons}", RejectedRowsWarning)
    return answers
