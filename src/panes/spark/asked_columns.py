"""The Columns of ``agg(...)``, taken apart: aggregates for panes, everything around them for Spark.

Every aggregate in a Column is asked for by itself, over arguments that Spark computes before
windowing. What stands around it, casts and functions, is applied to the answers by Spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import sqlglot
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from panes.aggregates.catalog import columns_of, is_aggregate
from panes.aggregates.refused import REFUSED
from panes.errors import QueryError
from panes.spark.column_parts import (
    Alias,
    Cast,
    ColumnCall,
    Item,
    Name,
    Part,
    Text,
    WhenChoice,
    take_apart,
    text_of,
)


@dataclass(slots=True)
class AskedColumns:
    """Arguments and aggregate calls found in Columns; arguments become columns of the frame."""

    frame: DataFrame
    calls: list[str] = field(default_factory=list)
    arguments: list[tuple[Part, Column]] = field(default_factory=list)

    def argument(self, column: Column) -> str:
        """The name under which a Column is computed before windowing; a plain column only once."""
        part = take_apart(column)
        if isinstance(part, Alias):
            return self.argument(part.child)
        for i, (known, _) in enumerate(self.arguments):
            if isinstance(part, Name) and known == part:
                return f"__arg{i}"
        self.arguments.append((part, column))
        return f"__arg{len(self.arguments) - 1}"

    def projected(self) -> DataFrame:
        """The frame with every argument as a column of its own."""
        named = (column.alias(f"__arg{i}") for i, (_, column) in enumerate(self.arguments))
        return self.frame.select("*", *named)

    def rebuild(self, column: Column) -> Column:
        """The Column over the answers: every aggregate in it replaced by its result."""
        part = take_apart(column)
        if isinstance(part, Alias):
            return self.rebuild(part.child)
        if isinstance(part, Text):
            return self._asked(_without_alias(part.sql))
        if isinstance(part, Cast):
            child = self.rebuild(part.child)
            return child.try_cast(part.type) if part.tries else child.cast(part.type)
        if isinstance(part, Item):
            return self.rebuild(part.child)[self.rebuild(part.key)]
        if isinstance(part, WhenChoice):
            return self._choice(part)
        if isinstance(part, Name):  # a key: Spark takes no other column outside of aggregates
            known = [i for i, (found, _) in enumerate(self.arguments) if found == part]
            return F.col(f"__arg{known[0]}") if known else column
        if isinstance(part, ColumnCall) and is_aggregate(part.name):
            return self._asked(self._call(part))
        if isinstance(part, ColumnCall) and part.name in REFUSED:
            raise QueryError(f"`{part.name}` cannot be asked of windows: it {REFUSED[part.name]}")
        if isinstance(part, ColumnCall) and part.arguments:
            return F.call_function(f"`{part.name}`", *(self.rebuild(a) for a in part.arguments))
        if part is None and any(map(is_aggregate, _CALLED.findall(text_of(column)))):
            raise QueryError(
                f"the aggregate inside of {_shown(column)} cannot be found in such a Column",
                hint='write it as text, F.expr("..."), or change the answers: '
                ".agg(F.sum('x').alias('s')).withColumn(...)",
            )
        return column

    def _choice(self, choice: WhenChoice) -> Column:
        (condition, value), *more = choice.branches
        found = F.when(self.rebuild(condition), self.rebuild(value))
        for condition, value in more:
            found = found.when(self.rebuild(condition), self.rebuild(value))
        if choice.otherwise is None:
            return found
        return found.otherwise(self.rebuild(choice.otherwise))

    def _asked(self, sql: str) -> Column:
        name = f"__agg{len(self.calls)}"
        self.calls.append(f"{sql} AS {name}")
        return F.col(name)

    def _call(self, call: ColumnCall) -> str:
        if call.star:
            return f"{call.name}(*)"
        given = _without_defaults(call)
        cut = columns_of(call.name, len(given))
        columns, constants = given[:cut], given[cut:]
        distinct = "DISTINCT " if call.distinct else ""
        inside = [self.argument(c) for c in columns] + [text_of(c) for c in constants]
        return f"{call.name}({distinct}{', '.join(inside)})"


# Arguments that PySpark's functions add by themselves, and that change nothing.
_DEFAULTS = {"percentile": (2, "1"), "mode": (1, "false")}
_CALLED = re.compile(r"(\w+)\(")
_LONGEST = 80


def _shown(column: Column) -> str:
    """A Column as text, which Java makes very long for a Python function."""
    text = text_of(column)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _without_defaults(call: ColumnCall) -> tuple[Column, ...]:
    place, default = _DEFAULTS.get(call.name, (len(call.arguments), ""))
    given = call.arguments[place : place + 1]
    is_default = bool(given) and text_of(given[0]) == default
    return call.arguments[:place] if is_default else call.arguments


def _without_alias(sql: str) -> str:
    tree = sqlglot.parse_one(sql, read="spark")
    return tree.unalias().sql(dialect="spark", normalize_functions=False)
