"""A register gives every query what it would get alone, whatever runs beside it.

Catches: a piece, filter or edge that two queries share and should not; a window answered twice, too
early, from panes that do not know all of its rows, or not at all; anything left behind by a query
that was removed or by a restart. What a query gets alone is the oracle's answer for streams on
time, and that of `tests.reference.alone` for late rows and for when answers come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

import panes
from panes.reference.compare import same
from tests.reference.alone import EVERYTHING, NOTHING, Row, answers, table_of
from tests.reference.histories import (
    HISTORIES,
    Histories,
    batches,
    choices,
    forget_keys_early,
    letter,
    lines_of,
    questions,
)
from tests.reference.sharded_histories import ShardedHistories
from tests.strategies import streams
from tests.support import AGGREGATES, assert_same, select, slow

GROUPS = ("", "GROUP BY k", "GROUP BY k, b", "GROUP BY i % 3")
WHERES = ("", "WHERE i > -5", "WHERE b", "WHERE x > 1.5 OR s = 'p'", "WHERE NOT b AND i < 4")
HAVINGS = ("", "", "HAVING count(*) > 1")


@st.composite
def texts(draw: st.DrawFn, most: int = 3, groups: tuple[str, ...] = GROUPS) -> str:
    """A query over t: any sliding window, filter, grouping and aggregates."""
    size, slide = draw(st.integers(1, 40)), draw(st.sampled_from([1, 2, 3, 4, 6, 10, 12, 15]))
    origin = draw(st.sampled_from(["", "", "ORIGIN 1", "ORIGIN -5"]))
    chosen = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=most, unique=True))
    group, having = draw(st.sampled_from(groups)), draw(st.sampled_from(HAVINGS))
    return (
        f"SELECT {select(tuple(chosen))} FROM t [RANGE {size} SLIDE {slide} WATTR at {origin}] "
        f"{draw(st.sampled_from(WHERES))} {group} {having}"
    )


def sorted_by_window(answers: list[pa.Table]) -> pa.Table:
    """Answers of several pushes by window; inside a window they came together, in order."""
    table = pa.concat_tables(answers)
    ends = table["window_end"].to_pylist()
    return table.take(pa.array(sorted(range(len(table)), key=ends.__getitem__), pa.int64()))


@settings(max_examples=60)
@given(table=streams, asked=st.lists(texts(), min_size=1, max_size=6), data=st.data())
def test_every_query_of_any_set_gets_the_oracles_answers(
    table: pa.Table, asked: list[str], data: st.DataObject
) -> None:
    """Rows in any order, in any batches, with honest promises in between."""
    order = data.draw(st.permutations(range(len(table))))
    shuffled = table.take(pa.array(order, pa.int64()))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=4)))
    reg = panes.register("t")
    for i, text in enumerate(asked):
        assert reg.add(str(i), text).exact_from is None
    found: dict[str, list[pa.Table]] = {str(i): [] for i in range(len(asked))}

    def take(answers: Mapping[str, pa.Table]) -> None:
        for name, answer in answers.items():
            assert len(answer)
            found[name].append(answer)

    for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
        take(reg.push(shuffled.slice(begin, end - begin)))
        take(reg.punctuate(min(shuffled["at"].slice(end).to_pylist(), default=1_000)))
    take(reg.finish())
    assert not len(reg.late)
    assert reg.state["partials"] == 0
    for i, text in enumerate(asked):
        want = panes.oracle(text, t=table)
        got = found[str(i)]
        assert_same(sorted_by_window(got) if got else want.slice(0, 0), want)


@settings(max_examples=60)
@given(batch=batches, choice=choices, data=st.data())
def test_the_definition_is_the_oracles(
    batch: list[tuple[int, Any]], choice: dict[str, Any], data: st.DataObject
) -> None:
    """What histories are compared with is, over a bounded stream, what the oracle says."""
    rows = [Row(at, letter(at, key), *rest) for at, (key, *rest) in batch]
    question = data.draw(questions(choice))
    want = panes.oracle(question.text, t=table_of(rows))
    got = answers(question, rows, after=NOTHING, until=EVERYTHING)
    assert same(got, lines_of(want)), f"{got} instead of {want.to_pylist()}"


@pytest.mark.parametrize("examples", [25, slow(HISTORIES.max_examples)])
def test_any_history_of_a_register_is_that_of_its_queries_alone(
    monkeypatch: pytest.MonkeyPatch, examples: int
) -> None:
    forget_keys_early(monkeypatch)
    run_state_machine_as_test(Histories, settings=settings(HISTORIES, max_examples=examples))


@pytest.mark.parametrize("examples", [8, slow(HISTORIES.max_examples)])
def test_any_history_over_shards_is_that_of_its_queries_alone(
    monkeypatch: pytest.MonkeyPatch, examples: int
) -> None:
    forget_keys_early(monkeypatch)
    many = settings(HISTORIES, max_examples=examples)
    run_state_machine_as_test(ShardedHistories, settings=many)
