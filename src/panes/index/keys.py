"""Values as 64-bit keys, which is what indexes hold.

Numbers, times, booleans and decimals of up to 18 digits have keys that sort as they do. Text,
binary and longer decimals are numbered as they come; their order is worked out when it is asked
for. Values are equal as in GROUP BY: all NaN are one value, and -0.0 is 0.0. NULL is no value.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Real

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panes.arrays import order_keys
from panes.axis import parse_instant
from panes.errors import ColumnTypeError, OptionError
from panes.index.domain import Keys
from panes.index.text_numbers import TextNumbers

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
"""The smallest and the greatest key."""
_NAN_KEY = 0x7FF8000000000000
_DIGITS = 18
"""Decimals of so many digits fit a key."""


class ValueKeys(ABC):
    """The keys of one column's values."""

    def __init__(self, column: str, data_type: pa.DataType) -> None:
        self.column, self.type = column, data_type

    @abstractmethod
    def encode(self, array: pa.Array) -> Keys:
        """The key of each value; NULLs get an arbitrary one."""

    @abstractmethod
    def find(self, array: pa.Array) -> tuple[Keys, NDArray[np.bool_]]:
        """The key of each value of this type, and which of them could be in a window at all."""

    @abstractmethod
    def find_one(self, value: object) -> int | None:
        """The key of one value; None if no window can hold it."""

    @abstractmethod
    def decode(self, keys: Keys) -> pa.Array:
        """The values of keys."""

    @abstractmethod
    def rank(self, keys: Keys) -> Keys:
        """Keys that sort as their values do."""

    @abstractmethod
    def range(self, low: object, high: object) -> tuple[int, int]:
        """The least and the greatest rank of values in ``[low, high]``, either None if open.

        They may lie beyond all keys, where no value of the type is that small or great.
        """

    def convert(self, value: object) -> pa.Scalar | None:
        """A value as this type has it; None if the type cannot hold it."""
        if isinstance(value, pa.Scalar):
            value = value.as_py()
        if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
            value = value.item()
        if value is None:
            return None
        if pa.types.is_temporal(self.type):
            value = self._moment(value)
        self._require_kind(value)
        try:
            return pa.scalar(self._number(value), self.type)
        except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
            return None
        except (pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError):
            raise self._not_comparable(value) from None

    def _number(self, value: object) -> object:
        """A number in the words of the type, where Arrow would cut off a part or refuse it."""
        if pa.types.is_integer(self.type):
            return _whole(value)
        if pa.types.is_decimal(self.type) and isinstance(value, float):
            return Decimal(repr(value))
        if pa.types.is_floating(self.type) and isinstance(value, Decimal):
            return float(value)
        return value

    def _moment(self, value: object) -> object:
        if pa.types.is_timestamp(self.type) and isinstance(value, str | dt.date | np.datetime64):
            ticks = parse_instant(value)  # type: ignore[arg-type]
            return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=ticks)
        if pa.types.is_date(self.type) and isinstance(value, str):
            try:
                return dt.date.fromisoformat(value)
            except ValueError:
                raise self._not_comparable(value) from None
        return value

    def _require_kind(self, value: object) -> None:
        is_number = isinstance(value, Real | Decimal) and not isinstance(value, bool)
        is_text = isinstance(value, str)
        takes_numbers = (
            pa.types.is_integer(self.type)
            or pa.types.is_floating(self.type)
            or pa.types.is_decimal(self.type)
        )
        takes_text = pa.types.is_string(self.type) or pa.types.is_large_string(self.type)
        if takes_numbers != is_number or takes_text != is_text:
            raise self._not_comparable(value)

    def _not_comparable(self, value: object) -> ColumnTypeError:
        return ColumnTypeError(
            f"`{self.column}` is {self.type} and cannot be compared with {value!r}",
            hint="ask for a value of the column's own type",
        )


class OrderedKeys(ValueKeys):
    """Keys that sort as the values do."""

    def encode(self, array: pa.Array) -> Keys:
        if pa.types.is_decimal(self.type):
            return _unscaled(array)
        return order_keys.encode(array)

    def find(self, array: pa.Array) -> tuple[Keys, NDArray[np.bool_]]:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        return self.encode(array), valid

    def find_one(self, value: object) -> int | None:
        if type(value) is float and self.type == pa.float64():
            return _float_key(value)
        if type(value) is int and self.type == pa.int64():
            return value if LEAST <= value <= GREATEST else None
        scalar = self.convert(value)
        return None if scalar is None else int(self.encode(pa.array([scalar], self.type))[0])

    def decode(self, keys: Keys) -> pa.Array:
        if pa.types.is_decimal(self.type):
            return _scaled(keys, self.type)
        return order_keys.decode(keys, np.zeros(len(keys), dtype=np.bool_), self.type)

    def rank(self, keys: Keys) -> Keys:
        return keys

    def range(self, low: object, high: object) -> tuple[int, int]:
        least = LEAST if low is None else self._bound(low, math.ceil)
        greatest = GREATEST if high is None else self._bound(high, math.floor)
        return least, greatest

    def _bound(self, value: object, whole: Callable[[Fraction], int]) -> int:
        """The key of a bound, moved to the nearest value that the type has, or beyond all keys."""
        if isinstance(value, pa.Scalar):
            value = value.as_py()
        if isinstance(value, np.generic):
            value = value.item()
        if not (pa.types.is_integer(self.type) or pa.types.is_decimal(self.type)):
            key = self.find_one(value)
            if key is None:
                raise OptionError(f"`{self.column}` is {self.type}, which cannot hold {value!r}")
            return key
        self._require_kind(value)
        assert isinstance(value, int | float | Decimal)
        if math.isnan(value) or math.isinf(value):  # NaN is greater than all numbers
            return -_NOTHING if not math.isnan(value) and value < 0 else _NOTHING
        scale = self.type.scale if pa.types.is_decimal(self.type) else 0
        key = whole(Fraction(value) * Fraction(10) ** scale)
        return key - (1 << 63) if pa.types.is_uint64(self.type) else key


class NumberedKeys(ValueKeys):
    """Keys in the order in which values were first seen."""

    def __init__(self, column: str, data_type: pa.DataType) -> None:
        super().__init__(column, data_type)
        self.numbers = TextNumbers(data_type)
        self._known = -1
        self._sorted: pa.Array = pa.array([], data_type)
        self._ranks: Keys = np.zeros(0, dtype=np.int64)

    def encode(self, array: pa.Array) -> Keys:
        return self.numbers.encode(array)

    def find(self, array: pa.Array) -> tuple[Keys, NDArray[np.bool_]]:
        keys = self.numbers.find(array)
        return keys, keys >= 0

    def find_one(self, value: object) -> int | None:
        scalar = self.convert(value)
        if scalar is None:
            return None
        number = int(self.numbers.find(pa.array([scalar.as_py()], self.type))[0])
        return None if number < 0 else number

    def decode(self, keys: Keys) -> pa.Array:
        return self.numbers.take(keys)

    def rank(self, keys: Keys) -> Keys:
        self._sort()
        return self._ranks[keys]

    def range(self, low: object, high: object) -> tuple[int, int]:
        self._sort()
        least = 0 if low is None else self._place(low, after=False)
        greatest = len(self._sorted) if high is None else self._place(high, after=True)
        return least, greatest - 1

    def _sort(self) -> None:
        """Work the order out again if values have come since."""
        if self._known == self.numbers.version:
            return
        values = self.numbers.values()
        order = pc.sort_indices(values).to_numpy().astype(np.int64)
        self._ranks = np.empty(len(order), dtype=np.int64)
        self._ranks[order] = np.arange(len(order))
        self._sorted, self._known = values.take(pa.array(order)), self.numbers.version

    def _place(self, value: object, *, after: bool) -> int:
        """The number of values that are smaller than a value, or not greater."""
        scalar = self.convert(value)
        if scalar is None:
            raise OptionError(f"`{self.column}` is {self.type}, which cannot hold {value!r}")
        compare = pc.less_equal if after else pc.less
        return int(pc.sum(compare(self._sorted, scalar)).as_py() or 0)


def value_keys(column: str, data_type: pa.DataType) -> ValueKeys:
    """The keys for a column of this type."""
    is_short = pa.types.is_decimal128(data_type) and data_type.precision <= _DIGITS
    if order_keys.has_key(data_type) or is_short:
        return OrderedKeys(column, data_type)
    if (
        pa.types.is_string(data_type)
        or pa.types.is_large_string(data_type)
        or pa.types.is_binary(data_type)
        or pa.types.is_large_binary(data_type)
        or pa.types.is_fixed_size_binary(data_type)
        or pa.types.is_decimal(data_type)
    ):
        return NumberedKeys(column, data_type)
    raise ColumnTypeError(
        f"`{column}` is {data_type}, whose values have no order",
        hint="index a column of numbers, text, binary, times, booleans or decimals",
    )


def _float_key(value: float) -> int:
    if value != value:
        return _NAN_KEY
    if value == 0.0:
        return 0
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else bits ^ GREATEST


def _whole(value: object) -> object:
    """A whole number as an integer, whatever it was written as."""
    if isinstance(value, float | np.floating | Decimal) and value == value:
        return int(value) if not math.isinf(value) and value == int(value) else _NOTHING
    return value


_NOTHING = 1 << 200
"""An integer that no column can hold."""


def _unscaled(array: pa.Array) -> Keys:
    """The digits of short decimals as integers: the lower half of their 128 bits."""
    if not len(array):
        return np.zeros(0, dtype=np.int64)
    words = np.frombuffer(array.buffers()[1], dtype=np.int64)
    digits = words[2 * array.offset : 2 * (array.offset + len(array)) : 2].copy()
    if array.null_count:
        digits[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return digits


def _scaled(keys: Keys, data_type: pa.DataType) -> pa.Array:
    words = np.empty(2 * len(keys), dtype=np.int64)
    words[0::2], words[1::2] = keys, keys >> 63
    return pa.Array.from_buffers(data_type, len(keys), [None, pa.py_buffer(words)])
