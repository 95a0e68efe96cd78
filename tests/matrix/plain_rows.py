"""What windows, joins and unions give, by loops over rows: a second opinion that shares nothing.

A row is a dict. Neither the language, nor the extents of windows, nor anything else of Panes is
used, so whatever the engine and the oracle have in common is proved here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Row = dict[str, Any]
Fold = Callable[[list[Row]], Row]
Rows = list[Row]


def ends_holding(at: int, size: int, slide: int) -> Iterable[int]:
    """The ends of the windows ``[end - size, end)`` that hold a position."""
    end = at - at % slide + slide
    while end - size <= at:
        yield end
        end += slide


def grouped(rows: Iterable[tuple[int, Row]], keys: tuple[str, ...]) -> dict[tuple[Any, ...], Rows]:
    """The rows of each window and key, windows and keys in their order, NULL first."""
    found: dict[tuple[Any, ...], Rows] = {}
    for end, row in rows:
        found.setdefault((end, *(row[k] for k in keys)), []).append(row)
    by = sorted(found, key=lambda g: [(v is not None, v) for v in g])
    return {group: found[group] for group in by}


def answer(size: int | None, end: int, keys: Row, folded: Row) -> Row:
    """An answer as a row: where its window begins, ends, and the last instant in it."""
    start = None if size is None else end - size
    named = {"window_start": start, "window_end": end, "window_time": end - 1}
    return {**named, **keys, **folded}


def sliding(
    rows: Rows, axis: str, size: int, slide: int, keys: tuple[str, ...], fold: Fold
) -> Rows:
    """``[RANGE size SLIDE slide WATTR axis]``, for each group of keys."""
    placed = [(end, r) for r in rows for end in ends_holding(r[axis], size, slide)]
    return [
        answer(size, group[0], dict(zip(keys, group[1:], strict=True)), fold(inside))
        for group, inside in grouped(placed, keys).items()
    ]


def landmark(rows: Rows, axis: str, slide: int, keys: tuple[str, ...], fold: Fold) -> Rows:
    """``[RANGE ALL SLIDE slide WATTR axis]``: from the first window with a row to the last one."""
    if not rows:
        return []
    at = [r[axis] for r in rows]
    first, last = (a - a % slide + slide for a in (min(at), max(at)))
    placed = [(end, r) for end in range(first, last + 1, slide) for r in rows if r[axis] < end]
    return [
        answer(None, group[0], dict(zip(keys, group[1:], strict=True)), fold(inside))
        for group, inside in grouped(placed, keys).items()
    ]


def per_row(rows: Rows, axis: str, size: int, passes: Callable[[Row], bool], fold: Fold) -> Rows:
    """``[RANGE size SLIDE 1 ROW RATTR axis]``: an answer for every row that passes."""
    some = [r for r in rows if passes(r)]
    return [
        {**row, **fold([r for r in some if row[axis] - size < r[axis] <= row[axis]])}
        for row in some
    ]


def counted(
    rows: Rows,
    size: int,
    slide: int,
    passes: Callable[[Row], bool],
    keys: tuple[str, ...],
    fold: Fold,
) -> Rows:
    """``[RANGE size ROWS SLIDE slide ROWS]``: positions are numbers of rows as they come."""
    found = []
    for end in range(slide, len(rows) + 1, slide):
        inside = [(end, r) for r in rows[max(0, end - size) : end] if passes(r)]
        for group, some in grouped(inside, keys).items():
            found.append(answer(size, end, dict(zip(keys, group[1:], strict=True)), fold(some)))
    return found


def joined(
    left: Rows, right: Rows, how: str, on: Callable[[Row, Row], bool]
) -> list[tuple[Row, Row | None]]:
    """Pairs; with LEFT also the rows on the left that have no partner."""
    found: list[tuple[Row, Row | None]] = []
    for one in left:
        partners = [other for other in right if on(one, other)]
        if how in ("SEMI JOIN", "ANTI JOIN"):
            found += [(one, None)] if bool(partners) == (how == "SEMI JOIN") else []
        else:
            found += [(one, other) for other in partners]
            found += [(one, None)] if not partners and how == "LEFT JOIN" else []
    return found
