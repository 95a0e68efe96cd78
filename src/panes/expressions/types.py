"""Types as Spark has them: their names, their Arrow form, and what DuckDB calls them.

Types are Arrow's. `as_spark` says which of Spark's types a column has; where that is another than
its own, it is cast. Coercion follows Spark's ANSI mode: numbers widen, NULL is of any type, and
text becomes a number, date or time only where a function says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

import pyarrow as pa

UTC = "UTC"
BOOLEAN, STRING, BINARY = pa.bool_(), pa.string(), pa.binary()
TINYINT, SMALLINT, INT, BIGINT = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
DATE, TIMESTAMP, TIMESTAMP_NTZ = pa.date32(), pa.timestamp("us", UTC), pa.timestamp("us")
VOID = pa.null()
DAYS = pa.duration("us")
MONTHS = pa.month_day_nano_interval()
TIME = pa.time64("us")

NAMES: dict[str, pa.DataType] = {
    "boolean": BOOLEAN, "tinyint": TINYINT, "byte": TINYINT, "smallint": SMALLINT,
    "short": SMALLINT, "int": INT, "integer": INT, "bigint": BIGINT, "long": BIGINT,
    "float": FLOAT, "real": FLOAT, "double": DOUBLE, "string": STRING, "binary": BINARY,
    "date": DATE, "timestamp": TIMESTAMP, "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ, "void": VOID,
}  # fmt: skip
INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)
_DUCKDB = {
    BOOLEAN: "BOOLEAN", TINYINT: "TINYINT", SMALLINT: "SMALLINT", INT: "INTEGER", BIGINT: "BIGINT",
    FLOAT: "FLOAT", DOUBLE: "DOUBLE", STRING: "VARCHAR", BINARY: "BLOB", DATE: "DATE",
    TIMESTAMP: "TIMESTAMPTZ", TIMESTAMP_NTZ: "TIMESTAMP", VOID: "INTEGER",
}  # fmt: skip
_SPARK = {
    BOOLEAN: "boolean", TINYINT: "tinyint", SMALLINT: "smallint", INT: "int", BIGINT: "bigint",
    FLOAT: "float", DOUBLE: "double", STRING: "string", BINARY: "binary", DATE: "date",
    TIMESTAMP: "timestamp", TIMESTAMP_NTZ: "timestamp_ntz", VOID: "void",
}  # fmt: skip
# What is only on the way to an answer: DuckDB has it as a number of microseconds or of months.
_PASSING = {DAYS: "BIGINT", MONTHS: "INTEGER", TIME: "BIGINT"}
_PASSING_NAMES = {DAYS: "interval day to second", MONTHS: "interval year to month", TIME: "time(6)"}
_MOST_DIGITS = 38
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_UNSIGNED = {
    pa.uint8(): SMALLINT, pa.uint16(): INT, pa.uint32(): BIGINT, pa.uint64(): pa.decimal128(20, 0),
}  # fmt: skip


def as_spark(kind: pa.DataType) -> pa.DataType | None:
    """The type that Spark has for an Arrow type; None: it has none."""
    if kind in _DUCKDB or is_decimal(kind):
        return kind
    if kind in _UNSIGNED:
        return _UNSIGNED[kind]
    if pa.types.is_dictionary(kind):
        return as_spark(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return STRING
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return BINARY
    if pa.types.is_float16(kind):
        return FLOAT
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.tz else TIMESTAMP_NTZ
    if pa.types.is_date(kind):
        return DATE
    if pa.types.is_map(kind):
        inner = [as_spark(kind.key_type), as_spark(kind.item_type)]
        return None if None in inner else pa.map_(*inner)
    if pa.types.is_struct(kind):
        fields = [(f.name, as_spark(f.type)) for f in kind]
        return None if any(t is None for _, t in fields) else pa.struct(fields)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = as_spark(kind.value_type)
        return None if element is None else pa.list_(element)
    return None


def duckdb_name(kind: pa.DataType) -> str:
    """DuckDB's name of a type."""
    if is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if is_array(kind):
        return f"{duckdb_name(kind.value_type)}[]"
    if is_map(kind):
        return f"MAP({duckdb_name(kind.key_type)}, {duckdb_name(kind.item_type)})"
    if is_struct(kind):
        fields = ", ".join(f"{quoted(f.name)} {duckdb_name(f.type)}" for f in kind)
        return f"STRUCT({fields})"
    return _PASSING.get(kind) or _DUCKDB[kind]


def spark_name(kind: pa.DataType) -> str:
    """Spark's name of a type, in its short form."""
    if is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if is_array(kind):
        return f"array<{spark_name(kind.value_type)}>"
    if is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    if is_struct(kind):
        return "struct<" + ",".join(f"{f.name}:{spark_name(f.type)}" for f in kind) + ">"
    return _SPARK.get(kind) or _PASSING_NAMES.get(kind) or str(kind)


def is_passing(kind: pa.DataType) -> bool:
    """True if a type is only on the way to an answer: an interval or a time of day."""
    if is_array(kind):
        return is_passing(kind.value_type)
    if is_map(kind):
        return is_passing(kind.key_type) or is_passing(kind.item_type)
    if is_struct(kind):
        return any(is_passing(field.type) for field in kind)
    return kind in _PASSING


def quoted(name: str) -> str:
    """A name as DuckDB takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """Text as DuckDB takes it, whatever is in it."""
    if "\0" in value:
        parts = [f"'{part}'" for part in value.replace("'", "''").split("\0")]
        return "(" + " || chr(0) || ".join(parts) + ")"
    return "'" + value.replace("'", "''") + "'"


def is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(kind))


def is_integer(kind: pa.DataType) -> bool:
    return kind in INTEGERS


def is_float(kind: pa.DataType) -> bool:
    return kind in (FLOAT, DOUBLE)


def is_number(kind: pa.DataType) -> bool:
    return is_integer(kind) or is_float(kind) or is_decimal(kind)


def is_array(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind))


def is_map(kind: pa.DataType) -> bool:
    return bool(pa.types.is_map(kind))


def is_struct(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind))


def is_nested(kind: pa.DataType) -> bool:
    return is_array(kind) or is_map(kind) or is_struct(kind)


def has_floats(kind: pa.DataType) -> bool:
    """True if values of a type are floats or doubles, or hold some."""
    parts = (kind.field(n).type for n in range(kind.num_fields))
    return is_float(kind) or any(map(has_floats, parts))


def read_as(kind: pa.DataType) -> pa.DataType:
    """The type that text is read as beside a value of another, which is brought there too."""
    return BIGINT if is_integer(kind) else DOUBLE if is_number(kind) else kind


def decimal_of(kind: pa.DataType) -> pa.DataType:
    """The decimal that holds every value of an integer type, or a decimal itself."""
    return pa.decimal128(_DIGITS[kind], 0) if kind in _DIGITS else kind


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """A decimal of at most 38 digits; digits behind the point give way, six of them last."""
    if precision <= _MOST_DIGITS:
        return pa.decimal128(max(precision, 1), scale)
    whole = precision - scale
    return pa.decimal128(_MOST_DIGITS, max(_MOST_DIGITS - whole, min(scale, 6)))


def wider(one: pa.DataType, other: pa.DataType, *, is_tight: bool = False) -> pa.DataType | None:
    """The type that values of both are compared or joined in; None: there is none."""
    within = partial(wider, is_tight=is_tight)
    if one == other or other == VOID:
        return one
    if one == VOID:
        return other
    if is_number(one) and is_number(other):
        found = _wider_number(one, other)
        has_decimal = is_decimal(one) or is_decimal(other)
        fits = (
            is_decimal(found) and found in (one, other) and (is_integer(one) or is_integer(other))
        )
        return None if is_tight and has_decimal and not fits else found
    moments = (DATE, TIMESTAMP_NTZ, TIMESTAMP)
    if one in moments and other in moments:
        return max(one, other, key=moments.index)
    if is_array(one) and is_array(other):
        element = within(one.value_type, other.value_type)
        return None if element is None else pa.list_(element)
    if is_map(one) and is_map(other):
        inner = [within(one.key_type, other.key_type), within(one.item_type, other.item_type)]
        return None if None in inner else pa.map_(*inner)
    if is_struct(one) and is_struct(other) and [f.name for f in one] == [f.name for f in other]:
        fields = [(a.name, within(a.type, b.type)) for a, b in zip(one, other, strict=True)]
        return None if any(kind is None for _, kind in fields) else pa.struct(fields)
    return None


def tightest(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """As `wider`, where Spark brings no decimal into another: elements of arrays, keys of maps."""
    return wider(one, other, is_tight=True)


def widest(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    """The type that values of all are brought to; None: there is none."""
    found: pa.DataType | None = VOID
    for kind in kinds:
        found = None if found is None else wider(found, kind)
    return found


def _wider_number(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if is_integer(one) and is_integer(other):
        return max(one, other, key=INTEGERS.index)
    if is_float(one) or is_float(other):
        return DOUBLE  # also of a float and a whole number, which a float may not hold
    a, b = decimal_of(one), decimal_of(other)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    scale = min(max(a.scale, b.scale), _MOST_DIGITS - whole)  # digits behind the point give way
    return pa.decimal128(whole + scale, scale)


def parse_type(text: str) -> pa.DataType | None:
    """A type by Spark's name; None: there is no such type here.

    >>> parse_type("array<decimal(5,2)>")
    ListType(list<item: decimal128(5, 2)>)
    """
    text = text.strip().lower()
    if text in NAMES:
        return NAMES[text]
    if decimal := re.fullmatch(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,\s*(\d+))?\))?", text):
        precision, scale = int(decimal[1] or 10), int(decimal[2] or 0)
        return pa.decimal128(precision, scale) if scale <= precision <= 38 else None
    if text.startswith("map<") and text.endswith(">") and text.count("<") == 1:
        inner = [parse_type(part) for part in text[4:-1].split(",", 1)]
        return None if len(inner) != 2 or None in inner else pa.map_(*inner)
    if text.startswith("array<") and text.endswith(">"):
        element = parse_type(text[6:-1])
        return None if element is None else pa.list_(element)
    return None
