"""The columns that all queries of a store read, each computed once per batch.

Keys come first, then arguments and filters in the order in which they were first needed. A column
keeps its number as long as anything needs it, so that pieces which compare equal are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from panes.compiled import compiled
from panes.errors import QueryError
from panes.planning.condition import Condition, condition
from panes.planning.scalar import Projection
from panes.stores.spread import spread

_MOST_BITS = 16
_ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True, slots=True)
class Numbering:
    """The numbers that columns have by what they are, and the first one that none has had."""

    columns: Mapping[str, int]
    end: int


class SharedRows:
    """Expressions over the rows of one stream, by number."""

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[exp.Expression],
        types: Sequence[pa.DataType],
        numbering: Numbering | None = None,
    ) -> None:
        self._schema = schema
        self._known = {} if numbering is None else dict(numbering.columns)
        self._keys = len(keys)
        self.expressions: dict[int, exp.Expression] = dict(enumerate(keys))
        self.types: dict[int, pa.DataType] = dict(enumerate(types))
        self._filters: dict[int, None] = {}
        self._guards: dict[int, set[int]] = {}
        self._next = len(keys) if numbering is None else numbering.end
        self._forget_computed()

    def _forget_computed(self) -> None:
        self._projection: Projection | None = None
        self._conditions: dict[int, Condition] = {}

    def __getstate__(self) -> dict[str, object]:
        """How columns are computed is found anew wherever they are."""
        return vars(self) | {"_projection": None, "_conditions": {}}

    def __len__(self) -> int:
        return len(self.expressions)

    @property
    def filters(self) -> list[int]:
        """The columns that are filters, in the order in which they came."""
        return list(self._filters)

    @property
    def numbering(self) -> Numbering:
        """The number of every column that is needed."""
        trees = self.expressions.items()
        return Numbering({_title(t, n in self._filters): n for n, t in trees}, self._next)

    def text(self, column: int) -> str:
        """What a column is, in the words of the query."""
        return self.expressions[column].sql(dialect="spark")

    def place(self, tree: exp.Expression, data_type: pa.DataType) -> int:
        """The number of an expression."""
        for number, known in self.expressions.items():
            if known == tree and number not in self._filters:
                return number
        return self._add(tree, data_type, is_filter=False)

    def place_filter(self, tree: exp.Expression) -> int:
        """The number of a condition; where it is NULL it does not hold."""
        for number in self._filters:
            if self.expressions[number] == tree:
                return number
        return self._add(tree, pa.bool_(), is_filter=True)

    def keep(self, needed: Iterable[int]) -> None:
        """Forget the columns that nothing needs."""
        kept = {*needed, *range(self._keys)}
        for number in [n for n in self.expressions if n not in kept]:
            del self.expressions[number], self.types[number]
            self._filters.pop(number, None)
        self._forget_computed()

    def guard(self, guards: Mapping[int, set[int]]) -> None:
        """Evaluate these columns only where one of their filters holds; it is NULL elsewhere."""
        self._guards = dict(guards)
        self._forget_computed()

    def computed(self) -> dict[int, exp.Expression]:
        """What is to be evaluated for each column, by number."""
        return {n: self._guarded(n, tree) for n, tree in self.expressions.items()}

    def _guarded(self, number: int, tree: exp.Expression) -> exp.Expression:
        filters = sorted(self._guards.get(number, ()))
        if not filters or isinstance(tree, exp.Column | exp.Literal):
            return tree
        conditions = [exp.paren(self.expressions[f].copy()) for f in filters]
        return exp.Case().when(exp.or_(*conditions), tree.copy())

    def read(self, table: pa.Table) -> dict[int, pa.Array]:
        """All columns of a batch, by number."""
        trees = self.computed()
        plain = [n for n in trees if n not in self._filters]
        if self._projection is None:
            self._projection = Projection(tuple(trees[n] for n in plain), None)
            self._conditions = {n: condition(trees[n], self._schema) for n in self._filters}
        columns = dict(zip(plain, self._projection(table)[1], strict=True))
        for number, holds in self._conditions.items():
            columns[number] = pc.fill_null(holds(table), False)
        return columns

    def _add(self, tree: exp.Expression, data_type: pa.DataType, *, is_filter: bool) -> int:
        number = self._known.get(_title(tree, is_filter), self._next)
        self._next = max(self._next, number + 1)
        self.expressions[number], self.types[number] = tree, data_type
        if is_filter:
            self._filters[number] = None
        self._forget_computed()
        return number


def _title(tree: exp.Expression, is_filter: bool) -> str:
    return f"{'filter' if is_filter else 'column'} {tree.sql(dialect='spark')}"


def classify(
    columns: Sequence[pa.Array], filters: Sequence[int], rows: int, executor: Executor
) -> tuple[NDArray[np.uint16], list[int]]:
    """Rows by the filters that hold of them: the class of each, and the filters of each class.

    A class is a set of filters, written as a number with bit `f` for the filter in column `f`.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> columns = [pa.array([True, False, True]), pa.array([True, True, True])]
    >>> classify(columns, [0, 1], 3, ThreadPoolExecutor(1))
    (array([1, 0, 1], dtype=uint16), [2, 3])
    """
    codes, classes = np.zeros(rows, dtype=np.uint16), [0]
    parts = [slice(i, min(i + _ROWS_AT_ONCE, rows)) for i in range(0, rows, _ROWS_AT_ONCE)]
    waiting = list(filters)
    while waiting:
        bits = min(len(waiting), _MOST_BITS - (len(classes) - 1).bit_length())
        if bits <= 0:
            raise QueryError(
                f"rows fall into {len(classes):,} classes of filters, which is too many to share",
                hint="put queries with other filters into a register of their own",
            )
        some, waiting = waiting[:bits], waiting[bits:]
        place = np.zeros(len(classes) << bits, dtype=np.uint16)
        append = partial(_append_filters, codes, [columns[f] for f in some], place)
        spread(executor, append, parts, rows=min(rows, _ROWS_AT_ONCE))
        found = np.flatnonzero(place)
        place[found] = np.arange(len(found))
        spread(executor, partial(_rename, codes, place), parts, rows=min(rows, _ROWS_AT_ONCE))
        classes = [_joined(classes[code >> bits], code, some) for code in found.tolist()]
    return codes, classes


def _append_filters(
    codes: NDArray[np.uint16], filters: Sequence[pa.Array], place: NDArray[np.uint16], part: slice
) -> None:
    """Write a bit for each filter behind the codes of some rows, and mark the codes that occur."""
    for column in reversed(filters):
        bitmap = np.frombuffer(column.buffers()[1], dtype=np.uint8)
        _append_bit(codes[part], bitmap, column.offset + part.start)
    _mark(codes[part], place)


def _rename(codes: NDArray[np.uint16], place: NDArray[np.uint16], part: slice) -> None:
    np.take(place, codes[part], out=codes[part], mode="clip")


def _joined(before: int, code: int, filters: Sequence[int]) -> int:
    return before | sum(1 << number for bit, number in enumerate(filters) if code >> bit & 1)


@compiled
def _append_bit(codes, bitmap, offset):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        bit = i + offset
        codes[i] = codes[i] << 1 | (bitmap[bit >> 3] >> (bit & 7) & 1)


@compiled
def _mark(codes, place):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        place[codes[i]] = 1
