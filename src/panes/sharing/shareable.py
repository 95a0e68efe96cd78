"""Which queries a register takes: those whose windows can be answered from shared panes."""

from __future__ import annotations

from panes.errors import QueryError
from panes.language.query import Query
from panes.windows.spec import Sliding


def shared_spec(query: Query) -> Sliding | None:
    """The windows of a query that can be answered from shared panes; None if it cannot."""
    window = query.window
    if window is None or window.measure == "rows" or window.origin_first or query.emits_early:
        return None
    if len(query.streams) != 1 or any(inner is not None for inner in query.inner):
        return None
    return window.spec if isinstance(window.spec, Sliding) else None


def require_shareable(name: str, query: Query, stream: str) -> Sliding:
    """Refuse, before the first row, what cannot be answered from shared panes."""
    window = query.window
    if query.streams != (stream,):
        read = ", ".join(query.streams)
        raise QueryError(
            f"query `{name}` reads {read}, and the register answers queries over `{stream}` alone",
            hint=f"FROM {stream} [RANGE ...]",
        )
    if any(i is not None for i in query.inner):
        raise QueryError(
            f"query `{name}` has a SELECT inside FROM, and queries of a register share the columns "
            f"of `{stream}`",
            hint="a condition is WHERE; a column is made before rows come in: reg.push("
            'rows.append_column("ts", rows["ms"].cast(pa.timestamp("ms", "UTC")))), or on Spark '
            'df.withColumn("ts", F.timestamp_millis("ms"))',
        )
    if (
        window is None
        or window.measure == "rows"
        or window.origin_first
        or not isinstance(window.spec, Sliding)
    ):
        raise QueryError(
            f"query `{name}` has no sliding or tumbling window over a column with a fixed origin, "
            "and only such windows share panes",
            hint="panes.open(...) runs it by itself",
        )
    if query.emits_early:
        raise QueryError(
            f"query `{name}` emits early, and a register gives final answers only",
            hint="panes.open(...) runs it by itself",
        )
    return window.spec
