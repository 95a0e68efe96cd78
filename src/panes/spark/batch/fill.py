"""Fill as Spark expressions: partials per pane and key by the JVM's own code generation.

For each type of piece: the Spark aggregates whose results are its partial, and how their Arrow
columns become the partial's lanes. A piece without such a pair (sketches, a user's own) has no
native fill; its query is filled in Python instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce, singledispatch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.aggregates.aggregate import Piece, Selection
from panes.aggregates.arithmetic import Count, FloatSum, LimbSum, split_limbs
from panes.aggregates.extremes import ObjectPick, Pick
from panes.aggregates.lanes import Op
from panes.aggregates.moments import Moments
from panes.aggregates.monoid import Columns
from panes.arrays import nested_keys, order_keys
from panes.arrays.columns import without_nulls
from panes.shards.names import AT
from panes.windows.cut import Cut


def pane_start(cut: Cut) -> Column:
    """`panes.windows.cut`, as a Spark expression."""
    at = F.col(AT)
    edges = [at - F.pmod(at - F.lit(f.phase), F.lit(f.slide)) for f in cut.families]
    return edges[0] if len(edges) == 1 else F.greatest(*edges)


@singledispatch
def aggregates(piece: Piece, columns: Sequence[Column]) -> list[Column] | None:
    """The Spark aggregates that make a piece's partial; None if Spark has none."""
    return None


def is_filled_by_spark(piece: Piece) -> bool:
    """Whether `aggregates` knows this type of piece."""
    return aggregates.dispatch(type(piece)) is not aggregates.dispatch(object)


@singledispatch
def partial_of(piece: Piece, arrays: Sequence[pa.Array]) -> Columns:
    """The lanes of a piece, from the columns that `aggregates` gave."""
    raise TypeError(f"{type(piece).__name__} is not filled by Spark")


def _passing(selection: Selection, columns: Sequence[Column], value: Column) -> Column:
    """A value in rows that pass the selection, NULL elsewhere."""
    conditions = [columns[c].isNotNull() for c in selection.present]
    if selection.where is not None:
        conditions.append(columns[selection.where])
    return value if not conditions else F.when(reduce(lambda a, b: a & b, conditions), value)


@aggregates.register
def _(piece: Count, columns: Sequence[Column]) -> list[Column] | None:
    return [F.count(_passing(piece.selection, columns, F.lit(1)))]


@partial_of.register
def _(piece: Count, arrays: Sequence[pa.Array]) -> Columns:
    return without_nulls(arrays[0], 0)[None, :]


@aggregates.register
def _(piece: FloatSum, columns: Sequence[Column]) -> list[Column] | None:
    factors = [columns[f.column].cast("double") for f in piece.factors]
    return [F.sum(_passing(piece.selection, columns, reduce(lambda a, b: a * b, factors)))]


@partial_of.register
def _(piece: FloatSum, arrays: Sequence[pa.Array]) -> Columns:
    high = without_nulls(arrays[0], 0.0)
    return np.stack([high, np.zeros(len(high))])


@aggregates.register
def _(piece: LimbSum, columns: Sequence[Column]) -> list[Column] | None:
    column = columns[piece.argument.column]
    if pa.types.is_decimal(piece.argument.type):
        wide = column.cast(f"decimal(38, {piece.argument.type.scale})")
        return [F.sum(_passing(piece.selection, columns, wide))]
    value = column.cast("long")
    low = value.bitwiseAND(F.lit(0xFFFFFFFF))
    return [
        F.sum(_passing(piece.selection, columns, limb)) for limb in (low, F.shiftright(value, 32))
    ]


@partial_of.register
def _(piece: LimbSum, arrays: Sequence[pa.Array]) -> Columns:
    if pa.types.is_decimal(piece.argument.type):
        zero = pa.scalar(0, pa.decimal128(38, 0)).cast(arrays[0].type)
        return split_limbs(pc.fill_null(arrays[0], zero))
    return np.stack([without_nulls(a, 0) for a in arrays])


@aggregates.register
def _(piece: Moments, columns: Sequence[Column]) -> list[Column] | None:
    selection = Selection(tuple(a.column for a in piece.arguments), piece.where)
    values = [
        _passing(selection, columns, columns[a.column].cast("double")) for a in piece.arguments
    ]
    spread = [F.var_pop(v) for v in values]
    if len(values) == 2:
        spread.append(F.covar_pop(*values))
    return [F.count(values[0]), *(F.avg(v) for v in values), *spread]


@partial_of.register
def _(piece: Moments, arrays: Sequence[pa.Array]) -> Columns:
    n = without_nulls(arrays[0], 0).astype(np.float64)
    numbers = [without_nulls(a, 0.0) for a in arrays[1:]]
    means = len(piece.arguments)
    return np.stack([n, *numbers[:means], *(n * spread for spread in numbers[means:])])


@aggregates.register(Pick)
@aggregates.register(ObjectPick)
def _(piece: Pick | ObjectPick, columns: Sequence[Column]) -> list[Column] | None:
    best = F.min if piece.side is Op.LEAST else F.max
    values = [c for c in piece.components if c.what == "value" and c.argument is not None]
    if len(piece.components) <= 2:
        [value] = values
        assert value.argument is not None
        return [best(_passing(piece.selection, columns, columns[value.argument.column]))]
    parts = []
    for i, component in enumerate(piece.components):
        if component.what == "time":
            part = F.col(AT)
        elif component.what == "seen" or component.argument is None:
            part = F.lit(0)
        else:
            part = columns[component.argument.column]
            if component.what == "null":
                part = (part.isNull() == F.lit(piece.side is Op.LEAST)).cast("int")
        parts.append(part.alias(f"f{i}"))
    return [best(_passing(piece.selection, columns, F.struct(*parts)))]


@partial_of.register(Pick)
@partial_of.register(ObjectPick)
def _(piece: Pick | ObjectPick, arrays: Sequence[pa.Array]) -> Columns:
    won = arrays[0]
    result = piece.monoid.empty(len(won))
    seen = np.flatnonzero(pc.is_valid(won).to_numpy(zero_copy_only=False))
    present = won.take(pa.array(seen))
    for lane, component in enumerate(piece.components):
        if component.what == "seen":
            result[lane, seen] = int(piece.side is Op.GREATEST)
            continue
        is_tuple = len(piece.components) > 2
        column = pc.struct_field(present, f"f{lane}") if is_tuple else present
        result[lane, seen] = _lane(column, keyed=component.is_keyed)
    return result


def _lane(column: pa.Array, *, keyed: bool) -> NDArray[np.generic]:
    if keyed:
        return order_keys.encode(column)
    values = np.empty(len(column), dtype=object)
    values[:] = nested_keys.stored(column).to_pylist()
    return values
