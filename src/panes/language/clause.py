"""The window clause: ``[RANGE 10 minutes SLIDE 1 minute WATTR ts]`` and its relatives.

Commas are optional, parts stand in any order, keywords in any case. The clause says which kind
of window is meant by the units of its RANGE and SLIDE:

| RANGE | SLIDE | window |
|---|---|---|
| time or number | the same | sliding on a column |
| rows | rows | sliding on arrival; with PA, partitioned rows |
| ALL | any | landmark |
| time or number | rows | per row |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from sqlglot.tokens import Token, TokenType

from panes.axis import LIMIT, format_duration, parse_instant, unit_ticks, written_number
from panes.errors import OptionError, QueryError
from panes.language.query import Early, Window
from panes.language.tokens import TokenReader, error_at
from panes.windows.spec import Landmark, PartitionedRows, PerRow, Sliding, Spec

OPENERS = frozenset({"RANGE", "ROWS", "TUMBLING", "SLIDE", "WATTR", "WA", "RATTR", "SATTR", "PA"})
_ROWS = frozenset({"ROW", "ROWS", "TUPLE", "TUPLES"})
_ARRIVAL = frozenset({"row_num", "row-num", "rownum", "seq-num", "row_number"})
_TAKEN: dict[str, Literal["max", "min"]] = {
    "MAX": "max",
    "GREATEST": "max",
    "MIN": "min",
    "LEAST": "min",
}
_EXAMPLE = "[RANGE 10 minutes SLIDE 1 minute WATTR ts]"
_COMPUTED = (
    "windows lie on a column; a SELECT inside FROM makes one: "
    "FROM (SELECT date_trunc('hour', ts) AS at, ... FROM bids) [TUMBLING 1 day WATTR at]"
)
_NO_COLUMN = (
    "add WATTR ts; over what a query inside answers none is needed, "
    "if FROM has the name that WITH gives it"
)

Unit = Literal["time", "integer", "rows"]
_SAYS = {"time": "units of time", "integer": "plain numbers", "rows": "rows"}


class _Refusal(Protocol):
    """Makes an error that points at the clause."""

    def __call__(self, message: str, hint: str | None = None) -> QueryError: ...


@dataclass(frozen=True, slots=True)
class Length:
    """A RANGE or SLIDE: how much of what."""

    ticks: int
    unit: Unit


@dataclass(slots=True, unsafe_hash=True)  # nothing is changed once all words are read
class Parts:
    """The words of a clause, part by part, before they are given a meaning.

    `paths` are the columns after WATTR with their qualifiers: one, or the two whose greater or
    smaller value is meant (`taken`), as over a join. `dotted` are all names that have a qualifier.
    """

    size: Length | None = None
    is_landmark: bool = False
    slide: Length | None = None
    column: str | None = None
    range_column: str | None = None
    slide_column: str | None = None
    by_rank: bool = False
    partition: tuple[str, ...] = ()
    origin: int = 0
    origin_first: bool = False
    align_start: bool = False
    paths: tuple[tuple[str, ...], ...] = ()
    taken: Literal["max", "min"] | None = None
    dotted: tuple[tuple[str, ...], ...] = ()


def is_clause(reader: TokenReader) -> bool:
    """True if a window clause begins here (a bracket may also be an array subscript)."""
    return reader.word() == "[" and reader.word(1) in OPENERS


def require_columns(parts: Parts, names: Sequence[str], place: Token | None = None) -> None:
    """Refuse what a clause over streams of these names says of a field: windows have columns."""
    for path in parts.dotted:
        known = [name for name in names if name.lower() == path[0].lower()]
        if not known or len(path) > 2:
            field, own = ".".join(path), path[-1]
            raise error_at(
                place,
                f"a window clause names columns, and `{field}` is a field of one",
                f"FROM (SELECT {field} AS {own}, ... FROM {[*known, *names][0]}), and {own} in the "
                "clause",
            )


def rows_are_counted(words: Sequence[str]) -> bool:
    """True if the words of a clause give its windows a length in rows.

    >>> rows_are_counted("[ RANGE 9 ROWS SLIDE 3 ROWS".split())
    True
    >>> rows_are_counted("[ RANGE 5 minutes SLIDE 1 ROW".split())
    False
    """
    if "ROWS" in words[:2] or ("ALL" in words and not _ROWS.isdisjoint(words)):
        return True
    lengths = [i + 2 for i, word in enumerate(words) if word in ("RANGE", "TUMBLING")]
    return any(words[i] in _ROWS for i in lengths if i < len(words))


def read_clause(reader: TokenReader) -> Parts:
    """The parts of a clause; the reader stands behind its closing bracket."""
    reader.take()
    parts = Parts()
    said: set[str] = set()
    while not reader.skip("]"):
        word = reader.word().replace("WATTR", "WA")
        if word in said:
            raise reader.error(f"the window clause says {reader.word()} twice")
        said.add(word)
        _read_part(reader, parts)
        reader.skip(",")
    return parts


def _read_part(reader: TokenReader, parts: Parts) -> None:
    word = reader.word()
    if word not in OPENERS | {"ORIGIN", "ALIGN"}:
        raise reader.error(
            f"a window clause cannot say {reader.found()} here",
            _COMPUTED if word == "(" else f"a window clause looks like {_EXAMPLE}",
        )
    reader.take()
    if word == "RANGE":
        _read_range(reader, parts)
    elif word == "TUMBLING":
        parts.size = parts.slide = _read_length(reader, "TUMBLING")
    elif word == "ROWS":
        parts.size = Length(_read_length(reader, "ROWS").ticks, "rows")
        parts.slide = parts.slide or Length(1, "rows")
    elif word == "SLIDE":
        parts.slide = _read_length(reader, "SLIDE")
    elif word in ("WATTR", "WA"):
        _read_axis(reader, parts, word)
    elif word == "RATTR":
        parts.range_column = _read_name(reader, parts, "after RATTR")
    elif word == "SATTR":
        _read_slide_column(reader, parts)
    elif word == "PA":
        parts.partition = _read_names(reader, parts)
    elif word == "ORIGIN":
        _read_origin(reader, parts)
    else:
        parts.align_start = reader.word() == "START"
        if not reader.skip("START", "END"):
            raise reader.error(f"ALIGN takes START or END, found {reader.found()}")


def _read_range(reader: TokenReader, parts: Parts) -> None:
    if reader.skip("ALL"):
        parts.is_landmark = True
    elif reader.skip("TUMBLING"):
        parts.size = parts.slide = _read_length(reader, "RANGE TUMBLING")
    else:
        parts.size = _read_length(reader, "RANGE")


def _read_length(reader: TokenReader, word: str) -> Length:
    sign = -1 if reader.skip("-") else 1
    token = reader.here
    if token is None or token.token_type != TokenType.NUMBER:
        raise reader.error(f"{word} needs a length, found {reader.found()}", f"{word} 10 minutes")
    reader.take()
    read = written_number(token.text)
    if read is None:
        raise error_at(token, f"{word} needs a number, got {token.text}")
    number = sign * read
    unit = reader.word()
    if number <= 0 and word != "ORIGIN":
        named = f" {unit.lower()}" if unit in _ROWS or unit_ticks(unit) else ""
        shown = f"{'-' * (sign < 0)}{token.text}{named}"
        what = "EMIT EARLY" if word == "EVERY" else "a window"
        raise error_at(token, f"{what} needs a positive {word}, got {shown}")
    if unit in _ROWS:
        reader.take()
        return Length(_whole(number, token, f"{word} counts rows"), "rows")
    ticks = unit_ticks(unit) if unit else None
    if ticks is not None:
        reader.take()
        return Length(_whole(number * ticks, token, f"{word} is finer than a microsecond"), "time")
    if unit and unit not in {"]", ","} | OPENERS | {"ORIGIN", "ALIGN"}:
        raise reader.error(
            f"{word} has an unknown unit, {reader.found()}",
            "units are microsecond, millisecond, second, minute, hour, day, week and rows; "
            "months and years have no fixed length, and docs/cookbook/local_days.md adds up days",
        )
    return Length(_whole(number, token, f"{word} without a unit counts whole steps"), "integer")


def written(clause: Parts, *column: str) -> str:
    """A clause of sliding or landmark windows as it would be written on a column.

    >>> written(Parts(size=Length(60_000_000, "time"), slide=Length(60_000_000, "time")), "r", "ts")
    '[TUMBLING 1 minute WATTR r.ts]'
    """

    def length(ticks: int, unit: Unit) -> str:
        text = format_duration(abs(ticks)) if unit == "time" else str(abs(ticks))
        return "-" * (ticks < 0) + text + " rows" * (unit == "rows")

    slide = clause.slide
    unit: Unit = "integer" if slide is None else slide.unit
    words = [] if clause.size is None else [f"RANGE {length(clause.size.ticks, clause.size.unit)}"]
    words = ["RANGE ALL"] if clause.is_landmark else words
    words += [] if slide is None else [f"SLIDE {length(slide.ticks, unit)}"]
    if slide is not None and slide == clause.size:
        words = [f"TUMBLING {length(slide.ticks, unit)}"]
    names = (name if name.isidentifier() else f"`{name.replace('`', '``')}`" for name in column)
    words.append(f"WATTR {'.'.join(names)}")
    words += [f"ORIGIN {length(clause.origin, unit)}"] * bool(clause.origin)
    words += ["ORIGIN FIRST"] * clause.origin_first + ["ALIGN START"] * clause.align_start
    return f"[{' '.join(words)}]"


def read_early(reader: TokenReader) -> Early:
    """The words behind ``EMIT EARLY``."""
    if not reader.skip("EVERY"):
        return Early(None, None)
    place = reader.here
    length = _read_length(reader, "EVERY")
    if length.unit == "rows":
        raise error_at(place, "EMIT EARLY EVERY counts time or steps of the axis, not rows")
    return Early(length.ticks, length.unit)


def _whole(number: Fraction, token: Token, message: str) -> int:
    if number.denominator != 1:
        raise error_at(token, f"{message}, got {token.text}")
    if abs(number) >= LIMIT:
        raise error_at(token, f"{token.text} is longer than the axis")
    return int(number)


def _read_slide_column(reader: TokenReader, parts: Parts) -> None:
    name = reader.name("after SATTR")
    if name.lower() == "rank" and reader.skip("("):
        parts.by_rank = True
        name = reader.name("in rank(...)")
        reader.expect(")", "after rank(...")
    parts.slide_column = name


def _read_axis(reader: TokenReader, parts: Parts, word: str) -> None:
    """The column after WATTR, or ``max(l.ts, r.ts)``."""
    if reader.word(1) == "(" and reader.word() in _TAKEN:
        parts.taken = _TAKEN[reader.word()]
        reader.take()
        reader.take()
        first = reader.path(f"in {word}")
        reader.expect(",", "between the two columns")
        parts.paths = (first, reader.path(f"in {word}"))
        reader.expect(")", "after the two columns")
    else:
        parts.paths = (reader.path(f"after {word}"),)
    parts.dotted += tuple(path for path in parts.paths if len(path) > 1)
    parts.column = parts.paths[0][-1]


def _read_name(reader: TokenReader, parts: Parts, where: str) -> str:
    path = reader.path(where)
    parts.dotted += (path,) if len(path) > 1 else ()
    return path[-1]


def _read_names(reader: TokenReader, parts: Parts) -> tuple[str, ...]:
    enclosed = reader.skip("(")
    names = [_read_name(reader, parts, "after PA")]
    while reader.word() == "," and (
        enclosed or reader.word(1) not in OPENERS | {"ORIGIN", "ALIGN"}
    ):
        reader.take()
        names.append(_read_name(reader, parts, "after PA"))
    if enclosed:
        reader.expect(")", "after the columns of PA")
    return tuple(names)


def _read_origin(reader: TokenReader, parts: Parts) -> None:
    token = reader.here
    if reader.skip("FIRST"):
        parts.origin_first = True
    elif token is not None and token.token_type == TokenType.STRING:
        reader.take()
        try:
            parts.origin = parse_instant(token.text)
        except OptionError as failure:
            raise error_at(token, str(failure)) from None
    else:
        parts.origin = _read_length(reader, "ORIGIN").ticks


def window_of(parts: Parts, bracket: Token | None, *, once: bool = False) -> Window:
    """The window that a clause beginning at a bracket describes.

    A window that is asked for `once` does not slide: its SLIDE is its RANGE.
    """

    def refuse(message: str, hint: str | None = None) -> QueryError:
        return error_at(bracket, message, hint)

    if parts.taken is not None:
        raise refuse(f"{parts.taken} of two columns orders the rows of a join, not of one stream")
    if parts.size is None and not parts.is_landmark:
        raise refuse("a window clause needs a RANGE", f"for example {_EXAMPLE}")
    if parts.slide is None and once:
        parts.slide = parts.size
    if parts.slide is None:
        raise refuse(
            "a window over an aggregate needs a SLIDE",
            "add SLIDE 1 minute, or write [TUMBLING 10 minutes WATTR ts]",
        )
    try:
        spec, measure = _spec(parts, parts.slide, refuse)
    except QueryError as failure:
        if failure.line is not None:
            raise
        raise refuse(str(failure)) from None
    column = _axis_column(parts, measure, refuse)
    return Window(spec, measure, column, parts.partition, parts.origin_first)


def _spec(parts: Parts, slide: Length, refuse: _Refusal) -> tuple[Spec, Unit]:
    if parts.size is None:
        return Landmark(slide=slide.ticks, origin=parts.origin), slide.unit
    size = parts.size
    if slide.unit == "rows" and size.unit != "rows":
        counted: Literal["arrival", "rank"] = "rank" if parts.by_rank else "arrival"
        return PerRow(size=size.ticks, every=slide.ticks, counted_by=counted), size.unit
    if slide.unit != size.unit:
        raise refuse(
            f"RANGE is in {_SAYS[size.unit]} and SLIDE in {_SAYS[slide.unit]}",
            "give both the same unit, or SLIDE 1 ROW for a window per row",
        )
    if size.unit == "rows" and parts.partition:
        return PartitionedRows(size=size.ticks, slide=slide.ticks), "rows"
    sliding = Sliding(size=size.ticks, slide=slide.ticks)
    shift = size.ticks % slide.ticks if parts.align_start else 0
    return Sliding(size=sliding.size, slide=sliding.slide, origin=parts.origin + shift), size.unit


def _axis_column(parts: Parts, measure: Unit, refuse: _Refusal) -> str | None:
    column = parts.range_column or parts.column
    if measure == "rows":
        column = parts.column or parts.slide_column
        return None if column is None or column.lower() in _ARRIVAL else column
    if parts.by_rank and parts.slide_column != column:
        raise refuse(f"rank({parts.slide_column}) must rank by the RANGE attribute, `{column}`")
    if column is None:
        raise refuse("the window does not say which column it lies on", _NO_COLUMN)
    return column
