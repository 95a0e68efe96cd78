"""The cut of many windows, found on columns, is what their edge families say one by one."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from panes.planning.shared_cut import _edges, choose_cut
from panes.windows.cut import Edges, cut, edges_of_spec
from panes.windows.families import common
from panes.windows.many import Rulers
from panes.windows.spec import Sliding

windows = st.builds(
    Sliding, size=st.integers(1, 60), slide=st.integers(1, 40), origin=st.integers(-30, 30)
)


@given(specs=st.lists(windows, min_size=1, max_size=8))
def test_columns_say_what_families_do(specs: list[Sliding]) -> None:
    families = sorted({edges for spec in specs for edges in edges_of_spec(spec)})
    columns = _edges(Rulers.of(specs))
    assert columns.T.tolist() == [[e.slide, e.phase] for e in families]
    gaps = (e.phase - families[0].phase for e in families)
    slide = math.gcd(*(e.slide for e in families), *gaps)
    assert common(families) == Edges(slide, families[0].phase % slide)


@given(specs=st.lists(windows, min_size=1, max_size=8))
def test_the_cut_serves_every_window(specs: list[Sliding]) -> None:
    chosen = choose_cut(Rulers.of(specs))
    assert all(chosen.cut.serves(spec) for spec in specs)
    if chosen.older is not None:
        longer = [spec for spec in specs if spec.size > chosen.older.reach]
        assert longer
        assert all(chosen.older.cut.serves(spec) for spec in longer)
    assert cut(*specs).grid % chosen.cut.grid == 0
