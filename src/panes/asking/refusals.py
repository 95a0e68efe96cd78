"""Why a question cannot be answered now, each with what to type instead."""

from __future__ import annotations

from collections.abc import Sequence

from panes.axis import Axis, format_duration
from panes.errors import QueryError
from panes.planning.plan import Plan

_PREPARE = "reg.prepare(...) the same question; it is answered from the rows to come"


def no_rows(hint: str = _PREPARE) -> QueryError:
    """A question about rows, and none are kept."""
    return QueryError("the register keeps no rows", hint=hint)


def too_few_rows(asked: int, stored: int) -> QueryError:
    """A question about more rows than are stored."""
    return QueryError(
        f"the last {asked} rows are asked for, and {stored} are kept",
        hint=f"panes.register(..., keep_rows={asked})",
    )


def not_that_long() -> QueryError:
    """A question about rows that no prepared one reaches back to."""
    return QueryError("no rows are kept that reach back so far", hint=_PREPARE)


def rows_gone(axis: Axis, start: int, known: int) -> QueryError:
    """A window that begins before the rows that are kept."""
    return QueryError(
        f"the window begins at {axis.format(start)}, and rows are kept from {axis.format(known)} "
        "on",
        hint="reg.prepare(...) the same question; it is answered from these rows and those to come",
    )


def column_not_kept(name: str) -> QueryError:
    """A question about a column that no prepared one reads."""
    return QueryError(f"`{name}` is not among the columns that are kept of rows", hint=_PREPARE)


def inside_a_pane(axis: Axis, start: int, sizes: Sequence[int]) -> QueryError:
    """A window that begins inside a pane; windows of these sizes do not."""
    is_time = axis.kind == "time"
    shown = " or ".join(format_duration(s) if is_time else str(s) for s in sizes)
    return QueryError(
        f"a window of that size would begin at {axis.format(start)}, inside a pane",
        hint=f"RANGE {shown} is exact; what reg.prepare(..., within=10) keeps knows any by an "
        "interval",
    )


def not_stored(plan: Plan, now: int) -> QueryError:
    """No query needs what would answer the question; rows up to `now` have come without one."""
    return QueryError(
        f"nothing is stored that answers {_calls(plan)}{_grouped(plan)}{_filtered(plan)}",
        hint="add a query that needs it; it is answered from the rows to come: windows that begin "
        f"at {plan.axis.format(now)} or later",
    )


def not_that_far(plan: Plan, start: int, known: int) -> QueryError:
    """Panes that the window holds have been forgotten."""
    at = plan.axis.format
    return QueryError(
        f"panes do not reach back far enough to answer {_calls(plan)}: the window begins at "
        f"{at(start)}, and they at {at(known)}",
        hint="add a query with a RANGE as long; it is answered from the rows to come",
    )


def not_all_rows(plan: Plan, start: int, known: int) -> QueryError:
    """What answers the question came to be stored after the window begins."""
    at = plan.axis.format
    return QueryError(
        f"the window begins at {at(start)}, and {_calls(plan)} is known of these rows from "
        f"{at(known)} on",
        hint=f"it can be asked once windows begin there: {length(plan.axis, known - start)} from "
        "now",
    )


def not_prepared(question: str, widths: Sequence[str]) -> QueryError:
    """Nothing answers a question; `widths` are those that would, if it were asked `within` one."""
    known = f"; it is prepared within {', '.join(widths)}" if widths else ""
    return QueryError(
        f"nothing is prepared that answers {question}{known}",
        hint=_PREPARE,
    )


def too_large(axis: Axis, size: int, largest: int) -> QueryError:
    """A window that is larger than those that were prepared."""
    return QueryError(
        f"windows of up to {length(axis, largest)} are prepared, and one of "
        f"{length(axis, size)} is asked for",
        hint="reg.prepare(...) that one; it is answered from the rows to come",
    )


def not_known_yet(axis: Axis, start: int, known: int) -> QueryError:
    """A window that begins before all rows are known."""
    return QueryError(
        f"the window begins at {axis.format(start)}, and what is prepared knows rows from "
        f"{axis.format(known)} on",
        hint=f"it can be asked once windows begin there: {length(axis, known - start)} from now",
    )


def length(axis: Axis, ticks: int) -> str:
    """A length as a user would write it."""
    if axis.kind == "rows":
        return "1 row" if ticks == 1 else f"{ticks:,} rows"
    return format_duration(ticks) if axis.kind == "time" else str(ticks)


def _grouped(plan: Plan) -> str:
    keys = ", ".join(key.name for key in plan.query.keys)
    if not plan.query.calls:
        return ""
    return f" by {keys}" if keys else " over all rows together"


def _filtered(plan: Plan) -> str:
    is_filtered = any(call.where is not None for call in plan.query.calls)
    return " with that filter" if is_filtered or plan.query.where is not None else ""


def _calls(plan: Plan) -> str:
    if not plan.query.calls:
        return f"which values of {', '.join(key.name for key in plan.query.keys)} are there"
    return ", ".join(call.sql for call in plan.query.calls)
