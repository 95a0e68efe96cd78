"""Functions of dates and moments whose meaning depends on a word: a part, unit, pattern or zone.

Words are written in the query. Moments are in UTC, so that a zone matters only where one is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from panes.expressions import types as t
from panes.expressions.casts import cast
from panes.expressions.intervals import part_of_interval, seconds
from panes.expressions.patterns import read, written
from panes.expressions.rules import built, taken
from panes.expressions.table import RULES
from panes.expressions.typed import Typed, bound, failure, over, refuse
from panes.expressions.zones import from_wall, to_wall

Form = Callable[[Sequence[Typed]], Typed]
_FIELDS = {
    "year": "y years yr yrs", "yearofweek": "", "quarter": "qtr", "month": "mon mons months",
    "week": "w weeks", "day": "d days", "dayofweek": "dow", "dayofweek_iso": "dow_iso", "doy": "",
    "hour": "h hours hr hrs", "minute": "m min mins minutes", "second": "s sec seconds secs",
}  # fmt: skip
_FIELD = {other: name for name, others in _FIELDS.items() for other in (name, *others.split())}
_CALLED = {"week": "weekofyear", "doy": "dayofyear"}


def word(name: str, value: Typed) -> str:
    """A word that is written in the query."""
    if not isinstance(value.constant, str) or not value.is_constant:
        raise refuse(f"`{name}` takes a word that is written in the query")
    return value.constant


def part(field: str, value: Typed) -> Typed:
    """`extract(field FROM value)`."""
    name = _FIELD.get(field.lower())
    if name is None:
        raise refuse(f"the part `{field}` is not translated")
    if value.type in (t.DAYS, t.MONTHS):
        return part_of_interval(name, value)
    if name == "second":
        (moment,) = taken("second", [value], "moment")
        plain = f"CAST({moment.text} AS TIMESTAMP)"
        return seconds(f"(((epoch_us({plain}) % 60000000) + 60000000) % 60000000)")
    if name in ("yearofweek", "dayofweek_iso"):
        (day,) = taken(name, [value], "date")
        called = "isoyear" if name == "yearofweek" else "isodow"
        return Typed(f"CAST({called}({day.text}) AS INTEGER)", t.INT)
    called = _CALLED.get(name, name)
    return built(called, RULES[called], [value])


def _date_part(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) != 2:
        raise refuse("`date_part` takes a part and a value")
    return part(word("date_part", arguments[0]), arguments[1])


_UNITS = {"year": "year yyyy yy", "quarter": "quarter", "month": "month mm mon", "week": "week"}
_FINER = {"day": "day dd", **{n: n for n in ("hour", "minute", "second", "millisecond",
                                             "microsecond")}}  # fmt: skip
_UNIT = {word: unit for unit, words in _UNITS.items() for word in words.split()}
_FINER_UNIT = {word: unit for unit, words in (_UNITS | _FINER).items() for word in words.split()}


def _trunc(arguments: Sequence[Typed]) -> Typed:
    day, unit = taken("trunc", arguments, "date, #string")
    name = _UNIT.get(word("trunc", unit).lower())
    if name is None:
        raise refuse(f"`trunc` to {unit.constant} is not translated")
    return Typed(f"CAST(date_trunc('{name}', {day.text}) AS DATE)", t.DATE)


def _date_trunc(arguments: Sequence[Typed]) -> Typed:
    unit, moment = taken("date_trunc", arguments, "#string, timestamp")
    name = _FINER_UNIT.get(word("date_trunc", unit).lower())
    if name is None:
        raise refuse(f"`date_trunc` to {unit.constant} is not translated")
    plain = f"CAST({moment.text} AS TIMESTAMP)"
    return Typed(f"CAST(date_trunc('{name}', {plain}) AS TIMESTAMPTZ)", t.TIMESTAMP)


def _months_between(arguments: Sequence[Typed]) -> Typed:
    one, other, *rest = taken("months_between", arguments, "timestamp, timestamp, #boolean?")
    rounded = not rest or rest[0].constant is True
    if rest and rest[0].constant is None:
        raise refuse("`months_between` takes true or false")

    def body(a: str, b: str) -> str:
        months = f"((year({a}) - year({b})) * 12 + month({a}) - month({b}))"
        day = "hour({0}) * 3600 + minute({0}) * 60 + second({0})"
        apart = f"((day({a}) - day({b})) * 86400 + ({day.format(a)}) - ({day.format(b)}))"
        exact = f"({months}::DOUBLE + ({apart})::DOUBLE / 2678400::DOUBLE)"
        if rounded:
            exact = f"(floor({exact} * 1e8 + 0.5) / 1e8)"
        last = f"({a}::DATE = last_day({a}::DATE) AND {b}::DATE = last_day({b}::DATE))"
        return f"CASE WHEN day({a}) = day({b}) OR {last} THEN {months}::DOUBLE ELSE {exact} END"

    first, second = (f"CAST({v.text} AS TIMESTAMP)" for v in (one, other))
    return Typed(bound(first, lambda a: bound(second, lambda b: body(a, b))), t.DOUBLE)


_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _next_day(arguments: Sequence[Typed]) -> Typed:
    day, name = taken("next_day", arguments, "date, #string")
    called = word("next_day", name).strip().lower()
    found = [n for n, full in enumerate(_DAYS, 1) if called in (full, full[:3], full[:2])]
    if not found:
        raise refuse(f"`next_day` knows no day {name.constant}")
    text = bound(
        day.text, lambda x: f"{x} + CAST(1 + ({found[0]} - isodow({x}) + 6) % 7 AS INTEGER)"
    )
    return Typed(f"CAST({text} AS DATE)", t.DATE)


def _reading(name: str, to: pa.DataType) -> Form:
    """`to_date`, `to_timestamp` and theirs, with `try_` too."""
    is_try = name.startswith("try_")

    def build(arguments: Sequence[Typed]) -> Typed:
        if len(arguments) == 1:
            return cast(arguments[0], to, is_try=is_try)
        if arguments[0].type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
            return cast(arguments[0], to)
        text, pattern = taken(name, arguments, "string, #string")
        shape = word(name, pattern)

        def body(x: str) -> str:
            moment = read(Typed(x, t.STRING), shape, is_try=is_try)
            return f"TRY({moment})" if is_try else moment

        found = over(text.text, body) if is_try else bound(text.text, body)
        return Typed(f"CAST({found} AS {t.duckdb_name(to)})", to)

    return build


def _date_format(arguments: Sequence[Typed]) -> Typed:
    if arguments and arguments[0].type == t.TIME:
        pattern = word("date_format", arguments[-1])
        moment = f"(TIMESTAMP '1970-01-01 00:00:00' + to_microseconds({arguments[0].text}))"
        if set(pattern) - set("HhmsS:. "):
            raise refuse("a time has no date to write")
        return Typed(written(moment, pattern), t.STRING)
    value, pattern_ = taken("date_format", arguments, "moment, #string")
    plain = f"CAST({value.text} AS TIMESTAMP)"
    return Typed(bound(plain, lambda x: written(x, word("date_format", pattern_))), t.STRING)


def _from_unixtime(arguments: Sequence[Typed]) -> Typed:
    value, *rest = taken("from_unixtime", arguments, "bigint, #string?")
    pattern = word("from_unixtime", rest[0]) if rest else "yyyy-MM-dd HH:mm:ss"
    far = failure("a moment so far away is not translated")
    moment = bound(value.text, lambda x: f"CASE WHEN {x} NOT BETWEEN -9000000000000 AND "
                   f"9000000000000 THEN {far} ELSE make_timestamp({x} * 1000000) END")  # fmt: skip
    return Typed(bound(moment, lambda x: written(x, pattern)), t.STRING)


def _unix_timestamp(arguments: Sequence[Typed]) -> Typed:
    if not arguments:
        raise refuse("the current time is not part of a query's data")
    if arguments[0].type == t.STRING:
        text, *rest = taken("unix_timestamp", arguments, "string, #string?")
        pattern = word("unix_timestamp", rest[0]) if rest else "yyyy-MM-dd HH:mm:ss"
        moment = bound(text.text, lambda x: read(Typed(x, t.STRING), pattern, is_try=False))
        return built("unix_seconds", RULES["unix_seconds"], [Typed(f"CAST({moment} AS TIMESTAMPTZ)",
                                                                   t.TIMESTAMP)])  # fmt: skip
    (instant,) = taken("unix_timestamp", arguments[:1], "timestamp")
    return Typed(f"(epoch_us({instant.text}) // 1000000)", t.BIGINT)  # cut, before 1970 too


def _utc(name: str) -> Form:
    def build(arguments: Sequence[Typed]) -> Typed:
        moment, zone = taken(name, arguments, "timestamp, #string")
        where = word(name, zone)
        if name == "from_utc_timestamp":
            text = f"CAST({to_wall(moment.text, where)} AS TIMESTAMPTZ)"
        else:
            text = from_wall(f"CAST({moment.text} AS TIMESTAMP)", where)
        return Typed(text, t.TIMESTAMP)

    return build


def _convert_timezone(arguments: Sequence[Typed]) -> Typed:
    parameters = ", ".join(["#string"] * (len(arguments) - 1) + ["timestamp_ntz"])
    *zones, moment = taken("convert_timezone", arguments, parameters)
    names = [word("convert_timezone", zone) for zone in zones]
    if not 1 <= len(names) <= 2:
        raise refuse("`convert_timezone` takes one or two zones and a time")
    source = names[0] if len(names) == 2 else t.UTC
    return Typed(to_wall(from_wall(moment.text, source), names[-1]), t.TIMESTAMP_NTZ)


def _timestamp_seconds(arguments: Sequence[Typed]) -> Typed:
    value = arguments[0] if len(arguments) == 1 else None
    if value is None or not t.is_decimal(value.type) or value.type.scale > 6:
        raise refuse("`timestamp_seconds` takes whole seconds, or a decimal of six digits")
    micros = (
        f"CAST(CAST({value.text} AS DECIMAL(25, 6)) * CAST(1000000 AS DECIMAL(7, 0)) AS BIGINT)"
    )
    return Typed(f"make_timestamptz({micros})", t.TIMESTAMP)


def _time_bucket(arguments: Sequence[Typed]) -> Typed:
    if len(arguments) not in (2, 3) or arguments[0].type != t.DAYS:
        raise refuse("`time_bucket` takes an interval of days or less")
    width = arguments[0].text
    moments = taken("time_bucket", arguments[1:], "timestamp, #timestamp?")
    at = f"epoch_us({moments[0].text})"
    origin = f"epoch_us({moments[1].text})" if len(moments) == 2 else "0"
    apart = f"({at} - {origin})"
    text = f"make_timestamptz({at} - (({apart} % {width}) + {width}) % {width})"
    return Typed(f"CASE WHEN {width} <= 0 THEN error('a bucket has a length') ELSE {text} END",
                 t.TIMESTAMP)  # fmt: skip


FORMS: dict[str, Form] = {
    "date_part": _date_part, "datepart": _date_part, "trunc": _trunc, "date_trunc": _date_trunc,
    "months_between": _months_between, "next_day": _next_day, "date_format": _date_format,
    "from_unixtime": _from_unixtime, "unix_timestamp": _unix_timestamp,
    "to_unix_timestamp": _unix_timestamp, "convert_timezone": _convert_timezone,
    "time_bucket": _time_bucket, "timestamp_seconds": _timestamp_seconds,
    **{name: _utc(name) for name in ("from_utc_timestamp", "to_utc_timestamp")},
    **{name: _reading(name, t.DATE) for name in ("to_date", "try_to_date")},
    **{name: _reading(name, t.TIMESTAMP)
       for name in ("to_timestamp", "try_to_timestamp", "to_timestamp_ltz")},
    "to_timestamp_ntz": _reading("to_timestamp_ntz", t.TIMESTAMP_NTZ),
}  # fmt: skip
