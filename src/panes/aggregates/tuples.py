"""A tuple sketch (Apache DataSketches): a theta sketch whose hashes have a number each.

Like a theta sketch it is a function of the rows alone, in any order and any grouping: hashes that
ascend, below a bound, and numbers that are folded without a trace of their order. It holds more
hashes than its size, so that the order of its bytes is known (`panes.aggregates.tuple_tables`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from panes.aggregates.exact_sums import Index
from panes.aggregates.theta import ALL, Hashed
from panes.aggregates.tuple_summaries import Folding, Summaries


@dataclass(frozen=True, slots=True, eq=False)
class Tuples:
    """Different hashes, ascending and below the bound, and their numbers."""

    hashes: Hashed
    summaries: Summaries
    bound: int = ALL
    is_empty: bool = False


def empty(folding: Folding) -> Tuples:
    """The sketch that has seen no key at all."""
    nothing = folding.of(np.empty(0), np.empty(0, np.uint8))
    return Tuples(np.empty(0, np.uint64), nothing, is_empty=True)


def of_keys(hashes: Hashed, summaries: Summaries, most: int) -> Tuples:
    """The sketch of rows whose hashes ascend; the numbers of one key are folded."""
    different, begin = np.unique(hashes, return_index=True)
    if len(different) > most:
        end = int(begin[most])
        few = summaries.take(np.arange(end)).folded(begin[:most], even_one=True)
        return Tuples(different[:most].copy(), few, int(different[most]))
    return Tuples(different, summaries.folded(begin, even_one=True))


def cut(sketch: Tuples, most: int) -> Tuples:
    """The sketch with so many of its least hashes."""
    if len(sketch.hashes) <= most:
        return sketch
    return _below(sketch.hashes, sketch.summaries, int(sketch.hashes[most]))


def united(one: Tuples, other: Tuples, most: int) -> Tuples:
    """The sketch of all keys of both, that holds so many."""
    if one.is_empty or other.is_empty:
        return cut(other if one.is_empty else one, most)
    hashes, begin, summaries = _together(one, other)
    folded = summaries.folded(begin, even_one=False)
    return cut(_below(hashes, folded, min(one.bound, other.bound)), most)


def intersected(one: Tuples, other: Tuples) -> Tuples:
    """The sketch of the keys in both. A sketch that has seen no key leaves none."""
    if one.is_empty or other.is_empty:
        return one if one.is_empty else other
    hashes, begin, summaries = _together(one, other)
    folded = summaries.folded(begin, even_one=False)
    common = np.flatnonzero(np.diff(np.append(begin, len(one.hashes) + len(other.hashes))) > 1)
    return _below(hashes[common], folded.take(common), min(one.bound, other.bound))


def _together(one: Tuples, other: Tuples) -> tuple[Hashed, Index, Summaries]:
    """All hashes, where the runs of each begin, and the numbers in the order of hashes."""
    hashes = np.concatenate([one.hashes, other.hashes])
    order = np.argsort(hashes, kind="stable")
    different, begin = np.unique(hashes[order], return_index=True)
    return different, begin, one.summaries.joined(other.summaries).take(order)


def _below(hashes: Hashed, summaries: Summaries, bound: int) -> Tuples:
    end = int(np.searchsorted(hashes, np.uint64(bound)))
    return Tuples(hashes[:end].copy(), summaries.take(np.arange(end)), bound)
