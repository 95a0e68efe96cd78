"""One matrix for all roll kernels: any monoid, any windows, any panes, one answer.

Catches: a window one pane too long or short, a block boundary on the wrong side, a stack turned
over too early, a gap in the panes that is taken for a pane.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from panes.aggregates.extremes import ObjectLanes
from panes.aggregates.lanes import Op
from panes.aggregates.monoid import Columns, Lanes, Monoid
from panes.kernels.block_scan import block_scan
from panes.kernels.choose import choose, roll
from panes.kernels.disjoint_table import disjoint_table
from panes.kernels.from_scratch import from_scratch
from panes.kernels.prefix_differences import prefix_differences
from panes.kernels.running import running
from panes.kernels.two_stacks import two_stacks
from panes.windows.cover import Cover, cover
from panes.windows.cut import cut
from panes.windows.spec import Landmark, PanedSpec, Sliding

COUNT = Lanes(Op.ADD, ("n",), (0,))
TEXT = ObjectLanes(Op.GREATEST, ("seen", "value"), (0, None))
MONOIDS: dict[str, Monoid] = {
    "add": COUNT,
    "add limbs": Lanes(Op.ADD, ("a", "b"), (0, 0)),
    "least": Lanes(Op.LEAST, ("v",), ((1 << 63) - 1,)),
    "greatest tuple": Lanes(Op.GREATEST, ("a", "b"), (0, -(1 << 63))),
    "sum": Lanes(Op.SUM, ("high", "low"), (0.0, 0.0)),
    "moments": Lanes(Op.MOMENTS, ("n", "mean", "m2"), (0.0, 0.0, 0.0)),
    "text": TEXT,
}

Kernel = Callable[
    [Monoid, Columns, Cover, NDArray[np.int64], NDArray[np.int64], PanedSpec], Columns
]
KERNELS: dict[str, Kernel] = {
    "from scratch": lambda m, p, c, starts, groups, spec: from_scratch(m, p, c),
    "block scan": lambda m, p, c, starts, groups, spec: block_scan(
        m, p, c, starts=starts, groups=groups, size=spec.size if isinstance(spec, Sliding) else 1
    ),
    "two stacks": lambda m, p, c, starts, groups, spec: two_stacks(as_lanes(m), p, c),
    "disjoint table": lambda m, p, c, starts, groups, spec: disjoint_table(
        as_lanes(m), p, c.first, c.last
    ),
    "prefix differences": lambda m, p, c, starts, groups, spec: prefix_differences(
        as_lanes(m), p, c.first, c.last
    ),
    "running": lambda m, p, c, starts, groups, spec: running(m, p, c, groups=groups),
    "chosen": lambda m, p, c, starts, groups, spec: roll(
        m, spec, p, c, starts=starts, groups=groups
    ),
}


def as_lanes(monoid: Monoid) -> Lanes:
    assert isinstance(monoid, Lanes)
    return monoid


def fits(kernel: str, monoid: Monoid, spec: PanedSpec) -> bool:
    if kernel in ("two stacks", "disjoint table") and not isinstance(monoid, Lanes):
        return False
    if kernel == "prefix differences" and getattr(monoid, "op", None) is not Op.ADD:
        return False
    if kernel == "block scan" and isinstance(spec, Landmark):
        return False
    return not (kernel == "running" and isinstance(spec, Sliding))


SPECS = st.one_of(
    st.builds(
        lambda size, slide, origin: Sliding(size=size, slide=slide, origin=origin),
        st.integers(1, 30),
        st.integers(1, 12),
        st.integers(-5, 5),
    ),
    st.builds(lambda slide: Landmark(slide=slide), st.integers(1, 12)),
)


def some_partials(monoid: Monoid, numbers: list[int]) -> Columns:
    """Partials of one row each, telling every pane from every other."""
    values = np.array(numbers, dtype=np.int64)
    if monoid is TEXT:
        result = monoid.empty(len(values))
        result[0], result[1] = 1, [f"{v:03}" for v in values]
        return result
    if monoid.dtype == np.float64:
        width = len(monoid.names)
        first = np.ones(len(values)) if width == 3 else values / 4
        second = values / 4 if width == 3 else np.zeros(len(values))
        return np.stack([first, second, np.zeros(len(values))][:width])
    return np.stack([values] * len(monoid.names))


@pytest.mark.parametrize("name", MONOIDS)
@settings(max_examples=60)
@given(spec=SPECS, data=st.data())
def test_every_kernel_folds_exactly_the_panes_of_each_window(
    name: str, spec: PanedSpec, data: st.DataObject
) -> None:
    monoid = MONOIDS[name]
    sizes = data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=4))
    starts, groups = [], [0]
    for size in sizes:
        rows = data.draw(st.lists(st.integers(-40, 90), min_size=size, max_size=size))
        starts += sorted(set(cut(spec).pane_start(np.array(rows, dtype=np.int64)).tolist()))
        groups.append(len(starts))
    panes = some_partials(monoid, [(7 * i) % 31 for i in range(len(starts))])
    first_due = data.draw(st.integers(-60, 20))
    end_due = first_due + data.draw(st.integers(0, 60))
    at, edges = np.array(starts, dtype=np.int64), np.array(groups, dtype=np.int64)
    answers = cover(spec, starts=at, groups=edges, first_due=first_due, end_due=end_due)

    for kernel, run in KERNELS.items():
        if not fits(kernel, monoid, spec):
            continue
        got = run(monoid, panes, answers, at, edges, spec)
        for k in range(len(answers)):
            want = panes[:, [answers.first[k]]]
            for i in range(answers.first[k] + 1, answers.last[k]):
                want = monoid.combine(want, panes[:, [i]])
            if monoid.dtype == object:
                assert got[:, k].tolist() == want[:, 0].tolist(), kernel
            else:
                assert np.allclose(got[:, k], want[:, 0], rtol=1e-12), kernel


@pytest.mark.parametrize("name", [n for n, m in MONOIDS.items() if isinstance(m, Lanes)])
@settings(max_examples=40)
@given(
    groups=st.integers(1, 5),
    length=st.integers(1, 20),
    runs=st.lists(st.tuples(st.integers(0, 19), st.integers(0, 20), st.integers(0, 2)), max_size=9),
)
def test_tables_answer_any_run_of_panes_for_many_groups_at_once(
    name: str, groups: int, length: int, runs: list[tuple[int, int, int]]
) -> None:
    """Runs in any order and of any table, empty ones too; panes with all their groups."""
    monoid = as_lanes(MONOIDS[name])
    cells = length * groups
    tables = [some_partials(monoid, [(7 * i + t) % 31 for i in range(cells)]) for t in range(3)]
    stack = np.stack(tables, axis=1)
    first = np.array([min(a, length) for a, _, _ in runs], dtype=np.int64)
    last = np.array([max(min(a, length), min(b, length)) for a, b, _ in runs], dtype=np.int64)
    of = np.array([t for _, _, t in runs], dtype=np.int64)
    for table in [disjoint_table] + [prefix_differences] * (monoid.op is Op.ADD):
        got = table(monoid, stack, first, last, of=of, groups=groups)
        for w, (a, b, t) in enumerate(zip(first.tolist(), last.tolist(), of.tolist(), strict=True)):
            for g in range(groups):
                want = monoid.empty(1)
                for i in range(a, b):
                    want = monoid.combine(want, tables[t][:, [i * groups + g]])
                assert np.allclose(got[:, w * groups + g], want[:, 0], rtol=1e-12), table


def test_the_choice_follows_the_window_and_the_algebra() -> None:
    long, short = Sliding(size=60, slide=1), Sliding(size=1, slide=1)
    assert choose(COUNT, long).kernel == "two stacks"
    assert choose(TEXT, long).kernel == "block scan"
    assert choose(COUNT, short).kernel == "from scratch"
    assert choose(TEXT, Landmark(slide=1)).kernel == "running"


def test_two_stacks_does_not_take_a_monoid_that_is_not_compiled() -> None:
    answers = cover(
        Sliding(size=1, slide=1),
        starts=np.array([0]),
        groups=np.array([0, 1]),
        first_due=0,
        end_due=1,
    )
    with pytest.raises(AttributeError):
        two_stacks(TEXT, some_partials(TEXT, [1]), answers)  # type: ignore[arg-type]
