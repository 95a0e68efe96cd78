"""The columns that all queries of a store read, each computed once per batch.

Keys come first, then arguments and filters in the order in which they were first needed. A column
keeps its number as long as anything needs it, so that pieces which compare equal are equal.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from concurrent.futures import Executor

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from panes.engine.kinds import ToldApart, bits, number_kinds, regions, to_sets
from panes.planning.condition import Compared, Condition, compared, condition
from panes.planning.scalar import Projection, column_of


class SharedRows:
    """Expressions over the rows of one stream, by number."""

    def __init__(
        self, schema: pa.Schema, keys: Sequence[exp.Expression], types: Sequence[pa.DataType]
    ) -> None:
        self._schema = schema
        self._keys = len(keys)
        self._expressions: dict[int, exp.Expression] = dict(enumerate(keys))
        self.types: dict[int, pa.DataType] = dict(enumerate(types))
        self._conditions: dict[int, Condition] = {}
        self._compared: dict[int, Compared | None] = {}
        self._next = len(keys)
        self._computed: Projection | None = None

    def __len__(self) -> int:
        return len(self._expressions)

    @property
    def filters(self) -> list[int]:
        """The columns that are filters, in the order in which they came."""
        return list(self._conditions)

    def text(self, column: int) -> str:
        """What a column is, in the words of the query."""
        return self._expressions[column].sql(dialect="spark")

    def place(self, tree: exp.Expression, data_type: pa.DataType) -> int:
        """The number of an expression."""
        for number, known in self._expressions.items():
            if known == tree and number not in self._conditions:
                return number
        return self._add(tree, data_type)

    def place_filter(self, tree: exp.Expression) -> int:
        """The number of a condition; where it is NULL it does not hold."""
        for number in self._conditions:
            if self._expressions[number] == tree:
                return number
        number = self._add(tree, pa.bool_())
        self._conditions[number] = condition(tree, self._schema)
        self._compared[number] = compared(tree, self._schema)
        return number

    def keep(self, needed: Iterable[int]) -> None:
        """Forget the columns that nothing needs."""
        kept = {*needed, *range(self._keys)}
        for number in [n for n in self._expressions if n not in kept]:
            del self._expressions[number], self.types[number]
            self._conditions.pop(number, None)
            self._compared.pop(number, None)
        self._computed = None

    def read(self, table: pa.Table, needed: Container[int | None] = ()) -> list[pa.Array]:
        """All columns of a batch, by number; those that are forgotten are empty.

        Filters that compare columns with constants are left out too, unless `needed`.
        """
        plain = [n for n in self._expressions if n not in self._conditions]
        if self._computed is None:
            self._computed = Projection(tuple(self._expressions[n] for n in plain), None)
        columns = [_NOTHING] * self._next
        for number, column in zip(plain, self._computed(table)[1], strict=True):
            columns[number] = column
        for number, holds in self._conditions.items():
            if number in needed or self._compared[number] is None:
                columns[number] = pc.fill_null(holds(table), False)
        return columns

    def tell_apart(
        self, table: pa.Table, columns: Sequence[pa.Array], executor: Executor
    ) -> ToldApart:
        """Rows by the filters that hold of them. `columns` are those that `read` gives.

        Filters that compare columns with constants are asked of one row of each kind only.
        """
        constants: dict[str, set[object]] = {}
        for found in self._compared.values():
            for name, some in (found or {}).items():
                constants.setdefault(name, set()).update(some)
        asked = [n for n, found in self._compared.items() if found is None]
        digits = [regions(column_of(table, name), some) for name, some in constants.items()]
        codes, place, rows = number_kinds(
            len(table), [*digits, *(bits(columns[n]) for n in asked)], executor
        )
        few, taken = table.select(list(constants)).take(pa.array(rows)), pa.array(rows)
        holding = (
            (n, columns[n].take(taken) if c is None else self._conditions[n](few))
            for n, c in self._compared.items()
        )
        return ToldApart(codes, place, to_sets(holding, len(rows), self._next))

    def _add(self, tree: exp.Expression, data_type: pa.DataType) -> int:
        number, self._next = self._next, self._next + 1
        self._expressions[number], self.types[number] = tree, data_type
        self._computed = None
        return number


_NOTHING = pa.array([], pa.null())
