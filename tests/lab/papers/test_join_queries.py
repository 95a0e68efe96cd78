"""Every join printed in the thesis, as printed: understood, and answered as nested loops do.

Bands as the example of Q5-8 has them: with ranges `a` on the left and `b` on the right, rows are
joined if ``l.ts - b <= r.ts < l.ts + a``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes
from panes.language.join_query import JoinQuery
from tests.support import read

SECOND = 1_000_000
MINUTE = 60 * SECOND
Packet = dict[str, Any]

JOINS = {
    "Q3-1": """
    SELECT *
    FROM Main1 [WA ts, RANGE 3 min],
         Main2 [WA ts, RANGE 2 min]
    WHERE Main1.srcIP = Main2.destIP;
    """,
    "Q5-7": """
    SELECT Main1.srcIP, Main1.destIP, Main2.srcIP, Main2.destIP, Main2.ts
    FROM Main1, Main2
    [RANGE TUMBLING 5 minutes, WA ts],
    WHERE Main1.srcIP = Main2.destIP
    """,
    "Q5-8": """
    SELECT Main1.srcIP, Main1.destIP, Main2.srcIP, Main2.destIP, Main2.ts
    FROM Main1 [RANGE 3 minutes, WA ts],
    Main2 [RANGE 2 minutes, WA ts]
    WHERE Main1.srcIP = Main2.destIP
    """,
    "Q7-1": """
    SELECT S0.ts, S1.ts, count(*)
    FROM   S0 [WA ts, RANGE 2 min],
           S1 [WA ts, RANGE 2 min]
    WHERE  S0.srcIP = S1.destIP and S0.destIP = S1.srcIP and
           S0.srcPort = S1.destPort and S0.destPort = S1.srcPort and
           ((S0.ts < S1.ts and S0.flag = SYN and S1.flag = SYN_ACK) or
            (S0.ts > S1.ts and S0.flag = SYN_ACK and S1.flag = SYN))
    GROUP BY S0.ts, S1.ts;
    """,
    "Q7-2": """
    SELECT count(*) [RANGE 1 minute, SLIDE 1 minute, WA M1.ts]
    FROM M1 [RANGE 9 seconds, WA ts],
          M2 [RANGE 9 seconds, WA ts]
    WHERE M1.srcIP = M2.destIP and M1.destIP = M2.srcIP and
          M1.srcPort = M2.destPort and M1.destPort = M2.srcPort
    """,  # printed with a RANGE of n, which the text varies from 1 second to 9
    "Q8-3": """
    SELECT    M1.srcIP, M1.destIP, M1.ts
    FROM      A UNION B as M1, C UNION D as M2
    [RANGE TUMBLING 10 seconds, WA ts],
    WHERE    M1.srcIP = M2.destIP and M1.destIP = M2.srcIP and
    M1.srcPort = M2.destPort and M1.destPort = M2.srcPort
    """,
    "Q8-4": """
    SELECT    M1.srcIP, M1.destIP, M1.ts
    FROM      M1, M2 Union C as M3
              [RANGE TUMBLING 1 minute, WA ts]
    WHERE     M1.srcIP = M3.destIP and M1.destIP = M3.srcIP and
              M1.srcPort = M3.destPort and M1.destPort = M3.srcPort
    """,
}
STREAMS = {
    "Q3-1": ("Main1", "Main2"),
    "Q5-7": ("Main1", "Main2"),
    "Q5-8": ("Main1", "Main2"),
    "Q7-1": ("S0", "S1"),
    "Q7-2": ("M1", "M2"),
    "Q8-3": ("A", "B", "C", "D"),
    "Q8-4": ("M1", "M2", "C"),
}
FLAGS = ("SYN", "SYN_ACK")


@pytest.mark.parametrize("name", JOINS)
def test_a_printed_join_reads_the_streams_it_names(name: str) -> None:
    query = read(JOINS[name], ())
    assert isinstance(query, JoinQuery)
    assert query.streams == STREAMS[name]


# --- any rows -------------------------------------------------------------------------------

addresses = st.sampled_from(["x", "y", None])
ports = st.sampled_from([80, 81])
# Twelve steps of 30 seconds, and now and then a tick beside: edges of bands and windows are hit.
instants = st.builds(
    lambda half, beside: half * 30 * SECOND + beside,
    st.integers(0, 12),
    st.sampled_from([-1, 0, 1]),
)
packets = st.lists(
    st.fixed_dictionaries(
        {
            "ts": instants,
            "srcIP": addresses,
            "destIP": addresses,
            "srcPort": ports,
            "destPort": ports,
            "flag": st.sampled_from(FLAGS),
        }
    ),
    max_size=8,
)


def table(rows: list[Packet], *, constants: bool = False) -> pa.Table:
    """Packets as a table; Q7-1 compares with SYN and SYN_ACK, which are columns here."""
    names = ("srcIP", "destIP", "flag")
    columns: dict[str, pa.Array] = {
        "ts": pa.array([r["ts"] for r in rows], pa.int64()).cast(pa.timestamp("us", "UTC")),
        **{n: pa.array([r[n] for r in rows], pa.string()) for n in names},
        **{n: pa.array([r[n] for r in rows], pa.int64()) for n in ("srcPort", "destPort")},
    }
    if constants:
        columns |= {flag: pa.array([flag] * len(rows), pa.string()) for flag in FLAGS}
    return pa.table(columns)


def answers(query: str, streams: dict[str, pa.Table]) -> list[str]:
    """What `panes.sql` gives, once the oracle has agreed."""
    got, want = panes.sql(query, **streams), panes.oracle(query, **streams)
    assert got.schema == want.schema
    assert told(got) == told(want)
    return told(got)


def told(found: pa.Table) -> list[str]:
    columns = [
        c.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(c.type) else c.to_pylist()
        for c in found.columns
    ]
    return sorted(map(repr, zip(*columns, strict=True)))


def is_in_band(left: Packet, right: Packet, *, a: int, b: int) -> bool:
    return bool(left["ts"] - b <= right["ts"] < left["ts"] + a)


def one_way(left: Packet, right: Packet) -> bool:
    return left["srcIP"] is not None and left["srcIP"] == right["destIP"]


def both_ways(left: Packet, right: Packet) -> bool:
    return (
        one_way(left, right)
        and left["destIP"] is not None
        and left["destIP"] == right["srcIP"]
        and left["srcPort"] == right["destPort"]
        and left["destPort"] == right["srcPort"]
    )


def pairs(
    left: list[Packet], right: list[Packet], joins: Callable[[Packet, Packet], bool]
) -> list[tuple[Packet, Packet]]:
    return [(a, b) for a in left for b in right if joins(a, b)]


@settings(max_examples=15)
@given(packets, packets)
def test_q3_1_gives_all_columns_of_pairs_in_the_band(
    left: list[Packet], right: list[Packet]
) -> None:
    streams = {"Main1": table(left), "Main2": table(right)}
    found = panes.sql(JOINS["Q3-1"], **streams)
    assert found.column_names[:2] == ["Main1.ts", "Main1.srcIP"]
    joined = pairs(left, right, lambda a, b: one_way(a, b)
                   and is_in_band(a, b, a=3 * MINUTE, b=2 * MINUTE))  # fmt: skip
    want = [tuple(x[n] for x in pair for n in table([]).column_names) for pair in joined]
    assert answers(JOINS["Q3-1"], streams) == sorted(map(repr, want))


@settings(max_examples=15)
@given(packets, packets)
def test_q5_7_and_q5_8_join_in_windows_and_in_a_band(
    left: list[Packet], right: list[Packet]
) -> None:
    streams = {"Main1": table(left), "Main2": table(right)}
    size = 5 * MINUTE
    same = pairs(left, right, lambda a, b: one_way(a, b) and a["ts"] // size == b["ts"] // size)
    want = [
        (b["ts"] // size * size, b["ts"] // size * size + size,
         a["srcIP"], a["destIP"], b["srcIP"], b["destIP"], b["ts"])
        for a, b in same
    ]  # fmt: skip
    assert answers(JOINS["Q5-7"], streams) == sorted(map(repr, want))
    near = pairs(left, right, lambda a, b: one_way(a, b)
                 and is_in_band(a, b, a=3 * MINUTE, b=2 * MINUTE))  # fmt: skip
    selected = [(a["srcIP"], a["destIP"], b["srcIP"], b["destIP"], b["ts"]) for a, b in near]
    assert answers(JOINS["Q5-8"], streams) == sorted(map(repr, selected))


@settings(max_examples=15)
@given(packets, packets)
def test_q7_1_counts_pairs_for_each_pair_of_positions(
    left: list[Packet], right: list[Packet]
) -> None:
    streams = {"S0": table(left, constants=True), "S1": table(right)}

    def joins(a: Packet, b: Packet) -> bool:
        flags = (a["flag"], b["flag"])
        in_turn = (a["ts"] < b["ts"] and flags == FLAGS) or (
            a["ts"] > b["ts"] and flags == FLAGS[::-1]
        )
        return both_ways(a, b) and is_in_band(a, b, a=2 * MINUTE, b=2 * MINUTE) and in_turn

    counts: dict[tuple[int, int], int] = {}
    for a, b in pairs(left, right, joins):
        counts[a["ts"], b["ts"]] = counts.get((a["ts"], b["ts"]), 0) + 1
    want = [(*at, n) for at, n in counts.items()]
    assert answers(JOINS["Q7-1"], streams) == sorted(map(repr, want))
    quoted = JOINS["Q7-1"].replace("= SYN_ACK", "= 'SYN_ACK'").replace("= SYN ", "= 'SYN' ")
    quoted = quoted.replace("= SYN)", "= 'SYN')")
    assert answers(quoted, {"S0": table(left), "S1": table(right)}) == sorted(map(repr, want))


@settings(max_examples=15)
@given(packets, packets)
def test_q7_2_counts_pairs_in_each_minute(left: list[Packet], right: list[Packet]) -> None:
    band = 9 * SECOND
    near = pairs(left, right, lambda a, b: both_ways(a, b) and is_in_band(a, b, a=band, b=band))
    counts: dict[int, int] = {}
    for a, _ in near:
        minute = a["ts"] // MINUTE * MINUTE
        counts[minute] = counts.get(minute, 0) + 1
    want = [(minute, minute + MINUTE, n) for minute, n in counts.items()]
    streams = {"M1": table(left), "M2": table(right)}
    assert answers(JOINS["Q7-2"], streams) == sorted(map(repr, want))


@settings(max_examples=15)
@given(packets, packets, packets, packets)
def test_q8_3_and_q8_4_join_unions_in_tumbling_windows(
    a: list[Packet], b: list[Packet], c: list[Packet], d: list[Packet]
) -> None:
    def joined(left: list[Packet], right: list[Packet], size: int) -> list[str]:
        same = pairs(left, right, lambda x, y: both_ways(x, y)
                     and x["ts"] // size == y["ts"] // size)  # fmt: skip
        edges = [(x["ts"] // size * size, x) for x, _ in same]
        return sorted(
            repr((start, start + size, x["srcIP"], x["destIP"], x["ts"])) for start, x in edges
        )

    streams = {"A": table(a), "B": table(b), "C": table(c), "D": table(d)}
    assert answers(JOINS["Q8-3"], streams) == joined(a + b, c + d, 10 * SECOND)
    streams = {"M1": table(a), "M2": table(b), "C": table(c)}
    assert answers(JOINS["Q8-4"], streams) == joined(a, b + c, MINUTE)


# --- worked examples of chapters 5, 7 and 8 -------------------------------------------------


def flow(*at: int) -> pa.Table:
    """Packets of one flow at some minutes, which answer each other."""
    return table(
        [
            {
                "ts": t * MINUTE,
                "srcIP": "x",
                "destIP": "x",
                "srcPort": 1,
                "destPort": 1,
                "flag": "SYN",
            }
            for t in at
        ]
    )


def test_thesis_5_2_1_a_delayed_stream_is_joined_by_position_and_not_by_arrival() -> None:
    # Main1 is five minutes behind. Main2 is at 10:09 .. 10:10 when 10:03 of Main1 comes. By
    # arrival they would be in the buffers together, and joined; by position they are six apart.
    #
    # minutes   3    4    5    6    7    8    9
    # Main1     x
    # Main2          x                        x      r < l + 3: the first only
    query = panes.open(JOINS["Q5-8"])
    assert len(query.push(Main1=flow(), Main2=flow(4, 9))) == 0
    assert query.push(Main1=flow(3))["ts"].cast(pa.int64()).to_pylist() == [4 * MINUTE]


BY_POSITIONS = """
    SELECT S0.ts, S1.ts, count(*) AS n FROM S0, S1
    WHERE S0.srcIP = S1.destIP AND S1.ts BETWEEN S0.ts - INTERVAL 2 MINUTES
                                             AND S0.ts + INTERVAL 2 MINUTES
    GROUP BY S0.ts, S1.ts
"""
BY_S1 = BY_POSITIONS.replace("SELECT S0.ts, S1.ts", "SELECT S1.ts").replace(
    "GROUP BY S0.ts, S1.ts", "GROUP BY S1.ts"
)


def test_thesis_figure_7_5_a_group_closes_by_joint_punctuation_before_the_slab_does() -> None:
    # The group (S0.ts, S1.ts) = (0, 1), in a band of two minutes to both sides. Minutes, by turns:
    #
    #                                    joint         individual on S1.ts
    #     S0 promises 1, S1 promises 1   (1, 1)        S1: min(1, 1 - 2) = -1
    #     S0 promises 2                  (2, 1)        S1: min(1, 2 - 2) = 0
    #     S1 promises 2                  (2, 2)        S1: 0     (0, 1) is in the box: given
    #     S0 promises 3, 4               ..            S1: 1, 2  the slab S1.ts < 2: given
    #
    # The thesis prints that (2, 1) covers the group; a promise p says that nothing *before* p will
    # come, so S1.ts = 1 is covered once S1 promises 2. The order of events is the same.
    joint, slab = panes.open(BY_POSITIONS), panes.open(BY_S1)
    for query in (joint, slab):
        query.push(S0=flow(0), S1=flow(1))
        assert len(query.punctuate(S0=MINUTE, S1=MINUTE)) == 0
        assert len(query.punctuate(S0=2 * MINUTE)) == 0
    assert joint.punctuate(S1=2 * MINUTE)["n"].to_pylist() == [1]
    assert len(slab.punctuate(S1=2 * MINUTE)) == 0
    assert len(slab.punctuate(S0=3 * MINUTE)) == 0
    assert slab.punctuate(S0=4 * MINUTE)["n"].to_pylist() == [1]


def test_thesis_7_1_each_side_is_forgotten_by_the_progress_of_the_other() -> None:
    # Q5-8: r in [l - 2, l + 3).  minutes  0  1  2  3  4  5
    #                              Main1    x     x     x
    #                              Main2    x     x     x
    # Main2 promises 5: l is needed while l + 3 > 5, so 4 stays (and 2 + 3 = 5 goes)
    # Main1 promises 4: r is needed while r + 2 >= 4, so 2 and 4 stay
    query = panes.open(JOINS["Q5-8"])
    query.push(Main1=flow(0, 2, 4), Main2=flow(0, 2, 4))
    query.punctuate(Main2=5 * MINUTE)
    assert (query.state["left_rows"], query.state["right_rows"]) == (1, 3)
    query.punctuate(Main1=4 * MINUTE)
    assert (query.state["left_rows"], query.state["right_rows"]) == (1, 2)


def test_thesis_figure_7_1_a_row_whose_partners_have_all_come_is_not_stored() -> None:
    # Main2 is complete up to minute 9: a row of Main1 at 3 joins what is there, and is not kept.
    query = panes.open(JOINS["Q5-8"])
    query.push(Main1=flow(), Main2=flow(3, 4))
    query.punctuate(Main2=9 * MINUTE)
    assert len(query.push(Main1=flow(3))) == 2
    assert query.state["left_rows"] == 0


def test_thesis_figure_7_2_windows_of_a_tumbling_join_are_forgotten_whole() -> None:
    # Q5-7, windows of five minutes.   0    5    10
    # Main1                             x x  x
    # Main2 promises 4:59               nothing is forgotten, the window [0, 5) is open
    # Main2 promises 5:00               the first two go
    query = panes.open(JOINS["Q5-7"])
    query.push(Main1=flow(1, 3, 6), Main2=flow())
    query.punctuate(Main2=5 * MINUTE - SECOND)
    assert query.state["left_rows"] == 3
    query.punctuate(Main2=5 * MINUTE)
    assert query.state["left_rows"] == 1


def test_thesis_7_1_windows_over_the_later_position_close_first() -> None:
    # The thesis has this the other way round: it lets max(S0.ts, S1.ts) wait for both and
    # min(S0.ts, S1.ts) for the first of both. A pair before 4 in its *later* row has both rows
    # before 4, so it is enough that neither can come; a pair before 4 in its *earlier* row may
    # still find a partner up to the width of the band behind.
    #
    # minutes   0    1    2    3    4    5    6
    # S0             x
    # S1                  x
    # both promise 4: no pair to come has both rows before 4; S0 at 3 and S1 at 5 may still come
    query = "SELECT count(*) AS n [TUMBLING 4 minutes WATTR {}(S0.ts, S1.ts)] FROM S0, S1 " + (
        "WHERE S0.srcIP = S1.destIP AND S1.ts BETWEEN S0.ts - INTERVAL 2 MINUTES "
        "AND S0.ts + INTERVAL 2 MINUTES"
    )
    later, earlier = panes.open(query.format("max")), panes.open(query.format("min"))
    for one in (later, earlier):
        one.push(S0=flow(1), S1=flow(2))
    assert later.punctuate(S0=4 * MINUTE, S1=4 * MINUTE)["n"].to_pylist() == [1]
    assert len(earlier.punctuate(S0=4 * MINUTE, S1=4 * MINUTE)) == 0
    assert len(earlier.punctuate(S0=6 * MINUTE)) == 0
    assert earlier.punctuate(S1=6 * MINUTE)["n"].to_pylist() == [1]


def test_thesis_figure_8_4_only_the_delayed_side_makes_the_other_wait() -> None:
    # A band of two minutes; S0 is five minutes behind S1. With promises as far as rows have come,
    # the join keeps S1 as long as S0 lags, and of S0 only what S1 can still reach: nothing.
    text = BY_POSITIONS.replace("SELECT S0.ts, S1.ts, count(*) AS n", "SELECT S0.ts").partition(
        "GROUP"
    )[0]
    query = panes.open(text, lateness="0 seconds")
    query.push(S0=flow(), S1=flow())
    for minute in range(12):
        early = [minute - 5] if minute >= 5 else []
        query.push(S0=flow(*early), S1=flow(minute))
    assert query.state["left_rows"] == 0  # S0 is at 6, S1 at 11
    assert query.state["right_rows"] == 8  # of S1, minutes 4 to 11
