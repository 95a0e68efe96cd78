"""The library against window queries written out by hand in DuckDB SQL.

The other oracle shares the parser, the window arithmetic and the expressions with the fast
paths, so a mistake there is made twice and agrees with itself. This one shares nothing. It can
catch: an extent off by one at either end, a wrong origin or alignment, floor and truncation
mixed up before zero, a pane too many when the range is no multiple of the slide, rows counted in
gaps, row numbers taken after WHERE, landmark windows that stop early or run on, NULL keys lost or
merged, NULL and NaN treated as values (or not), a FILTER leaking into its neighbours, DISTINCT
seen across windows, aggregates that lose precision, and streams whose answers depend on arrival
order or batch split.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

import panes
from tests.reference.duckdb_sql import (
    Item,
    Question,
    Row,
    Window,
    assert_answers,
    expected,
    places,
)

examples: Callable[[int], settings] = lambda n: settings(  # noqa: E731
    max_examples=n, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

# ---------------------------------------------------------------------------- columns

MOST_ROWS = 24
YEAR_2026 = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z in microseconds
EIGHTHS = st.integers(-80, 80).map(lambda k: k / 8)  # their sums and products are exact
CENTS = st.integers(-99_999, 99_999).map(lambda k: Decimal(k).scaleb(-2))
FLOATS = st.floats(-1000, 1000, width=32)

COLUMNS: Mapping[str, tuple[SearchStrategy[Any], pa.DataType]] = {
    "a": (st.sampled_from(["x", "y", "é"]), pa.string()),
    "b": (st.integers(0, 2), pa.int64()),
    "p": (st.booleans(), pa.bool_()),
    "i": (st.integers(-5, 5), pa.int64()),
    "j": (st.integers(-100, 100), pa.int32()),
    "big": (st.integers(-(2**57), 2**57), pa.int64()),
    "f": (FLOATS, pa.float64()),
    "wild": (st.one_of(FLOATS, st.sampled_from([float("nan"), float("inf"), float("-inf")])),
             pa.float64()),
    "g": (EIGHTHS, pa.float64()),
    "h": (EIGHTHS, pa.float64()),
    "d": (CENTS, pa.decimal128(10, 2)),
    "s": (st.text("aZé😀 ", max_size=3), pa.string()),
}  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """A column that windows are laid along, and where its rows may lie."""

    column: str
    type: pa.DataType
    numbers: SearchStrategy[int]  # in the column's own unit


def _around(centre: int, spread: int, jump: int) -> SearchStrategy[int]:
    """Places in a crowd around the centre, now and then a crowd far off."""
    crowd = st.integers(centre - spread, centre + spread)
    return st.one_of(crowd, crowd, crowd, crowd.map(lambda t: t + jump))


def _instants(centre: int, unit: str) -> SearchStrategy[int]:
    """Seconds, some a hair before or after, in the unit of the column."""
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    hair = st.sampled_from([0, 0, 0, 1, per_second // 2, per_second - 1])
    seconds = _around(centre // 1_000_000, 90, 900)
    return st.builds(lambda s, h: s * per_second + h, seconds, hair)


INTEGER_AXES = st.builds(
    lambda type, jump: Axis("seq", type, _around(0, 40, jump)),
    st.sampled_from([pa.int64(), pa.int32()]),
    st.sampled_from([0, 200, -150]),
)
TIME_AXES = st.builds(
    lambda centre, unit, zone: Axis("ts", pa.timestamp(unit, zone), _instants(centre, unit)),
    st.sampled_from([0, YEAR_2026]),
    st.sampled_from(["us", "us", "ms", "s"]),
    st.sampled_from([None, "UTC"]),
)
NO_AXIS = Axis("seq", pa.int64(), st.integers(0, 3))  # row windows do not look at it


@st.composite
def tables(draw: DrawFn, axis: Axis, *, one_row_per_place: bool = False) -> pa.Table:
    """A stream with a place for every row, NULLs in every other column, and unique ``u``."""
    rows = draw(st.integers(0, MOST_ROWS))
    spots = st.lists(axis.numbers, min_size=rows, max_size=rows, unique=one_row_per_place)
    columns = {axis.column: pa.array(draw(spots), axis.type)}
    for name, (values, type) in COLUMNS.items():
        cells = st.lists(st.none() | values, min_size=rows, max_size=rows)
        columns[name] = pa.array(draw(cells), type)
    columns["u"] = pa.array(draw(st.permutations(range(rows))), pa.int64())
    return pa.table(columns)


# ---------------------------------------------------------------------------- windows


@dataclass(frozen=True)
class Case:
    """A window together with a stream to lay it over."""

    window: Window
    stream: pa.Table


def _clause(extent: str, slide: str, along: str, tail: str) -> str:
    return " ".join(f"{extent} SLIDE {slide}{along}{tail}".split())


SHAPES = ("multiple", "ragged", "tumbling", "sampling", "landmark")
SHAPE = st.sampled_from(SHAPES)


def _reach(draw: DrawFn, shape: str, slide: int, most: int) -> int | None:
    """A range for the slide, in the same unit."""
    if shape == "landmark":
        return None
    if shape == "tumbling":
        return slide
    if shape == "sampling":
        return draw(st.integers(1, slide - 1))
    if shape == "multiple":
        return slide * draw(st.integers(2, max(2, most // slide)))
    times = draw(st.integers(1, max(1, most // slide)))
    return slide * times + draw(st.integers(1, slide - 1))


def _edgy(axis: Axis, window: Window) -> Axis:
    """The same axis with half of its rows on, or just before, a bound of some window."""
    unit = {"s": 1_000_000, "ms": 1_000, "us": 1}[axis.type.unit] if axis.column == "ts" else 1

    def snap(number: int, back: int) -> int:
        place = number * unit
        return (place - (place - window.origin) % window.slide - back) // unit

    reach = window.range or 0
    bounds = st.builds(snap, axis.numbers, st.sampled_from([0, 1, reach, reach + 1, -reach]))
    return replace(axis, numbers=st.one_of(axis.numbers, bounds))


@st.composite
def integer_cases(draw: DrawFn, shape: str, one_row_per_place: bool = False) -> Case:
    """Windows along an integer column."""
    axis = draw(INTEGER_AXES)
    slide = draw(st.integers(2, 15))
    reach = _reach(draw, shape, slide, 60)
    origin = draw(st.sampled_from([None, None, 3, -7, 1000]))
    align = reach is not None and draw(st.booleans())
    tail = "" if origin is None else f" ORIGIN {origin}"
    tail += " ALIGN START" if align else ""
    if shape == "tumbling" and draw(st.booleans()):
        clause = f"TUMBLING {slide} WATTR seq{tail}"
    else:
        extent = "RANGE ALL" if reach is None else f"RANGE {reach}"
        clause = _clause(extent, str(slide), " WATTR seq", tail)
    window = Window(clause, "seq", slide, reach, origin or 0, align)
    stream = tables(_edgy(axis, window), one_row_per_place=one_row_per_place)
    return Case(window, draw(stream))


UNITS = {"milliseconds": 1_000, "seconds": 1_000_000, "minutes": 60_000_000}


@st.composite
def time_cases(draw: DrawFn, shape: str, one_row_per_place: bool = False) -> Case:
    """Windows along event time: naive or UTC, seconds to microseconds, before and after 1970."""
    axis = draw(TIME_AXES)
    unit, least, most = draw(
        st.sampled_from([("milliseconds", 600, 4_000), ("seconds", 2, 40), ("minutes", 2, 3)])
    )
    slide = draw(st.integers(least, most))
    reach = _reach(draw, shape, slide, most * 4)
    seconds = draw(st.sampled_from([None, None, 0, 11, -3]))
    align = reach is not None and draw(st.booleans())
    tail = ""
    if seconds is not None:
        at = dt.datetime(2026, 1, 1) + dt.timedelta(seconds=seconds)
        tail += f" ORIGIN '{at.isoformat()}Z'"
    tail += " ALIGN START" if align else ""
    extent = "RANGE ALL" if reach is None else f"RANGE {reach} {unit}"
    clause = _clause(extent, f"{slide} {unit}", " WATTR ts", tail)
    window = Window(
        clause,
        "epoch_us(ts)" if axis.type.unit == "us" else f"epoch_us(CAST(ts AS {_plain(axis)}))",
        slide * UNITS[unit],
        None if reach is None else reach * UNITS[unit],
        0 if seconds is None else YEAR_2026 + seconds * 1_000_000,
        align,
    )
    stream = tables(_edgy(axis, window), one_row_per_place=one_row_per_place)
    return Case(window, draw(stream))


def _plain(axis: Axis) -> str:
    return "TIMESTAMP" if axis.type.tz is None else "TIMESTAMPTZ"


@st.composite
def row_cases(draw: DrawFn, shape: str) -> Case:
    """Windows along the row number in arrival order."""
    slide = draw(st.integers(2, 6))
    reach = _reach(draw, shape, slide, 14)
    if shape in ("multiple", "ragged") and draw(st.booleans()):
        slide = 1
    origin = draw(st.sampled_from([None, None, 2, -3]))
    align = reach is not None and draw(st.booleans())
    tail = "" if origin is None else f" ORIGIN {origin}"
    tail += " ALIGN START" if align else ""
    extent = "RANGE ALL" if reach is None else f"RANGE {reach} ROWS"
    clause = _clause(extent, f"{slide} ROWS", "", tail)
    window = Window(clause, "arrival", slide, reach, origin or 0, align, by_row=True)
    return Case(window, draw(tables(NO_AXIS)))


PLACED_CASES = SHAPE.flatmap(lambda s: st.one_of(integer_cases(s), time_cases(s)))
ANY_CASES = st.one_of(PLACED_CASES, PLACED_CASES, SHAPE.flatmap(row_cases))

# ---------------------------------------------------------------------------- what is asked

COUNT = Item.same("count(*)")


def _whole_sum(column: str) -> Item:
    return Item(f"sum({column})", f"CAST(sum({column}) AS BIGINT)")


def _decimal_avg(column: str) -> Item:
    """Spark's: four more digits than the column (here 2 + 4), a half rounded away from zero."""
    total = f"CAST(sum({column}) * 1000000 AS HUGEINT)"
    rounded = f"sign({total}) * ((2 * abs({total}) + count({column})) // (2 * count({column})))"
    value = f"CAST({rounded} AS DECIMAL(30, 0)) * CAST(0.000001 AS DECIMAL(6, 6))"
    return Item(f"avg({column})", f"CASE WHEN count({column}) > 0 THEN {value} END")


def _extreme_by(name: str, value: str, by: str) -> Item:
    """The value, NULL or not, of the row with the least or greatest `by` that is not NULL."""
    order = "ASC" if name == "min_by" else "DESC"
    picked = f"list({value} ORDER BY {by} {order}) FILTER (WHERE ({by}) IS NOT NULL)"
    return Item(f"{name}({value}, {by})", f"({picked})[1]")


def _correlation(x: str, y: str) -> Item:
    """NULL, not NaN, where a side does not vary."""
    return Item(f"corr({x}, {y})", f"CASE WHEN NOT isnan(corr({x}, {y})) THEN corr({x}, {y}) END")


FAMILIES: Mapping[str, Sequence[Item]] = {
    "counts": [COUNT, *(Item.same(f"count({c})") for c in ("a", "p", "j", "wild", "d", "s"))],
    "integers": [
        *(_whole_sum(c) for c in ("i", "j", "big")),
        *(Item.same(f"{f}({c})") for f in ("avg", "min", "max") for c in ("i", "j", "big")),
    ],
    "floats": [Item.same(f"{f}({c})") for f in ("sum", "avg", "min", "max") for c in ("f", "g")],
    "decimals": [_decimal_avg("d"), *(Item.same(f"{f}(d)") for f in ("sum", "min", "max"))],
    "strings": [Item.same(f"{f}({c})") for f in ("min", "max") for c in ("s", "a")],
    "floats_with_nan_and_infinity": [
        *(Item.same(f"{f}(wild)") for f in ("min", "max", "sum", "avg", "count")),
        Item.same("count(DISTINCT wild)"),
        Item.same("quantile_disc(wild, 0.5)"),
    ],
    "spreads": [
        Item.same(f"{f}({c})")
        for f in ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
        for c in ("i", "g", "d")
    ],
    "pairs": [
        *(Item.same(f"{f}({x})") for f in ("covar_pop", "covar_samp") for x in ("g, h", "i, g")),
        _correlation("g", "h"),
        _correlation("i", "g"),
    ],
    "truths": [
        Item.same("bool_and(p)"),
        Item.same("bool_or(p)"),
        Item.same("bool_and(i > 0)"),
        Item.same("bool_or(f > 0)"),
    ],
    "quantiles": [
        *(Item.same(f"median({c})") for c in ("i", "f")),
        Item("median(d)", "median(CAST(d AS DOUBLE))"),
        *(
            Item(f"quantile({c}, {q})", f"quantile_cont(CAST({c} AS DOUBLE), {q})")
            for c in ("i", "f", "d")
            for q in (0, 0.1, 0.25, 0.5, 0.9, 1)
        ),
        *(
            Item.same(f"quantile_disc({c}, {q})")
            for c in ("i", "f", "d")
            for q in (0, 0.1, 0.25, 0.5, 0.9, 1)
        ),
    ],
    "distinct_values": [
        *(Item.same(f"count(DISTINCT {c})") for c in ("a", "p", "i", "f", "d", "s")),
        Item(
            "count(DISTINCT a, b)",
            "count(DISTINCT (a, b)) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL)",
        ),
        Item("sum(DISTINCT i)", "CAST(sum(DISTINCT i) AS BIGINT)"),
        Item.same("sum(DISTINCT g)"),
        Item.same("sum(DISTINCT d)"),
        Item.same("avg(DISTINCT i)"),
        Item.same("min(DISTINCT s)"),
        Item.same("max(DISTINCT f)"),
        Item.same("var_pop(DISTINCT i)"),
        Item.same("stddev_samp(DISTINCT g)"),
        Item.same("count(DISTINCT i) FILTER (WHERE p)"),
    ],
    "extremes_by_another_column": [
        _extreme_by(name, value, by)
        for name in ("min_by", "max_by")
        for value in ("s", "i", "f", "d", "p")
        for by in ("u", "-u", "CASE WHEN p THEN u END")
    ],
    "filtered": [
        Item.same("count(*) FILTER (WHERE i > 0)"),
        Item.same("count(f) FILTER (WHERE p)"),
        Item("sum(i) FILTER (WHERE a = 'x')", "CAST(sum(i) FILTER (WHERE a = 'x') AS BIGINT)"),
        Item.same("avg(f) FILTER (WHERE NOT p)"),
        Item.same("max(s) FILTER (WHERE f > 0)"),
        Item.same("min(f) FILTER (WHERE i > 100)"),
        Item.same("median(f) FILTER (WHERE b = 1)"),
        Item.same("stddev_pop(g) FILTER (WHERE b >= 1)"),
        Item.same("bool_and(p) FILTER (WHERE i >= 0)"),
    ],
    "expressions": [
        Item.same("sum(f * i) / count(*)"),
        Item("sum(i * j)", "CAST(sum(i * j) AS BIGINT)"),
        Item("sum(i + 1) - sum(i)", "CAST(sum(i + 1) - sum(i) AS BIGINT)"),
        Item.same("max(f) - min(f)"),
        Item.same("max(i) * 2 + 1"),
        Item.same("sum(CASE WHEN p THEN f ELSE 0.5 END)"),
        Item.same("max(abs(i))"),
        Item.same("count(*) - count(i)"),
        Item.same("coalesce(max(i), -99)"),
        Item.same("CASE WHEN count(*) > 2 THEN max(s) ELSE min(s) END"),
        Item.same("min(upper(s))"),
        Item.same("avg(coalesce(f, i, 0))"),
        Item.same("sqrt(sum(g * g)) + count(g)"),
        Item.same("count(CASE WHEN i > 0 THEN 1 END) * 100.0e0 / count(*)"),
        Item.same("count(i) = count(*)"),
    ],
}
CORE = (COUNT, _whole_sum("i"), Item.same("min(f)"), Item.same("max(s)"), Item.same("avg(g)"))

KEYS = st.sampled_from([(), ("a",), ("b",), ("p",), ("a", "b"), ("b", "p"), ("p", "a")])
CONDITIONS = st.sampled_from(
    [
        None,
        None,
        "i > 0",
        "a = 'x' OR b = 1",
        "f IS NOT NULL AND i < 3",
        "NOT p",
        "s LIKE 'a%'",
        "i % 2 = 0",
        "b IN (0, 2)",
        "i > 1000",
    ]
)


@st.composite
def questions(draw: DrawFn, window: Window, items: Sequence[Item]) -> Question:
    """A question with some of the items, some grouping and some condition."""
    asked = draw(st.lists(st.sampled_from(items), min_size=1, max_size=4, unique=True))
    return Question(window, tuple(asked), draw(KEYS), draw(CONDITIONS))


def _check(question: Question, stream: pa.Table) -> None:
    wanted = expected(question, stream)
    assert_answers(question, panes.sql(question.text, stream=stream), wanted)
    assert_answers(question, panes.oracle(question.text, stream=stream), wanted)


# ---------------------------------------------------------------------------- windows of a table


@pytest.mark.parametrize("shape", SHAPES)
@examples(11)
@given(data=st.data())
def test_windows_over_event_time_hold_the_rows_of_their_extents(
    shape: str, data: st.DataObject
) -> None:
    case = data.draw(time_cases(shape))
    _check(data.draw(questions(case.window, CORE)), case.stream)


@examples(15)
@given(SHAPE.flatmap(time_cases))
def test_bounds_of_time_windows_keep_the_zone_of_the_column(case: Case) -> None:
    question = Question(case.window, (COUNT,))
    found = panes.sql(question.text, stream=case.stream)
    for bound in ("window_start", "window_end"):
        assert pa.types.is_timestamp(found.schema.field(bound).type)
        assert found.schema.field(bound).type.tz == case.stream.schema.field("ts").type.tz


@pytest.mark.parametrize("shape", SHAPES)
@examples(11)
@given(data=st.data())
def test_windows_over_an_integer_column_hold_the_rows_of_their_extents(
    shape: str, data: st.DataObject
) -> None:
    case = data.draw(integer_cases(shape))
    _check(data.draw(questions(case.window, CORE)), case.stream)


@pytest.mark.parametrize("shape", SHAPES)
@examples(11)
@given(data=st.data())
def test_row_windows_count_arrivals_before_where_and_wait_for_their_last_row(
    shape: str, data: st.DataObject
) -> None:
    case = data.draw(row_cases(shape))
    _check(data.draw(questions(case.window, CORE)), case.stream)


# ---------------------------------------------------------------------------- what windows answer


@pytest.mark.parametrize("family", FAMILIES)
@examples(9)
@given(data=st.data())
def test_every_aggregate_answers_what_duckdb_answers_on_the_rows_of_the_window(
    family: str, data: st.DataObject
) -> None:
    case = data.draw(ANY_CASES)
    _check(data.draw(questions(case.window, FAMILIES[family])), case.stream)


@examples(18)
@given(data=st.data())
def test_aggregates_of_all_families_answer_side_by_side(data: st.DataObject) -> None:
    case = data.draw(ANY_CASES)
    everything = [item for items in FAMILIES.values() for item in items]
    _check(data.draw(questions(case.window, everything)), case.stream)


@examples(18)
@given(data=st.data())
def test_having_keeps_the_answers_whose_aliases_pass(data: st.DataObject) -> None:
    case = data.draw(ANY_CASES)
    having = data.draw(
        st.sampled_from(["c0 > 1", "c0 > 1 AND c1 IS NOT NULL", "c1 > 0 OR c2 < 0", "c1 / c0 < 1"])
    )
    items = (COUNT, _whole_sum("i"), Item.same("min(f)"))
    question = Question(case.window, items, data.draw(KEYS), data.draw(CONDITIONS), having)
    _check(question, case.stream)


@examples(18)
@given(data=st.data())
def test_first_and_last_follow_the_axis_and_not_the_arrival(data: st.DataObject) -> None:
    shape = data.draw(SHAPE)
    case = data.draw(
        st.one_of(
            integer_cases(shape, one_row_per_place=True), time_cases(shape, one_row_per_place=True)
        )
    )
    items = [
        item
        for column in ("s", "i", "f")
        for item in (
            Item(f"first({column})", f"(list({column} ORDER BY place))[1]"),
            Item(f"last({column})", f"(list({column} ORDER BY place DESC))[1]"),
        )
    ]
    _check(data.draw(questions(case.window, items)), case.stream)


# ---------------------------------------------------------------------------- streams


def _cuts(draw: Callable[[SearchStrategy[Any]], Any], rows: int) -> list[tuple[int, int]]:
    """Batches [from, to) that cover the rows in order; some may be empty."""
    inner = sorted(draw(st.lists(st.integers(0, rows), max_size=6)))
    return list(zip([0, *inner], [*inner, rows], strict=True))


def _needed_lateness(batches: Sequence[Sequence[int]]) -> int:
    """The smallest bound under which no row breaks a promise made before its batch."""
    needed, newest = 0, None
    for batch in batches:
        if newest is not None:
            needed = max([needed, *(newest - place for place in batch)])
        newest = max(batch, default=newest) if newest is None else max([newest, *batch])
    return needed


def _stream_and_check(
    question: Question,
    batches: Sequence[pa.Table],
    wanted: dict[Row, Row],
    lateness: dt.timedelta | int | None,
) -> None:
    query = panes.open(question.text, lateness=lateness)
    answers = [query.push(stream=batch) for batch in batches]
    answers.append(query.finish())
    assert len(query.late) == 0, query.late.to_pylist()
    assert_answers(question, pa.concat_tables(answers), wanted)


BOUNDED = [
    *CORE,
    _extreme_by("max_by", "s", "u"),
    Item.same("count(*) FILTER (WHERE i > 0)"),
    Item.same("stddev_pop(g) FILTER (WHERE b >= 1)"),
    *(item for name in ("integers", "decimals", "spreads") for item in FAMILIES[name]),
    *(item for name in ("pairs", "truths", "expressions") for item in FAMILIES[name]),
]
HOLISTIC = [*FAMILIES["quantiles"], *FAMILIES["distinct_values"]]


def _streamed(window: Window) -> Sequence[Item]:
    """A landmark window of a stream never ends, so exact holistic answers are refused there."""
    return BOUNDED if window.range is None else [*BOUNDED, *HOLISTIC]


@pytest.mark.parametrize("shape", SHAPES)
@examples(12)
@given(data=st.data())
def test_streams_answer_the_same_in_any_arrival_order_and_batch_split(
    shape: str, data: st.DataObject
) -> None:
    case = data.draw(st.one_of(integer_cases(shape), time_cases(shape)))
    question = data.draw(questions(case.window, _streamed(case.window)))
    rows = len(case.stream)
    shuffled = case.stream.take(pa.array(data.draw(st.permutations(range(rows))), pa.int64()))
    batches = [shuffled.slice(i, j - i) for i, j in _cuts(data.draw, rows)]
    axis = case.stream.column_names[0]
    bound = _needed_lateness([places(batch[axis]) for batch in batches])
    bound += data.draw(st.sampled_from([0, 0, 1, 5, 1_000_000]))
    lateness = dt.timedelta(microseconds=bound) if axis == "ts" else bound
    _stream_and_check(question, batches, expected(question, case.stream), lateness)


@examples(15)
@given(data=st.data())
def test_streams_without_a_lateness_answer_everything_at_their_end(data: st.DataObject) -> None:
    case = data.draw(PLACED_CASES)
    question = data.draw(questions(case.window, _streamed(case.window)))
    batches = [case.stream.slice(i, j - i) for i, j in _cuts(data.draw, len(case.stream))]
    _stream_and_check(question, batches, expected(question, case.stream), None)


@pytest.mark.parametrize("shape", SHAPES)
@examples(9)
@given(data=st.data())
def test_row_windows_of_a_stream_answer_the_same_in_any_batch_split(
    shape: str, data: st.DataObject
) -> None:
    case = data.draw(row_cases(shape))
    question = data.draw(questions(case.window, _streamed(case.window)))
    batches = [case.stream.slice(i, j - i) for i, j in _cuts(data.draw, len(case.stream))]
    _stream_and_check(question, batches, expected(question, case.stream), None)


@pytest.mark.parametrize("item", [Item.same("median(f)"), Item.same("count(DISTINCT f)")])
def test_a_push_that_reaches_no_new_window_gives_holistic_aggregates_nothing_to_answer(
    item: Item,
) -> None:
    #          0 0          both rows lie in the window [-1, 2), which stays open at progress 0;
    #   [------)            [-3, 0) is due and empty
    stream = pa.table({"seq": [0, 0], "f": [1.0, 2.0]})
    question = Question(Window("RANGE 3 SLIDE 2 WATTR seq", "seq", 2, 3), (item,))
    _stream_and_check(question, [stream], expected(question, stream), 0)
