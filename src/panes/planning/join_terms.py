"""The needs of a join from its streams and options: refused before the first row comes."""

from __future__ import annotations

from panes.axis import BEGINNING, FOREVER
from panes.errors import OptionError, QueryError
from panes.language.join_query import JoinQuery
from panes.planning.join_plan import JoinPlan, SourcePlan
from panes.planning.join_query_plan import JoinQueryPlan
from panes.planning.terms import StreamOptions
from panes.windows.partners import Band, CommonWindows

COUNTED = "joined with rows that are not forgotten"
FORGOTTEN = "all it could be joined with is forgotten"
"""The fate of late rows, in the words of their reasons."""


def require_streamable_join(plan: JoinQueryPlan) -> None:
    """Refuse a join that would keep rows for ever, and say which."""
    join: SourcePlan | JoinPlan = plan.join
    while isinstance(join, JoinPlan):
        partners = join.partners
        kept = []
        if isinstance(partners, CommonWindows) and partners.is_open:
            kept = [join.left.name, join.right.name]
        elif isinstance(partners, Band):
            kept += [join.left.name] * (partners.high >= FOREVER)
            kept += [join.right.name] * (partners.low <= BEGINNING)
        if kept:
            rows = " and ".join(f"`{name}`" for name in kept)
            far = "INTERVAL 1 HOUR" if join.axis.kind == "time" else "100"
            raise QueryError(
                f"on streams, this join would keep every row of {rows} for ever",
                hint=f"bound how far apart rows may be on both sides: AND {join.right_at} BETWEEN "
                f"{join.left_at} - {far} AND {join.left_at} + {far}",
            )
        below = join.left
        if isinstance(below, JoinPlan) and join.left_at not in (below.left_at, below.right_at):
            raise QueryError(
                f"joined rows of {below.name} make no progress on `{join.left_at}`",
                hint=f"join by `{below.left_at}` or `{below.right_at}`",
            )
        join = below


def require_join_options(query: JoinQuery, run: StreamOptions) -> None:
    """Refuse options that mean nothing for a join."""
    aggregates = query.above is not None or query.select.args.get("group") is not None
    if run.late == "revise":
        raise OptionError("late='revise' is for windows over one stream; a pair is given once")
    if run.rows_late is not None and run.rows_late < 0:
        raise OptionError(f"rows_late is a whole number of rows, got {run.rows_late!r}")
    if run.store is not None and not aggregates:
        raise OptionError("a join has no choice of stores")
    if (run.flush is not None or run.why) and not aggregates:
        raise OptionError("flush and why are for windows, and this query gives joined rows")
