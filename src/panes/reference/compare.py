"""Whether two tables of answers say the same, and where they differ.

Everything is compared exactly but floats, which may differ by the rounding of a sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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


def differing_rows(got: pa.Table, want: pa.Table, keys: Sequence[str]) -> Iterator[str]:
    """Each answer that is missing, too many or another one, told by the columns in `keys`.

    >>> want = pa.table({"end": [10, 20], "n": [1, 2]})
    >>> for line in differing_rows(pa.table({"end": [10, 30], "n": [5, 1]}), want, ["end"]):
    ...     print(line)
    end=10: n is 5 instead of 1
    end=20, n=2 is missing
    end=30, n=1 is too many
    """
    wanted, given = _by_key(want, keys), _by_key(got, keys)
    for key in dict.fromkeys([*wanted, *given]):
        missing, extra = list(wanted.get(key, ())), []
        for row in given.get(key, ()):
            found = next((i for i, other in enumerate(missing) if same(row, other)), None)
            if found is None:
                extra.append(row)
            else:
                missing.pop(found)
        for a, b in zip(extra, missing, strict=False):
            says = (f"{n} is {a[n]!r} instead of {b[n]!r}" for n in b if not same(a.get(n), b[n]))
            yield f"{_told({n: b[n] for n in keys})}: {', '.join(says)}"
        common = min(len(extra), len(missing))
        yield from (f"{_told(row)} is missing" for row in missing[common:])
        yield from (f"{_told(row)} is too many" for row in extra[common:])


def _by_key(table: pa.Table, keys: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        found.setdefault(repr([row.get(name) for name in keys]), []).append(row)
    return found


def _told(row: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{n}={v.isoformat(' ') if hasattr(v, 'isoformat') else repr(v)}" for n, v in row.items()
    )


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
