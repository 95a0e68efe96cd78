"""A drop-in for ``df.groupBy(window(...), ...).agg(...)``: the same call, the same answer.

``group_by(df, window("ts", "1 hour", "1 minute"), "item").agg(F.max("price"))`` takes Spark's own
aggregate Columns and gives the schema and rows that Spark's ``groupBy(window(...))`` would, at the
price of a tumbling window. A streaming DataFrame says by its ``withWatermark``, as for Spark, how
late rows may be.

Windows of a stream are answered in the batch that proves them complete, one batch before Spark. So
a row that comes later than the watermark allows, just one batch after its window is complete,
counts for Spark and not here. With ``late="spark"`` it counts here too: then windows close by
Spark's own watermark, in the same batch as Spark's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import sqlglot
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.aggregates.catalog import columns_of, is_aggregate
from panes.axis import parse_duration
from panes.errors import OptionError, QueryError
from panes.language.expressions import quoted
from panes.planning.terms import Run
from panes.spark import query
from panes.spark.internals import (
    Alias,
    Call,
    Name,
    Part,
    Text,
    append_only,
    take_apart,
    text_of,
)

_STREAM = "rows"


@dataclass(frozen=True, slots=True)
class SlidingTime:
    """What `pyspark.sql.functions.window` is told, kept to be answered from panes."""

    time_column: str
    window_duration: str
    slide_duration: str
    start_time: str

    def spark(self) -> Column:
        """Spark's own window of the same kind."""
        return F.window(
            self.time_column, self.window_duration, self.slide_duration, self.start_time
        )

    def clause(self) -> str:
        """The window clause of the same kind."""
        size = parse_duration(self.window_duration, option="windowDuration")
        slide = parse_duration(self.slide_duration, option="slideDuration")
        start = parse_duration(self.start_time, option="startTime")
        column = quoted(self.time_column)
        return (
            f"[RANGE {size} microseconds SLIDE {slide} microseconds WATTR {column} "
            f"ORIGIN {start} ALIGN START]"
        )


def window(
    time_column: str,
    window_duration: str,
    slide_duration: str | None = None,
    start_time: str = "0 seconds",
) -> SlidingTime:
    """As `pyspark.sql.functions.window`, for `group_by`."""
    return SlidingTime(time_column, window_duration, slide_duration or window_duration, start_time)


@dataclass(frozen=True, slots=True)
class Grouped:
    """A DataFrame grouped by a window and keys, waiting for its aggregates."""

    frame: DataFrame
    window: SlidingTime
    keys: tuple[Column, ...]
    run: Run

    def agg(self, *columns: Column) -> DataFrame:
        """The aggregates per window and key, as Spark's own `agg` gives them."""
        wanted = self.frame.groupBy(self.window.spark(), *self.keys).agg(*columns).schema
        asked = _Asked(self.frame)
        keys = [asked.argument(k) for k in self.keys]
        outputs = [asked.rebuild(c) for c in columns]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        selected = ", ".join([*keys, *asked.calls]) or "count(*)"
        text = f"SELECT {selected} FROM {_STREAM} {self.window.clause()}{group}"
        answers = query.answer(text, {_STREAM: asked.projected()}, run=self.run)
        edges = F.struct(F.col("window_start").alias("start"), F.col("window_end").alias("end"))
        shown = [edges, *(F.col(k) for k in keys), *outputs]
        named = answers.select(*(c.alias(f"c{i}") for i, c in enumerate(shown)))
        given = named.select(*map(_as_wanted, named.schema.fields, wanted.fields))
        if given.isStreaming:
            append_only(given, _not_append)
        return given


def group_by(
    frame: DataFrame, window: SlidingTime, *keys: Column | str, late: str = "open"
) -> Grouped:
    """Group a DataFrame by a window and keys, as ``df.groupBy(F.window(...), ...)`` does.

    `late` says what becomes of rows of a stream that come later than its watermark allows:
    ``"open"``, they count in windows that are not answered yet; ``"drop"``, in none;
    ``"spark"``, wherever they count for Spark, whose windows stay open for one batch more.
    """
    if not isinstance(window, SlidingTime):
        raise QueryError(
            f"group_by needs a window of panes.spark.window, got {type(window).__name__}",
            hint='group_by(df, panes.spark.window("ts", "1 hour", "1 minute"), "item")',
        )
    if late not in _RUNS:
        raise OptionError(f"late must be 'open', 'drop' or 'spark', got {late!r}")
    columns = tuple(F.col(k) if isinstance(k, str) else k for k in keys)
    return Grouped(frame, window, columns, _RUNS[late])


_RUNS = {
    "open": Run(),
    "drop": Run(late="drop"),
    "spark": Run(by_watermark=True, max_ahead=None),  # Spark believes every timestamp
}


def _not_append(mode: str) -> OptionError:
    return OptionError(
        f"windows are answered once, when they are complete: outputMode must be 'append', "
        f"got {mode!r}",
        hint="for answers before that: panes.sql with EMIT EARLY; or Spark's own groupBy",
    )


@dataclass(slots=True)
class _Asked:
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
        if isinstance(part, Call) and is_aggregate(part.name):
            return self._asked(self._call(part))
        if isinstance(part, Call) and part.arguments:
            return F.call_function(f"`{part.name}`", *(self.rebuild(a) for a in part.arguments))
        return column

    def _asked(self, sql: str) -> Column:
        name = f"__agg{len(self.calls)}"
        self.calls.append(f"{sql} AS {name}")
        return F.col(name)

    def _call(self, call: Call) -> str:
        if call.star:
            return f"{call.name}(*)"
        given = _without_defaults(call)
        cut = columns_of(call.name, len(given))
        columns, constants = given[:cut], given[cut:]
        distinct = "DISTINCT " if call.distinct else ""
        inside = [self.argument(c) for c in columns] + [text_of(c) for c in constants]
        return f"{call.name}({distinct}{', '.join(inside)})"


def _as_wanted(have: T.StructField, want: T.StructField) -> Column:
    """A column under the name and in the type that Spark's own answer has."""
    column = F.col(have.name)
    if have.dataType.simpleString() != want.dataType.simpleString():
        column = column.cast(want.dataType)
    return column.alias(want.name)


# Arguments that PySpark's functions add by themselves, and that change nothing.
_DEFAULTS = {"percentile": (2, "1"), "mode": (1, "false")}


def _without_defaults(call: Call) -> tuple[Column, ...]:
    place, default = _DEFAULTS.get(call.name, (len(call.arguments), ""))
    given = call.arguments[place : place + 1]
    if given and text_of(given[0]) != default:
        raise QueryError(
            f"{call.name} with {text_of(given[0])} as argument {place + 1} has no panes"
        )
    return call.arguments[:place]


def _without_alias(sql: str) -> str:
    tree = sqlglot.parse_one(sql, read="spark")
    return tree.unalias().sql(dialect="spark", normalize_functions=False)
