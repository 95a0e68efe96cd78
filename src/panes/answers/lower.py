"""From partials to answer columns: lower the aggregates, label windows and keys.

The columns are those that `Plan.answers` reads: both edges of the window, the keys and the
aggregates, each under its number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.aggregates.aggregate import Bounded
from panes.arrays.spread import spread
from panes.arrays.workers import workers
from panes.axis import Axis
from panes.errors import LimitError
from panes.planning.answer_columns import lowered_names
from panes.planning.plan import Plan
from panes.stores.rolled import AnswerPartials, WindowPartials
from panes.windows.cover import Cover
from panes.windows.extent import edges_of
from panes.windows.spec import PanedSpec

_NARROW = (pa.string(), pa.binary())
_MOST_BYTES = (1 << 31) - 1


def lower(
    plan: Plan, found: AnswerPartials, order: NDArray[np.int64] | None = None
) -> list[pa.Array]:
    """The aggregates of a plan, one value per answer, rearranged by `order`."""

    def lower_one(index: int) -> pa.Array:
        aggregate, needed = plan.aggregates[index], plan.piece_of[index]
        if isinstance(aggregate, Bounded):
            lowered = aggregate.lower([found.partials[p] for p in needed])
        else:
            lowered = aggregate.lower(found.multisets[needed[0]])
        return lowered if order is None else lowered.take(pa.array(order))

    rows = found.partials[0].shape[1] if found.partials else 0
    return spread(workers(), lower_one, range(len(plan.aggregates)), rows=rows)


def lowered_windows(plan: Plan, spec: PanedSpec, found: WindowPartials | None) -> pa.Table:
    """Windows, keys and aggregates of answers, under their numbers; `spec` are the windows."""
    if found is None:
        return plan.lowered_schema().empty_table()
    lowered = lower(plan, found, found.order)
    return labelled(plan.axis, spec, found.keys, found.cover, found.order, lowered)


def _require_text_fits(keys: Sequence[pa.Array], cover: Cover) -> None:
    """Refuse keys that answers would repeat beyond what a column of text can hold."""
    for key in keys:
        if key.type in _NARROW and len(cover) * key.nbytes > _MOST_BYTES:
            sizes = pc.fill_null(pc.binary_length(key), 0).to_numpy()
            size = int(sizes.astype(np.int64) @ np.diff(cover.offsets))
            if size > _MOST_BYTES:
                raise LimitError(
                    f"the keys of {len(cover):,} answers take {size:,} bytes, and {key.type} holds "
                    f"{_MOST_BYTES:,}",
                    hint="ask with batches=True, group by md5(column), "
                    "or cast the column to large_string",
                )


def labelled(
    axis: Axis,
    spec: PanedSpec,
    keys: Sequence[pa.Array],
    cover: Cover,
    order: NDArray[np.int64] | None,
    lowered: Sequence[pa.Array],
) -> pa.Table:
    """Lowered aggregates with their windows and keys; `order` rearranges these two."""
    group = np.repeat(np.arange(len(cover.offsets) - 1), np.diff(cover.offsets))
    wid = cover.wid
    if order is not None:
        group, wid = group[order], wid[order]
    start, end = edges_of(spec, wid)
    starts = pa.nulls(len(end), axis.type) if start is None else axis.label(start)
    _require_text_fits(keys, cover)
    taken = pa.array(group)
    columns = [starts, axis.label(end), *(k.take(taken) for k in keys), *lowered]
    return pa.table(columns, names=lowered_names(len(keys), len(lowered)))
