"""The meaning of a join's window clauses: a band, or windows that hold both rows of a pair.

A clause behind each side is a band. One clause for both sides that slides, or that has a landmark,
joins by windows.
"""

from __future__ import annotations

from panes.errors import QueryError
from panes.language.clause import Length, Parts, written
from panes.language.join_query import Join, Side, Source
from panes.planning.band import Positions
from panes.windows.partners import Band, CommonWindows, Partners
from panes.windows.spec import Landmark, Sliding


def window_of_both(join: Join) -> Parts | None:
    """The clause that is meant for both sides and slides, so that pairs are of windows."""
    clause = join.clause
    return clause if clause is not None and _slides(clause) else None


def _slides(clause: Parts) -> bool:
    return clause.slide is not None or clause.is_landmark


def clauses(join: Join) -> tuple[Parts, Parts] | None:
    """The clauses of both sides; None if none is written, so that ON has the band."""
    left, right = _left_clause(join.left), join.right.clause
    if join.clause is not None:
        return join.clause, join.clause
    if right is None and (left is None or isinstance(join.left, Join)):
        return None
    if join.as_of and right is not None:
        return left or right, right
    if left is None or right is None:
        raise QueryError(
            "one side of the join has a window and the other has none",
            hint="l [RANGE 3 minutes WATTR ts], r [RANGE 2 minutes WATTR ts]",
        )
    return left, right


def two_meanings(
    clause: Parts, side: str, column: str, *, both_have_it: bool, is_aggregated: bool
) -> QueryError:
    """Why windows on one side's column are refused behind an ON with a band, and what to write."""
    above = (
        "for windows of joined rows, write it behind the SELECT list: "
        f"SELECT count(*) AS n {written(clause, side, column)} FROM ...; "
    )
    common = "for windows that hold both rows of a pair, name no side: " + written(clause, column)
    if not both_have_it:
        common = (
            "for windows that hold both rows of a pair, call the columns of both the same: "
            f"JOIN (SELECT at AS {column}, ... FROM r) r ON ... {written(clause, column)}"
        )
    return QueryError(
        f"ON says how far apart rows may be, so windows on `{side}.{column}` right behind it could "
        "be meant for both rows of a pair, or for joined rows",
        hint=above * is_aggregated + common,
    )


def _left_clause(side: Side) -> Parts | None:
    """The clause that the left side brings along; that of an ASOF JOIN below is for that alone."""
    if isinstance(side, Source):
        return side.clause
    below = _left_clause(side.left)
    return below if side.as_of else side.right.clause or below


def band(join: Join) -> Band:
    """The band that the clauses of both sides mean: ``l.ts - b <= r.ts < l.ts + a``."""
    named = clauses(join)
    assert named is not None
    left, right = named
    if window_of_both(join) is not None:
        return Band(0, 0)
    if join.as_of:
        return Band(-_range(right).ticks, 0)
    for clause in (left, right):
        if _slides(clause):
            raise QueryError(
                "a window on one side of a join does not slide",
                hint="leave out SLIDE, or write one clause for both sides",
            )
    return Band(-_range(right).ticks, _range(left).ticks - 1)


def _range(clause: Parts) -> Length:
    if clause.size is None:
        raise QueryError("the window of a join needs a RANGE", hint="[RANGE 5 minutes WATTR ts]")
    if clause.size.unit == "rows":
        raise QueryError(
            "a join is over positions, not over counted rows", hint="[RANGE 5 minutes WATTR ts]"
        )
    return clause.size


def partners(join: Join, positions: Positions) -> Partners:
    clause = window_of_both(join)
    if clause is None:
        return positions.band
    if join.as_of:
        raise QueryError("an ASOF JOIN has a RANGE and no SLIDE", hint="r [RANGE 5 minutes]")
    slide = clause.slide
    if slide is None or slide.unit == "rows":
        raise QueryError("the windows of a join slide over a column", hint="SLIDE 1 minute")
    if clause.origin_first or clause.partition or clause.by_rank:
        raise QueryError("ORIGIN FIRST, PA and rank(...) have no meaning for a join")
    if clause.is_landmark:
        return CommonWindows(Landmark(slide=slide.ticks, origin=clause.origin))
    size = _range(clause)
    if size.unit != slide.unit:
        raise QueryError("RANGE and SLIDE of a join have the same unit")
    shift = size.ticks % slide.ticks if clause.align_start else 0
    return CommonWindows(Sliding(size=size.ticks, slide=slide.ticks, origin=clause.origin + shift))
