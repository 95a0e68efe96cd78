"""Every query printed in *No Pane, No Gain* and in the thesis, as printed.

Each text is copied with its own spelling (``row-num``, ``GROUP-BY``, ``GROUPBY``, ``∪``, curly
quotes, ``WA``, tuple and rows, min and sec, ``bid-price``). It must be understood; where panes can
answer it, `panes.sql` must give what `panes.oracle` gives, and both the small table worked out by
hand. Windows per row and per partition are answered by the oracle, against tables by hand. The
joins are in `test_join_queries`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.language.parse import parse
from panes.language.query import Window
from panes.windows.spec import Landmark, PartitionedRows, PerRow, Sliding

SECOND = 1_000_000
MINUTE = 60 * SECOND

Answer = tuple[object, ...]
Ask = Callable[..., pa.Table]


@dataclass(frozen=True, slots=True)
class Printed:
    """A query as it stands in a paper, and what its reader understands."""

    name: str
    text: str
    streams: tuple[str, ...]
    window: Window | None
    keys: tuple[str, ...]
    calls: tuple[str, ...]

    @property
    def is_paned(self) -> bool:
        return self.window is not None and isinstance(self.window.spec, Sliding | Landmark)


def over_time(column: str, *, size: int, slide: int) -> Window:
    return Window(Sliding(size=size, slide=slide), "time", column)


TEN_MINUTES = over_time("ts", size=10 * MINUTE, slide=MINUTE)
FIVE_MINUTES = over_time("ts", size=5 * MINUTE, slide=MINUTE)
FOUR_MINUTES = over_time("ts", size=4 * MINUTE, slide=MINUTE)
EVERY_MINUTE = over_time("ts", size=MINUTE, slide=MINUTE)
TEN_SECONDS = over_time("ts", size=10 * SECOND, slide=SECOND)
FOUR_MINUTES_OF_BIDS = over_time("timestamp", size=4 * MINUTE, slide=MINUTE)

QUERY_1 = Printed(
    "Query 1",
    """
    SELECT max(bid-price)
    FROM bids[WATTR timestamp
              RANGE 4 minutes
              SLIDE 1 minute]
    """,
    ("bids",),
    FOUR_MINUTES_OF_BIDS,
    (),
    ("max(bid-price)",),
)
QUERY_2 = Printed(
    "Query 2",
    """
    SELECT max (bid-price)
    FROM bids [WATTR timestamp
               RANGE 4 minutes
               SLIDE 1 tuple]
    """,
    ("bids",),
    Window(PerRow(size=4 * MINUTE), "time", "timestamp"),
    (),
    ("max(bid-price)",),
)
QUERY_3 = Printed(
    "Query 3",
    """
    SELECT count(*) FROM bids
    GROUP BY item-id [WATTR timestamp
                      RANGE 4 minutes
                      SLIDE 1 minute]
    """,
    ("bids",),
    FOUR_MINUTES_OF_BIDS,
    ("item-id",),
    ("count(*)",),
)
QUERY_4 = Printed(
    "Query 4",  # printed in words only
    """
    SELECT heavy_hitters(item-id, 0.05)
    FROM bids [WATTR timestamp
               RANGE 10 minutes
               SLIDE 1 minute]
    """,
    ("bids",),
    over_time("timestamp", size=10 * MINUTE, slide=MINUTE),
    (),
    ("heavy_hitters(item-id,0.05)",),
)
Q1_1 = Printed(
    "Q1-1",
    """
    SELECT    srcIP, count(*) [RANGE 10 minutes, SLIDE 1 minute, WA ts]
    FROM      M
    GROUP BY  srcIP
    """,
    ("M",),
    TEN_MINUTES,
    ("srcIP",),
    ("count(*)",),
)
Q1_2 = Printed(
    "Q1-2",
    """
    SELECT count (*) [RANGE 1 minute, SLIDE 1 minute, WA ts]
    FROM Control union Main1 union Main2
    """,
    ("Control", "Main1", "Main2"),
    EVERY_MINUTE,
    (),
    ("count(*)",),
)
Q2_1 = Printed(
    "Q2-1",
    """
    SELECT    srcIP, ts, count (*)
    FROM      Main1
    WHERE     srcIP = “202.101.0.0” or srcIP = “202.101.0.1”
    GROUP BY  srcIP, ts
    """,
    ("Main1",),
    None,
    ("srcIP", "ts"),
    ("count(*)",),
)
Q5_1 = Printed(
    "Q5-1",
    """
    Select srcIP, count(*) [RANGE 10 minutes, SLIDE 1 minute, WATTR ts]
    From Main
    Group By srcIP
    """,
    ("Main",),
    TEN_MINUTES,
    ("srcIP",),
    ("count(*)",),
)
Q5_2 = Printed(
    "Q5-2",
    """
    SELECT srcIP, max(length)
          [RANGE 1000 rows, SLIDE 10 rows, WA row-num, PA srcIP]
    FROM   Main
    """,
    ("Main",),
    Window(PartitionedRows(size=1000, slide=10), "rows", None, ("srcIP",)),
    ("srcIP",),
    ("max(length)",),
)
Q5_3 = Printed(
    "Q5-3",
    """
    SELECT srcIP, max(length)
          [RANGE 1000 rows, SLIDE 10 rows, WA row-num]
    FROM   Main
    GROUP-BY srcIP
    """,
    ("Main",),
    Window(Sliding(size=1000, slide=10), "rows", None),
    ("srcIP",),
    ("max(length)",),
)
Q5_4 = Printed(
    "Q5-4",
    """
    SELECT srcIP, count(*) [RANGE ALL, SLIDE 1 minute, WA ts]
    FROM Main1
    GROUP BY srcIP
    """,
    ("Main1",),
    Window(Landmark(slide=MINUTE), "time", "ts"),
    ("srcIP",),
    ("count(*)",),
)
Q5_5 = Printed(
    "Q5-5",
    """
    SELECT max(length)
          [RANGE 5 minutes, RATTR ts, SLIDE 1 row, SATTR row-num]
    FROM Main
    """,
    ("Main",),
    Window(PerRow(size=5 * MINUTE), "time", "ts"),
    (),
    ("max(length)",),
)
Q5_6 = Printed(
    "Q5-6",
    """
    SELECT count(*)
          [RANGE 5 minutes, RATTR ts, SLIDE 5 rows, SATTR rank(ts)]
    FROM Main
    """,
    ("Main",),
    Window(PerRow(size=5 * MINUTE, every=5, counted_by="rank"), "time", "ts"),
    (),
    ("count(*)",),
)
Q6_1 = Printed(
    "Q6-1",
    """
    Select srcIP, count(*) [RANGE 10 minutes, SLIDE 1 minute, WA ts]
    From Main
    Group By srcIP
    """,
    ("Main",),
    TEN_MINUTES,
    ("srcIP",),
    ("count(*)",),
)
Q6_2 = Printed(
    "Q6-2",
    """
    SELECT max(length) [RANGE 4 minutes, SLIDE 1 minute, WA ts]
    FROM Main
    """,
    ("Main",),
    FOUR_MINUTES,
    (),
    ("max(length)",),
)
Q6_3 = Printed(
    "Q6-3",
    """
    SELECT count(*) [RANGE 4 minutes, SLIDE 1 minute, WA ts]
    FROM packets
    GROUP BY srcIP
    """,
    ("packets",),
    FOUR_MINUTES,
    ("srcIP",),
    ("count(*)",),
)
Q6_4 = Printed(
    "Q6-4",  # printed in words only
    """
    SELECT heavy_hitters(srcIP, 0.05) [RANGE 10 minutes, SLIDE 1 minute, WA ts]
    FROM Main
    """,
    ("Main",),
    TEN_MINUTES,
    (),
    ("heavy_hitters(srcIP,0.05)",),
)
Q6_5 = Printed(
    "Q6-5",
    """
    SELECT srcIP, count(*)
              [RANGE 5 minutes, SLIDE 1 minute, WA ts]
    FROM M1
    GROUP BY srcIP
    """,
    ("M1",),
    FIVE_MINUTES,
    ("srcIP",),
    ("count(*)",),
)
Q6_6 = Printed(
    "Q6-6",
    """
    SELECT srcIP, sum(len)
          [RANGE 10 seconds, SLIDE 1 second, WA ts]
    FROM packets
    GROUPBY srcIP
    """,
    ("packets",),
    TEN_SECONDS,
    ("srcIP",),
    ("sum(len)",),
)
Q6_7 = Printed(
    "Q6-7",
    """
    SELECT srcIP, sum(len)
          [RANGE 1 second, SLIDE 1 second, WA ts]
    FROM Main
    GROUP-BY srcIP
    """,
    ("Main",),
    over_time("ts", size=SECOND, slide=SECOND),
    ("srcIP",),
    ("sum(len)",),
)
Q6_8 = Printed(
    "Q6-8",
    """
    SELECT count(*)
          [RANGE 10 sec, SLIDE 1 sec, WA ts]
    FROM (Main2 ∪ (Main1 ∪ Control))
    GROUP-BY srcIP
    """,
    ("Main2", "Main1", "Control"),
    TEN_SECONDS,
    ("srcIP",),
    ("count(*)",),
)
Q8_1 = Printed(
    "Q8-1",
    """
    SELECT      srcIP, destIP, count(*)
               [RANGE 1 minute, SLIDE 1 minute, WA ts]
    FROM        Main
    GROUP BY    srcIP,
               destIP
    """,
    ("Main",),
    EVERY_MINUTE,
    ("srcIP", "destIP"),
    ("count(*)",),
)
Q8_2 = Printed(
    "Q8-2",
    """
    SELECT    srcIP, destIP, count(*)
              [RANGE 1 minute, SLIDE 1 minute, WA ts]
    FROM      M1 UNION M2
    GROUP BY  srcIP, destIP
    """,
    ("M1", "M2"),
    EVERY_MINUTE,
    ("srcIP", "destIP"),
    ("count(*)",),
)
Q8_5 = Printed(
    "Q8-5",
    """
    SELECT    count(*)
              [RANGE 5 minutes, SLIDE 1 minute, WA ts]
    FROM      M1 UNION M2 UNION C
    """,
    ("M1", "M2", "C"),
    FIVE_MINUTES,
    (),
    ("count(*)",),
)

PRINTED = [
    *(QUERY_1, QUERY_2, QUERY_3, QUERY_4),
    *(Q1_1, Q1_2, Q2_1),
    *(Q5_1, Q5_2, Q5_3, Q5_4, Q5_5, Q5_6),
    *(Q6_1, Q6_2, Q6_3, Q6_4, Q6_5, Q6_6, Q6_7, Q6_8),
    *(Q8_1, Q8_2, Q8_5),
]
PANED = [query for query in PRINTED if query.is_paned]


# --- tables ---------------------------------------------------------------------------------


def timestamps(ticks: Sequence[int]) -> pa.Array:
    return pa.array(ticks, pa.int64()).cast(pa.timestamp("us", "UTC"))


def bids(rows: Sequence[tuple[int, str | None, int | None]]) -> pa.Table:
    """Bids of (tick, item, price), in arrival order (No Pane 1)."""
    return pa.table(
        {
            "item-id": pa.array([item for _, item, _ in rows], pa.string()),
            "bid-price": pa.array([price for _, _, price in rows], pa.int64()),
            "timestamp": timestamps([tick for tick, _, _ in rows]),
        }
    )


def packets(rows: Sequence[tuple[int, str | None, int | None]], dest: str = "z") -> pa.Table:
    """Packets of (tick, source, length), in arrival order (thesis 1.1)."""
    sources = pa.array([source for _, source, _ in rows], pa.string())
    lengths = pa.array([length for _, _, length in rows], pa.int64())
    ports = pa.array([80] * len(rows), pa.int32())
    return pa.table(
        {
            "srcIP": sources,
            "srcPort": ports,
            "destIP": pa.array([dest] * len(rows), pa.string()),
            "destPort": ports,
            "len": lengths,
            "length": lengths,
            "ts": timestamps([tick for tick, _, _ in rows]),
        }
    )


def at(minutes: int, seconds: float = 0) -> int:
    """The tick that a clock shows as minutes and seconds."""
    return minutes * MINUTE + round(seconds * SECOND)


def told(answers: pa.Table, tick: int = MINUTE) -> list[Answer]:
    """Answers as tuples, their edges in minutes (or another tick)."""
    columns: list[list[object]] = []
    for column in answers.columns:
        if pa.types.is_timestamp(column.type):
            ticks = column.cast(pa.int64()).to_pylist()
            columns.append([None if t is None else t // tick for t in ticks])
        else:
            columns.append(column.to_pylist())
    return list(zip(*columns, strict=True))


def both_tell(query: Printed, tick: int = MINUTE, **streams: pa.Table) -> list[Answer]:
    """What `panes.sql` answers, once the oracle has agreed."""
    answers, expected = panes.sql(query.text, **streams), panes.oracle(query.text, **streams)
    assert answers.schema == expected.schema
    assert told(answers, tick) == told(expected, tick)
    return told(answers, tick)


def named(queries: Sequence[Printed]) -> list[object]:
    return [pytest.param(query, id=query.name) for query in queries]


def squeezed(sql: str) -> str:
    """SQL without its blanks: ``bid - price`` is how the text ``bid-price`` is kept."""
    return "".join(sql.split()).replace('"', "")


# --- what is understood ---------------------------------------------------------------------


@pytest.mark.parametrize("query", named(PRINTED))
def test_a_printed_query_reads_the_streams_it_names(query: Printed) -> None:
    assert parse(query.text).streams == query.streams


@pytest.mark.parametrize("query", named(PRINTED))
def test_a_printed_window_clause_gives_its_kind_axis_and_partition(query: Printed) -> None:
    assert parse(query.text).window == query.window


@pytest.mark.parametrize("query", named(PRINTED))
def test_a_printed_query_groups_by_its_keys(query: Printed) -> None:
    keys = [squeezed(key.expression.sql()) for key in parse(query.text).keys]
    assert keys == list(query.keys)


@pytest.mark.parametrize("query", named(PRINTED))
def test_a_printed_query_asks_for_its_aggregates(query: Printed) -> None:
    assert [squeezed(call.sql) for call in parse(query.text).calls] == list(query.calls)


# --- what is answered: any rows -------------------------------------------------------------


def rows_around(slide: int) -> st.SearchStrategy[list[tuple[int, str | None, int | None]]]:
    """Rows in any order, on both sides of zero, often on an edge or one tick beside it."""
    on_edges = st.tuples(st.integers(-25, 25), st.sampled_from([-1, 0, 0, 1]))
    ticks = st.one_of(
        on_edges.map(lambda edge: edge[0] * slide + edge[1]),
        st.integers(-25 * slide, 25 * slide),
    )
    keys = st.sampled_from(["a", "b", "c", None])
    values = st.one_of(st.none(), st.integers(-50, 1500))
    row = st.tuples(ticks, keys, values)
    return st.integers(0, 45).flatmap(lambda n: st.lists(row, min_size=n, max_size=n))


@pytest.mark.parametrize("query", named(PANED))
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_a_printed_query_is_answered_as_the_oracle_does(
    query: Printed, data: st.DataObject
) -> None:
    assert query.window is not None
    assert isinstance(query.window.spec, Sliding | Landmark)
    slide = query.window.spec.slide
    table = bids if query.streams == ("bids",) else packets
    streams = {name: table(data.draw(rows_around(slide), label=name)) for name in query.streams}
    both_tell(query, **streams)


# --- what is answered: worked by hand -------------------------------------------------------


def test_query_1_and_q6_2_give_the_highest_value_of_four_minutes_every_minute() -> None:
    # minutes   0    1    2    3    4    5    6    7    8    9    10
    # values      5    9                         2
    #    )----+                                        [-3, 1)   5
    #         [-------------------)                    [ 0, 4)   9
    #              [-------------------)               [ 1, 5)   9, without the 5
    #                   [-------------------)          [ 2, 6)   empty: not reported
    #                        [-------------------)     [ 3, 7)   2
    rows = [(at(0, 30), "a", 5), (at(1, 30), "b", 9), (at(6, 10), "a", 2)]
    expected: list[Answer] = [
        (-3, 1, 5),
        (-2, 2, 9),
        (-1, 3, 9),
        (0, 4, 9),
        (1, 5, 9),
        (3, 7, 2),
        (4, 8, 2),
        (5, 9, 2),
        (6, 10, 2),
    ]
    assert both_tell(QUERY_1, bids=bids(rows)) == expected
    assert both_tell(Q6_2, Main=packets(rows)) == expected


def test_query_3_and_q6_3_count_per_key_though_the_key_is_not_selected() -> None:
    # minutes   0    1    2    3    4    5
    # rows       a b       a
    #           [-------------------)              [0, 4)   a 2, b 1
    #                [-------------------)         [1, 5)   a 1
    rows = [(at(0, 10), "a", 1), (at(0, 50), "b", 1), (at(2, 0), "a", 1)]
    expected: list[Answer] = [
        (-3, 1, "a", 1),
        (-3, 1, "b", 1),
        (-2, 2, "a", 1),
        (-2, 2, "b", 1),
        (-1, 3, "a", 2),
        (-1, 3, "b", 1),
        (0, 4, "a", 2),
        (0, 4, "b", 1),
        (1, 5, "a", 1),
        (2, 6, "a", 1),
    ]
    assert both_tell(QUERY_3, bids=bids(rows)) == expected
    assert both_tell(Q6_3, packets=packets(rows)) == expected


@pytest.mark.parametrize("ask", [panes.sql, panes.oracle])
def test_query_3_calls_its_key_by_the_name_of_the_column(ask: Ask) -> None:
    answers = ask(QUERY_3.text, bids=bids([(0, "a", 1)]))
    assert answers.column_names[:3] == ["window_start", "window_end", "item-id"]


def test_query_4_and_q6_4_find_what_makes_up_five_percent_of_ten_minutes() -> None:
    # minutes   0      1      2  ...  10     11
    # rows      a×19 b a
    #           [-----)                              a 19, b  1    1 of 20 is 5 %
    #           [------------)  ...                  a 20          1 of 21 is less
    #                  [--------------------)        a  1
    rows = [(at(0, i), "a", 1) for i in range(19)] + [(at(0, 30), "b", 1), (at(1, 0), "a", 1)]

    def hitters(**counts: int) -> list[dict[str, object]]:
        return [{"item": item, "count": count} for item, count in counts.items()]

    expected: list[Answer] = [(-9, 1, hitters(a=19, b=1))]
    expected += [(end - 10, end, hitters(a=20)) for end in range(2, 11)]
    expected += [(1, 11, hitters(a=1))]
    assert both_tell(QUERY_4, bids=bids(rows)) == expected
    assert both_tell(Q6_4, Main=packets(rows)) == expected


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 60))
def test_query_4_counts_an_item_of_exactly_five_percent_among_the_heavy_ones(
    twentieth: int,
) -> None:
    rows = [(0, "a" if i % 20 else "b", 1) for i in range(20 * twentieth)]
    for _, _, hitters in both_tell(QUERY_4, bids=bids(rows)):
        assert hitters == [
            {"item": "a", "count": 19 * twentieth},
            {"item": "b", "count": twentieth},
        ]


def test_q1_1_q5_1_and_q6_1_count_the_packets_of_ten_minutes_per_source() -> None:
    # minutes   0    1    2   ...   9    10   11   12  ...  19
    # rows        x    y              x
    #    )----+                                                [-9,  1)  x 1
    #         [---------- ... ----------)                      [ 0, 10)  x 2, y 1
    #              [----- ... ---------------)                 [ 1, 11)  x 1, y 1
    #                   [ ... --------------------)            [ 2, 12)  x 1
    rows = [(at(0, 30), "x", 1), (at(1, 10), "y", 1), (at(9, 30), "x", 1)]
    expected: list[Answer] = [(-9, 1, "x", 1)]
    for end in range(2, 10):
        expected += [(end - 10, end, "x", 1), (end - 10, end, "y", 1)]
    expected += [(0, 10, "x", 2), (0, 10, "y", 1), (1, 11, "x", 1), (1, 11, "y", 1)]
    expected += [(end - 10, end, "x", 1) for end in range(12, 20)]
    assert both_tell(Q1_1, M=packets(rows)) == expected
    assert both_tell(Q5_1, Main=packets(rows)) == expected
    assert both_tell(Q6_1, Main=packets(rows)) == expected


def test_q1_2_counts_the_packets_of_three_links_every_minute() -> None:
    # minutes    0            1            2            3
    # Control      c
    # Main1           m                  m
    # Main2                   n                    n
    #            [-----------)[-----------)[-----------)
    #                 2             2            1
    answers = both_tell(
        Q1_2,
        Control=packets([(at(0, 10), "c", 1)]),
        Main1=packets([(at(0, 20), "m", 1), (at(1, 59), "m", 1)]),
        Main2=packets([(at(1, 0), "n", 1), (at(2, 30), "n", 1)]),
    )
    assert answers == [(0, 1, 2), (1, 2, 2), (2, 3, 1)]


def test_q1_2_keeps_equal_packets_of_different_links_apart() -> None:
    same = packets([(at(0, 10), "c", 1)])
    assert both_tell(Q1_2, Control=same, Main1=same, Main2=same) == [(0, 1, 3)]


@pytest.mark.parametrize("ask", [panes.sql, panes.oracle])
def test_q2_1_has_no_window_and_is_asked_to_say_one(ask: Ask) -> None:
    main1 = pa.table({"srcIP": ["202.101.0.0"], "ts": [0]})
    with pytest.raises(panes.QueryError, match="no window"):
        ask(Q2_1.text, Main1=main1)


def test_q2_1_reads_its_curly_quotes_as_strings() -> None:
    where = parse(Q2_1.text).where
    assert where is not None
    assert where.sql() == "srcIP = '202.101.0.0' OR srcIP = '202.101.0.1'"


def test_q2_1_with_a_window_of_one_minute_counts_two_sources_minute_by_minute() -> None:
    # ts in minutes   7          8
    # rows           .0 .1 .0    .1 .9        (.9 is filtered out)
    #                [---------)[------)
    query = Printed(
        "Q2-1 in a window",
        Q2_1.text.replace("Main1\n", "Main1 [TUMBLING 1 WATTR ts]\n"),
        Q2_1.streams,
        Window(Sliding(size=1, slide=1), "integer", "ts"),
        Q2_1.keys,
        Q2_1.calls,
    )
    sources = [f"202.101.0.{i}" for i in (0, 1, 0, 1, 9)]
    main1 = pa.table({"srcIP": sources, "ts": [7, 7, 7, 8, 8]})
    assert parse(query.text).window == query.window
    assert both_tell(query, Main1=main1) == [
        (7, 8, "202.101.0.0", 7, 2),
        (7, 8, "202.101.0.1", 7, 1),
        (8, 9, "202.101.0.1", 8, 1),
    ]


# Twenty-five packets of three sources, as they arrive. Lengths are arrival numbers.
#
# row      0         1         2
#          0123456789012345678901234
# source   aaaaaaaaabaabaabbbbbbbbcc
SOURCES = "aaaaaaaaabaabaabbbbbbbbcc"
MAIN = packets([(row, source, row) for row, source in enumerate(SOURCES)])


def test_q5_3_takes_the_rows_of_a_window_and_then_groups_them() -> None:
    # rows     0         10        20   25
    #          [--------)                        window  0   a 8, b 9
    #          [------------------)              window  1   a 14, b 19
    #          [-----------------------· · · )   window  2   not answered: row 29 is to come
    answers = both_tell(Q5_3, Main=MAIN)
    assert answers == [
        (-990, 10, "a", 8),
        (-990, 10, "b", 9),
        (-980, 20, "a", 14),
        (-980, 20, "b", 19),
    ]


def test_q5_3_forgets_a_row_after_a_thousand_more() -> None:
    # rows     0   10      1000  1010
    #          [-------------)             longest: row 0
    #              [-------------)         longest: row 1009
    lengths = [5000, *range(1, 1010)]
    main = packets([(row, "a", length) for row, length in enumerate(lengths)])
    assert both_tell(Q5_3, Main=main)[-2:] == [(0, 1000, "a", 5000), (10, 1010, "a", 1009)]


def test_q5_2_splits_the_stream_before_it_takes_windows_of_rows() -> None:
    # ranks of a   0 ... 9   10  11        rows 0-8, 10 | 11, 13, 14       13 rows
    #              [--------)              window 0 of a: row 10 is its last
    # ranks of b   0 ... 9                 rows 9, 12, 15-22               10 rows
    #              [--------)              window 0 of b: row 22 is its last
    # ranks of c   0 1                     rows 23, 24: no window yet
    answers = panes.oracle(Q5_2.text, Main=MAIN)
    assert answers.column_names[:3] == ["window_start", "window_end", "srcIP"]
    assert told(answers) == [(-990, 10, "a", 10), (-990, 10, "b", 22)]


def test_q5_2_counts_a_thousand_rows_of_each_source_on_its_own() -> None:
    # a and b alternate; the first packet of each is its longest, b's longer than a's
    #
    # ranks   0   10      1000  1010
    #         [-------------)             a 7000    b 8000
    #             [-------------)         a 2018    b 2019      (arrival numbers)
    lengths = [7000, 8000, *range(2, 2020)]
    main = packets([(row, "ab"[row % 2], length) for row, length in enumerate(lengths)])
    assert told(panes.oracle(Q5_2.text, Main=main))[-4:] == [
        (0, 1000, "a", 7000),
        (0, 1000, "b", 8000),
        (10, 1010, "a", 2018),
        (10, 1010, "b", 2019),
    ]


@pytest.mark.parametrize("where", ["", "WHERE length > 700"])
@settings(deadline=None, max_examples=40)
@given(
    lengths=st.integers(0, 35).flatmap(lambda n: st.lists(st.sampled_from([7, 900]), min_size=n))
)
def test_q5_2_over_a_single_source_asks_what_q5_3_asks(where: str, lengths: list[int]) -> None:
    # WHERE hides rows from the aggregate; it does not change their arrival numbers.
    #
    # rows      0        10       20          one source, so ranks are arrival numbers
    # kept        x   x      x
    #           [-------)
    #           [----------------)            both queries answer both windows
    main = packets([(row, "a", length) for row, length in enumerate(lengths)])
    partitioned = Q5_2.text.replace("Main\n", f"Main {where}\n")
    grouped = Q5_3.text.replace("Main\n", f"Main {where}\n")
    assert told(panes.oracle(partitioned, Main=main)) == told(panes.oracle(grouped, Main=main))


def test_q5_4_counts_everything_since_the_first_packet_every_minute() -> None:
    # minutes   0    1    2    3    4
    # rows        x         y  x
    #      -------)                       x 1
    #      ------------)                  x 1       no new row, yet answered
    #      -----------------)             x 2, y 1  holds the last row: the end
    rows = [(at(0, 30), "x", 1), (at(2, 10), "y", 1), (at(2, 50), "x", 1)]
    assert both_tell(Q5_4, Main1=packets(rows)) == [
        (None, 1, "x", 1),
        (None, 2, "x", 1),
        (None, 3, "x", 2),
        (None, 3, "y", 1),
    ]


def test_query_2_gives_the_highest_bid_of_the_last_four_minutes_with_every_bid() -> None:
    # minutes   0    1    2    3    4    5
    # prices    7    3              2    1
    #                9
    #           ]                             7
    #           -----]                        9     for both bids of minute 1
    #           (-------------------]         9     minute 0 is four minutes ago: out
    #                (-------------------]    2     so is minute 1
    rows = [(at(0), "a", 7), (at(1), "a", 3), (at(1), "a", 9), (at(4), "a", 2), (at(5), "a", 1)]
    answers = panes.oracle(QUERY_2.text, bids=bids(rows))
    assert told(answers) == [(7,), (9,), (9,), (9,), (2,)]


def test_q5_5_gives_a_late_packet_to_the_windows_that_follow_it_in_time() -> None:
    # minutes     0    1    2    3    4    5    6    7
    # arrivals  1st       4th      3rd       2nd
    # lengths    10        90       20        30
    #            ]                                     10
    #            ----------]                           90
    #            -------------------]                  90
    #                 (-----------------------]        90    (6 - 5, 6]: minute 2 is in, 0 is out
    rows = [(at(0), "a", 10), (at(6), "a", 30), (at(4), "a", 20), (at(2), "a", 90)]
    assert told(panes.oracle(Q5_5.text, Main=packets(rows))) == [(10,), (90,), (90,), (90,)]


def test_q5_5_leaves_out_what_is_exactly_five_minutes_old() -> None:
    # ticks    0   1                  5 min   5 min + 1
    #          (-----------------------]                   tick 0 is out
    #              (------------------------------]        so is tick 1
    rows = [(0, "a", 9), (1, "a", 8), (at(5), "a", 1), (at(5) + 1, "a", 2)]
    assert told(panes.oracle(Q5_5.text, Main=packets(rows))) == [(9,), (9,), (8,), (2,)]


def test_q5_6_answers_every_fifth_packet_in_the_order_of_ts() -> None:
    # minutes   0   1   2   3   4   5   6   7   8   9   10
    # arrival   7   5  11   9   1   3  10   8   2   6   4
    # rank      1   2   3   4   5   6   7   8   9  10   11
    #           ----------------]                            rank  5   minutes 0..4   5 packets
    #                               (----------------]       rank 10   minutes 5..9   5 packets
    order = [4, 8, 5, 10, 1, 9, 0, 7, 3, 6, 2]
    main = packets([(at(minute), "a", 1) for minute in order])
    assert told(panes.oracle(Q5_6.text, Main=main)) == [(5,), (5,)]


def test_q5_6_counted_by_arrival_answers_other_packets() -> None:
    # minutes   0   1   2   3   4   5   6   7   8   9   10
    # arrival   7   5  11   9   1   3  10   8   2   6   4
    #           ----]                                          5th    minute 1   2 packets
    #               (---------------]                         10th    minute 6   5 packets
    by_arrival = Q5_6.text.replace("rank(ts)", "row-num")
    order = [4, 8, 5, 10, 1, 9, 0, 7, 3, 6, 2]
    main = packets([(at(minute), "a", 1) for minute in order])
    assert told(panes.oracle(by_arrival, Main=main)) == [(2,), (5,)]


def test_q5_6_ranks_packets_of_one_instant_by_their_arrival() -> None:
    # minutes   0        1
    # packets   a b c d  e f        rank 5 is e: (1 - 5, 1] holds all six, f included
    main = packets([(at(1), "a", 1)] * 2 + [(at(0), "a", 1)] * 4)
    assert told(panes.oracle(Q5_6.text, Main=main)) == [(6,)]


def test_q6_5_gives_a_packet_on_an_edge_to_the_window_that_starts_there() -> None:
    # minutes   0    1    2    3    4    5    6
    # rows      x                        x
    #           [------------------------)           first x only
    #                [------------------------)      second x only
    answers = both_tell(Q6_5, M1=packets([(at(0), "x", 1), (at(5), "x", 1)]))
    assert answers == [(end - 5, end, "x", 1) for end in range(1, 11)]


def test_q6_6_adds_up_the_lengths_of_ten_seconds_every_second() -> None:
    # seconds   0    1   ...   9    10   11        19   20
    # lengths     100            40
    #           [---- ... ----------)                        100 + 40
    #                [--- ... ---------------)                     40
    answers = both_tell(
        Q6_6,
        SECOND,
        packets=packets([(at(0, 0.5), "x", 100), (at(0, 9.5), "x", 40)]),
    )
    expected: list[Answer] = [(end - 10, end, "x", 100) for end in range(1, 10)]
    expected += [(0, 10, "x", 140)]
    expected += [(end - 10, end, "x", 40) for end in range(11, 20)]
    assert answers == expected


def test_q6_7_adds_up_the_lengths_of_every_second() -> None:
    # seconds   0         1         2
    # lengths    10   20  5
    #           [--------)[--------)
    rows = [(at(0, 0.1), "x", 10), (at(0, 0.9), "x", 20), (at(0, 1), "x", 5)]
    assert both_tell(Q6_7, SECOND, Main=packets(rows)) == [(0, 1, "x", 30), (1, 2, "x", 5)]


def test_q6_8_counts_the_packets_of_three_links_per_source() -> None:
    # seconds   0    1    2   ...  10   11   12
    # Main2       x
    # Main1            x
    # Control          y
    #           [---- ... ---------)              x 2, y 1
    #                [--- ... --------------)     x 1, y 1
    answers = both_tell(
        Q6_8,
        SECOND,
        Main2=packets([(at(0, 0.5), "x", 1)]),
        Main1=packets([(at(0, 1.5), "x", 1)]),
        Control=packets([(at(0, 1.5), "y", 1)]),
    )
    expected: list[Answer] = [(-9, 1, "x", 1)]
    for end in range(2, 11):
        expected += [(end - 10, end, "x", 2), (end - 10, end, "y", 1)]
    expected += [(1, 11, "x", 1), (1, 11, "y", 1)]
    assert answers == expected


def test_q8_1_and_q8_2_count_every_minute_per_source_and_destination() -> None:
    # minutes   0                 1             2
    # packets    x→p  x→q  x→p    y→p
    #           [----------------)[------------)
    to_p = packets([(at(0, 10), "x", 1), (at(0, 50), "x", 1), (at(1, 10), "y", 1)], dest="p")
    to_q = packets([(at(0, 30), "x", 1)], dest="q")
    expected: list[Answer] = [(0, 1, "x", "p", 2), (0, 1, "x", "q", 1), (1, 2, "y", "p", 1)]
    assert both_tell(Q8_1, Main=pa.concat_tables([to_q, to_p])) == expected
    assert both_tell(Q8_2, M1=to_p, M2=to_q) == expected


def test_q8_5_counts_the_packets_of_three_links_over_five_minutes() -> None:
    # minutes   0    1    2    3    4    5    6
    # M1          x
    # M2               x
    # C                                    x
    #           [------------------------)             [0, 5)    2
    #                [------------------------)        [1, 6)    2
    #                     [------------------------)   [2, 7)    1
    answers = both_tell(
        Q8_5,
        M1=packets([(at(0, 30), "x", 1)]),
        M2=packets([(at(1, 30), "x", 1)]),
        C=packets([(at(5, 30), "x", 1)]),
    )
    assert answers == [
        (-4, 1, 1),
        *((end - 5, end, 2) for end in range(2, 7)),
        *((end - 5, end, 1) for end in range(7, 11)),
    ]
