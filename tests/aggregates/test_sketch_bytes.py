"""Sketches that come as bytes: any order unites them alike, and no bytes break anything.

Catches: a union or intersection that depends on order or grouping, also over sketches of different
sizes; a reader that trusts a length, and one that reads something else than was written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.aggregates import hll, hll_bytes, theta, theta_bytes, tuple_bytes, tuples
from panes.aggregates.aggregate import Argument, Piece, Rows, Selection
from panes.aggregates.hll_sketches import HllPiece
from panes.aggregates.theta_sketches import ThetaPiece
from panes.aggregates.tuple_sketches import TuplePiece
from panes.aggregates.tuple_summaries import Folding, SummaryMode
from panes.errors import PanesError


def coupons(seed: int, count: int) -> hll.Coupons:
    first, second = np.random.default_rng(seed).integers(0, 2**64, (2, count), np.uint64)
    return np.unique(hll.coupons_of(first, second))


def hashes(seed: int, count: int) -> theta.Hashed:
    return np.unique(np.random.default_rng(seed).integers(1, theta.ALL, count, np.uint64))


_counts = st.sampled_from([0, 1, 2, 7, 8, 23, 25, 200])
_seeds = st.integers(0, 3)
hll_sketches = st.builds(
    lambda lg, seed, count: hll_bytes.written(hll.sketch_of(lg, coupons(seed, count))),
    st.sampled_from([4, 8, 9]), _seeds, _counts,
)  # fmt: skip
theta_sketches = st.builds(
    lambda lg, seed, count: theta_bytes.written(
        theta.sketch_of(hashes(seed, count), theta.ALL, lg)
    ),
    st.sampled_from([4, 5]), _seeds, _counts,
)  # fmt: skip

DOUBLES, INTEGERS = Folding("double", SummaryMode.SUM), Folding("integer", SummaryMode.MIN)
NUMBERS = np.array([0.1, 0.2, -0.0, 1e16, 1e308, -1e308, np.inf, -np.inf, np.nan, 5e-324])


def tuple_sketch(folding: Folding, seed: int, count: int, mode: SummaryMode, bound: int) -> bytes:
    """A sketch whose numbers were made in any mode; a bound leaves out half of its keys."""
    keys = hashes(seed, count)
    whole = np.random.default_rng(seed).integers(-(1 << 31), 1 << 31, len(keys))
    numbers = NUMBERS[whole % 10] if folding.kind == "double" else whole
    summaries = folding.of(numbers, np.full(len(keys), mode, np.uint8))
    few = np.flatnonzero(keys < bound)
    sketch = tuples.Tuples(keys[few], summaries.take(few), bound)
    return tuple_bytes.written(sketch, np.arange(len(few))[::-1], bound)


def tuple_sketches(folding: Folding) -> Any:
    made = st.builds(
        lambda *drawn: tuple_sketch(folding, *drawn),
        _seeds, _counts, st.sampled_from(SummaryMode), st.sampled_from([theta.ALL, 1 << 62]),
    )  # fmt: skip
    nothing = tuple_bytes.written(tuples.empty(folding), np.empty(0, np.int64), theta.ALL)
    return st.one_of(made, made, made, st.just(nothing))


SKETCHES, PRESENT = Argument(0, pa.binary()), Selection((0,))


def tuple_written(sketch: tuples.Tuples) -> bytes:
    """The bytes with the greatest hash first, as they were drawn."""
    return tuple_bytes.written(sketch, np.arange(len(sketch.hashes))[::-1], sketch.bound)


PIECES: dict[str, tuple[Piece, Any, Callable[[Any], object]]] = {
    "HLL union": (
        HllPiece(None, SKETCHES, PRESENT),
        hll_sketches,
        lambda s: (s.widest, hll_bytes.written(s)),
    ),
    "theta union": (
        ThetaPiece("union", 4, SKETCHES, PRESENT),
        theta_sketches,
        theta_bytes.written,
    ),
    "theta intersection": (
        ThetaPiece("intersection", 12, SKETCHES, PRESENT),
        theta_sketches,
        theta_bytes.written,
    ),
    **{
        f"tuple {form} {folding.kind} {folding.mode.name}": (
            piece := TuplePiece(form, folding, 4, (SKETCHES,), PRESENT),
            tuple_sketches(folding),
            piece.answer,
        )
        for form in ("union", "intersection")
        for folding in (DOUBLES, INTEGERS, Folding("double", SummaryMode.MAX))
    },
}
each_piece = pytest.mark.parametrize(
    ("piece", "sketches", "said"), PIECES.values(), ids=PIECES.keys()
)


@each_piece
@settings(max_examples=60)
@given(data=st.data())
def test_any_order_and_grouping_gives_the_same_bytes(
    piece: Piece, sketches: Any, said: Callable[[Any], object], data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(sketches, min_size=3, max_size=3))
    rows = Rows(np.zeros(3, np.int64), (pa.array(drawn, pa.binary()),))
    parts = piece.lift(rows, np.arange(3), 3)
    together = piece.lift(rows, np.zeros(3, np.int64), 1)
    combine = piece.monoid.combine
    for order in permutations(range(3)):
        a, b, c = (parts[:, [i]] for i in order)
        for found in (combine(combine(a, b), c), combine(a, combine(b, c))):
            assert said(found[0, 0]) == said(together[0, 0])


@pytest.mark.parametrize(
    ("sketches", "read", "written"),
    [
        (hll_sketches, hll_bytes.read, hll_bytes.written),
        (theta_sketches, theta_bytes.read, theta_bytes.written),
        *(
            (tuple_sketches(f), partial(tuple_bytes.read, folding=f), tuple_written)
            for f in (DOUBLES, INTEGERS)
        ),
    ],
    ids=["HLL", "theta", "tuples of doubles", "tuples of integers"],
)
@settings(max_examples=400)
@given(data=st.data())
def test_damaged_bytes_are_refused_or_are_another_sketch(
    sketches: Any,
    read: Callable[[bytes], Any],
    written: Callable[[Any], bytes],
    data: st.DataObject,
) -> None:
    whole: bytes = data.draw(sketches)
    assert written(read(whole)) == whole
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    changed = bytearray(whole)
    for at in data.draw(st.lists(st.integers(0, min(len(whole), 44) - 1), max_size=3)):
        changed[at] ^= 1 << data.draw(st.integers(0, 7))
    for damaged in (cut, bytes(changed), data.draw(st.binary(max_size=64))):
        try:
            sketch = read(damaged)
        except PanesError:
            continue
        assert written(read(written(sketch))) == written(sketch)


VALUES = Argument(0, pa.int64())


@pytest.mark.parametrize(
    "piece",
    [
        HllPiece(12, VALUES, PRESENT),
        ThetaPiece("values", 12, VALUES, PRESENT),
        TuplePiece("values", DOUBLES, 11, (VALUES, VALUES), PRESENT),
        TuplePiece("values", INTEGERS, 11, (VALUES, VALUES), PRESENT),
    ],
)
def test_a_sketch_takes_no_memory_for_what_it_left_out(
    piece: HllPiece | ThetaPiece | TuplePiece,
) -> None:
    """Three rows of one group, beside a hundred thousand of another, in the same batch."""
    rows = Rows(np.zeros(100_000, np.int64), (pa.array(range(100_000)),))
    slots = (np.arange(100_000) < 3).astype(np.int64)
    for sketch in piece.lift(rows, slots, 2)[0]:
        held = sketch.coupons if isinstance(sketch, hll.Hll) else sketch.hashes
        whole = held if held.base is None else held.base
        assert whole.nbytes <= 1 << 15
        assert len(piece.to_bytes(sketch)) <= 1 << 17


def test_a_coupon_counts_the_zeros_a_hash_begins_with() -> None:
    """One more than the zeros, and at most 63, so that six bits hold it."""
    second = np.array([1 << 63, 1 << 62, (1 << 62) - 1, 4, 2, 1, 0], np.uint64)
    first = np.full(len(second), (7 << 26) + 5, np.uint64)
    found = hll.coupons_of(first, second)
    assert (found >> np.uint32(26)).tolist() == [1, 2, 3, 62, 63, 63, 63]
    assert set((found & np.uint32((1 << 26) - 1)).tolist()) == {5}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "has 0 bytes"),
        (b"x" * 40, "those of something else"),
        (hll_bytes.written(hll.sketch_of(4, coupons(1, 5)))[:27], "says that there are more"),
        (hll_bytes.written(hll.sketch_of(8, coupons(1, 20)))[:-1], "says that there are more"),
        (hll_bytes.written(hll.sketch_of(8, coupons(1, 99)))[:-1], "says that there are more"),
    ],
)
def test_bytes_that_are_no_sketch_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(PanesError, match=f"no HLL sketch: .*{said}"):
        hll_bytes.read(data)


@pytest.mark.parametrize(
    ("mode", "numbers", "wanted"),
    [
        (SummaryMode.MIN, [np.nan], np.inf),
        (SummaryMode.MAX, [np.nan], -np.inf),
        (SummaryMode.MIN, [np.nan, 2.0, 3.0], 2.0),
        (SummaryMode.MAX, [-np.nan, -2.0, -3.0], -2.0),
        (SummaryMode.MIN, [0.0, -0.0], -0.0),
        (SummaryMode.MAX, [-0.0, 0.0], 0.0),
        (SummaryMode.ALWAYSONE, [np.nan, 5.0], 1.0),
    ],
)
def test_numbers_of_one_key_are_folded_in_any_order(
    mode: SummaryMode, numbers: list[float], wanted: float
) -> None:
    for some in (numbers, numbers[::-1]):
        given = Folding("double", mode).of(np.array(some), np.zeros(len(some), np.uint8))
        folded = given.folded(np.zeros(1, np.int64), even_one=True)
        assert folded.numbers.written().tobytes() == np.float64(wanted).tobytes()


TWO = tuple_sketch(DOUBLES, 1, 2, SummaryMode.SUM, theta.ALL)


def changed(at: int, *bytes_there: int) -> bytes:
    """A sketch of two keys with other bytes from some place on."""
    return TWO[:at] + bytes(bytes_there) + TWO[at + len(bytes_there) :]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "has 0 bytes"),
        (theta_bytes.written(theta.EMPTY), "those of something else"),
        (changed(1, 2), "those of something else"),
        (changed(3, 0), "those of something else"),
        (changed(5, 0x0B), "those of something else"),
        (changed(6, 0), "a seed of their own"),
        (changed(0, 4), "says 4 head words"),
        (TWO[:10], "says that there are more"),
        (changed(0, 3)[:20], "says that there are more"),
        (TWO[:-1], "says 2 entries"),
        (TWO + b"x", "says 2 entries"),
        (changed(8, 255, 255, 255, 255), "says -1 entries"),
        (changed(8, 0, 0, 0, 64), "says 1073741824 entries"),
        (tuple_sketch(INTEGERS, 1, 2, SummaryMode.SUM, theta.ALL), "says 2 entries"),
        (changed(32, 4), "in mode 4"),
        (changed(33, *TWO[16:24]), "a hash twice"),
        (changed(16, *bytes(8)), "not below its bound"),
        (changed(16, *[255] * 8), "not below its bound"),
        (changed(0, 3) + TWO[16:24], "hash"),
    ],
)
def test_bytes_that_are_no_tuple_sketch_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(PanesError, match=f"no tuple sketch of doubles: .*{said}"):
        tuple_bytes.read(data, DOUBLES)
