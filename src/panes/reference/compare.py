"""Whether two tables of answers say the same, and where they first differ.

Everything is compared exactly but floats, which may differ by the rounding of a sum.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

RELATIVE = 1e-9


def difference(got: pa.Table, want: pa.Table) -> str | None:
    """The first difference in columns, types, rows or their order; None if there is none."""
    if got.schema != want.schema:
        return f"columns differ: {_fields(got)} instead of {_fields(want)}"
    if len(got) != len(want):
        return f"{len(got)} answers instead of {len(want)}"
    for name in want.column_names:
        mine, other = got.column(name).to_pylist(), want.column(name).to_pylist()
        for row, (a, b) in enumerate(zip(mine, other, strict=True)):
            if not same(a, b):
                at = {k: v[0] for k, v in want.slice(row, 1).to_pydict().items()}
                return f"`{name}` is {a!r} instead of {b!r} in {at}"
    return None


def same(a: Any, b: Any) -> bool:
    """Whether two values say the same.

    >>> same(0.1 + 0.2, 0.3), same(float("nan"), float("nan")), same(1, 2)
    (True, True, False)
    """
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=RELATIVE)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return bool(a == b)


def _fields(table: pa.Table) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in table.schema)
