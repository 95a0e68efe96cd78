"""The figures of *On Indexing Sliding Windows*, on tiny streams.

Catches: an index of the experiments that holds other values or rows than its window, and one that
is timed although its answers are wrong.
"""

from __future__ import annotations

import numpy as np
import pytest

from lab.papers import fig_index_7, fig_index_8, fig_index_9
from lab.papers.index_runs import (
    LINKS,
    SCHEMA,
    Integers,
    links,
    measure,
    power_law,
    require_right,
    set_index,
    uniform,
)
from panes.errors import WrongAnswerError
from panes.index.basic_windows import BasicWindows
from panes.index.index import Index
from panes.index.row_ring import RowRing
from panes.index.scan import Scan


def test_every_index_of_the_figures_holds_what_its_window_holds() -> None:
    require_right({**fig_index_7.INDEXES, **fig_index_7.GROUPED})
    require_right({kind: links(kind) for kind in LINKS})
    fig_index_8._require_same_histograms()


def test_an_index_that_never_forgets_is_an_error() -> None:
    class Keeping(Scan):
        def present(self) -> tuple[Integers, Integers]:
            return np.unique(self.keys_of(0, self.rows.sealed)), np.zeros(0, dtype=np.int64)

    def make(_: Integers) -> tuple[RowRing, BasicWindows, Index]:
        rows, windows = RowRing(SCHEMA, np.int64), BasicWindows()
        return rows, windows, Keeping(rows, windows)

    with pytest.raises(WrongAnswerError, match="keeping holds other values"):
        require_right({"keeping": make})


@pytest.mark.parametrize("draw", [uniform, power_law])
def test_all_three_parts_are_timed(draw: type) -> None:
    values = draw(2_000, 50, seed=1)
    took = measure(set_index("T", "LIST"), values, 10, ask=fig_index_8.walked, rounds=1)
    assert set(took) == {"in", "out", "ask"}
    assert all(nanoseconds >= 0 for nanoseconds in took.values())
    sorted_by_links = measure(links("DB"), values, 10, ask=fig_index_9.sorted_others, rounds=1)
    assert sorted_by_links["in"] > 0


def test_a_power_law_makes_the_nth_value_n_times_as_rare() -> None:
    counts = np.bincount(power_law(200_000, 100, seed=3), minlength=100)
    assert 1.8 < counts[0] / counts[1] < 2.2
    assert 9 < counts[0] / counts[9] < 11
