"""Due windows of a shape whose queries are rolled one by one, each as it would be alone.

This is for panes that hold few of the keys, and for pieces that are not made of numbers. The panes
are those of the store, to which the filters of the shape have been applied.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Bounded
from panes.aggregates.monoid import Monoid, merge_slots
from panes.answers.lower import labelled
from panes.answers.portions import Portion
from panes.arrays.slots import compact_slots
from panes.arrays.workers import workers
from panes.kernels.sliding_multiset import SlidingMultiset
from panes.sharing.classed_panes import ClassedPanes
from panes.sharing.due import Due, Finish
from panes.sharing.pane_tables import PaneTables
from panes.sharing.shape import Member, Shape
from panes.stores.contents import ValueSet
from panes.stores.fragment import Fragment
from panes.stores.panes import PaneStore, Rolled, by_window


def roll_alone(
    panes: ClassedPanes, tables: PaneTables, one: Due, finish: Finish
) -> Iterator[Portion]:
    """The answers of one shape, query by query."""
    shape = one.shape
    fragment, monoids = _filtered(tables, shape)
    for index, first, end in zip(
        one.which.tolist(), one.first.tolist(), one.end.tolist(), strict=True
    ):
        member = shape.members[index]
        alone = PaneStore(member.spec, monoids, workers())
        alone.fragments = (fragment,)
        if end <= first or not len(fragment):
            continue
        rolled = alone.answer(first, end, panes.groups.order)
        if not len(rolled.cover):
            continue
        order = by_window(rolled)
        lowered = [
            column.take(pa.array(order)) for column in _lowered(panes, shape, member, rolled)
        ]
        keys = panes.groups.columns(rolled.groups)
        table = labelled(shape.plan.axis, member.spec, keys, rolled.cover, order, lowered)
        table = finish(shape.plan, table)[1]
        if len(table):
            yield Portion(shape.answer_columns, [member.name], np.array([0, len(table)]), table)


def _lowered(
    panes: ClassedPanes, shape: Shape, member: Member, rolled: Rolled
) -> Iterator[pa.Array]:
    partials = dict(zip(shape.pieces, rolled.partials, strict=True))
    multisets: dict[ValueSet, SlidingMultiset] = {
        v: panes.values[v].over(member.spec).under(rolled) for v in shape.value_sets
    }
    for need in shape.needs:
        if isinstance(need.aggregate, Bounded):
            yield need.aggregate.lower([partials[w] for w in need.pieces])
        else:
            assert need.values is not None
            yield need.aggregate.lower(multisets[need.values])


def _filtered(tables: PaneTables, shape: Shape) -> tuple[Fragment, list[Monoid]]:
    """The panes of a shape: keys without classes, its pieces under their filters."""
    whole = tables.whole()
    passing = tables.passing(shape.where)
    width = len(tables.groups)
    cells = whole.panes[passing].astype(np.int64) * width + whole.ranks[passing]
    numbers, pairs = compact_slots(cells, tables.size)
    partials, monoids = [], []
    for wanted in shape.pieces:
        own, slots = passing, numbers
        if wanted.where != shape.where:
            own = tables.passing(wanted.where)
            slots = numbers[np.searchsorted(passing, own)]  # whatever passes it, passes WHERE
        monoid = wanted.piece.monoid
        stored = np.take(whole.partials[wanted.piece], own, axis=1)
        partials.append(merge_slots(monoid, stored, slots, len(pairs)))
        monoids.append(monoid)
    starts, groups = tables.starts[pairs // width], tables.groups[pairs % width]
    return Fragment(starts, groups, tuple(partials)), monoids
