"""Queries inside a query: how each is run, and what is refused before any row comes.

The answers of an inner query are rows of the one around it, which closes its windows by what is
promised of them. So they are final, they come in the order of a column that a promise moves with,
and nothing that is said of streams holds for them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from panes.errors import OptionError
from panes.language.query_graph import Part, QueryGraph
from panes.nodes.promised_columns import require_promises
from panes.planning.terms import StreamOptions


def require_parts(graph: QueryGraph, run: StreamOptions) -> None:
    """Refuse what queries inside a query cannot be asked with."""
    if run.late == "revise":
        raise OptionError(
            "late='revise' would answer a window again that other windows have counted",
            hint="give a lateness that is long enough",
        )
    if not run.bounded:
        require_promises(graph)


def run_of(part: Part, run: StreamOptions, inside: Collection[str]) -> StreamOptions:
    """How a part is run: as was said of the streams it reads, of which some are `inside`."""
    if part.name:
        run = replace(run, flush=None, why=False, store=None)
    return run_inside(run, part.query.streams, inside)


def run_inside(
    run: StreamOptions, streams: Collection[str], inside: Collection[str]
) -> StreamOptions:
    """The options for a query that reads these streams, of which some are `inside`."""
    run = replace(run, inside=frozenset(inside).intersection(streams))
    if run.inside.issuperset(streams):
        run = replace(
            run, lateness=None, rows_late=None, punctuation=None, heartbeat=None, max_ahead=None,
            stall_rows=None,
        )  # fmt: skip
    return run
