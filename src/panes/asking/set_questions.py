"""INTERSECT and EXCEPT asked of a register: each side is a set of values, looked up by itself.

As a standing query, a set operation stores which sides each value is on. Where nobody has
registered that, the panes of two plain DISTINCTs, or of any query with that GROUP BY and these
filters, hold both sets; what remains is to compare them. Both are of the same window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.arrays.columns import column_of
from panes.arrays.key_numbers import KeyNumbers
from panes.asking.look_up import Stores, planned_question, stored_since
from panes.language.parse import parse
from panes.language.query import WINDOW_COLUMNS, Query
from panes.language.set_query import texts_of_sides
from panes.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class PlannedSets:
    """Two sets of values of one window, and what is asked of them."""

    operation: str
    first: Plan
    second: Plan

    def combined(self, first: pa.Table, second: pa.Table) -> pa.Table:
        """The values of the first set that are in the second one; or those that are not.

        NULL is a value, and all NaN are one, as in GROUP BY.
        """
        names = [name for name in first.column_names if name not in WINDOW_COLUMNS]
        numbers = KeyNumbers([first.schema.field(name).type for name in names])
        skipped = len(WINDOW_COLUMNS)
        mine, others = (
            numbers.encode([column_of(t, n) for n in t.column_names[skipped:]], len(t))
            for t in (first, second)
        )
        is_shared = np.isin(mine, others)
        return first.filter(pa.array(is_shared if self.operation == "INTERSECT" else ~is_shared))


def planned_sets(
    text: str,
    planned: Plan,
    plan_of: Callable[[Query], Plan],
    stores: Stores,
    aggregates: Sequence[UserAggregate] = (),
) -> PlannedSets | None:
    """Both sides of a set operation, unless it is stored as a whole for as long as they are."""
    found = texts_of_sides(text)
    if found is None:
        return None
    operation, texts = found
    sides = [parse(side, aggregates, once=True) for side in texts]
    first, second = (planned_question(side, plan_of, stores) for side in sides)
    since, whole = (
        max(stored_since(p, stores) for p in (first, second)),
        stored_since(planned, stores),
    )
    if whole < math.inf and whole <= since:
        return None
    return PlannedSets(operation, first, second)
