"""What a question for rows looks up: values of one column, as its WHERE says.

``WHERE item = 7 AND price > 5`` looks up the rows whose item is 7; of these, the whole WHERE
decides. So whatever is looked up needs to hold all rows of the answer, and may hold more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
from sqlglot import exp

from panes.errors import PanesError
from panes.index.domain import Keys
from panes.index.keys import GREATEST, LEAST, ValueKeys, value_keys

_Number = int | Decimal | float
_Value = _Number | str


@dataclass(frozen=True, slots=True)
class LookUp:
    """Values of a column: some of them, or all from `low` to `high`."""

    column: str
    values: tuple[_Value, ...] = ()
    low: _Number | None = None
    high: _Number | None = None

    @property
    def is_range(self) -> bool:
        """Whether it asks for all values between two."""
        return self.low is not None

    def keys(self, keys: ValueKeys, present: Keys) -> Keys:
        """The keys that are looked up, each once; those of a range are among the `present` ones."""
        if not self.is_range:
            found = {keys.find_one(value) for value in self.values}
            return np.array(sorted(key for key in found if key is not None), dtype=np.int64)
        least, greatest = keys.range(self.low, self.high)
        inside = (present >= max(least, LEAST)) & (present <= min(greatest, GREATEST))
        return present[inside]


def look_up_of(where: exp.Expression | None, schema: pa.Schema) -> LookUp | None:
    """The first part of a WHERE that looks values of a column up; None if there is none."""
    for part in () if where is None else _parts(where):
        found = _read(part)
        if found is None or found.column not in schema.names:
            continue
        found = _as_compared(found, schema)
        if found is not None and _fits(found, schema):
            return found
    return None


def _parts(where: exp.Expression) -> Iterator[exp.Expression]:
    """What AND connects."""
    if isinstance(where, exp.And | exp.Paren):
        for part in (where.this, where.args.get("expression")):
            if part is not None:
                yield from _parts(part)
    else:
        yield where


def _read(part: exp.Expression) -> LookUp | None:
    column, rest = part.this, []
    if isinstance(part, exp.EQ):
        rest = [part.expression]
        if isinstance(rest[0], exp.Column):
            column, rest = rest[0], [part.this]
    elif isinstance(part, exp.In) and not part.args.get("query"):
        rest = part.expressions
    elif isinstance(part, exp.Between):
        rest = [part.args["low"], part.args["high"]]
    values = [_value(tree) for tree in rest]
    if not isinstance(column, exp.Column) or column.table or not values or None in values:
        return None
    known = tuple(value for value in values if value is not None)
    if not isinstance(part, exp.Between):
        return LookUp(column.name, known)
    low, high = known
    if isinstance(low, str) or isinstance(high, str):
        return None
    return LookUp(column.name, low=low, high=high)


def _value(tree: exp.Expression) -> _Value | None:
    if isinstance(tree, exp.Neg):
        value = _value(tree.this)
        return None if value is None or isinstance(value, str) else -value
    if not isinstance(tree, exp.Literal):
        return None
    if tree.is_string:
        return str(tree.this)
    try:
        number = Decimal(tree.this)
    except ArithmeticError:
        return None
    if abs(number.adjusted()) > _MOST_DIGITS:
        return None
    if "e" in tree.this.lower():
        return float(number)
    return int(number) if number == int(number) else number


def _as_compared(found: LookUp, schema: pa.Schema) -> LookUp | None:
    """Numbers as SQL compares them with the column, which is in doubles if either is a double.

    Several whole numbers, or decimals, are one double: a double is looked up among doubles alone.
    """
    if pa.types.is_float64(schema.field(found.column).type):
        values = tuple(v if isinstance(v, str) else float(v) for v in found.values)
        low, high = (None if v is None else float(v) for v in (found.low, found.high))
        return LookUp(found.column, values, low, high)
    asked = (*found.values, found.low, found.high)
    return None if any(isinstance(value, float) for value in asked) else found


def _fits(found: LookUp, schema: pa.Schema) -> bool:
    """Whether the column has values of that kind; SQL would convert others, which finds more.

    Short floats are compared as doubles, and are not indexed as such.
    """
    data_type = schema.field(found.column).type
    is_number = (
        pa.types.is_integer(data_type)
        or pa.types.is_float64(data_type)
        or (pa.types.is_decimal128(data_type) and data_type.precision <= _DIGITS)
    )
    is_text = pa.types.is_string(data_type) or pa.types.is_large_string(data_type)
    asked = found.values or (found.low, found.high)
    if not is_number and not is_text:
        return False
    if any(isinstance(value, str) != is_text for value in asked):
        return False
    try:
        found.keys(value_keys(found.column, data_type), np.zeros(0, dtype=np.int64))
    except PanesError:
        return False
    return True


_MOST_DIGITS = 40
"""Numbers beyond so many digits are left to SQL, which no column can hold."""
_DIGITS = 18
"""Decimals of so many digits have keys in the order of their values."""
