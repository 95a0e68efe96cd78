"""The columns that all queries of a store read, each computed once per batch.

Keys come first, then arguments and filters in the order in which they were first needed. A column
keeps its number as long as anything needs it, so that pieces which compare equal are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from panes.arrays.columns import column_of
from panes.expressions.projection import Projection, guarded
from panes.language.expressions import stable
from panes.planning.condition import Compared, Condition, compared, condition
from panes.stores.filter_regions import (
    ClassedRows,
    Threshold,
    bits,
    number_regions,
    regions,
    to_sets,
)


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
        self.schema = schema
        self._known = {} if numbering is None else dict(numbering.columns)
        self._keys = len(keys)
        self.expressions: dict[int, exp.Expression] = dict(enumerate(keys))
        self.types: dict[int, pa.DataType] = dict(enumerate(types))
        self._filters: dict[int, None] = {}
        self._numbers: dict[tuple[exp.Expression, bool], int] | None = None
        self._users: dict[int, Counter[int | None]] = {}
        self._next = len(keys) if numbering is None else numbering.end
        self._forget_computed()

    def _forget_computed(self) -> None:
        self._projection: Projection | None = None
        self._conditions: dict[int, Condition] = {}
        self._compared: dict[int, Compared | None] = {}

    def __getstate__(self) -> dict[str, object]:
        """How columns are computed is found anew wherever they are, and so are their numbers."""
        anew: dict[str, object] = {
            "_projection": None,
            "_conditions": {},
            "_compared": {},
            "_numbers": None,
        }
        return vars(self) | anew

    def copy(self) -> SharedRows:
        """The same columns; those that are added to one are unknown to the other."""
        other = copy(self)
        other.expressions, other.types = dict(self.expressions), dict(self.types)
        other._filters, other._numbers = dict(self._filters), None
        return other

    def __len__(self) -> int:
        return len(self.expressions)

    @property
    def filters(self) -> list[int]:
        """The columns that are filters, in the order in which they came."""
        return list(self._filters)

    @property
    def end(self) -> int:
        """The first number that no column has had."""
        return self._next

    @property
    def numbering(self) -> Numbering:
        """The number of every column that is needed."""
        trees = self.expressions.items()
        return Numbering({_title(t, n in self._filters): n for n, t in trees}, self._next)

    def text(self, column: int) -> str:
        """What a column is, in the words of the query."""
        return self.expressions[column].sql(dialect="spark")

    def number(self, tree: exp.Expression, data_type: pa.DataType) -> int:
        """The number of an expression."""
        number = self._found().get((tree, False))
        return self._add(tree, data_type, is_filter=False) if number is None else number

    def number_filter(self, tree: exp.Expression) -> int:
        """The number of a condition; where it is NULL it does not hold."""
        number = self._found().get((tree, True))
        return self._add(tree, pa.bool_(), is_filter=True) if number is None else number

    def _found(self) -> dict[tuple[exp.Expression, bool], int]:
        """The number of every column by what it is; of two that are equal, the older one's."""
        if self._numbers is None:
            self._numbers = {}
            for number, tree in self.expressions.items():
                self._numbers.setdefault((tree, number in self._filters), number)
        return self._numbers

    def keep(self, needed: Iterable[int]) -> None:
        """Forget the columns that nothing needs."""
        needed = {*needed, *range(self._keys)}
        for number in [n for n in self.expressions if n not in needed]:
            del self.expressions[number], self.types[number]
            self._filters.pop(number, None)
        self._numbers = None
        self._forget_computed()

    def use(self, column: int, where: int | None) -> None:
        """One more shape needs a column where a filter holds; None: of every row.

        It is evaluated only where some shape needs it, and NULL elsewhere.
        """
        self._users.setdefault(column, Counter())[where] += 1
        self._forget_computed()

    def use_no_longer(self, column: int, where: int | None) -> None:
        """One shape less needs a column."""
        users = self._users[column]
        users[where] -= 1
        if not users[where]:
            del users[where]
        if not users:
            del self._users[column]
        self._forget_computed()

    def computed(self) -> dict[int, exp.Expression]:
        """What is to be evaluated for each column, by number."""
        return {n: self._guarded(n, tree) for n, tree in self.expressions.items()}

    def _guarded(self, number: int, tree: exp.Expression) -> exp.Expression:
        users = self._users.get(number, Counter())
        guards = sorted(f for f in users if f is not None) if None not in users else ()
        return guarded(tree, [self.expressions[f] for f in guards])

    def read(self, table: pa.Table, needed: Container[int | None] = ()) -> dict[int, pa.Array]:
        """All columns of a batch, by number.

        Filters that compare columns with constants are left out, unless `needed`.
        """
        self._understand()
        assert self._projection is not None
        columns = dict(zip(self._plain(), self._projection(table)[1], strict=True))
        asked = (n for n, found in self._compared.items() if n in needed or found is None)
        return columns | self.holding(table, asked)

    def _plain(self) -> list[int]:
        return [n for n in self.expressions if n not in self._filters]

    def _understand(self) -> None:
        """Find how columns are computed, and what filters compare, once for all batches."""
        if self._projection is None:
            trees = self.computed()
            self._projection = Projection(tuple(trees[n] for n in self._plain()), None)
            self._conditions = {n: condition(trees[n], self.schema) for n in self._filters}
            self._compared = {n: compared(trees[n], self.schema) for n in self._filters}

    def compared_columns(self) -> dict[int, list[exp.Column]]:
        """Filters that do nothing but compare columns with constants, and these columns."""
        self._understand()
        trees = self.expressions
        return {
            n: list(trees[n].find_all(exp.Column))
            for n, found in self._compared.items()
            if found is not None
        }

    def holding(self, table: pa.Table, filters: Iterable[int]) -> dict[int, pa.Array]:
        """Where each of these filters holds; where one is NULL it does not."""
        self._understand()
        return {n: pc.fill_null(self._conditions[n](table), False) for n in filters}

    def classify(
        self, table: pa.Table, columns: Mapping[int, pa.Array], rows: int, executor: Executor
    ) -> ClassedRows:
        """So many rows by the filters that hold of them.

        Filters that compare columns of the `table` with constants are asked of one row of each
        region only; the others are among the `columns` that have been read.
        """
        self._understand()
        bounds: dict[str, set[Threshold]] = {}
        for found in self._compared.values():
            for name, some in (found or {}).items():
                bounds.setdefault(name, set()).update(some)
        asked = [n for n, found in self._compared.items() if found is None]
        digits = [regions(column_of(table, name), some) for name, some in bounds.items()]
        codes, index, first = number_regions(
            rows, [*digits, *(bits(columns[n]) for n in asked)], executor
        )
        taken = pa.array(first)
        few = table.select(list(bounds)).take(taken)
        holding = (
            (n, columns[n].take(taken) if c is None else self._conditions[n](few))
            for n, c in self._compared.items()
        )
        return ClassedRows(codes, index, to_sets(holding, len(first), self._next))

    def classify_read(
        self, columns: Mapping[int, pa.Array], rows: int, executor: Executor
    ) -> ClassedRows:
        """The same where all filters have been read, and nothing else is known of the rows."""
        digits = [bits(columns[n]) for n in self._filters]
        codes, index, first = number_regions(rows, digits, executor)
        taken = pa.array(first)
        holding = ((n, columns[n].take(taken)) for n in self._filters)
        return ClassedRows(codes, index, to_sets(holding, len(first), self._next))

    def _add(self, tree: exp.Expression, data_type: pa.DataType, *, is_filter: bool) -> int:
        number = self._known.get(_title(tree, is_filter), self._next)
        self._next = max(self._next, number + 1)
        self.expressions[number], self.types[number] = tree, data_type
        self._found().setdefault((tree, is_filter), number)
        if is_filter:
            self._filters[number] = None
        self._forget_computed()
        return number


def _title(tree: exp.Expression, is_filter: bool) -> str:
    return f"{'filter' if is_filter else 'column'} {stable(tree.sql(dialect='spark'))}"
