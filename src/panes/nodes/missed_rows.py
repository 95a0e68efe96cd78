"""What a query has missed if it is added to a register of joins while rows come.

Of every source of its join, rows up to some position may have come before it, in one of two ways:

    unstored   The join began after they came. Nothing will be joined with them: pairs are missing,
               a row whose only partner is among them looks alone, and as of, an older partner looks
               like the last.
    joined     The query came to a join that had begun. They are stored, and joined with all that
               comes. What is missing was given before: all of its rows are among them.

Two rules follow. What could be wrong is given to no query (`sure_rows`): a row without partner that
an unstored one could have been the partner of, and the last partner where a later one could have
been. And behind some position everything is there (`Whole`): groups by positions and windows that
begin before it are not answered, and joined rows that lie behind it are all given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.arrays.columns import column_of
from panes.axis import BEGINNING
from panes.errors import QueryError
from panes.language.query import WINDOW_COLUMNS
from panes.nodes.join_stage import WID
from panes.planning.join_plan import JoinPlan, SourcePlan
from panes.planning.join_query_plan import JoinQueryPlan
from panes.windows.extent import edges_of
from panes.windows.spec import Landmark, PerRow, Sliding, Spec

Newest = Sequence[int]
"""Up to where rows of each source may have come, from left to right; `BEGINNING`: none have."""


@dataclass(frozen=True, slots=True)
class Missed:
    """Up to where rows of each source are unstored, and up to where they may be joined already."""

    unstored: tuple[int, ...]
    joined: tuple[int, ...]

    @property
    def is_nothing(self) -> bool:
        """Whether no row came before."""
        return max(*self.unstored, *self.joined) <= BEGINNING


@dataclass(frozen=True, slots=True)
class Whole:
    """What is whole of a query that may have missed rows."""

    plan: JoinQueryPlan
    missed: Missed

    def require_answers(self) -> None:
        """Refuse a query that could never be answered in full."""
        if isinstance(_spec(self.plan), Landmark):
            raise QueryError(
                "rows have come before this query, and windows over ALL rows would miss them",
                hint="add it before the first batch, or give it a RANGE",
            )

    def rows(self, joined: pa.Table) -> pa.Table:
        """Joined rows without those of groups by positions that may miss some."""
        found = self.plan.aggregation
        if found is None or found.by != "positions":
            return joined
        join = self.plan.join
        names = (join.left_at, join.right_at)
        grouped = [n for n, by in zip(names, found.grouped, strict=True) if by]
        later = pc.max_element_wise(*(_at(join, joined, name) for name in grouped))
        return joined.filter(pc.greater(later, self.upto))

    @property
    def upto(self) -> int:
        """Windows that start behind this position, or groups and rows that lie there, are whole."""
        found, join = self.plan.aggregation, self.plan.join
        if join.windows is not None and (found is None or found.by == "window"):
            return max(max(_sides(join, newest, is_apart)) for newest, is_apart in self._newest())
        if found is None:
            return max(_newest_joined(join, *each) for each in self._newest())
        left, right = self._edges()
        if found.by == "positions":
            return max(at for at, by in zip((left, right), found.grouped, strict=True) if by)
        return {"left": left, "right": right}.get(found.by, max(left, right))

    @property
    def begins(self) -> object:
        """Where the first window starts, or the first group or joined row lies, that is sure."""
        first, spec = self.upto + 1, _spec(self.plan)
        if isinstance(spec, Sliding):
            first += (spec.origin - spec.size - first) % spec.slide
        return self.plan.join.axis.label(np.array([first]))[0].as_py()

    def _edges(self) -> tuple[int, int]:
        """Up to where joined rows may be missing, by their left and by their right position."""
        both = [_edges(self.plan.join, *each) for each in self._newest()]
        left, right = zip(*both, strict=True)
        return max(left), max(right)

    def _newest(self) -> tuple[tuple[Newest, bool], ...]:
        """The newest rows of each kind, and whether rows apart from them miss them."""
        return (self.missed.unstored, True), (self.missed.joined, False)


def whole_windows(plan: JoinQueryPlan, upto: int, answers: pa.Table) -> pa.Table:
    """Answers without those of windows that start at or before a position."""
    if not isinstance(_spec(plan), Sliding | PerRow) or not answers.num_columns:
        return answers
    starts = column_of(answers, WINDOW_COLUMNS[0]).cast(pa.int64())
    return answers.filter(pc.greater(starts, upto))


def sure_rows(join: JoinPlan, unstored: Newest, joined: pa.Table) -> pa.Table:
    """What a join gives, without what rows that are not stored could prove wrong."""
    if max(unstored) <= BEGINNING:
        return joined
    unsure = pa.array(np.zeros(len(joined), dtype=np.bool_))
    for level, newest in _levels(join, unstored):
        for condition in _unsure(level, newest, joined):
            unsure = pc.or_(unsure, pc.fill_null(condition, False))
    return joined.filter(pc.invert(unsure))


def _unsure(join: JoinPlan, unstored: Newest, joined: pa.Table) -> Iterator[pa.Array]:
    """Which joined rows may be wrong in what one join says of them."""
    newest = _sides(join, unstored, True)
    left, right = (_at(join, joined, name) for name in (join.left_at, join.right_at))
    if join.as_of:
        yield pc.less_equal(right, newest[1])
    for mine, other, of, hows in (
        (left, right, 1, ("left", "full", "anti")),
        (right, left, 0, ("right", "full")),
    ):
        if join.how not in hows:
            continue
        begins, upto = mine, _met(join, newest[of], of_left=of == 0)
        if join.windows is not None and WID in joined.column_names:
            starts = edges_of(join.windows, column_of(joined, WID).to_numpy())[0]
            begins, upto = pa.array(starts), newest[of]
        alone = pc.and_(pc.is_valid(mine), pc.is_null(other))
        yield pc.and_(alone, pc.less_equal(begins, upto))


def _sides(join: JoinPlan, newest: Newest, is_apart: bool) -> tuple[int, int]:
    """Up to where rows of the two sides are missing or wrong, on the positions of the join."""
    if isinstance(join.left, SourcePlan):
        return newest[0], newest[-1]
    below = _edges(join.left, newest[:-1], is_apart)
    return below[join.left_at != join.left.left_at], newest[-1]


def _edges(join: JoinPlan, newest: Newest, is_apart: bool) -> tuple[int, int]:
    """Up to where joined rows are missing or wrong, by their left and by their right position.

    If partners may lie apart, they are those that a missing row could have been joined with.
    """
    left, right = _sides(join, newest, is_apart)
    if not is_apart:
        return left, right
    return max(left, _met(join, right, of_left=False)), max(right, _met(join, left, of_left=True))


def _newest_joined(join: JoinPlan, newest: Newest, is_apart: bool) -> int:
    """Where the last joined row lies, with all its positions, that is missing or wrong."""
    found = [*newest]
    for level, own in _levels(join, newest):
        left, right = _edges(level, own, is_apart)
        found += [left] * (level.how in ("left", "full", "semi", "anti"))
        found += [right] * (level.how in ("right", "full"))
    return max(found)


def _levels(join: JoinPlan, newest: Newest) -> Iterator[tuple[JoinPlan, Newest]]:
    """A join and those below it, each with the newest rows of its own sources."""
    yield join, newest
    if isinstance(join.left, JoinPlan):
        yield from _levels(join.left, newest[:-1])


def _met(join: JoinPlan, at: int, *, of_left: bool) -> int:
    """The last position of the other side that a row can be joined with."""
    return at if at <= BEGINNING else join.partners.span(at, at, of_left=of_left)[1]


def _at(join: JoinPlan, joined: pa.Table, name: str) -> pa.Array:
    """Positions of joined rows, NULL where there is none."""
    if name not in joined.column_names:
        return pa.nulls(len(joined), pa.int64())
    ticks, missing = join.axis.ticks(column_of(joined, name))
    return pa.array(ticks, mask=missing)


def _spec(plan: JoinQueryPlan) -> Spec | None:
    """The windows of the answers."""
    found = plan.aggregation
    if found is None or found.by == "window":
        return plan.join.windows
    if found.by == "positions" or found.query.window is None:
        return None
    return found.query.window.spec
