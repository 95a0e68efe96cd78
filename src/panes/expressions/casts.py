"""Casts as Spark's ANSI mode does them: exactly, or with an error; `try_cast` gives NULL instead.

What is read from text is checked by a pattern before DuckDB reads it, so that nothing is read that
Spark does not read. An error of what is cast stays an error: only the cast itself is tried.
"""

from __future__ import annotations

import unicodedata
from zoneinfo import available_timezones

import pyarrow as pa

from panes.expressions import types as t
from panes.expressions.clock import HINT, REASON, reads_clock
from panes.expressions.typed import Typed, bound, failure, over, refuse, widened


def cast(value: Typed, to: pa.DataType, *, is_try: bool = False) -> Typed:
    """A value cast as Spark's ANSI mode does: exactly, or with an error (`is_try`: NULL)."""
    kind = value.type
    if kind == to:
        return value
    if to in _MOMENTS and isinstance(value.constant, str) and reads_clock(value.constant):
        raise refuse(f"`'{value.constant}'` as a moment {REASON}", hint=HINT)
    if kind == t.VOID:
        return Typed(f"CAST({value.text} AS {t.duckdb_name(to)})", to)
    if _cast("v", kind, to, "NULL") is None:
        raise refuse(f"a cast from {t.spark_name(kind)} to {t.spark_name(to)} is not translated")
    if is_try and (kind, to) in _UNTRIED:
        raise refuse(f"to try a cast from {t.spark_name(kind)} to {t.spark_name(to)} is not "
                     "translated", hint="CAST is")  # fmt: skip
    if is_try and (t.is_array(kind) or _is_vast(to) or _is_fine(to)):
        raise refuse(f"to try a cast to {t.spark_name(to)} is not translated", hint="CAST is")
    if is_try and not (t.is_float(kind) and to == t.STRING):  # which has an answer for all values
        # no text fails to be a double, and TRY takes nothing that may say what is not translated
        wrap = "{}" if kind == t.STRING and t.is_float(to) else "TRY({})"

        def tried(x: str) -> str:
            return _unless_unread(x, kind, to, wrap.format(_cast(x, kind, to, "NULL")))

        return Typed(over(value.text, tried), to)
    error = failure(f"a value of type {t.spark_name(kind)} cannot be cast to {t.spark_name(to)}")

    def body(x: str) -> str:
        return _unless_unread(x, kind, to, str(_cast(x, kind, to, error)))

    return Typed(bound(value.text, body), to)


_MOMENTS = (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)
_UNTRIED = {(t.BINARY, t.STRING), (t.BIGINT, t.TIMESTAMP), (t.TIMESTAMP, t.FLOAT)}


def _is_vast(to: pa.DataType) -> bool:
    """True if a decimal holds doubles whose digits Java may write differently."""
    return t.is_decimal(to) and to.precision - to.scale > _CERTAIN_DIGITS


def _is_fine(to: pa.DataType) -> bool:
    """True if a decimal has places in which Java may write other digits of a tiny double."""
    return t.is_decimal(to) and to.scale > _CERTAIN_SCALE


_CERTAIN_DIGITS = 16
_CERTAIN_SCALE = 18
"""Below 0.001 Java may write a 17th digit that others do not, behind so many places."""


def _cast(x: str, kind: pa.DataType, to: pa.DataType, otherwise: str) -> str | None:
    """DuckDB's text for a cast; None: there is none."""
    plain = f"CAST({x} AS {t.duckdb_name(to)})"
    if kind == t.STRING:
        return _from_text(x, to, otherwise)
    if t.is_integer(kind) and (t.is_number(to) or to == t.STRING):
        return plain
    if t.is_number(kind) and to == t.BOOLEAN:
        return f"({x} <> 0)"
    if kind == t.BOOLEAN and (t.is_number(to) or to == t.STRING):
        return plain
    if kind == t.BIGINT and to == t.TIMESTAMP:
        return (f"CASE WHEN {x} NOT BETWEEN {-_MOST_SECONDS} AND {_MOST_SECONDS} THEN {_FAR} "
                f"ELSE make_timestamptz({x} * 1000000) END")  # fmt: skip
    if t.is_integer(kind) and to == t.TIMESTAMP:
        return f"make_timestamptz(CAST({x} AS BIGINT) * 1000000)"
    if t.is_decimal(kind):
        return _from_decimal(x, kind, to)
    if t.is_float(kind) and t.is_float(to):
        return plain if to == t.DOUBLE else _shortened(x)
    if t.is_float(kind):
        return _from_float(x, kind, to, otherwise)
    if kind == t.BINARY and to == t.STRING:
        return f"CASE WHEN {x} IS NOT NULL THEN coalesce(TRY(decode({x})), {_NO_TEXT}) END"
    if t.is_array(kind) and t.is_array(to):
        return _each(x, kind.value_type, to.value_type, otherwise)
    return _from_moment(x, kind, to)


_FAR = failure("a moment so far away is not translated")
_MOST_SECONDS = 9_000_000_000_000
_NO_TEXT = failure("a cast of bytes that are no text is not translated")


def _each(x: str, kind: pa.DataType, to: pa.DataType, otherwise: str) -> str | None:
    """An array, element by element."""
    depth, inner = 0, kind
    while t.is_array(inner):
        depth, inner = depth + 1, inner.value_type
    name = f"k{depth}"
    element = name if kind == to else _cast(name, kind, to, otherwise)
    return None if element is None else f"list_transform({x}, lambda {name}: {element})"


def _from_float(x: str, kind: pa.DataType, to: pa.DataType, otherwise: str) -> str | None:
    if t.is_integer(to):
        return f"CAST(trunc({x}) AS {t.duckdb_name(to)})"
    if to == t.STRING and kind == t.DOUBLE:
        return written_double(x)
    if t.is_decimal(to):
        return _by_digits(f"CAST({x} AS DOUBLE)", to, otherwise)
    if to == t.TIMESTAMP:
        return (f"CASE WHEN isnan({x}) OR isinf({x}) THEN {otherwise} ELSE make_timestamptz("
                f"CAST(trunc(CAST({x} AS DOUBLE) * 1000000) AS BIGINT)) END")  # fmt: skip
    return None


def _by_digits(x: str, to: pa.DataType, otherwise: str) -> str:
    """A double as a decimal, by the digits that it is written with; what has none is NULL."""
    name = t.duckdb_name(to)
    digits = f"CAST(CAST({x} AS VARCHAR) AS {name})"
    far = otherwise  # since of a text with an exponent DuckDB counts a digit too few
    if _is_vast(to):
        far = failure("a cast of a double from 1e16 on is not translated")
    digits = f"CASE WHEN abs({x}) >= 1e16 THEN {far}::{name} ELSE {digits} END"
    if _is_fine(to):
        tiny = failure("a cast of a double below 0.001 to so many digits is not translated")
        digits = (f"CASE WHEN {x} <> 0 AND abs({x}) < 0.001 THEN {tiny}::{name} "
                  f"ELSE {digits} END")  # fmt: skip
    return f"CASE WHEN isnan({x}) OR isinf({x}) THEN NULL ELSE {digits} END"


def written_double(x: str) -> str:
    """A double as Java writes it, which differs from others' digits where it is vast or tiny."""
    far = failure("to write a double below 0.001 or from 1e15 on is not translated")
    plain = f"CAST({x} AS VARCHAR)"
    digits = f"rtrim(replace(CAST(abs({x}) AS VARCHAR), '.', ''), '0')"
    power = f"strpos(CAST(abs({x}) AS VARCHAR), '.') - 2"
    fraction = f"CASE WHEN length({digits}) > 1 THEN substr({digits}, 2) ELSE '0' END"
    sign = f"CASE WHEN {x} < 0 THEN '-' ELSE '' END"
    large = f"{sign} || left({digits}, 1) || '.' || {fraction} || 'E' || ({power})"
    return (f"CASE WHEN isnan({x}) THEN 'NaN' WHEN isinf({x}) THEN {sign} || 'Infinity' "
            f"WHEN {x} = 0 OR abs({x}) >= 0.001 AND abs({x}) < 1e7 THEN {plain} "
            f"WHEN abs({x}) >= 1e7 AND abs({x}) < 1e15 THEN {large} "
            f"WHEN {x} IS NOT NULL THEN {far} END")  # fmt: skip


def _shortened(x: str) -> str:
    """A double as a float; what is too large is infinite."""
    endless = f"CASE WHEN {x} > 0 THEN 'inf'::FLOAT ELSE '-inf'::FLOAT END"
    is_large = f"abs({x}) >= {_TOO_LARGE}::DOUBLE AND NOT isnan({x})"
    return f"CASE WHEN {is_large} THEN {endless} ELSE CAST({x} AS FLOAT) END"


_TOO_LARGE = "3.4028235677973366e38"
"""Halfway between the largest float and the next that there would be."""


def _from_decimal(x: str, kind: pa.DataType, to: pa.DataType) -> str | None:
    plain = f"CAST({x} AS {t.duckdb_name(to)})"
    if t.is_float(to):
        return widened(Typed(x, kind), to).text
    if t.is_integer(to):  # Spark cuts what is behind the point
        return f"CAST(trunc({x}) AS {t.duckdb_name(to)})"
    if to == t.TIMESTAMP and kind.precision <= 18:
        return f"make_timestamptz(CAST(trunc(CAST({x} AS DECIMAL(18, {kind.scale})) * " \
               f"CAST(1000000 AS DECIMAL(7, 0))) AS BIGINT))"  # fmt: skip
    return plain if t.is_decimal(to) or to == t.STRING else None


def _from_moment(x: str, kind: pa.DataType, to: pa.DataType) -> str | None:
    if kind == t.DATE and to == t.STRING:
        return f"CAST({x} AS VARCHAR)"
    if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ) and to == t.STRING:
        return f"CAST(CAST({x} AS TIMESTAMP) AS VARCHAR)"
    if kind == t.TIMESTAMP and t.is_integer(to):  # whole seconds, rounded down before 1970 as well
        return (
            f"CAST(floor(CAST(epoch_us({x}) AS DECIMAL(19, 0)) * 0.000001) AS {t.duckdb_name(to)})"
        )
    seconds = f"(CAST(epoch_us({x}) AS DOUBLE) / 1000000)"
    if kind == t.TIMESTAMP and to == t.DOUBLE:
        return seconds
    if kind == t.TIMESTAMP and to == t.FLOAT:
        return _shortened(seconds)
    if kind == t.TIMESTAMP and t.is_decimal(to):
        exact = f"CAST(epoch_us({x}) AS DECIMAL(19, 0)) * CAST(0.000001 AS DECIMAL(7, 6))"
        return f"CAST({exact} AS {t.duckdb_name(to)})"
    if kind == t.DATE and to in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return f"CAST(CAST({x} AS TIMESTAMP) AS {t.duckdb_name(to)})"
    if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ) and to in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return f"CAST({x} AS {t.duckdb_name(to)})"
    return None


_BLANKS = "E'" + "".join(f"\\x{code:02x}" for code in (*range(1, 33), 127)) + "'"
_WHOLE = r"'[+-]?[0-9]+'"
_PLAIN_FRACTION = r"'[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)'"
_FRACTION = r"'[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?'"
_OTHER_DIGITS = "".join(c for c in map(chr, range(128, 1 << 16)) if c.isdecimal())
"""Digits of other scripts, of which Java makes decimals, but no other numbers."""
_OF_SIXTEEN = "'[+-]?0x[0-9a-f.]+p[+-]?[0-9]+'"
_SIXTEEN = failure("to read digits of base sixteen as a double is not translated")
_DATE = r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
_DATE_TEXT = f"'(?s)^{_DATE}(?:[ T].*)?)?)?$'"
_HOUR, _SIXTY = "[01]?[0-9]|2[0-3]", "[0-5]?[0-9]"
_ZONE = r" *(Z|UTC|[+-](?:0?[0-9]|1[0-7]):[0-5][0-9])"
_PLAIN_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_PLAIN = rf"'[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:[ T]{_PLAIN_CLOCK})?'"


_REGIONS = "|".join(sorted(name for name in available_timezones() if name.isalnum()))
_JAVA_ZONES = (
    "ACT|AET|AGT|ART|AST|BET|BST|CAT|CNT|CST|CTT|EAT|ECT|IET|IST|JST|MIT|NET|NST|PLT|PNT|PRT|PST|"
    "SST|VST|UT"
)
_NAMED_ZONE = rf"[A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+|(?:UTC|GMT|UT)[+-][0-9:]+|{_REGIONS}|{_JAVA_ZONES}"
_ODD_OFFSET = "[+-](?:[0-9]{1,2}|[0-9]{4}|[0-9]{2}:?[0-9]{2}:?[0-9]{2}|18:00|[0-9]{1,2}:[0-9])"
_ANY_ZONE = "Z|UTC|[+-][0-9:]+"
_DAY_AND_CLOCK = (
    rf"[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}[ T](?:{_HOUR}):(?:{_SIXTY}):(?:{_SIXTY})(?:\.[0-9]*)?"
)
_VAST_YEAR = r"(?:[+-][0-9]{4,7}|[0-9]{5,7})(?:-.*)?"
_UNREAD = failure("to read a text with such a zone or year as a moment is not translated")


def _unless_unread(x: str, kind: pa.DataType, to: pa.DataType, text: str) -> str:
    """A cast, or an error for text that Spark can read and that is not read here."""
    if kind != t.STRING or to not in _MOMENTS:
        return text
    zones = f"{_NAMED_ZONE}|{_ODD_OFFSET if to == t.TIMESTAMP else _ANY_ZONE}"
    zoned = "" if to == t.DATE else f"|{_DAY_AND_CLOCK} *(?:{zones})"
    is_unread = f"regexp_full_match(trim({x}, {_BLANKS}), '(?s)(?:{_VAST_YEAR}{zoned})')"
    return f"CASE WHEN {is_unread} THEN {_UNREAD}::{t.duckdb_name(to)} ELSE {text} END"


def _from_text(text: str, to: pa.DataType, otherwise: str) -> str | None:
    name, x = t.duckdb_name(to), f"trim({text}, {_BLANKS})"
    last = f"WHEN {text} IS NOT NULL THEN {otherwise} END"
    if t.is_integer(to):
        return f"CASE WHEN regexp_full_match({x}, {_WHOLE}) THEN CAST({x} AS {name}) {last}"
    if t.is_decimal(to):
        return (f"CASE WHEN regexp_full_match({x}, {_PLAIN_FRACTION}) THEN CAST({x} AS {name}) "
                f"WHEN regexp_full_match({x}, {_FRACTION}) THEN {_by_exponent(x, to)} "
                f"WHEN regexp_full_match({x}, {_of_all_scripts(_PLAIN_FRACTION)}) "
                f"THEN CAST({_latin(x)} AS {name}) "
                f"WHEN regexp_full_match({x}, {_of_all_scripts(_FRACTION)}) "
                f"THEN {_by_exponent(_latin(x), to)} {last}")  # fmt: skip
    if t.is_float(to):
        x = rf"regexp_replace(lower({x}), '([0-9.])[df]$', '\1')"
        return (
            f"CASE WHEN regexp_full_match({x}, {_FRACTION}) THEN CAST({x} AS {name}) "
            f"WHEN regexp_full_match({x}, {_OF_SIXTEEN}) THEN {_SIXTEEN} "
            f"WHEN {x} IN ('inf', '+inf', 'infinity', '+infinity') THEN CAST('inf' AS {name}) "
            f"WHEN {x} IN ('-inf', '-infinity') THEN CAST('-inf' AS {name}) "
            f"WHEN {x} = 'nan' THEN CAST('nan' AS {name}) {last}"
        )
    if to == t.DATE:
        return f"CASE WHEN regexp_full_match({x}, {_DATE_TEXT}) THEN {_day(x, _DATE_TEXT)} {last}"
    if to in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return _moment(x, to, last)
    if to == t.BOOLEAN:
        return (
            f"CASE WHEN lower({x}) IN ('t', 'true', 'y', 'yes', '1') THEN true "
            f"WHEN lower({x}) IN ('f', 'false', 'n', 'no', '0') THEN false {last}"
        )
    return f"encode({text})" if to == t.BINARY else None


def _of_all_scripts(pattern: str) -> str:
    return pattern.replace("[0-9]", r"\p{Nd}")


def _latin(x: str) -> str:
    """Text with the digits of other scripts as 0 to 9."""
    latin = "".join(str(unicodedata.decimal(c)) for c in _OTHER_DIGITS)
    return f"translate({x}, '{_OTHER_DIGITS}', '{latin}')"


def _by_exponent(x: str, to: pa.DataType) -> str:
    """A decimal from text with an exponent, whose digits DuckDB counts right if there is room."""
    if _is_fine(to):
        return failure("to read an exponent into a decimal of so many places is not translated")
    return f"CAST(CAST({x} AS DECIMAL(38, {to.scale})) AS {t.duckdb_name(to)})"


def _part(x: str, pattern: str, group: int, default: str = "0") -> str:
    found = f"nullif(regexp_extract({x}, {pattern}, {group}), '')"
    return f"CAST(coalesce({found}, '{default}') AS BIGINT)"


def _day(x: str, pattern: str) -> str:
    parts = ", ".join(_part(x, pattern, group, "1") for group in (1, 2, 3))
    return f"make_date({parts})"


def _moment(x: str, to: pa.DataType, last: str) -> str:
    """A moment from text: digits behind the sixth are cut, a zone is only for TIMESTAMP."""
    name = t.duckdb_name(to)
    zone = f"(?:{_ZONE})?" if to == t.TIMESTAMP else ""
    second = rf"(?::({_SIXTY})(?:\.([0-9]*))?{zone})?"
    pattern = f"'^{_DATE}(?:[ T]({_HOUR})(?::({_SIXTY}){second})?)?)?)?$'"
    micros = f"CAST(left(rpad(regexp_extract({x}, {pattern}, 7), 6, '0'), 6) AS BIGINT)"
    seconds = (
        f"{_part(x, pattern, 4)} * 3600 + {_part(x, pattern, 5)} * 60 + {_part(x, pattern, 6)}"
    )
    if zone:
        sign = f"CASE WHEN regexp_extract({x}, {pattern}, 8) LIKE '-%' THEN -60 ELSE 60 END"
        offset = r"'([+-])([0-9]{1,2}):([0-9]{2})$'"
        minutes = f"{_part(x, offset, 2)} * 60 + {_part(x, offset, 3)}"
        minutes = f"CASE WHEN regexp_matches({x}, ':.*[+-]') THEN {minutes} ELSE 0 END"
        seconds += f" - ({sign}) * ({minutes})"
    general = (
        f"CAST(CAST({_day(x, pattern)} AS TIMESTAMP) + "
        f"to_microseconds(({seconds}) * 1000000 + {micros}) AS {name})"
    )
    plain = f"CAST(CAST({x} AS TIMESTAMP) AS {name})"
    return (
        f"CASE WHEN regexp_full_match({x}, {_PLAIN}) THEN {plain} "
        f"WHEN regexp_full_match({x}, {pattern}) THEN {general} {last}"
    )
