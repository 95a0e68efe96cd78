"""The row that comes first or last by a tuple of components, and what it says.

``min``, ``max``, ``first``, ``last``, ``min_by``, ``max_by``, ``bool_and`` and ``bool_or`` are one
idea: compare tuples, keep the least or the greatest, read one component of the winner. Ties are
broken by the value itself (a value before NULL), never by arrival, so any order of rows gives
the same answer.

| aggregate | tuple | keep |
|---|---|---|
| min(x), bool_and(x) | (absent, x) | least |
| max(x), bool_or(x)  | (present, x) | greatest |
| first(x) | (time, x is NULL, x) | least |
| last(x)  | (time, x is not NULL, x) | greatest |
| min_by(x, y) | (absent, y, x is NULL, x) | least |
| max_by(x, y) | (present, y, x is not NULL, x) | greatest |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.aggregates.aggregate import Argument, Bounded, Rows, Selection
from panes.aggregates.identity import identity
from panes.aggregates.lanes import Op, Scalar, absorb, load, store
from panes.aggregates.monoid import Columns, Lanes, Monoid, Slots
from panes.arrays import nested_keys, order_keys
from panes.arrays.columns import without_nulls
from panes.arrays.compiled import compiled
from panes.axis import FOREVER
from panes.errors import ColumnTypeError

Side = Literal[Op.LEAST, Op.GREATEST]
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Component:
    """One place of the compared tuple: the time, a flag, or a value of the row."""

    what: Literal["seen", "time", "null", "value"]
    argument: Argument | None = None

    def keys(self, rows: Rows, side: Side) -> NDArray[np.int64]:
        """This component of every row, as integers that sort the right way."""
        if self.what == "time":
            return rows.at
        if self.what == "seen" or self.argument is None:
            return np.full(len(rows), int(side is Op.GREATEST), dtype=np.int64)
        array = rows.columns[self.argument.column]
        if self.what == "null":
            flags = pc.is_valid(array) if side is Op.GREATEST else pc.is_null(array)
            return np.asarray(flags.to_numpy(zero_copy_only=False), dtype=np.int64)
        return order_keys.encode(array)

    @property
    def identity(self) -> str:
        """Its part of a piece's identity."""
        return self.what if self.argument is None else f"{self.what} {self.argument.identity}"

    @property
    def is_keyed(self) -> bool:
        """True if every value of this component has an order key."""
        return self.what != "value" or (
            self.argument is not None and order_keys.has_key(self.argument.type)
        )

    def neutral(self, side: Side) -> int:
        """The value that loses against every row."""
        if self.what == "time":
            return FOREVER if side is Op.LEAST else -FOREVER
        if self.what in ("seen", "null"):
            return int(side is Op.LEAST)
        return _HIGHEST if side is Op.LEAST else _LOWEST


@dataclass(frozen=True, slots=True)
class _Picked:
    """The least or greatest tuple of the selected rows."""

    side: Side
    components: tuple[Component, ...]
    selection: Selection
    VERSION: ClassVar[int] = 1
    _NAME: ClassVar[str]

    @property
    def identity(self) -> str:
        side = "least" if self.side is Op.LEAST else "greatest"
        compared = ", ".join(c.identity for c in self.components)
        return identity(self._NAME, self.VERSION, f"{side} of {compared}", self.selection.identity)


@dataclass(frozen=True, slots=True)
class Pick(_Picked):
    """The least or greatest tuple of the selected rows; all components are integers."""

    _NAME: ClassVar[str] = "pick"

    @property
    def monoid(self) -> Lanes:
        names = tuple(c.what for c in self.components)
        return Lanes(self.side, names, tuple(c.neutral(self.side) for c in self.components))

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        result = self.monoid.empty(size)
        own = self.selection.slots(rows, slots)
        names = [c.what for c in self.components]
        last = self.components[-1].argument
        if names == ["value"] and last is not None and pa.types.is_float64(last.type):
            values = without_nulls(rows.columns[last.column], 0.0)
            _absorb_floats(int(self.side))(result, values, values.view(np.int64), own)
            return result
        for part, few in rows.chunks():
            if names == ["seen", "value"]:
                values = self.components[1].keys(few, self.side)
                _absorb_seen(int(self.side))(result, values, own[part])
            else:
                keys = [c.keys(few, self.side) for c in self.components]
                self.monoid.absorb_into(result, np.stack(keys), own[part])
        return result


@cache
def _absorb_floats(op: int) -> Scalar:
    """As `absorb_rows` does it with order keys, which are found on the way."""

    @compiled
    def loop(into, values, bits, slots):  # type: ignore[no-untyped-def]
        for k in range(slots.shape[0]):
            i = slots[k]
            if i >= 0:
                key = order_keys.float_key(values[k], bits[k])
                store(into, i, absorb(op, load(into, i, 1), (key,)))

    return loop


@cache
def _absorb_seen(op: int) -> Scalar:
    """As `absorb_rows` does it for values that have been seen, all of them.

    The value of a partial that has seen none loses against every other, so values are compared
    alone.
    """
    seen = int(op == Op.GREATEST)

    @compiled
    def loop(into, values, slots):  # type: ignore[no-untyped-def]
        for k in range(slots.shape[0]):
            i = slots[k]
            if i >= 0:
                into[0, i] = seen
                into[1, i] = absorb(op, (into[1, i],), (values[k],))[0]

    return loop


@dataclass(frozen=True, slots=True)
class ObjectLanes:
    """Least or greatest tuples of Python objects: what `Lanes` is for text and decimals."""

    side: Side
    names: tuple[str, ...]
    neutral: tuple[int | None, ...]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return np.dtype(object)

    def empty(self, n: int) -> Columns:
        column = np.empty((len(self.neutral), 1), dtype=object)
        column[:, 0] = self.neutral
        return np.repeat(column, n, axis=1)

    def combine(self, older: Columns, newer: Columns) -> Columns:
        undecided = np.ones(older.shape[1], dtype=np.bool_)
        takes_newer = np.zeros(older.shape[1], dtype=np.bool_)
        for mine, other in zip(older, newer, strict=True):
            differs = np.flatnonzero(undecided & (mine != other))
            a, b = mine[differs], other[differs]
            takes_newer[differs] = (b < a) if self.side is Op.LEAST else (b > a)
            undecided[differs] = False
        return np.where(takes_newer, newer, older)


@dataclass(frozen=True, slots=True)
class ObjectPick(_Picked):
    """`Pick` for tuples with a component that has no order key (text, binary, decimal, nested).

    Rows are ranked within their batch, so that only one value per slot becomes an object.
    """

    _NAME: ClassVar[str] = "object_pick"

    @property
    def monoid(self) -> ObjectLanes:
        names = tuple(c.what for c in self.components)
        neutral = tuple(c.neutral(self.side) if c.is_keyed else None for c in self.components)
        return ObjectLanes(self.side, names, neutral)

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        keys: list[NDArray[np.int64]] = []
        dictionaries: list[NDArray[np.object_] | None] = []
        for component in self.components:
            if component.is_keyed or component.argument is None:
                keys.append(component.keys(rows, self.side))
                dictionaries.append(None)
            else:
                ranks, values = _rank(nested_keys.stored(rows.columns[component.argument.column]))
                keys.append(ranks)
                dictionaries.append(values)
        neutral = tuple(c.neutral(self.side) for c in self.components)
        ranked = Lanes(self.side, self.monoid.names, neutral)
        won = ranked.absorb(np.stack(keys), self.selection.slots(rows, slots), size)
        result = self.monoid.empty(size)
        seen = np.flatnonzero((won != np.array(neutral)[:, None]).any(axis=0))
        for lane, values_of in enumerate(dictionaries):
            winners = won[lane, seen]
            result[lane, seen] = winners if values_of is None else values_of[winners]
        return result


def least_or_greatest(argument: Argument, where: int | None, side: Side) -> Bounded:
    """``min(x)`` and ``max(x)``; NaN is the greatest float, NULLs are passed over."""
    nested_keys.require_orderable(argument.type, what="min and max")
    selection = Selection((argument.column,), where)
    value = Component("value", argument)
    alone = order_keys.has_key(argument.type) and not order_keys.fills_range(argument.type)
    return _pick(side, (value,) if alone else (Component("seen"), value), selection, argument)


def truth(argument: Argument, where: int | None, side: Side) -> Bounded:
    """``bool_and(x)`` and ``bool_or(x)``."""
    if not pa.types.is_boolean(argument.type):
        raise ColumnTypeError(f"bool_and and bool_or need a boolean, got {argument.type}")
    return least_or_greatest(argument, where, side)


def by_time(argument: Argument, where: int | None, side: Side, *, skip_nulls: bool) -> Bounded:
    """``first(x)`` and ``last(x)`` by event time."""
    nested_keys.require_orderable(argument.type, what="first and last")
    selection = Selection((argument.column,) if skip_nulls else (), where)
    components = (Component("time"), Component("null", argument), Component("value", argument))
    return _pick(side, components, selection, argument)


def by_other(value: Argument, by: Argument, where: int | None, side: Side) -> Bounded:
    """``min_by(x, y)`` and ``max_by(x, y)``: x of the row with the least or greatest y."""
    nested_keys.require_orderable(value.type, what="min_by and max_by")
    nested_keys.require_orderable(by.type, what="min_by and max_by")
    components = (
        Component("seen"),
        Component("value", by),
        Component("null", value),
        Component("value", value),
    )
    return _pick(side, components, Selection((by.column,), where), value)


def _pick(
    side: Side, components: tuple[Component, ...], selection: Selection, answer: Argument
) -> Bounded:
    keyed = all(c.is_keyed for c in components)
    piece = (Pick if keyed else ObjectPick)(side, components, selection)

    def lower(partials: Sequence[Columns]) -> pa.Array:
        won = partials[0]
        is_null = _lost(won, piece.monoid)
        if len(components) > 2:
            is_null |= won[-2] == int(side is Op.LEAST)
        if components[-1].is_keyed:
            return order_keys.decode(won[-1].astype(np.int64), is_null, answer.type)
        kept = pa.array(won[-1], type=nested_keys.stored_type(answer.type), mask=is_null)
        return nested_keys.restored(kept, answer.type)

    return Bounded((piece,), lower, answer.type, "none")


def _lost(won: Columns, monoid: Monoid) -> NDArray[np.bool_]:
    """The partials that never saw a row: their first component is still the neutral one."""
    lost: NDArray[np.bool_] = np.equal(won[0], monoid.empty(1)[0, 0]).astype(np.bool_)
    return lost


def _rank(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Ranks of a column's values within it, and the values in that order."""
    encoded = array.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank_of = np.empty(len(order) + 1, dtype=np.int64)
    rank_of[order] = np.arange(len(order))
    codes = encoded.indices.fill_null(len(order)).to_numpy()
    values = np.empty(len(order) + 1, dtype=object)
    values[: len(order)] = encoded.dictionary.take(pa.array(order)).to_pylist()
    rank_of[len(order)] = len(order)
    return rank_of[codes], values
