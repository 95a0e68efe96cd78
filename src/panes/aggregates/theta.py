"""A theta sketch (Dasgupta 2016; Apache DataSketches): the least hashes of the values seen.

A sketch holds every hash below `bound`. Where more than its size would be held, the bound is the
first hash that is too many. So the sketch of a union follows from the values alone, in any order
and any grouping, and so does an intersection.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_LG, GREATEST_LG, DEFAULT_LG = 4, 26, 12
ALL = (1 << 63) - 1
"""The bound of a sketch that holds the hash of every value."""
Hashed = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Theta:
    """Different hashes, ascending and below the bound. An empty sketch has seen no value at all."""

    hashes: Hashed
    bound: int = ALL
    is_empty: bool = False


EMPTY = Theta(np.empty(0, np.uint64), is_empty=True)


def sketch_of(hashes: Hashed, bound: int, lg: int) -> Theta:
    """The sketch of size ``2 ** lg`` with these hashes, which differ, ascend and are not empty."""
    size = 1 << lg
    if len(hashes) <= size:
        return Theta(hashes, bound)
    return Theta(hashes[:size].copy(), int(hashes[size]))  # nothing is kept of the others


def united(one: Theta, other: Theta, lg: int) -> Theta:
    """The sketch of all values of both."""
    if one.is_empty or other.is_empty:
        only = other if one.is_empty else one
        return only if only.is_empty else sketch_of(only.hashes, only.bound, lg)
    bound = min(one.bound, other.bound)
    hashes = np.union1d(one.hashes, other.hashes)
    return sketch_of(hashes[: np.searchsorted(hashes, np.uint64(bound))], bound, lg)


def intersected(one: Theta, other: Theta) -> Theta:
    """The sketch of the values in both.

    Two sketches without a common hash are not yet empty, even if both hold all their hashes: a
    third one may have a lower bound. `settled` says it of an answer.
    """
    if one.is_empty or other.is_empty:
        return EMPTY
    common = np.intersect1d(one.hashes, other.hashes, assume_unique=True)
    return Theta(common, min(one.bound, other.bound))


def settled(sketch: Theta) -> Theta:
    """A sketch as it is answered: empty, if it holds all hashes and there are none."""
    return EMPTY if sketch.bound == ALL and not len(sketch.hashes) else sketch
