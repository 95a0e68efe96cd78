"""Scalar expressions over Arrow columns, evaluated by DuckDB.

WHERE, the arguments of aggregates, grouping expressions, HAVING and expressions around aggregates
are Spark SQL. `panes.expressions.translate` translates them with the types of the columns, once for
each schema, and DuckDB runs them over the columns in place. A list of plain columns without a
filter never leaves Arrow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from panes.arrays.columns import column_of
from panes.arrays.memory import usable_memory
from panes.arrays.workers import apart_from_interrupts
from panes.errors import ColumnTypeError, LimitError, PanesError, QueryError, UnknownColumnError
from panes.expressions.time_limit import TimeLimit, time_limit
from panes.expressions.translate import translate, translate_condition
from panes.expressions.typed import Typed
from panes.expressions.types import VOID, as_spark, duckdb_name

_ROW = "__row"
_MOST_TYPED = 1_024


@dataclass(slots=True)
class Projection:
    """Expressions and a filter, ready to run over tables of one schema.

    Plain columns are taken as they are, type and all; DuckDB computes only the others. `labels`
    are the words for internal column names, for messages. `guards[i]` are conditions, also among
    the expressions, one of which holds wherever expression i is needed: elsewhere it is NULL.
    """

    expressions: tuple[exp.Expression, ...]
    where: exp.Expression | None
    labels: Mapping[str, str] = field(default_factory=dict)
    guards: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    _statement: _Statement | None = field(default=None, init=False, repr=False, compare=False)
    _connection: duckdb.DuckDBPyConnection | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[type[Projection], tuple[object, ...]]:
        """Without the connection: another process has its own."""
        return Projection, (
            self.expressions, self.where, dict(self.labels), dict(self.guards),
        )  # fmt: skip

    def __call__(self, table: pa.Table) -> tuple[NDArray[np.int64] | None, list[pa.Array]]:
        """The rows that pass the filter (None: all of them) and the expressions over these."""
        expressions = self.evaluated
        computed = [e for e in expressions if not isinstance(e, exp.Column)]
        if not computed and self.where is None:
            return None, [column_of(table, e.name) for e in expressions]
        rows, results = self._run(table, computed)
        passing = rows if self.where is not None else None
        computed_columns = iter(results)
        columns = []
        for e in expressions:
            if isinstance(e, exp.Column):
                whole = column_of(table, e.name)
                columns.append(whole if passing is None else whole.take(pa.array(passing)))
            else:
                columns.append(next(computed_columns))
        return passing, columns

    @property
    def evaluated(self) -> tuple[exp.Expression, ...]:
        """The expressions as any engine is to evaluate them: where nobody needs one, it is NULL."""
        if not self.guards:
            return self.expressions
        return tuple(
            guarded(tree, [self.expressions[c] for c in self.guards.get(i, ())])
            for i, tree in enumerate(self.expressions)
        )

    def types(self, schema: pa.Schema) -> list[pa.DataType]:
        """The types of the expressions over a schema; fails here rather than at the first row.

        Expressions that are written the same are tried out once.
        """
        trees = [*self.evaluated, *([] if self.where is None else [self.where])]
        written = tuple(tree.sql(dialect="spark") for tree in trees)
        return list(_types(_Written(written, self.where is not None, schema, self)))

    def _run(
        self, table: pa.Table, computed: Sequence[exp.Expression]
    ) -> tuple[NDArray[np.int64], list[pa.Array]]:
        if self._statement is None or not self._statement.reads(table.schema):
            self._statement = self._translated(computed, table.schema)
        if self._connection is None:
            self._connection = _database().cursor()
        try:
            with time_limit(self._connection, len(table)) as limit:
                batch = self._statement.batch(table)
                result = _answered(self._connection, batch, self._statement.text)
        except duckdb.InterruptException:
            self._connection = None
            raise self._too_long(limit, (*computed, self.where)) from None
        except duckdb.Error as failure:
            self._connection = None
            if isinstance(failure, duckdb.FatalException | duckdb.InternalException):
                _database.cache_clear()  # it answers nobody any more
            raise self._explained(failure, (*computed, self.where)) from None
        except BaseException:
            self._connection = None
            raise
        rows = column_of(result, _ROW).to_numpy()
        columns = [column_of(result, f"c{i}") for i in range(len(computed))]
        return rows, [_typed(*pair) for pair in zip(columns, self._statement.types, strict=True)]

    def _translated(self, computed: Sequence[exp.Expression], schema: pa.Schema) -> _Statement:
        try:
            return _Statement.of(computed, self.where, schema)
        except QueryError as refusal:
            said = self._labelled(refusal.message)
            raise QueryError(said, hint=refusal.hint) from None

    def _too_long(self, limit: TimeLimit, trees: Sequence[exp.Expression | None]) -> PanesError:
        written = self._named([t for t in trees if t is not None])
        return LimitError(
            f"{written} took more than {limit.seconds:g} seconds for one batch",
            hint="shorten what it is called for, with left(s, 1000) or slice(a, 1, 1000), or give "
            "smaller batches",
        )

    def _explained(
        self, failure: duckdb.Error, trees: Sequence[exp.Expression | None]
    ) -> PanesError:
        """DuckDB's complaint in the words of the query."""
        said = str(failure).strip().splitlines()[0]
        written = self._named([t for t in trees if t is not None])
        make: type[PanesError] = PanesError
        unreadable = (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException)
        if isinstance(failure, unreadable):
            make = QueryError
        hint = next((hint for words, hint in _WAYS_OUT.items() if words in said.lower()), None)
        return make(f"cannot evaluate {written}: {said}", hint=hint)

    def _named(self, trees: Sequence[exp.Expression]) -> str:
        """Expressions as the query writes them, without quotes that plain names do not need."""
        written = ", ".join(f"`{t.sql(dialect='spark')}`" for t in map(_unquoted, trees))
        return self._labelled(written)

    def _labelled(self, words: str) -> str:
        for name, meaning in self.labels.items():
            words = re.sub(rf"\b{name}\b", meaning.replace("\\", ""), words)
        return words


def _unquoted(tree: exp.Expression) -> exp.Expression:
    copied = tree.copy()
    for identifier in copied.find_all(exp.Identifier):
        identifier.set("quoted", not re.fullmatch(r"[A-Za-z_][\w.]*", identifier.this))
    return copied


def can_fail(tree: exp.Expression) -> bool:
    """True if there may be rows for which an expression cannot be evaluated."""
    return not isinstance(tree, exp.Column | exp.Literal)


def guarded(tree: exp.Expression, conditions: Sequence[exp.Expression]) -> exp.Expression:
    """An expression that is evaluated only where one of some conditions holds; of none, always."""
    if not conditions or not can_fail(tree):
        return tree
    return exp.Case().when(_any_of(conditions), tree.copy())


def _any_of(conditions: Sequence[exp.Expression]) -> exp.Expression:
    """Any of very many conditions, none of them deep inside."""
    if len(conditions) == 1:
        return exp.Paren(this=conditions[0].copy())
    half = len(conditions) // 2
    return exp.Paren(
        this=exp.Or(this=_any_of(conditions[:half]), expression=_any_of(conditions[half:]))
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """Expressions and a filter over columns. Two are equal if they are written the same."""

    texts: tuple[str, ...]
    has_filter: bool
    schema: pa.Schema
    projection: Projection = field(compare=False)


@lru_cache(_MOST_TYPED)
def _types(written: _Written) -> tuple[pa.DataType, ...]:
    projection = written.projection
    found = tuple(c.type for c in projection(written.schema.empty_table())[1])
    projection._connection = None  # it is remembered for long, and seldom runs
    return found


@dataclass(frozen=True, slots=True)
class _Statement:
    """Expressions and a filter as DuckDB is asked them: no name of the user's is in the text.

    It is for columns of the types that it was made for. `types` are those of the expressions.
    """

    text: str
    columns: Mapping[str, pa.DataType]
    types: tuple[pa.DataType, ...]

    @classmethod
    def of(
        cls, computed: Sequence[exp.Expression], where: exp.Expression | None, schema: pa.Schema
    ) -> _Statement:
        trees = (*computed, *([where] if where is not None else []))
        if any(tree.find(exp.Star) for tree in trees):
            raise QueryError("`*` stands for all columns, and one value is needed here")
        columns = sorted({c.name for tree in trees for c in tree.find_all(exp.Column)})
        read = {name: schema.field(name).type for name in columns}
        known = {name: _column(f"v{i}", name, read[name]) for i, name in enumerate(columns)}
        found = [translate(tree, known) for tree in computed]
        selected = ", ".join([_ROW, *(f"{e.text} AS c{i}" for i, e in enumerate(found))])
        condition = "" if where is None else f" WHERE {translate_condition(where, known)}"
        text = f"SELECT {selected} FROM batch{condition} ORDER BY {_ROW}"
        return cls(text, read, tuple(e.type for e in found))

    def reads(self, schema: pa.Schema) -> bool:
        """True if columns of this schema are read."""
        return all(schema.field(name).type == kind for name, kind in self.columns.items())

    def batch(self, table: pa.Table) -> pa.Table:
        """The columns that are read, under the names the text has for them; and row numbers."""
        numbers = pa.array(np.arange(len(table)))
        arrays = [*(table.column(name) for name in self.columns), numbers]
        return pa.table(arrays, names=[*(f"v{i}" for i in range(len(self.columns))), _ROW])


def _column(text: str, name: str, kind: pa.DataType) -> Typed:
    """A column as expressions read it: in the type that Spark has for it."""
    meant = as_spark(kind)
    if meant is None:
        raise QueryError(
            f"`{name}` is of type {kind}, which expressions do not read",
            hint="cast the column before, or leave it out of expressions",
        )
    return Typed(text if meant == kind else f"CAST({text} AS {duckdb_name(meant)})", meant)


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """DuckDB's answer, in the type that Spark gives it; NULL alone has none."""
    if kind == VOID or str(kind) == str(column.type):  # by name, as DuckDB calls parts of its lists
        return column
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError:  # an array of nothing, as DuckDB has it
        raise ColumnTypeError(
            f"values of type {kind} cannot be given", hint="array() and map() need a value each"
        ) from None


_WAYS_OUT = {
    "division by zero": "try_divide(a, b) and try_mod(a, b) are NULL there",
    "cannot be cast": "try_cast(... AS ...) is NULL there",
    "overflow in": "try_add, try_subtract and try_multiply are NULL there; or cast to a wider type",
    "with such a zone": "write its offset, '2026-01-31 12:00:00+01:00', or ask on Spark",
    "out of range": "try_cast(... AS ...) is NULL there",
}
"""A hint where a value has no answer, as in Spark's ANSI mode."""


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
            first, *fields = (part.name for part in node.parts)
            holder = find_column(first, schema, stream=stream)
            if not pa.types.is_struct(schema.field(holder).type):
                raise UnknownColumnError(
                    ".".join((first, *fields)), stream=stream, columns=schema.names
                )
            inside: exp.Expression = exp.column(exp.to_identifier(holder, quoted=True))
            for field_name in fields:
                name = exp.to_identifier(field_name, quoted=True)
                inside = exp.Dot(this=inside, expression=name)
            return inside
        if isinstance(node, exp.Column):
            found = find_column(node.name, schema, stream=stream)
            column = exp.column(exp.to_identifier(found, quoted=True))
            column.meta["arrow"] = schema.field(found).type  # for hosts that read text differently
            return column
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
    opened.execute(
        f"SET GLOBAL memory_limit = '{usable_memory() // _SHARE_OF_MEMORY // 1_000_000} MB'"
    )
    for setting in _WALL:
        opened.execute(setting)
    return opened


def _answered(connection: duckdb.DuckDBPyConnection, batch: pa.Table, text: str) -> pa.Table:
    """The answer to one SELECT; text that turns out to hold anything else is not run.

    DuckDB makes errors of its own of an interrupt that falls into it, so none does.
    """

    def answer() -> pa.Table:
        statements = connection.extract_statements(text)
        if [s.type for s in statements] != [duckdb.StatementType.SELECT]:
            raise QueryError("an expression of the query cannot be read as one expression")
        connection.register("batch", batch)
        found = connection.query(statements[0]).to_arrow_table()
        connection.unregister("batch")
        return found

    return apart_from_interrupts(answer, connection.interrupt)
