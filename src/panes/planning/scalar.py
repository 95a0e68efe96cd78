"""Scalar expressions over Arrow columns, evaluated by DuckDB.

WHERE, the arguments of aggregates, grouping expressions, HAVING and expressions around aggregates
are Spark SQL, translated by sqlglot and run by DuckDB over the columns in place. A list of plain
columns without a filter never leaves Arrow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from panes.arrays.columns import column_of
from panes.errors import PanesError, QueryError, UnknownColumnError, is_interrupt
from panes.language.expressions import to_sql

_ROW = "__row"


@dataclass(slots=True)
class Projection:
    """Expressions and a filter, ready to run over tables of one schema.

    Plain columns are taken as they are, type and all; DuckDB computes only the others. `labels`
    are the words for internal column names, for messages.
    """

    expressions: tuple[exp.Expression, ...]
    where: exp.Expression | None
    labels: Mapping[str, str] = field(default_factory=dict)
    _statement: _Statement | None = field(default=None, init=False, repr=False, compare=False)
    _connection: duckdb.DuckDBPyConnection | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[type[Projection], tuple[object, ...]]:
        """Without the connection: another process has its own."""
        return Projection, (self.expressions, self.where, dict(self.labels))

    def __call__(self, table: pa.Table) -> tuple[NDArray[np.int64] | None, list[pa.Array]]:
        """The rows that pass the filter (None: all of them) and the expressions over these."""
        computed = [e for e in self.expressions if not isinstance(e, exp.Column)]
        if not computed and self.where is None:
            return None, [column_of(table, e.name) for e in self.expressions]
        rows, results = self._run(table, computed)
        passing = rows if self.where is not None else None
        computed_columns = iter(results)
        columns = []
        for e in self.expressions:
            if isinstance(e, exp.Column):
                whole = column_of(table, e.name)
                columns.append(whole if passing is None else whole.take(pa.array(passing)))
            else:
                columns.append(next(computed_columns))
        return passing, columns

    def types(self, schema: pa.Schema) -> list[pa.DataType]:
        """What the expressions are over a schema; fails here rather than at the first row."""
        return [c.type for c in self(schema.empty_table())[1]]

    def _run(
        self, table: pa.Table, computed: Sequence[exp.Expression]
    ) -> tuple[NDArray[np.int64], list[pa.Array]]:
        if self._statement is None:
            self._statement = _Statement.of(computed, self.where)
        if self._connection is None:
            self._connection = _database().cursor()
        try:
            self._connection.register("batch", self._statement.batch(table))
            result = _answered(self._connection, self._statement.text)
            self._connection.unregister("batch")
        except duckdb.InterruptException:
            self._connection = None
            raise KeyboardInterrupt from None
        except duckdb.Error as failure:
            self._connection = None
            if isinstance(failure, duckdb.FatalException | duckdb.InternalException):
                _database.cache_clear()  # it answers nobody any more
            raise self._explained(failure, (*computed, self.where)) from None
        except RuntimeError as failure:
            self._connection = None
            if is_interrupt(failure):
                raise KeyboardInterrupt from None
            raise
        rows = column_of(result, _ROW).to_numpy()
        columns = [column_of(result, f"c{i}") for i in range(len(computed))]
        for tree, column in zip(computed, columns, strict=True):
            if isinstance(column.type, pa.BaseExtensionType):
                raise QueryError(
                    f"{self._named([tree])} is of a type that no column has, {column.type}",
                    hint="cast it: CAST(... AS DOUBLE)",
                )
        return rows, columns

    def _explained(
        self, failure: duckdb.Error, trees: Sequence[exp.Expression | None]
    ) -> PanesError:
        """DuckDB's complaint in the words of the query."""
        said = str(failure).strip().splitlines()[0]
        written = self._named([t for t in trees if t is not None])
        make: Callable[[str], PanesError] = PanesError
        unreadable = (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException)
        if isinstance(failure, unreadable):
            make = QueryError
        return make(f"cannot evaluate {written}: {said}")

    def _named(self, trees: Sequence[exp.Expression]) -> str:
        """Expressions as the query writes them."""
        written = ", ".join(f"`{t.sql(dialect='spark')}`" for t in trees)
        for name, meaning in self.labels.items():
            written = re.sub(rf"\b{name}\b", meaning.replace("\\", ""), written)
        return written


@dataclass(frozen=True, slots=True)
class _Statement:
    """Expressions and a filter as DuckDB is asked them: no name of the user's is in the text."""

    text: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, computed: Sequence[exp.Expression], where: exp.Expression | None) -> _Statement:
        trees = (*computed, *([where] if where is not None else []))
        if any(tree.find(exp.Star) for tree in trees):
            raise QueryError("`*` stands for all columns, and one value is needed here")
        columns = tuple(sorted({c.name for tree in trees for c in tree.find_all(exp.Column)}))
        names = {name: f"v{i}" for i, name in enumerate(columns)}

        def text_of(tree: exp.Expression) -> str:
            copy = tree.copy()
            for column in [copy] if isinstance(copy, exp.Column) else copy.find_all(exp.Column):
                column.set("this", exp.to_identifier(names[column.name], quoted=True))
            return _duckdb(copy)

        selected = ", ".join([_ROW, *(f"{text_of(e)} AS c{i}" for i, e in enumerate(computed))])
        condition = "" if where is None else f" WHERE {text_of(where)}"
        return cls(f"SELECT {selected} FROM batch{condition} ORDER BY {_ROW}", columns)

    def batch(self, table: pa.Table) -> pa.Table:
        """The columns that are read, under the names the text has for them; and row numbers."""
        numbers = pa.array(np.arange(len(table)))
        arrays = [*(table.column(name) for name in self.columns), numbers]
        return pa.table(arrays, names=[*(f"v{i}" for i in range(len(self.columns))), _ROW])


def resolve(tree: exp.Expression, schema: pa.Schema, *, stream: str) -> exp.Expression:
    """The expression with every column name as the schema spells it.

    Names are matched without regard to case, as in Spark. ``bid-price`` means the column of that
    name where there is one and no difference could be meant.
    """

    def name_columns(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Sub):
            joined = f"{node.left.name}-{node.right.name}"
            plain = isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column)
            if plain and joined in schema.names and not _has_both(node, schema):
                return exp.column(exp.to_identifier(joined, quoted=True))
        if isinstance(node, exp.Column) and node.table:
            holder = find_column(node.table, schema, stream=stream)
            if not pa.types.is_struct(schema.field(holder).type):
                raise UnknownColumnError(
                    f"{node.table}.{node.name}", stream=stream, columns=schema.names
                )
            inside = exp.column(exp.to_identifier(holder, quoted=True))
            return exp.Dot(this=inside, expression=exp.to_identifier(node.name, quoted=True))
        if isinstance(node, exp.Column):
            found = find_column(node.name, schema, stream=stream)
            return exp.column(exp.to_identifier(found, quoted=True))
        return node

    return tree.copy().transform(name_columns)


def find_column(name: str, schema: pa.Schema, *, stream: str) -> str:
    """A column's name as the schema spells it: exactly as given, else whatever its case."""
    if name in schema.names:
        return name
    alike = [n for n in schema.names if n.lower() == name.lower()]
    if len(alike) > 1:
        raise QueryError(
            f"`{name}` of stream `{stream}` could be any of {', '.join(alike)}",
            hint="spell it exactly",
        )
    if not alike:
        raise UnknownColumnError(name, stream=stream, columns=schema.names)
    return alike[0]


def _has_both(node: exp.Sub, schema: pa.Schema) -> bool:
    known = {n.lower() for n in schema.names}
    return node.left.name.lower() in known and node.right.name.lower() in known


# The second wall around query text, behind the rule on what an expression may be: this DuckDB sees
# the batch it is given and nothing else, and nothing that runs in it can change that.
_WALL = (
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL error_on_division_by_zero = false",
    "SET GLOBAL temp_directory = ''",
    "SET GLOBAL python_enable_replacements = false",
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL lock_configuration = true",
)
_EXTENSIONS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
_SHARE_OF_MEMORY = 4


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One DuckDB for the process: its threads are shared by all queries."""
    opened = duckdb.connect(":memory:", config=_EXTENSIONS)
    opened.execute(f"SET GLOBAL memory_limit = '{_memory() // _SHARE_OF_MEMORY // 1_000_000} MB'")
    for setting in _WALL:
        opened.execute(setting)
    return opened


def _memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _answered(connection: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
    """The answer to one SELECT; text that turns out to hold anything else is not run."""
    statements = connection.extract_statements(text)
    if [s.type for s in statements] != [duckdb.StatementType.SELECT]:
        raise QueryError("an expression of the query cannot be read as one expression")
    return connection.query(statements[0]).to_arrow_table()


def _duckdb(tree: exp.Expression) -> str:
    """The expression in DuckDB's words, where days of the week are counted as Spark counts them."""

    def as_spark(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.DayOfWeek):
            return exp.paren(exp.Add(this=node.copy(), expression=exp.Literal.number(1)))
        return node

    shifted = tree.copy().transform(as_spark) if tree.find(exp.DayOfWeek) else tree
    return to_sql(shifted, "duckdb")
