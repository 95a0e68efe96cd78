"""The worked examples of the papers, named by paper and section.

Instants are those the papers print; a clock time without a date is one of 1 January 1970, whose
midnight is the epoch and so the default origin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.windows.cut import cut, panes_per_window
from panes.windows.extent import Extent, extent, wids, windows, windows_closed
from panes.windows.spec import Category, Landmark, PartitionedRows, PerRow, Sliding, Spec

SECOND = 1_000_000
MINUTE = 60 * SECOND

Q5_1 = """
    Select srcIP, count(*) [RANGE 10 minutes, SLIDE 1 minute, WATTR ts]
    From Main
    Group By srcIP
"""
TEN_MINUTES = Sliding(size=10 * MINUTE, slide=MINUTE)


def clock(text: str) -> int:
    """The tick of a clock time, as the papers print them."""
    hours, minutes, seconds = text.split(":")
    return (int(hours) * 60 + int(minutes)) * MINUTE + int(seconds) * SECOND


def packets(times: Sequence[str | int], sources: Sequence[str] | None = None) -> pa.Table:
    """Packets at clock times or ticks, in arrival order."""
    ticks = [clock(t) if isinstance(t, str) else t for t in times]
    return pa.table(
        {
            "srcIP": pa.array(sources or ["x"] * len(ticks), pa.string()),
            "ts": pa.array(ticks, pa.int64()).cast(pa.timestamp("us")),
        }
    )


def told(answers: pa.Table, start: int = 0, tick: int = MINUTE) -> list[tuple[object, ...]]:
    """Answers as tuples, their edges in minutes (or another tick) from a start."""
    columns: list[list[object]] = []
    for column in answers.columns:
        if pa.types.is_timestamp(column.type):
            ticks = column.cast(pa.int64()).to_pylist()
            columns.append([None if t is None else (t - start) // tick for t in ticks])
        else:
            columns.append(column.to_pylist())
    return list(zip(*columns, strict=True))


# --- thesis 1.1 and 4: windows of interest, progress ----------------------------------------


def test_thesis_1_1_the_extents_of_q1_1_are_ten_minutes_one_minute_apart() -> None:
    # minutes   10   11   12  ...  20   21   22
    #           [----------------- )
    #                [------------------ )
    #                     [------------------- )
    wanted = [
        Extent(clock("00:10:00"), clock("00:20:00")),
        Extent(clock("00:11:00"), clock("00:21:00")),
        Extent(clock("00:12:00"), clock("00:22:00")),
    ]
    assert [extent(TEN_MINUTES, w) for w in (19, 20, 21)] == wanted


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-40, 40), min_size=1, max_size=12))
def test_thesis_4_punctuating_the_low_watermark_after_every_row_loses_nothing(
    stream: list[int],
) -> None:
    # arrivals         3    9    5   12   11     lwm(n) = the least that is still to come (Eq. 4.1)
    # low watermark    3    5    5   11   11
    query = "SELECT count(*) AS n, max(at) AS newest FROM S [RANGE 7 SLIDE 3 WATTR at]"
    opened = panes.open(query)
    answers = []
    for number, at in enumerate(stream, start=1):
        answers.append(opened.push(S=pa.table({"at": [at]})))
        if number < len(stream):
            answers.append(opened.punctuate(S=min(stream[number:])))
    answers.append(opened.finish())
    everything = panes.sql(query, S=pa.table({"at": stream}))
    assert pa.concat_tables(answers).to_pylist() == everything.to_pylist()
    assert len(opened.late) == 0


# --- thesis 5.1: the three functions --------------------------------------------------------

TABLE_OF_EXTENTS = [
    # minutes        0         5         10        15
    (0, 0, 1),  #    [-)
    (1, 0, 2),  #    [---)
    (2, 0, 3),
    (3, 0, 4),
    (4, 0, 5),
    (5, 0, 6),
    (6, 0, 7),
    (7, 0, 8),
    (8, 0, 9),  #    [-----------------)
    (9, 0, 10),  #   [-------------------)
    (10, 1, 11),  #    [-------------------)
    (11, 2, 12),
    (12, 3, 13),
    (13, 4, 14),
    (14, 5, 15),  #            [-------------------)
]


@pytest.mark.parametrize(("wid", "first", "end"), TABLE_OF_EXTENTS)
def test_thesis_5_1_1_the_first_fifteen_windows_have_the_printed_extents(
    wid: int, first: int, end: int
) -> None:
    # The stream begins at 00:00, so the printed extents do; the first nine are partial.
    found = extent(TEN_MINUTES, wid)
    assert (max(found.start, 0), found.end) == (first * MINUTE, end * MINUTE)


def test_thesis_5_1_1_the_first_fifteen_windows_are_answered_with_what_they_hold() -> None:
    # One packet a minute, from 00:00 to 00:14: as many packets as minutes.
    answers = panes.sql(Q5_1, Main=packets([m * MINUTE for m in range(15)]))
    assert [(end, n) for _, end, _, n in told(answers)][:15] == [
        (end, end - first) for _, first, end in TABLE_OF_EXTENTS
    ]


def test_thesis_5_1_1_window_10_of_q5_1_holds_00_01_00_to_00_11_00() -> None:
    # minutes   0    1    2   ...   10   11
    # packets       a·b                 c·d        b and c lie on the edges or just inside
    #                [------------------)
    assert extent(TEN_MINUTES, 10) == Extent(clock("00:01:00"), clock("00:11:00"))
    edges = [clock("00:01:00") - 1, clock("00:01:00"), clock("00:11:00") - 1, clock("00:11:00")]
    answers = panes.sql(Q5_1, Main=packets(edges, ["a", "b", "c", "d"]))
    assert [source for start, _, source, _ in told(answers) if start == 1] == ["b", "c"]


def test_thesis_5_1_1_a_tuple_at_00_00_05_belongs_to_windows_0_to_9() -> None:
    # seconds   0 5   60                       600
    #             x
    #           [-----)                             0
    #           [-----------...-----------------)   9
    assert list(wids(TEN_MINUTES, clock("00:00:05"))) == list(range(10))
    answers = panes.sql(Q5_1, Main=packets(["00:00:05"]))
    assert [end for _, end, _, _ in told(answers)] == list(range(1, 11))


def test_thesis_5_1_2_eq_5_3_a_tuple_five_seconds_after_the_first_is_in_windows_0_to_9() -> None:
    # 10:00:00  :05                10:10:00
    #     o      x                              o = min(T), the origin
    #     [------------)                        0
    #     [--------------- ... -------)         9
    start = clock("10:00:00")
    from_the_first = Sliding(size=10 * MINUTE, slide=MINUTE, origin=start)
    assert list(wids(from_the_first, clock("10:00:05"))) == list(range(10))


def test_thesis_5_1_2_origin_first_counts_windows_from_the_first_tuple() -> None:
    # 10:00:17 (first)   10:01:02        no tuple lies on a whole minute
    #     f                  x
    #     [-----------------)            ends a minute after the first
    #     [---------------------- ...
    query = Q5_1.replace("WATTR ts", "WATTR ts ORIGIN FIRST")
    start = clock("10:00:17")
    main = packets(["10:01:02", "10:00:17"], ["x", "f"])
    expected: list[tuple[object, ...]] = []
    for end in range(1, 11):
        expected += [(end - 10, end, "f", 1), (end - 10, end, "x", 1)]
    assert told(panes.sql(query, Main=main), start) == expected
    assert told(panes.oracle(query, Main=main), start) == expected


@pytest.mark.parametrize("ask", [panes.sql, panes.oracle])
def test_thesis_5_1_2_origin_first_of_a_stream_that_where_empties_gives_no_answers(
    ask: Callable[..., pa.Table],
) -> None:
    query = (
        "SELECT count(*) FROM Main [RANGE 4 min SLIDE 1 min WA ts ORIGIN FIRST] WHERE srcIP = 'y'"
    )
    assert len(ask(query, Main=packets(["10:00:00"], ["x"]))) == 0


def test_thesis_5_1_2_a_tumbling_window_is_one_whose_range_is_its_slide() -> None:
    # 0    5    10   15
    # [---)[---)[---)       every instant in exactly one window
    tumbling = Sliding(size=5, slide=5)
    assert [list(wids(tumbling, at)) for at in (-1, 0, 4, 5)] == [[-1], [0], [0], [1]]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 20 * 60), min_size=1, max_size=15), st.data())
def test_thesis_5_1_what_a_window_holds_does_not_depend_on_arrival_order(
    seconds: list[int], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(seconds))
    in_order = panes.sql(Q5_1, Main=packets([s * SECOND for s in sorted(seconds)]))
    disordered = panes.sql(Q5_1, Main=packets([s * SECOND for s in shuffled]))
    assert disordered.equals(in_order)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(-1200, 1200), st.sampled_from("abc")), max_size=20))
def test_thesis_5_1_3_on_a_time_axis_a_partition_is_a_group(rows: list[tuple[int, str]]) -> None:
    partitioned = "SELECT srcIP, count(*) FROM Main [RANGE 4 min SLIDE 1 min WA ts PA srcIP]"
    grouped = "SELECT srcIP, count(*) FROM Main [RANGE 4 min SLIDE 1 min WA ts] GROUP BY srcIP"
    main = packets([s * SECOND for s, _ in rows], [source for _, source in rows])
    answers = panes.sql(partitioned, Main=main)
    assert told(answers) == told(panes.sql(grouped, Main=main))
    assert told(answers) == told(panes.oracle(partitioned, Main=main))


def test_thesis_5_1_3_partitions_progress_on_their_own() -> None:
    # arrivals   a a b a a b a        RANGE 2 rows, SLIDE 2 rows
    # ranks, a   0 1   2 3   4
    #            [--)  [--)            windows 0 and 1 of a
    # ranks, b       0     1
    #                [-----)           window 0 of b
    query = "SELECT k, max(n) AS newest FROM S [RANGE 2 rows, SLIDE 2 rows, WA row-num, PA k]"
    stream = pa.table({"k": list("aabaaba"), "n": list(range(7))})
    assert told(panes.oracle(query, S=stream)) == [(0, 2, "a", 1), (0, 2, "b", 5), (2, 4, "a", 4)]


def test_thesis_5_1_4_a_landmark_window_subsumes_all_before_it() -> None:
    # minutes   0    1    2    3
    #       -------)                  0
    #       ------------)             1   everything of 0, and more
    #       -----------------)        2
    landmark = Landmark(slide=MINUTE)
    instants = range(-2 * MINUTE, 4 * MINUTE, 10 * SECOND)
    held = [{t for t in instants if w in wids(landmark, t, ids=range(4))} for w in range(4)]
    assert held[0] < held[1] < held[2] < held[3]
    assert held[2] == {t for t in instants if t < 3 * MINUTE}


def test_thesis_5_1_4_eq_5_9_a_tuple_is_in_every_landmark_window_that_ends_after_it() -> None:
    # minutes   0    1    2    3    4
    #                   x                 01:59.. is in 1, 2, 3 ... but not in 0
    landmark = Landmark(slide=MINUTE)
    assert list(wids(landmark, clock("00:01:59"), ids=range(5))) == [1, 2, 3, 4]
    assert list(wids(landmark, clock("00:02:00"), ids=range(5))) == [2, 3, 4]


def test_thesis_5_1_5_eq_5_12_a_tuple_is_in_the_windows_of_later_tuples_within_the_range() -> None:
    # t.ra        10        14 15           RANGE 5
    #              x    x    x x
    #         (----]                        its own
    #             (----]                    of 12
    #                (-------]              of 14
    #                     (----]            of 15: 10 is five ago, out
    by_tuple = PerRow(size=5)
    assert list(wids(by_tuple, 10, ids=[10, 12, 14, 15])) == [10, 12, 14]
    assert extent(by_tuple, 15) == Extent(11, 16)


def test_thesis_5_1_5_eq_5_10_every_tuple_defines_a_window_named_by_its_own_value() -> None:
    assert windows(PerRow(size=5), [15, 10, 12]) == [10, 12, 15]


def test_thesis_5_1_5_eq_5_13_every_nth_arrival_defines_a_window() -> None:
    # arrivals   1   2   3   4   5   6   7
    # values     9   2   7   1   8   3   5       SLIDE 3: the 3rd and the 6th
    assert windows(PerRow(size=5, every=3), [9, 2, 7, 1, 8, 3, 5]) == [3, 7]


def test_thesis_5_1_5_eq_5_16_every_nth_rank_defines_a_window() -> None:
    # values     1   2   3   5   7   8   9       SLIDE 3: the 3rd and the 6th in order
    # ranks      1   2   3   4   5   6   7
    assert windows(PerRow(size=5, every=3, counted_by="rank"), [9, 2, 7, 1, 8, 3, 5]) == [3, 8]


# --- thesis 6.1: WID ------------------------------------------------------------------------

CATEGORIES: list[tuple[Spec, Category]] = [
    (Sliding(size=10 * MINUTE, slide=MINUTE), Category.CONTEXT_FREE),
    (Sliding(size=MINUTE, slide=MINUTE), Category.CONTEXT_FREE),
    (Sliding(size=MINUTE, slide=10 * MINUTE), Category.CONTEXT_FREE),
    (Landmark(slide=MINUTE), Category.CONTEXT_FREE),
    (PartitionedRows(size=1000, slide=10), Category.FORWARD_CONTEXT_FREE),
    (PerRow(size=5 * MINUTE), Category.FORWARD_CONTEXT_AWARE),
    (PerRow(size=5 * MINUTE, every=5), Category.FORWARD_CONTEXT_AWARE),
    (PerRow(size=5 * MINUTE, every=5, counted_by="rank"), Category.FORWARD_CONTEXT_AWARE),
]


@pytest.mark.parametrize(("spec", "category"), CATEGORIES)
def test_thesis_6_1_2_a_window_has_the_category_of_what_a_tuple_must_know(
    spec: Spec, category: Category
) -> None:
    assert spec.category is category


def test_thesis_6_1_1_tuple_t1_has_the_window_id_range_10_to_20() -> None:
    # 12:00            12:10  12:11         12:20
    #                     x                           a tuple of the minute 12:10
    #          10 [--------------)
    #                    19 [---- ... ---------)      [10, 20): windows 10 to 19
    from_noon = Sliding(size=10 * MINUTE, slide=MINUTE, origin=clock("12:00:00"))
    for time in ("12:10:00", "12:10:31", "12:10:59"):
        assert wids(from_noon, clock(time)) == range(10, 20)


def test_thesis_6_1_a_punctuation_of_12_11_00_closes_window_10() -> None:
    # 12:00   12:01                       12:11  12:12
    #    a       b                      c    d
    #   [------- ... ------------------)          9
    #            [-------------------------)     10   12:11:00 ends this one
    #                   [----------------- ... ----)  11   open still
    noon = clock("12:00:00")
    opened = panes.open(Q5_1)
    opened.push(Main=packets(["12:00:00", "12:01:00", "12:10:59", "12:11:00"]))
    before = told(opened.punctuate(Main="1970-01-01T12:10:59.999999Z"), noon)
    window_10 = told(opened.punctuate(Main="1970-01-01T12:11:00Z"), noon)
    rest = told(opened.finish(), noon)
    assert [end for _, end, _, _ in before] == list(range(1, 11))
    assert window_10 == [(1, 11, "x", 2)]
    assert rest[0] == (2, 12, "x", 2)


def test_thesis_6_1_a_punctuation_of_12_11_00_closes_all_windows_up_to_10_at_once() -> None:
    # 12:00                        12:11
    #   [-)                                0
    #   [---)                              1
    #     ...
    #     [------------------------)      10      wid-start of the punctuation: 11
    noon = clock("12:00:00")
    from_noon = Sliding(size=10 * MINUTE, slide=MINUTE, origin=noon)
    assert windows_closed(from_noon, clock("12:11:00")) == 11
    opened = panes.open(Q5_1)
    opened.push(Main=packets(["12:00:00", "12:10:59"]))
    closed = told(opened.punctuate(Main="1970-01-01T12:11:00Z"), noon)
    assert [end - 1 for _, end, _, _ in closed if isinstance(end, int)] == list(range(11))


def test_thesis_6_1_window_ids_count_from_the_first_tuple_where_the_origin_does() -> None:
    # 12:00:00 is the first ts, though not the first to arrive; nothing closes before it is sure.
    query = Q5_1.replace("WATTR ts", "WATTR ts ORIGIN FIRST")
    noon = clock("12:00:00")
    opened = panes.open(query)
    assert len(opened.push(Main=packets(["12:10:30", "12:00:00"]))) == 0
    closed = told(opened.punctuate(Main="1970-01-01T12:11:00Z"), noon)
    assert closed == [(end - 10, end, "x", 1) for end in range(1, 11)] + [(1, 11, "x", 1)]


def test_thesis_6_1_3_3_a_punctuation_of_10_20_covers_the_window_from_10_10() -> None:
    # 10:10               10:20
    #   [-------------------)      covered
    #      [--------------------)  not
    covered = windows_closed(TEN_MINUTES, clock("10:20:00")) - 1
    assert extent(TEN_MINUTES, covered) == Extent(clock("10:10:00"), clock("10:20:00"))


def test_thesis_6_1_3_3_sixty_minutes_by_five_keep_twelve_aggregates() -> None:
    hour = Sliding(size=60 * MINUTE, slide=5 * MINUTE)
    assert hour.overlap == 12
    assert len(wids(hour, clock("10:03:00"))) == 12


def counts_by_tuple(values: Sequence[int]) -> list[tuple[object, ...]]:
    query = "SELECT A, count(*) FROM S [RANGE 10, RATTR A, SLIDE 1 row, SATTR row-num]"
    return told(panes.oracle(query, S=pa.table({"A": values})))


def test_thesis_6_1_4_1_figure_6_5_counts_by_tuple_as_tuples_arrive() -> None:
    #  A          0   2     5     8  10   12 13   15      RANGE i = 10
    #  tuples    t1  t5    t2    t3          t4
    #  start     Ss1 Ss5   Ss2   Ss3         Ss4
    #  end                           Es1 Es5     Es2 ...
    t1, t2, t3, t4, t5 = 0, 5, 8, 13, 2
    assert counts_by_tuple([t1]) == [(t1, 1)]
    assert counts_by_tuple([t1, t2]) == [(t1, 1), (t2, 2)]
    assert counts_by_tuple([t1, t2, t3]) == [(t1, 1), (t2, 2), (t3, 3)]
    # (d) t4 comes after Es1, so t1 is out of its window: t2, t3 and itself
    assert counts_by_tuple([t1, t2, t3, t4]) == [(t1, 1), (t2, 2), (t3, 3), (t4, 3)]
    # (e) t5 is late: Ss5 begins as Ss1 + 1; Ss2 and Ss3 grow by one; t4 lies after Es5
    assert counts_by_tuple([t1, t2, t3, t4, t5]) == [(t1, 1), (t5, 2), (t2, 3), (t3, 4), (t4, 3)]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(-30, 30), min_size=1, max_size=15), st.data())
def test_thesis_6_1_4_1_counts_by_tuple_do_not_depend_on_arrival_order(
    values: list[int], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(values))
    expected = [(v, sum(1 for u in values if v - 10 < u <= v)) for v in sorted(values)]
    assert counts_by_tuple(shuffled) == expected


# --- No Pane, No Gain, and thesis 6.2: panes ------------------------------------------------

#  minutes   1    2    3    4    5    6    7    8    9        pane p_i begins at minute i,
#  panes     |-p1-|-p2-|-p3-|-p4-|-p5-|-p6-|-p7-|-p8-|        window w_i begins with pane p_i
#  w1        [-------------------)
#  w2             [-------------------)
#  w3                  [-------------------)
#  w4                       [-------------------)
#  w5                            [-------------------)
FOUR_MINUTES = Sliding(size=4 * MINUTE, slide=MINUTE)


def figure_1_window(number: int) -> int:
    """The id of the window that Figure 1 calls w_number: the one that begins at that minute."""
    found = [w for w in range(20) if extent(FOUR_MINUTES, w).start == number * MINUTE]
    assert len(found) == 1
    return found[0]


def panes_in(spec: Sliding, wid: int, tick: int) -> list[int]:
    """Where the panes of a window begin, in ticks; every tick of it is asked for its pane."""
    start, end = extent(spec, wid)
    every_tick = np.arange(start, end, tick, dtype=np.int64)
    return sorted({int(p) // tick for p in cut(spec).pane_start(every_tick)})


def test_no_pane_figure_1_each_window_of_query_1_is_four_panes_of_one_minute() -> None:
    for number in range(1, 6):
        panes_of_window = panes_in(FOUR_MINUTES, figure_1_window(number), tick=SECOND)
        assert panes_of_window == [60 * p for p in range(number, number + 4)]
    assert panes_per_window(FOUR_MINUTES) == 4


def test_no_pane_figure_1_window_w3_is_composed_of_panes_p3_to_p6() -> None:
    assert panes_in(FOUR_MINUTES, figure_1_window(3), tick=MINUTE) == [3, 4, 5, 6]


def test_no_pane_figure_1_pane_p5_contributes_to_windows_w2_to_w5() -> None:
    wanted = [figure_1_window(number) for number in (2, 3, 4, 5)]
    for second in (0, 30, 59):
        assert list(wids(FOUR_MINUTES, 5 * MINUTE + second * SECOND)) == wanted


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 12 * 60 - 1), max_size=40))
def test_no_pane_3_3_1_the_count_of_w3_is_that_of_w2_less_p2_plus_p6(seconds: list[int]) -> None:
    #  p2  p3  p4  p5  p6
    #  [--w2-----------)
    #      [--w3-----------)       count(w3) = count(w2) - count(p2) + count(p6)
    bids = packets([s * SECOND for s in seconds])

    def counts(clause: str) -> dict[object, int]:
        answers = panes.sql(f"SELECT count(*) FROM bids [{clause} WATTR ts]", bids=bids)
        return {start: int(str(n)) for start, _, n in told(answers)}

    window = counts("RANGE 4 minutes SLIDE 1 minute")
    pane = counts("TUMBLING 1 minute")
    for k in range(-3, 12):
        expected = window.get(k - 1, 0) - pane.get(k - 1, 0) + pane.get(k + 3, 0)
        assert window.get(k, 0) == expected


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 12 * 60 - 1), st.integers(0, 99)), max_size=40))
def test_no_pane_3_1_the_max_of_a_window_is_the_max_of_its_panes_maxima(
    rows: list[tuple[int, int]],
) -> None:
    prices = pa.array([price for _, price in rows], pa.int64())
    bids = packets([s * SECOND for s, _ in rows]).append_column("price", prices)

    def highest(clause: str) -> dict[object, int]:
        answers = panes.sql(f"SELECT max(price) FROM bids [{clause} WATTR ts]", bids=bids)
        return {start: int(str(price)) for start, _, price in told(answers)}

    pane = highest("TUMBLING 1 minute")
    expected = {
        start: max(pane[p] for p in range(start, start + 4) if p in pane)
        for start in range(-3, 12)
        if any(p in pane for p in range(start, start + 4))
    }
    assert highest("RANGE 4 minutes SLIDE 1 minute") == expected


def test_no_pane_3_3_1_nine_minutes_by_six_have_panes_of_three_minutes() -> None:
    #  minutes   -3    0    3    6    9    12
    #  window     [-------------)                 three panes
    #  next                 [--------------)      they share one; two new ones a slide
    #  panes      |    |    |    |    |    |
    spec = Sliding(size=9 * MINUTE, slide=6 * MINUTE)
    assert math.gcd(spec.size, spec.slide) == 3 * MINUTE
    assert panes_in(spec, 0, tick=MINUTE) == [-3, 0, 3]
    assert panes_in(spec, 1, tick=MINUTE) == [3, 6, 9]
    assert panes_per_window(spec) == 3


def test_no_pane_3_1_paired_panes_are_fewer_than_those_of_the_gcd() -> None:
    #  minutes   -4   -2    0    2    4    6        RANGE 10, SLIDE 6: the gcd is 2
    #  window     [------------------------)
    #  gcd        |    |    |    |    |    |        5 panes, 3 a slide
    #  paired     |         |    |         |        3 panes, 2 a slide
    spec = Sliding(size=10 * MINUTE, slide=6 * MINUTE)
    assert math.gcd(spec.size, spec.slide) == 2 * MINUTE
    assert panes_in(spec, 0, tick=MINUTE) == [-4, 0, 2]
    assert panes_per_window(spec) == 3


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(1, 200))
def test_no_pane_3_1_there_are_never_more_panes_than_range_over_gcd(size: int, slide: int) -> None:
    panes_of_window = panes_per_window(Sliding(size=size, slide=slide))
    assert panes_of_window is not None
    assert panes_of_window <= size // math.gcd(size, slide)
