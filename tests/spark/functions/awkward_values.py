"""Rows of awkward values: the same in every run, and some that Hypothesis draws.

NULL, NaN, negative numbers, both ends of every type, empty text, Unicode, leap days and the hours
in which clocks change.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

ROWS = 48
DRAWN = 12
"""How many values of each type Hypothesis draws for a table."""
INF, NAN = float("inf"), float("nan")
_INTS = [0, 1, -1, 2, 7, 31, 100, -13, 2**31 - 1, -(2**31)]
_LONGS = [0, 1, -1, 5, -(2**63), 2**63 - 1, 10**12, 1_582_934_400_000_000]
_DOUBLES = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 3.0, 123456.789, 1e-7, 1e300, NAN, INF, -INF]
_TEXTS = ["", " ", "a", "Abc", "é", "日本", "👍x", " 12 ", "12", "-1.5", "1e3", "a,b,,c", "it's",
          "x\ty", "%_\\", "true", "2024-02-29", "2020-03-29 02:30:00", "aAbB1", "ss"]  # fmt: skip
_DAYS = [date(1970, 1, 1), date(2000, 2, 29), date(1999, 12, 31), date(2024, 2, 29),
         date(1900, 3, 1), date(1969, 12, 31), date(2020, 3, 29), date(2023, 1, 1)]  # fmt: skip
_MOMENTS = [datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999),
            datetime(2020, 3, 29, 1, 30), datetime(2024, 2, 29, 12, 34, 56, 789_012),
            datetime(2023, 10, 29, 0, 59, 59), datetime(1999, 12, 31, 23, 0)]  # fmt: skip
_INSTANTS = [m.replace(tzinfo=UTC) for m in _MOMENTS]
_PRICES = [Decimal(v) for v in ("0", "1.25", "-1.25", "99999999.99", "-0.5")]
_FINE = ("0", "1.5", "2.5", "-0.5", "0.49999999999999999999", "-1.00000000000000000001", "9" * 18)
_FINEST = (
    "0",
    "0.5",
    "-0.5",
    "0." + "9" * 38,
    "0." + "4" + "9" * 37,
    "0." + "0" * 37 + "1",
    "1e-30",
)
_COLUMNS: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "i": (pa.int32(), _INTS), "i2": (pa.int32(), _INTS), "small": (pa.int16(), [0, 1, -3, 300]),
    "b": (pa.int64(), _LONGS), "b2": (pa.int64(), _LONGS),
    "d": (pa.float64(), _DOUBLES), "d2": (pa.float64(), _DOUBLES),
    "f": (pa.float32(), [0.0, 0.5, -1.25, 0.1, NAN, INF, 16777216.0]),
    "m": (pa.decimal128(10, 2), _PRICES),
    "m2": (pa.decimal128(5, 3), [Decimal(v) for v in ("0", "1.255", "-0.125", "99.999")]),
    "s": (pa.string(), _TEXTS), "s2": (pa.string(), _TEXTS), "s3": (pa.string(), _TEXTS),
    "day": (pa.date32(), _DAYS), "day2": (pa.date32(), _DAYS),
    "ts": (pa.timestamp("us", "UTC"), _INSTANTS), "ts2": (pa.timestamp("us", "UTC"), _INSTANTS),
    "ntz": (pa.timestamp("us"), _MOMENTS),
    "yes": (pa.bool_(), [True, False]), "yes2": (pa.bool_(), [True, False]),
    "raw": (pa.binary(), [b"", b"\x00\xff", b"abc"]), "raw2": (pa.binary(), [b"", b"abc", b"b"]),
    "a": (pa.list_(pa.int32()), [[], [1], [1, None, 2], [3, 1, 2, 1]]),
    "a2": (pa.list_(pa.int32()), [[], [2], [None], [1, 2]]),
    "words": (pa.list_(pa.string()), [[], ["a"], ["b", None, ""], ["é", "a", "a"]]),
    "words2": (pa.list_(pa.string()), [[], ["a"], [None]]),
    "w": (pa.decimal128(38, 0), [Decimal(v) for v in ("0", "2", "-1", "9" * 38, "-" + "9" * 38)]),
    "w2": (pa.decimal128(38, 20), [Decimal(v) for v in _FINE]),
    "w3": (pa.decimal128(38, 38), [Decimal(v) for v in _FINEST]),
    "w4": (pa.decimal128(30, 12), [Decimal(v) for v in ("2", "1.55", "-0.5", "0.000000000001")]),
}  # fmt: skip
_FIRST, _LAST = datetime(1900, 1, 1), datetime(2100, 1, 1)
_ints = st.integers(-(2**31), 2**31 - 1)
_texts = st.text(max_size=6) | st.text("0123456789-: .eE+", max_size=12)


def _decimals(digits: int, places: int) -> st.SearchStrategy[Decimal]:
    """Decimals of any number of digits, halves and whole numbers among them."""
    most = 10**digits - 1
    halves = st.integers(-4, 4).map(lambda n: n * 10**places // 2).filter(lambda n: abs(n) <= most)
    return (st.integers(-most, most) | halves).map(
        lambda n: Decimal(n).scaleb(-places, Context(prec=digits))
    )


_VALUES: Mapping[pa.DataType, st.SearchStrategy[Any]] = {
    pa.decimal128(38, 0): _decimals(38, 0), pa.decimal128(38, 20): _decimals(38, 20),
    pa.decimal128(38, 38): _decimals(38, 38), pa.decimal128(30, 12): _decimals(30, 12),
    pa.int32(): _ints | st.integers(-99, 99), pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | _ints, pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32), pa.bool_(): st.booleans(), pa.string(): _texts,
    pa.decimal128(10, 2): st.decimals(-99999999, 99999999, places=2),
    pa.decimal128(5, 3): st.decimals(-99, 99, places=3), pa.binary(): st.binary(max_size=6),
    pa.date32(): st.dates(_FIRST.date(), _LAST.date()),
    pa.timestamp("us"): st.datetimes(_FIRST, _LAST),
    pa.timestamp("us", "UTC"): st.datetimes(_FIRST, _LAST, timezones=st.just(UTC)),
    pa.list_(pa.int32()): st.lists(st.none() | _ints, max_size=4),
    pa.list_(pa.string()): st.lists(st.none() | _texts, max_size=3),
}  # fmt: skip

Drawn = Mapping[pa.DataType, Sequence[Any]]
drawn: st.SearchStrategy[Drawn] = st.fixed_dictionaries(
    {kind: st.lists(values, min_size=DRAWN, max_size=DRAWN) for kind, values in _VALUES.items()}
)


def rows(more: Drawn | None = None) -> pa.Table:
    """Awkward values, the same in every run, one in eight of them NULL; then those that are drawn.

    Two columns of one type hold its drawn values in other orders.
    """
    choice = random.Random(17)
    columns: dict[str, pa.Array] = {}
    for at, (name, (kind, values)) in enumerate(_COLUMNS.items()):
        found = [None if choice.random() < 0.125 else choice.choice(values) for _ in range(ROWS)]
        found[: len(values)] = values
        choice.shuffle(found)
        if more is not None:
            turned = list(more[kind])
            found += turned[at % DRAWN :] + turned[: at % DRAWN]
        columns[name] = pa.array(found, kind)
    count = ROWS + (0 if more is None else DRAWN)
    return pa.table({"row": pa.array(range(count), pa.int32()), **columns})
