"""Spark's tuple sketches the obvious way: dictionaries from hashes to numbers, and their bytes.

As in `panes.reference.folds`, nothing is shared with `panes.aggregates`. Sums of doubles are those
of fractions. The bytes have the order that entries have in Spark's hash tables if they come in
ascending order of their hashes.
"""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from panes.reference.folds import Fold, Row, without_nulls
from panes.reference.sketch_folds import bytes_of, murmur

_ALL = (1 << 63) - 1
_MODES = ("sum", "min", "max", "alwaysone")
_NUMBER = {"double": "d", "integer": "i"}
Entry = tuple[Any, int]
"""A number, and the mode in which it was made."""
Sketch = tuple[dict[int, list[Entry]], int, bool]
"""The entries of each hash, the bound below which hashes are, and whether the sketch is empty."""


def tuple_sketch(
    rows: Sequence[Row], lg: float = 12, mode: str = "sum", *, kind: str = "double"
) -> bytes:
    """The least hashes of the keys, and what the numbers of each key come to."""
    how, found = _MODES.index(mode.lower()), defaultdict(list)
    for key, number in without_nulls(rows):
        if data := bytes_of(key):
            found[murmur(data)[0] >> 1].append(float(number) if kind == "double" else number)
    entries = {h: (folded(found[h], kind, how), how) for h in sorted(found)}
    size = 2 ** int(lg)
    lain = grown(grown(entries, size), size)
    return trimmed(lain, entries, _ALL, size, kind)


def tuple_union(
    rows: Sequence[Row], lg: float = 12, mode: str = "sum", *, kind: str = "double"
) -> bytes:
    """The least hashes of all sketches."""
    some = [s for s in (tuple_read(v[0], kind) for v in without_nulls(rows)) if not s[2]]
    bound = min((b for _, b, _ in some), default=_ALL)
    entries = _met([{h: e for h, e in s.items() if h < bound} for s, *_ in some], kind, mode)
    size = 2 ** int(lg)
    once = grown(entries, size)[:]
    if len(entries) > size:
        once = [h for h in once if h < sorted(entries)[size]]
    return trimmed(grown(once, size), entries, bound, size, kind)


def tuple_intersection(rows: Sequence[Row], mode: str = "sum", *, kind: str = "double") -> bytes:
    """The hashes that each sketch has."""
    found = [tuple_read(v[0], kind) for v in without_nulls(rows)]
    if not found or any(is_empty for *_, is_empty in found):
        return tuple_written([], {}, _ALL, kind, is_empty=True)
    bound = min(b for _, b, _ in found)
    common = set.intersection(*(set(s) for s, *_ in found))
    entries = _met([{h: s[h] for h in common} for s, *_ in found], kind, mode)
    table = 16
    while 3 * table < 4 * len(common):
        table *= 2
    return tuple_written(lain(lain(entries, table), table), entries, bound, kind)


def _met(sketches: Iterable[dict[int, list[Entry]]], kind: str, mode: str) -> dict[int, Entry]:
    """One entry for each hash, ascending: as it was, or folded where sketches share a hash."""
    how, found = _MODES.index(mode.lower()), defaultdict(list)
    for sketch in sketches:
        for one, entry in sketch.items():
            found[one].extend(entry)
    return {
        h: e[0] if len(e) == 1 else (folded([n for n, _ in e], kind, how), how)
        for h, e in sorted(found.items())
    }


def folded(numbers: Sequence[Any], kind: str, how: int) -> Any:
    """Several numbers as one."""
    if how == 3:
        return 1
    if kind == "integer":
        if how == 0:
            return (sum(numbers) + 2**31) % 2**32 - 2**31
        return min(numbers) if how == 1 else max(numbers)
    if how == 0:
        return total(numbers)
    known = [n for n in numbers if not math.isnan(n)]
    fold, nothing = (min, math.inf) if how == 1 else (max, -math.inf)
    return fold(known, key=lambda n: (n, math.copysign(1, n)), default=nothing)


def total(numbers: Sequence[float]) -> float:
    """The exact sum, rounded once; NaN as Java has it."""
    if any(math.isnan(n) and math.copysign(1, n) > 0 for n in numbers):
        return math.nan
    if not all(map(math.isfinite, numbers)):
        signs = {math.copysign(1, n) for n in numbers if math.isinf(n)}
        is_nan = len(signs) > 1 or any(map(math.isnan, numbers))
        return -math.nan if is_nan else math.copysign(math.inf, signs.pop())
    exact = sum(map(Fraction, numbers), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def grown(hashes: Iterable[int], size: int) -> list[int]:
    """Hashes as they lie in a table that grows eightfold, up to twice the size."""
    table = 2 * size
    while table > 32 and table // 8 >= 32:
        table //= 8
    found: list[int] = []
    bound = _ALL
    for one in hashes:
        if one >= bound:
            continue
        found.append(one)
        if table <= size and len(found) > table // 2:
            found = lain(found, table)
            table *= 8
        elif table > size and len(found) > table * 15 // 16:
            bound = sorted(found)[size]
            found = [h for h in lain(found, table) if h < bound]
    return lain(found, table)


def lain(hashes: Iterable[int], table: int) -> list[int]:
    """Hashes as they lie in a table of this size."""
    cells: dict[int, int] = {}
    for one in hashes:
        at = one % table
        while at in cells:
            at = (at + 2 * (one // table % 128) + 1) % table
        cells[at] = one
    return [cells[at] for at in sorted(cells)]


def trimmed(
    lain: Sequence[int], entries: dict[int, Entry], bound: int, size: int, kind: str
) -> bytes:
    """The bytes of at most so many of the entries."""
    if len(entries) > size:
        bound = sorted(entries)[size]
    few = [h for h in lain if h < bound]
    return tuple_written(few, entries, bound, kind, is_empty=not few and bound == _ALL)


def tuple_written(
    order: Sequence[int],
    entries: dict[int, Entry],
    bound: int,
    kind: str,
    *,
    is_empty: bool = False,
) -> bytes:
    longs = 1 if is_empty or (len(order) == 1 and bound == _ALL) else 2 if bound == _ALL else 3
    head = bytes([longs, 3, 9, 1, 0, 0x0E if is_empty else 0x0A, 0xCC, 0x93])
    if longs > 1:
        head += struct.pack("<ii", len(order), 0)
    if longs > 2:
        head += struct.pack("<q", bound)
    form = f"<Q{_NUMBER[kind]}B"
    return head + b"".join(struct.pack(form, h, *entries[h]) for h in order)


def tuple_read(data: bytes, kind: str) -> Sketch:
    longs = data[0]
    if data[5] & 4:
        return {}, _ALL, True
    bound = int.from_bytes(data[16:24], "little") if longs > 2 else _ALL
    found = struct.iter_unpack(f"<Q{_NUMBER[kind]}B", data[8 * longs :])
    return {one: [(number, mode)] for one, number, mode in found}, bound, False


TUPLE_FOLDS: dict[str, Fold] = {
    f"{name}_{kind}": partial(fold, kind=kind)
    for name, fold in (
        ("tuple_sketch_agg", tuple_sketch),
        ("tuple_union_agg", tuple_union),
        ("tuple_intersection_agg", tuple_intersection),
    )
    for kind in _NUMBER
}
