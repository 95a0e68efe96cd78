"""Both definitions of a window join agree: by windows (Eq. 5.19-5.22), and by positions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from panes.windows.extent import extent
from panes.windows.partners import Band, CommonWindows, common_wids
from panes.windows.spec import Sliding
from tests.windows.widjoin import band_extents, joined_ids, match, widjoin

POSITIONS = range(-13, 14)
CLAUSES = [
    Sliding(size=size, slide=slide, origin=origin)
    for size, slide, origin in product((1, 2, 5, 7), (1, 3, 5), (0, 2))
]


@pytest.mark.parametrize("spec", CLAUSES, ids=str)
def test_common_windows_join_the_ids_of_widjoin(spec: Sliding) -> None:
    partners = CommonWindows(spec)
    for at, other in product(POSITIONS, POSITIONS):
        ids = joined_ids(spec, spec, at=at, other=other)
        by_hand = [
            w for w in range(-40, 40)
            if all(extent(spec, w).start <= p < extent(spec, w).end for p in (at, other))
        ]  # fmt: skip
        assert ids == by_hand
        first, last = common_wids(spec, np.array([at]), np.array([other]))
        assert list(range(first[0], last[0] + 1)) == ids
        low, high = partners.of_left(np.array([at]))
        if ids:
            assert low[0] <= other <= high[0]


@pytest.mark.parametrize("spec", CLAUSES, ids=str)
def test_a_row_meets_exactly_the_extents_that_match_names(spec: Sliding) -> None:
    for at in POSITIONS:
        meets = {w for w in range(-40, 40) if extent(spec, w).start <= at < extent(spec, w).end}
        assert set(match(spec, at)) == meets
        assert set(widjoin(match(spec, at), range(-40, 40))) == {(w, w) for w in meets}


@pytest.mark.parametrize(("a", "b"), [(1, 0), (3, 2), (3, 3), (1, 5), (6, 0)])
def test_a_band_joins_the_rows_that_share_an_extent(a: int, b: int) -> None:
    # L [RANGE a], R [RANGE b]: l - b <= r < l + a
    left, right = band_extents(Band(-b, a - 1))
    for at, other in product(POSITIONS, POSITIONS):
        shares = bool(joined_ids(left, right, at=at, other=other))
        assert shares == (at - b <= other < at + a)


def test_with_extents_as_printed_the_edge_behind_is_open() -> None:
    # Thesis 5.2.2, taken by its words: extents of RANGE ticks on both sides, sliding by one. They
    # join l - b < r < l + a. The example of Q5-8 has l - b <= r, which is the meaning here.
    left, right = Sliding(size=3, slide=1), Sliding(size=2, slide=1)
    for at, other in product(POSITIONS, POSITIONS):
        shares = bool(joined_ids(left, right, at=at, other=other))
        assert shares == (at - 2 < other < at + 3)
