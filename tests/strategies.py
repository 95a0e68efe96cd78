"""What Hypothesis draws for all tests: rows of `tests.support.SCHEMA`, streams of them, splits."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from tests.support import SCHEMA

# Quarters are exact in binary and their products stay so: any order of addition agrees to the bit.
_floats = st.one_of(st.integers(-40, 40).map(lambda n: n / 4), st.just(math.nan))


_instants = st.integers(0, 10**6).map(
    lambda s: dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=s)
)


rows = st.fixed_dictionaries(
    {
        "at": st.integers(-40, 60),
        "k": st.sampled_from(["a", "b", None]),
        "b": st.sampled_from([True, False, None]),
        "i": st.one_of(st.integers(-9, 9), st.none()),
        "x": st.one_of(_floats, st.none()),
        "s": st.sampled_from(["p", "q", "r", "é", None]),
        "d": st.one_of(st.integers(-999, 999).map(lambda n: Decimal(n) / 100), st.none()),
        "t": st.one_of(_instants, st.none()),
    }
)


streams = st.lists(rows, max_size=40).map(lambda r: pa.Table.from_pylist(r, schema=SCHEMA))


WHERE = st.sampled_from(["", "WHERE i > -5", "WHERE b"])


def cuts_of(data: st.DataObject, table: pa.Table) -> list[tuple[int, int]]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=5)))
    return list(zip([0, *cuts], [*cuts, len(table)], strict=True))
