"""The window definitions against brute force: extents, window ids, panes and covers.

What the oracle and the engine share is `panes.windows`, so it is proved here by other means: the
definitions are said once more (`holds`), and every function is compared with a search through all
window ids of a small stretch of the axis. An edge that is off by one, a pane that crosses an edge,
a forgotten oldest window or a wrong rounding below zero fails here.
"""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from panes.windows.cover import cover, runs_under
from panes.windows.cut import Cut, cut, in_some_window, panes_per_window
from panes.windows.extent import (
    edges_of,
    extent,
    wids,
    windows,
    windows_closed,
    windows_reached,
)
from panes.windows.spec import Landmark, PanedSpec, PartitionedRows, PerRow, Sliding, Spec

# Every window that holds a position of INSTANTS, for any spec below, has its id in IDS.
INSTANTS = range(-200, 201)
IDS = range(-400, 401)

sizes = st.integers(1, 60)
slides = st.integers(1, 30)
origins = st.integers(-70, 70)
instants = st.integers(INSTANTS.start, INSTANTS.stop - 1)
streams = st.lists(instants, max_size=25)

sliding = st.builds(Sliding, size=sizes, slide=slides, origin=origins)
sampling = st.builds(
    lambda size, gap, origin: Sliding(size=size, slide=size + gap, origin=origin),
    st.integers(1, 20),
    st.integers(1, 20),
    origins,
)
landmarks = st.builds(Landmark, slide=slides, origin=origins)
partitioned = st.builds(PartitionedRows, size=sizes, slide=slides)
per_row = st.builds(
    PerRow, size=sizes, every=st.integers(1, 4), counted_by=st.sampled_from(["arrival", "rank"])
)
paned: st.SearchStrategy[PanedSpec] = st.one_of(sliding, sampling, landmarks)
every_kind: st.SearchStrategy[Spec] = st.one_of(paned, partitioned, per_row)


def holds(spec: Spec, wid: int, at: int) -> bool:
    """Whether window `wid` holds `at`, as the definitions are printed (DESIGN 2)."""
    if isinstance(spec, PerRow):
        return wid - spec.size < at <= wid
    if isinstance(spec, PartitionedRows):
        return (wid + 1) * spec.slide - spec.size <= at < (wid + 1) * spec.slide
    end = spec.origin + (wid + 1) * spec.slide
    return at < end and (isinstance(spec, Landmark) or end - spec.size <= at)


def edges_in(panes: Cut, stretch: range) -> set[int]:
    """Where panes begin in a stretch: the positions that are their own pane's start."""
    at = np.array(stretch, dtype=np.int64)
    return {int(t) for t in at[panes.pane_start(at) == at]}


def edges_wanted(spec: PanedSpec) -> set[int]:
    """Where windows start and end; a landmark only ends."""
    ends = {spec.origin + (w + 1) * spec.slide for w in range(-800, 801)}
    return ends if isinstance(spec, Landmark) else ends | {end - spec.size for end in ends}


# --- extent and wids ------------------------------------------------------------------------


@settings(deadline=None)
@given(every_kind, instants)
def test_an_instant_is_in_a_window_exactly_if_the_window_is_among_its_wids(
    spec: Spec, at: int
) -> None:
    #        at
    #   [----+------)       w      at in extent(w)  <=>  w in wids(at)
    #     [--+--------)     w+1
    #   )    |       [      not these
    held_by_extent = [w for w in IDS if extent(spec, w).start <= at < extent(spec, w).end]
    assert list(wids(spec, at, ids=IDS)) == held_by_extent


@settings(deadline=None)
@given(every_kind, instants)
def test_wids_are_the_windows_that_the_printed_definition_gives(spec: Spec, at: int) -> None:
    assert list(wids(spec, at, ids=IDS)) == [w for w in IDS if holds(spec, w, at)]


@settings(deadline=None)
@given(every_kind, st.sampled_from(IDS))
def test_an_extent_holds_the_instants_that_the_printed_definition_gives(
    spec: Spec, wid: int
) -> None:
    start, end = extent(spec, wid)
    assert [at for at in INSTANTS if start <= at < end] == [
        at for at in INSTANTS if holds(spec, wid, at)
    ]


@settings(deadline=None)
@given(
    st.builds(
        Sliding,
        size=st.integers(1, 10**13),
        slide=st.integers(1, 10**13),
        origin=st.integers(-(10**16), 10**16),
    ),
    st.integers(-(10**17), 10**17),
)
def test_wids_end_where_they_should_on_an_axis_of_microseconds(spec: Sliding, at: int) -> None:
    #            at
    #  first-1 --)         last+1   [--
    #  first   --+-)       last   [-+--
    found = wids(spec, at)
    first = (at - spec.origin) // spec.slide
    if len(found) == 0:
        assert not any(holds(spec, w, at) for w in range(first - 2, first + 3))
        return
    assert holds(spec, found[0], at)
    assert holds(spec, found[-1], at)
    assert not holds(spec, found[0] - 1, at)
    assert not holds(spec, found[-1] + 1, at)


@settings(deadline=None)
@given(sliding, instants)
def test_no_instant_belongs_to_more_windows_than_the_overlap(spec: Sliding, at: int) -> None:
    assert spec.size // spec.slide <= len(wids(spec, at)) <= spec.overlap


@settings(deadline=None)
@given(sliding, st.integers(-300, 300), instants)
def test_moving_the_origin_moves_every_window_with_it(spec: Sliding, shift: int, at: int) -> None:
    moved = Sliding(size=spec.size, slide=spec.slide, origin=spec.origin + shift)
    assert wids(moved, at + shift) == wids(spec, at)


# --- windows --------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.one_of(sliding, sampling), streams)
def test_a_sliding_stream_answers_every_window_that_holds_a_row(
    spec: Sliding, stream: list[int]
) -> None:
    #  rows     x  x            x
    #         [--)            [--)      answered
    #              [--) [--)            not: empty
    expected = [w for w in IDS if any(holds(spec, w, at) for at in stream)]
    assert list(windows(spec, stream)) == expected


@settings(deadline=None)
@given(landmarks, st.lists(instants, min_size=1, max_size=25))
def test_a_landmark_is_answered_from_the_first_row_to_the_window_of_the_last(
    spec: Landmark, stream: list[int]
) -> None:
    #  rows        x        x
    #  ends    |   ·   |    ·  |    |
    #                  1st     last      not this one, though it would hold rows
    first = next(w for w in IDS if any(holds(spec, w, at) for at in stream))
    last = next(w for w in IDS if holds(spec, w, max(stream)))
    assert list(windows(spec, stream)) == list(range(first, last + 1))


@settings(deadline=None)
@given(partitioned, st.integers(0, 80))
def test_a_partition_of_rows_answers_only_windows_whose_last_row_has_arrived(
    spec: PartitionedRows, rows: int
) -> None:
    #  ranks   0 1 2 3 4 5 6
    #          [---) [---)          answered
    #                  [---· ·)     not: its last row is missing
    expected = [
        w
        for w in IDS
        if any(holds(spec, w, rank) for rank in range(rows)) and (w + 1) * spec.slide <= rows
    ]
    assert list(windows(spec, range(rows))) == expected


@settings(deadline=None)
@given(per_row, streams)
def test_every_nth_row_defines_a_window_counted_from_one(spec: PerRow, stream: list[int]) -> None:
    counted = stream if spec.counted_by == "arrival" else sorted(stream)
    defining = [at for number, at in enumerate(counted, start=1) if number % spec.every == 0]
    assert list(windows(spec, stream)) == sorted(defining)


@settings(deadline=None)
@given(every_kind)
def test_a_stream_without_rows_has_no_windows(spec: Spec) -> None:
    assert list(windows(spec, [])) == []


@settings(deadline=None)
@given(paned, instants)
def test_progress_closes_the_windows_that_end_at_or_before_it(
    spec: PanedSpec, progress: int
) -> None:
    #               progress
    #   [------)    |             closed
    #      [--------)             closed: it ends where progress stands
    #         [-----+--)          open
    closed = [w for w in IDS if extent(spec, w).end <= progress]
    assert windows_closed(spec, progress) == closed[-1] + 1


@settings(deadline=None)
@given(st.one_of(sliding, landmarks), st.lists(instants, min_size=1, max_size=25))
def test_the_windows_reached_end_with_the_last_one_to_answer(
    spec: PanedSpec, stream: list[int]
) -> None:
    answered = windows(spec, stream)
    reached = windows_reached(spec, max(stream))
    assert all(w < reached for w in answered)
    if isinstance(spec, Landmark) or spec.size >= spec.slide:
        assert reached == answered[-1] + 1


@settings(deadline=None)
@given(paned, st.lists(st.sampled_from(IDS), max_size=10))
def test_edges_of_many_windows_agree_with_the_extent_of_each(
    spec: PanedSpec, ids: list[int]
) -> None:
    starts, ends = edges_of(spec, np.array(ids, dtype=np.int64))
    assert ends.tolist() == [extent(spec, w).end for w in ids]
    if isinstance(spec, Landmark):
        assert starts is None
    else:
        assert starts is not None
        assert starts.tolist() == [extent(spec, w).start for w in ids]


# --- panes ----------------------------------------------------------------------------------


@settings(deadline=None)
@given(paned)
def test_every_window_is_a_whole_number_of_panes(spec: PanedSpec) -> None:
    #   windows   [------------)
    #                  [------------)
    #   panes     |    |  |    |  |
    edges = edges_in(cut(spec), INSTANTS)
    for w in IDS:
        start, end = extent(spec, w)
        assert end not in INSTANTS or end in edges
        assert start not in INSTANTS or start in edges


@settings(deadline=None)
@given(paned)
def test_every_pane_edge_is_an_edge_of_some_window(spec: PanedSpec) -> None:
    assert edges_in(cut(spec), INSTANTS) == edges_wanted(spec) & set(INSTANTS)


@settings(deadline=None)
@given(paned, st.lists(instants, max_size=40))
def test_pane_start_is_the_nearest_edge_at_or_before_a_position_in_any_order(
    spec: PanedSpec, at: list[int]
) -> None:
    edges = sorted(edges_wanted(spec))
    expected = [max(e for e in edges if e <= t) for t in at]
    assert cut(spec).pane_start(np.array(at, dtype=np.int64)).tolist() == expected


@settings(deadline=None)
@given(st.one_of(sliding, sampling), st.integers(-20, 20))
def test_a_window_has_no_more_panes_than_the_gcd_would_give(spec: Sliding, wid: int) -> None:
    #   size 10, slide 6      window    [-------------------)
    #                         gcd 2     |   |   |   |   |   |     5 panes
    #                         paired    |       |   |       |     3 panes
    start, end = extent(spec, wid)
    edges = edges_in(cut(spec), range(start, end))
    assert len(edges) == panes_per_window(spec)
    assert len(edges) <= spec.size // math.gcd(spec.size, spec.slide)


@settings(deadline=None)
@given(st.one_of(sliding, sampling), instants)
def test_a_slide_has_at_most_two_panes(spec: Sliding, at: int) -> None:
    assert len(edges_in(cut(spec), range(at, at + spec.slide))) <= 2


@settings(deadline=None)
@given(paned, st.lists(instants, min_size=1, max_size=40))
def test_only_sampling_windows_leave_positions_out(spec: PanedSpec, at: list[int]) -> None:
    #   size 2, slide 5    [-)  [-)  [-)
    #   in some window     xx...xx...xx
    held = in_some_window(spec, np.array(at, dtype=np.int64))
    has_gaps = isinstance(spec, Sliding) and spec.size < spec.slide
    assert (held is not None) == has_gaps
    if held is not None:
        assert held.tolist() == [any(holds(spec, w, t) for w in IDS) for t in at]


@settings(deadline=None)
@given(st.lists(paned, min_size=1, max_size=4))
def test_one_cut_of_several_specs_serves_them_all_and_no_more(specs: list[PanedSpec]) -> None:
    #   query a   |     |     |     |
    #   query b   |   |   |   |   |
    #   panes     |   | | |   |   | |
    wanted = set[int]().union(*(edges_wanted(spec) for spec in specs))
    assert edges_in(cut(*specs), INSTANTS) == wanted & set(INSTANTS)


@settings(deadline=None)
@given(st.lists(paned, min_size=1, max_size=4), st.data())
def test_a_cut_does_not_depend_on_the_order_or_number_of_its_specs(
    specs: list[PanedSpec], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(specs + specs))
    assert cut(*shuffled) == cut(*specs)


@settings(deadline=None)
@given(st.lists(paned, min_size=1, max_size=4))
def test_no_family_of_a_cut_lies_within_another(specs: list[PanedSpec]) -> None:
    families = cut(*specs).families
    assert not any(a.within(b) for a in families for b in families if a != b)


@settings(deadline=None)
@given(
    st.lists(paned, min_size=1, max_size=3),
    st.lists(st.tuples(instants, st.integers(0, 3)), min_size=1, max_size=30),
)
def test_pane_slots_number_the_panes_on_their_grid_group_by_group(
    specs: list[PanedSpec], rows: list[tuple[int, int]]
) -> None:
    panes = cut(*specs)
    at = np.array([t for t, _ in rows], dtype=np.int64)
    group = np.array([g for _, g in rows], dtype=np.int64)
    starts = panes.pane_start(at)
    base = int(starts.min())
    slots = panes.pane_slots(at, base, group, 4)
    assert ((starts - base) % panes.grid == 0).all()
    assert slots.tolist() == ((starts - base) // panes.grid * 4 + group).tolist()


# --- cover ----------------------------------------------------------------------------------

Listing = list[tuple[int, int, int, int]]


def layout(spec: PanedSpec, rows: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The panes that rows of several groups fill: where they begin, and where groups do."""
    starts: list[int] = []
    groups = [0]
    for group in rows:
        filled = cut(spec).pane_start(np.array(group, dtype=np.int64))
        starts += sorted({int(s) for s in filled})
        groups.append(len(starts))
    return np.array(starts, dtype=np.int64), np.array(groups, dtype=np.int64)


def listing(
    spec: PanedSpec, starts: NDArray[np.int64], groups: NDArray[np.int64], due: range
) -> Listing:
    """Every due window with panes, as (group, window, first pane, last pane + 1)."""
    found: Listing = []
    for g in range(len(groups) - 1):
        mine = range(int(groups[g]), int(groups[g + 1]))
        for w in due:
            run = [p for p in mine if holds(spec, w, int(starts[p]))]
            if run:
                found.append((g, w, run[0], run[-1] + 1))
    return found


grouped_rows = st.lists(st.lists(instants, max_size=12), max_size=4)
due_ranges = st.tuples(st.integers(-320, 320), st.integers(0, 500)).map(
    lambda due: range(due[0], due[0] + due[1])
)


@settings(deadline=None)
@given(paned, grouped_rows, due_ranges)
def test_cover_lists_exactly_the_due_windows_that_hold_a_pane(
    spec: PanedSpec, rows: list[list[int]], due: range
) -> None:
    #   group 0   p0   p1             p2         first_due <= w < end_due
    #            [-------)  (p0, p1)
    #                 [-------)  (p1)
    #                        [----)  not listed: a gap
    starts, groups = layout(spec, rows)
    found = cover(spec, starts=starts, groups=groups, first_due=due.start, end_due=due.stop)
    expected = listing(spec, starts, groups, due)
    assert len(found) == len(expected)
    assert found.wid.tolist() == [w for _, w, _, _ in expected]
    assert found.first.tolist() == [first for _, _, first, _ in expected]
    assert found.last.tolist() == [last for _, _, _, last in expected]
    assert found.offsets.tolist() == [
        sum(1 for g, _, _, _ in expected if g < group) for group in range(len(groups))
    ]


@settings(deadline=None)
@given(paned, grouped_rows, due_ranges, st.integers(-400, 400))
def test_covering_in_two_steps_lists_what_one_step_would(
    spec: PanedSpec, rows: list[list[int]], due: range, middle: int
) -> None:
    starts, groups = layout(spec, rows)
    middle = min(max(middle, due.start), due.stop)

    def listed(first_due: int, end_due: int) -> set[tuple[int, int, int]]:
        found = cover(spec, starts=starts, groups=groups, first_due=first_due, end_due=end_due)
        runs = zip(found.wid, found.first, found.last, strict=True)
        return {(int(w), int(first), int(last)) for w, first, last in runs}

    before, after = listed(due.start, middle), listed(middle, due.stop)
    assert before | after == listed(due.start, due.stop)
    assert not before & after


@settings(deadline=None)
@given(
    paned,
    st.lists(st.tuples(st.lists(instants, max_size=8), st.lists(instants, max_size=8)), max_size=3),
    due_ranges,
)
def test_runs_under_answers_already_listed_are_those_of_the_other_panes(
    spec: PanedSpec, rows: list[tuple[list[int], list[int]]], due: range
) -> None:
    #   panes of a group     p0   p1       p2       answers are listed by these,
    #   its values           v0 v1   v2 v3          and held by these
    starts, groups = layout(spec, [mine for mine, _ in rows])
    others, other_groups = layout(spec, [other for _, other in rows])
    found = cover(spec, starts=starts, groups=groups, first_due=due.start, end_due=due.stop)
    first, last = runs_under(spec, found.wid, found.offsets, starts=others, groups=other_groups)
    for g in range(len(groups) - 1):
        mine = range(int(other_groups[g]), int(other_groups[g + 1]))
        for k in range(int(found.offsets[g]), int(found.offsets[g + 1])):
            held = [p for p in mine if holds(spec, int(found.wid[k]), int(others[p]))]
            assert list(range(int(first[k]), int(last[k]))) == held


def test_a_silence_of_a_million_windows_between_two_panes_is_not_listed() -> None:
    #   x                    ...                     x        size 10, slide 1
    #   [---)  ten windows   ...   ten windows    [---)
    starts = np.array([0, 1_000_000], dtype=np.int64)
    groups = np.array([0, 2], dtype=np.int64)
    found = cover(
        Sliding(size=10, slide=1), starts=starts, groups=groups, first_due=0, end_due=2_000_000
    )
    assert found.wid.tolist() == [*range(10), *range(1_000_000, 1_000_010)]
