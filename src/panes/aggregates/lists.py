"""Values of a window as a list, or joined into one text, exactly and in an order of their own.

Spark gives these in the order in which rows happen to come. Here the values themselves decide,
so that arrival order reaches no answer: ascending, unless ``WITHIN GROUP (ORDER BY ...)`` says
otherwise.
"""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.aggregates.aggregate import Argument, Holistic, Multiset, Selection
from panes.aggregates.multiset import all_values, holistic, take
from panes.aggregates.murmur128 import is_text_or_binary
from panes.arrays.nested_keys import is_nested, require_orderable, restored, stored, stored_type
from panes.errors import ColumnTypeError, QueryError


def collect(argument: Argument, where: int | None, *, distinct: bool) -> Holistic:
    """``collect_list(x)`` and ``collect_set(x)``: the values in ascending order."""
    result = pa.list_(argument.type)

    def lower(window: Multiset) -> pa.Array:
        begin, chosen = all_values(window, distinct=distinct)
        values = restored(take(window.values, chosen), argument.type)
        return pa.ListArray.from_arrays(pa.array(begin, pa.int32()), values).cast(result)

    return holistic((argument,), where, lower, result)


def collect_union(argument: Argument, where: int | None) -> Holistic:
    """``collect_union(x)``: the different elements of all lists, ascending, NULL first."""
    kind = argument.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise ColumnTypeError(f"collect_union needs lists, got {kind}")
    inside = kind.value_type

    def lower(window: Multiset) -> pa.Array:
        begin, chosen = all_values(window, distinct=True)
        lists = restored(take(window.values, chosen), kind)
        keyed = pa.array(stored(pa.array([[v] for v in _flat(lists)], kind)), pa.binary())
        bounds = np.append(0, np.cumsum(pc.list_value_length(lists).to_numpy()))[begin]
        found = [sorted(set(keyed[a:b].to_pylist())) for a, b in pairwise(bounds.tolist())]
        ends = np.append(0, np.cumsum([len(f) for f in found]))
        alone = restored(pa.array(list(chain(*found)), pa.binary()), kind)
        values = pa.array(_flat(alone), inside)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values).cast(pa.list_(inside))

    return holistic((argument,), where, lower, pa.list_(inside))


def _flat(lists: pa.Array) -> list[object]:
    flat: list[object] = pc.list_flatten(lists).to_pylist()
    return flat


def joined(
    argument: Argument,
    by: Argument | None,
    where: int | None,
    separator: str | None,
    *,
    descending: bool,
    distinct: bool,
) -> Holistic:
    """``listagg(x, separator)``: the values in one text, ordered by themselves or by `by`."""
    kind = pa.string() if pa.types.is_null(argument.type) else argument.type
    if not is_text_or_binary(kind):
        raise ColumnTypeError(
            f"listagg joins text or binary, got {kind}", hint="listagg(CAST(x AS STRING))"
        )
    glue = separator or ""
    between = pa.scalar(glue if _is_text(kind) else glue.encode(), kind)

    def lower(window: Multiset) -> pa.Array:
        begin, chosen = all_values(window, distinct=distinct)
        if descending:
            chosen = _reversed(begin, chosen)
        values = take(window.values, chosen)
        texts = (values if by is None else pc.struct_field(values, "1")).cast(kind)
        is_null = np.append(np.diff(begin) == 0, False)
        lists = pa.ListArray.from_arrays(pa.array(begin, pa.int32(), mask=is_null), texts)
        return pc.binary_join(lists, between)

    if by is None:
        if pa.types.is_null(argument.type):
            return _nothing(argument, where)
        return holistic((argument,), where, lower, kind)
    require_orderable(by.type, what="ORDER BY of listagg")
    if is_nested(by.type) and distinct:
        raise QueryError("listagg(DISTINCT x) is ordered by x alone")
    selection = Selection((argument.column,), where)
    return Holistic((by, argument), selection, lower, kind, ordered=True)


def _nothing(argument: Argument, where: int | None) -> Holistic:
    """The answer over a column that has no type and no value: NULL, of text."""
    selection = Selection((argument.column,), where)

    def lower(window: Multiset) -> pa.Array:
        return pa.nulls(len(window.distinct()), pa.string())

    return Holistic((argument,), selection, lower, pa.string())


def first_by(
    value: Argument, by: Argument, where: int | None, count: int, *, greatest: bool
) -> Holistic:
    """``min_by(x, y, k)``, ``max_by(x, y, k)``: x of the k rows with the least or greatest y."""
    for argument in (value, by):
        require_orderable(argument.type, what="min_by and max_by")
    result = pa.list_(value.type)

    def lower(window: Multiset) -> pa.Array:
        begin, chosen = all_values(window, distinct=False)
        if greatest:
            chosen = _reversed(begin, chosen)
        place = np.arange(len(chosen)) - np.repeat(begin[:-1], np.diff(begin))
        taken = chosen[place < count]
        ends = np.append(0, np.cumsum(np.minimum(np.diff(begin), count)))
        values = pc.struct_field(take(window.values, taken), "1")
        values = restored(values.cast(stored_type(value.type)), value.type)
        is_null = np.append(np.diff(ends) == 0, False)
        offsets = pa.array(ends, pa.int32(), mask=is_null)
        return pa.ListArray.from_arrays(offsets, values).cast(result)

    return Holistic((by, value), Selection((by.column,), where), lower, result, ordered=True)


def _reversed(begin: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each window's values the other way round."""
    length = np.diff(begin)
    first, last = np.repeat(begin[:-1], length), np.repeat(begin[1:], length)
    turned: NDArray[np.int64] = chosen[first + last - 1 - np.arange(len(chosen))]
    return turned


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
