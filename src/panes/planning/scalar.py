"""Scalar expressions over Arrow columns, evaluated by DuckDB.

WHERE, the arguments of aggregates, grouping expressions, HAVING and expressions around aggregates
are Spark SQL, translated by sqlglot and run by DuckDB over the columns in place. A list of plain
columns without a filter never leaves Arrow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from panes.errors import PanesError, QueryError, UnknownColumnError

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
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[type[Projection], tuple[object, ...]]:
        """Without the connection: another process has its own."""
        return Projection, (self.expressions, self.where, dict(self.labels))

    def __call__(self, table: pa.Table) -> tuple[NDArray[np.int64] | None, list[pa.Array]]:
        """The rows that pass the filter (None: all of them) and the expressions over these."""
        computed = [e for e in self.expressions if not isinstance(e, exp.Column)]
        if not computed and self.where is None:
            return None, [column_of(table, e.name) for e in self.expressions]
        rows, results = self._run(table, computed)
        kept = rows if self.where is not None else None
        computed_columns = iter(results)
        columns = []
        for e in self.expressions:
            if isinstance(e, exp.Column):
                whole = column_of(table, e.name)
                columns.append(whole if kept is None else whole.take(pa.array(kept)))
            else:
                columns.append(next(computed_columns))
        return kept, columns

    def types(self, schema: pa.Schema) -> list[pa.DataType]:
        """What the expressions are over a schema; fails here rather than at the first row."""
        return [c.type for c in self(schema.empty_table())[1]]

    def _run(
        self, table: pa.Table, computed: Sequence[exp.Expression]
    ) -> tuple[NDArray[np.int64], list[pa.Array]]:
        used = sorted(
            {
                c.name
                for e in (*computed, *([self.where] if self.where is not None else []))
                for c in e.find_all(exp.Column)
            }
        )
        row = _ROW + "_" * max((len(n) for n in used), default=0)
        batch = table.select(used).append_column(row, pa.array(np.arange(len(table))))
        named = [f"{_duckdb(e)} AS c{i}" for i, e in enumerate(computed)]
        selected = ", ".join([f"{row} AS {_ROW}", *named])
        condition = "" if self.where is None else f" WHERE {_duckdb(self.where)}"
        if self._connection is None:
            self._connection = _connect()
        self._connection.register("batch", batch)
        try:
            result = self._connection.sql(
                f"SELECT {selected} FROM batch{condition} ORDER BY {row}"
            ).to_arrow_table()
        except duckdb.Error as failure:
            raise self._explained(failure, (*computed, self.where)) from None
        finally:
            self._connection.unregister("batch")
        rows = column_of(result, _ROW).to_numpy()
        return rows, [column_of(result, f"c{i}") for i in range(len(computed))]

    def _explained(
        self, failure: duckdb.Error, trees: Sequence[exp.Expression | None]
    ) -> PanesError:
        """DuckDB's complaint in the words of the query."""
        said = str(failure).strip().splitlines()[0]
        written = ", ".join(f"`{t.sql(dialect='spark')}`" for t in trees if t is not None)
        for name, meaning in self.labels.items():
            written = re.sub(rf"\b{name}\b", meaning.replace("\\", ""), written)
        make: Callable[[str], PanesError] = PanesError
        unreadable = (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException)
        if isinstance(failure, unreadable):
            make = QueryError
        return make(f"cannot evaluate {written}: {said}")


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


def column_of(table: pa.Table, name: str) -> pa.Array:
    """A column as one array; no copy where it is one."""
    chunks = table.column(name)
    return chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One DuckDB for the process: its threads are shared by all queries."""
    return duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})


def _connect() -> duckdb.DuckDBPyConnection:
    connection = _database().cursor()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET error_on_division_by_zero = false")
    return connection


def _duckdb(tree: exp.Expression) -> str:
    """The expression in DuckDB's words, where days of the week are counted as Spark counts them."""

    def as_spark(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.DayOfWeek):
            return exp.paren(exp.Add(this=node.copy(), expression=exp.Literal.number(1)))
        return node

    shifted = tree.copy().transform(as_spark) if tree.find(exp.DayOfWeek) else tree
    return shifted.sql(dialect="duckdb")
