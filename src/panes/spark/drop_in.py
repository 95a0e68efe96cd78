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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql import types as T  # noqa: N812

from panes.axis import parse_duration
from panes.errors import OptionError, QueryError
from panes.language.expressions import quoted
from panes.planning.terms import StreamOptions
from panes.spark import query
from panes.spark.asked_columns import AskedColumns
from panes.spark.column_parts import Alias, ColumnCall, Name, take_apart, text_of
from panes.spark.internals import append_only, is_watermark

_STREAM = "rows"


@dataclass(frozen=True, slots=True)
class SlidingTime:
    """What `pyspark.sql.functions.window` is told, kept to be answered from panes."""

    time_column: Column | str
    window_duration: str
    slide_duration: str
    start_time: str
    name: str = "window"

    def spark(self) -> Column:
        """Spark's own window of the same kind."""
        own = (self.window_duration, self.slide_duration, self.start_time)
        return F.window(self.time_column, *own).alias(self.name)

    def clause(self, column: str) -> str:
        """The window clause of the same kind, over a column."""
        size = _ticks(self.window_duration, "windowDuration")
        slide = _ticks(self.slide_duration, "slideDuration")
        start = _ticks(self.start_time, "startTime") % max(slide, 1)
        return (
            f"[RANGE {size} microseconds SLIDE {slide} microseconds WATTR {quoted(column)} "
            f"ORIGIN {start} ALIGN START]"
        )


def _ticks(duration: str, option: str) -> int:
    """A duration as Spark writes it: with the word ``interval`` before it or not; a start may be
    negative."""
    plain = duration.strip().removeprefix("interval ").strip()
    if option == "startTime" and plain.startswith("-"):
        return -parse_duration(plain[1:], option=option)
    return parse_duration(plain, option=option)


def window(
    time_column: Column | str,
    window_duration: str,
    slide_duration: str | None = None,
    start_time: str | None = None,
) -> SlidingTime:
    """As `pyspark.sql.functions.window`, for `group_by`, which takes that one too."""
    slide = slide_duration or window_duration
    return SlidingTime(time_column, window_duration, slide, start_time or "0 seconds")


@dataclass(frozen=True, slots=True)
class Grouped:
    """A DataFrame grouped by a window and keys, waiting for its aggregates.

    `before` are the keys that stand before the window, `keys` those behind it.
    """

    frame: DataFrame
    window: SlidingTime
    before: tuple[Column, ...]
    keys: tuple[Column, ...]
    run: StreamOptions

    def agg(self, *columns: Column | Mapping[str, str]) -> DataFrame:
        """The aggregates per window and key, as Spark's own `agg` gives them."""
        if len(columns) == 1 and isinstance(columns[0], Mapping):
            return self._answered(_by_name(columns[0]), self._spark().agg(dict(columns[0])).schema)
        given = [c for c in columns if isinstance(c, Column)]
        if not given or len(given) != len(columns):
            raise QueryError(
                "agg takes Columns, or one dictionary from columns to aggregates",
                hint='agg(F.max("price")) or agg({"price": "max"})',
            )
        return self._answered(given, self._spark().agg(*given).schema)

    def count(self) -> DataFrame:
        """The number of rows, in a column `count`."""
        return self._answered([F.count("*")], self._spark().count().schema)

    def sum(self, *columns: str) -> DataFrame:
        """The sums of some columns; without any, of all columns of numbers."""
        return self._each("sum", columns)

    def avg(self, *columns: str) -> DataFrame:
        """The means of some columns; without any, of all columns of numbers."""
        return self._each("avg", columns)

    mean = avg

    def min(self, *columns: str) -> DataFrame:
        """The smallest values of some columns; without any, of all columns of numbers."""
        return self._each("min", columns)

    def max(self, *columns: str) -> DataFrame:
        """The greatest values of some columns; without any, of all columns of numbers."""
        return self._each("max", columns)

    def pivot(self, *_: object) -> Grouped:
        """Refused: which columns a pivot has is known only when all rows have been seen."""
        raise QueryError(
            "pivot makes columns of values, which are not known before the rows are",
            hint='group by the column too, or: agg(F.expr("sum(x) FILTER (WHERE k = 1)"))',
        )

    def _spark(self) -> GroupedData:
        return self.frame.groupBy(*self.before, self.window.spark(), *self.keys)

    def _each(self, name: str, columns: tuple[str, ...]) -> DataFrame:
        wanted = getattr(self._spark(), name)(*columns).schema
        groups = len(self.before) + 1 + len(self.keys)
        of = columns or [f.name[len(name) + 1 : -1] for f in wanted.fields[groups:]]
        return self._answered([getattr(F, name)(F.col(quoted(c))) for c in of], wanted)

    def _answered(self, columns: Iterable[Column], wanted: T.StructType) -> DataFrame:
        asked = AskedColumns(self.frame)
        time = self.window.time_column
        part = take_apart(F.col(time) if isinstance(time, str) else time)
        if isinstance(part, Name) and part.name.lower() in map(str.lower, self.frame.columns):
            at = part.name  # and not a field of a struct, which is computed
        else:
            at = asked.argument(time if isinstance(time, Column) else F.col(time))
        before = [_Key.of(asked, self.frame, k) for k in self.before]
        after = [_Key.of(asked, self.frame, k) for k in self.keys]
        outputs = [asked.rebuild(c) for c in columns]
        names = list(dict.fromkeys(n for key in (*before, *after) for n in key.columns))
        group = f" GROUP BY {', '.join(names)}" if names else ""
        selected = ", ".join([*names, *asked.calls]) or "count(*)"
        text = f"SELECT {selected} FROM {_STREAM} {self.window.clause(at)}{group}"
        answers = query.answer(text, {_STREAM: asked.projected()}, run=self.run)
        edges = F.struct(F.col("window_start").alias("start"), F.col("window_end").alias("end"))
        shown = [*(k.value for k in before), edges, *(k.value for k in after), *outputs]
        named = answers.select(*(c.alias(f"c{i}") for i, c in enumerate(shown)))
        given = named.select(*map(_as_wanted, named.schema.fields, wanted.fields))
        if given.isStreaming:
            append_only(given, _not_append)
        return given


@dataclass(frozen=True, slots=True)
class _Key:
    """A grouping Column: the columns that it is grouped by, and its value over the answers.

    A struct is grouped by its fields, and by whether it is NULL.
    """

    columns: tuple[str, ...]
    value: Column

    @classmethod
    def of(cls, asked: AskedColumns, frame: DataFrame, column: Column) -> _Key:
        data_type = frame.select(column).schema[0].dataType
        if isinstance(data_type, T.ArrayType | T.MapType):
            raise QueryError(
                f"cannot group by {text_of(column)}, which is {data_type.simpleString()}",
                hint="group by its text: F.to_json(column)",
            )
        if not isinstance(data_type, T.StructType):
            name = asked.argument(column)
            return cls((name,), F.col(name))
        part = take_apart(column)
        plain = part.child if isinstance(part, Alias) else column
        missing = asked.argument(plain.isNull())
        fields = [cls.of(asked, frame, plain.getField(f.name)) for f in data_type]
        named = zip(fields, data_type, strict=True)
        whole = F.struct(*(k.value.alias(f.name) for k, f in named))
        columns = (missing, *(n for k in fields for n in k.columns))
        return cls(columns, F.when(~F.col(missing), whole))


def _by_name(wanted: Mapping[str, str]) -> list[Column]:
    """The aggregates of ``agg({"x": "max"})``."""
    found = []
    for name, aggregate in wanted.items():
        inside = "*" if name == "*" else quoted(name)
        found.append(F.expr(f"{quoted(aggregate)}({inside})"))
    return found


def group_by(
    frame: DataFrame, *columns: SlidingTime | Column | str | list[Column | str], late: str = "open"
) -> Grouped:
    """Group a DataFrame by a window and keys, as ``df.groupBy(F.window(...), ...)`` does.

    The window is Spark's own, `F.window`, or `panes.spark.window`; keys stand before it, behind it
    or in a list. `late` says what becomes of rows of a stream that come later than its watermark
    allows: ``"open"``, they count in windows that are not answered yet; ``"drop"``, in none;
    ``"spark"``, wherever they count for Spark, whose windows stay open for one batch more.
    """
    if late not in _RUNS:
        raise OptionError(f"late must be 'open', 'drop' or 'spark', got {late!r}")
    given = [(c, _window_of(c)) for c in _flat(columns)]
    places = [i for i, (_, found) in enumerate(given) if found is not None]
    if len(places) != 1:
        raise QueryError(
            f"group_by needs one window, got {len(places)}",
            hint='group_by(df, F.window("ts", "1 hour", "1 minute"), "item")',
        )
    keys = [F.col(c) if isinstance(c, str) else c for c, _ in given]
    found = given[places[0]][1]
    assert found is not None
    before, after = keys[: places[0]], keys[places[0] + 1 :]
    kept = [c for c in (*before, *after) if isinstance(c, Column)]
    return Grouped(
        frame, found, tuple(kept[: len(before)]), tuple(kept[len(before) :]), _RUNS[late]
    )


def _flat(columns: Iterable[object]) -> Iterator[SlidingTime | Column | str]:
    for column in columns:
        if isinstance(column, list | tuple):
            yield from _flat(column)
        elif isinstance(column, SlidingTime | Column | str):
            yield column
        else:
            raise QueryError(
                f"group_by takes Columns and names of columns, got {type(column).__name__}",
                hint='group_by(df, F.window("ts", "1 hour", "1 minute"), "item")',
            )


def _window_of(column: SlidingTime | Column | str) -> SlidingTime | None:
    """The window that a grouping column is, or None."""
    if not isinstance(column, Column):
        return column if isinstance(column, SlidingTime) else None
    part, name = take_apart(column), "window"
    if isinstance(part, Alias):
        name, part = part.name, take_apart(part.child)
    if not isinstance(part, ColumnCall) or part.name not in ("window", "session_window"):
        return None
    if part.name == "session_window":
        raise QueryError("session windows have no panes", hint="use Spark's own groupBy for them")
    time, *constants = part.arguments
    texts = [text_of(c).strip("'") for c in constants]
    size, slide, start = (*texts, *(texts[:1] if len(texts) < 2 else ()), "0 seconds")[:3]
    return SlidingTime(time, size, slide, start, name)


_RUNS = {
    "open": StreamOptions(),
    "drop": StreamOptions(late="drop"),
    "spark": StreamOptions(by_watermark=True, max_ahead=None),  # Spark believes every timestamp
}


def _not_append(mode: str) -> OptionError:
    return OptionError(
        f"windows are answered once, when they are complete: outputMode must be 'append', "
        f"got {mode!r}",
        hint="for answers before that: panes.sql with EMIT EARLY; or Spark's own groupBy",
    )


def _as_wanted(have: T.StructField, want: T.StructField) -> Column:
    """A column under the name, in the type and with the nullability of Spark's own answer."""
    column = _given(F.col(have.name), _Kind.of(have), _Kind.of(want))
    said = {k: v for k, v in want.metadata.items() if not is_watermark(k)}
    return column.alias(want.name, metadata=said) if said else column.alias(want.name)


class _Kind(NamedTuple):
    """The type of a value, and whether it may be NULL."""

    type: T.DataType
    nullable: bool

    @classmethod
    def of(cls, field: T.StructField) -> _Kind:
        return cls(field.dataType, field.nullable)


def _given(column: Column, have: _Kind, want: _Kind) -> Column:
    """A value of another kind; Spark casts no list to one whose items say more of NULLs."""
    one, other = have.type, want.type
    if one == other:
        pass
    elif isinstance(one, T.ArrayType) and isinstance(other, T.ArrayType):
        item, wanted = (_Kind(a.elementType, a.containsNull) for a in (one, other))
        column = F.transform(column, lambda each: _given(each, item, wanted))
    elif isinstance(one, T.StructType) and isinstance(other, T.StructType):
        fields = zip(one, other, strict=True)
        whole = F.struct(
            *(_given(column[a.name], _Kind.of(a), _Kind.of(b)).alias(b.name) for a, b in fields)
        )
        column = F.when(column.isNotNull(), whole) if have.nullable else whole
    else:
        column = column.cast(other)
    if have.nullable and not want.nullable:
        return F.coalesce(column, _filler(other))  # never taken: it says "not NULL"
    if want.nullable and not have.nullable:
        return F.when(column.isNotNull(), column)  # always: it says "may be NULL"
    return column


def _filler(data_type: T.DataType) -> Column:
    """Any value of a type."""
    if isinstance(data_type, T.ArrayType):
        return F.array().cast(data_type)
    if isinstance(data_type, T.StructType):
        return F.struct(*(_filler(f.dataType).alias(f.name) for f in data_type))
    if isinstance(data_type, T.StringType | T.BinaryType):
        return F.lit("").cast(data_type)
    if isinstance(data_type, T.DateType | T.TimestampType | T.TimestampNTZType):
        return F.lit(date(1970, 1, 1)).cast(data_type)
    return F.lit(0).cast(data_type)
