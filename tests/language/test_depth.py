"""However deep or long a text is, it is answered, or refused in words that name the bound.

Catches: a chain that is as deep as it is long, a way into a bracket that is not counted, brackets
beside each other that are counted as if they were in each other, and trees that are written in
another text once they are balanced, by which states would no longer know them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

import panes
from panes.errors import QueryError
from panes.expressions.balance import balance
from panes.expressions.dialect import parse_select
from panes.language.depth import MOST_DEEP, MOST_OPEN
from panes.language.parse import parse
from tests.deep import DEEP, LONG, asked
from tests.support import read

ROWS = pa.table({"at": [1, 2, 3], "v": [1, 2, 30_000], "s": ["a", "1", "x"]})
ASKING: dict[str, Callable[[str], Any]] = {
    "sql": lambda text: panes.sql(text, t=ROWS),
    "oracle": lambda text: panes.oracle(text, t=ROWS),
    "explain": lambda text: panes.explain(text, t=ROWS),
    "open": lambda text: panes.open(text).push(t=ROWS),
    "register": lambda text: panes.register("t").add("deep", text),
    "ask": lambda text: registered().ask(text),
}


def registered() -> Any:
    reg: Any = panes.register("t")
    reg.add("all", "SELECT count(*) AS n FROM t [TUMBLING 10 WATTR at]")
    reg.push(ROWS)
    return reg


@pytest.mark.parametrize("host", ASKING)
@pytest.mark.parametrize("kind", DEEP)
def test_what_is_too_deep_is_refused_by_every_way_to_ask(kind: str, host: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        ASKING[host](asked(DEEP[kind](40)))


@pytest.mark.parametrize("kind", DEEP)
def test_what_is_very_deep_is_refused_in_the_same_words(kind: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        parse(asked(DEEP[kind](800)))


@pytest.mark.parametrize("kind", DEEP)
def test_ten_levels_are_not_too_deep(kind: str) -> None:
    parse(asked(DEEP[kind](10)))


@pytest.mark.long
@pytest.mark.parametrize("kind", LONG)
def test_a_thousand_beside_each_other_are_answered(kind: str) -> None:
    text = asked(LONG[kind](1_000))
    assert panes.sql(text, t=ROWS).equals(panes.oracle(text, t=ROWS))


def test_the_bound_is_where_it_is_said_to_be() -> None:
    for opened, closed in (("(", ")"), ("abs(", ")"), ("CASE WHEN true THEN ", " END")):
        most = MOST_OPEN - 1  # one more is that of `max`

        def text(n: int, opened: str = opened, closed: str = closed) -> str:
            return f"SELECT max({opened * n}v{closed * n}) AS m FROM t [TUMBLING 10 WATTR at]"

        assert panes.sql(text(most), t=ROWS).num_rows == 1
        with pytest.raises(QueryError, match=f"{MOST_OPEN} brackets"):
            parse(text(most + 1))
    with pytest.raises(QueryError, match=f"{MOST_DEEP} operators") as refused:
        parse(asked("v" + " + v" * 500 + " > 0"))
    assert refused.value.line == 1
    assert panes.sql(asked("v" + " + v" * 150 + " > 0"), t=ROWS).num_rows == 1


def test_brackets_beside_each_other_are_not_in_each_other() -> None:
    many = 100
    for condition in (
        " AND ".join(["(abs(v) > 0)"] * many),
        " OR ".join(["NOT v = 1"] * many),
        f"coalesce({', '.join(['- v'] * many)}) = 1",
        f"CASE {' '.join(['WHEN NOT v = 1 THEN - v'] * many)} END = 1",
        " AND ".join(["CAST(NULL AS ARRAY<ARRAY<INT>>) IS NULL"] * many),
        " AND ".join(["CASE WHEN v = 1 THEN true ELSE false END"] * many),
        "s RLIKE '" + "(a)" * many + "'",
        "s RLIKE '" + r"\\(" * many + "'",
        "s RLIKE '[" + "(" * many + "]'",
        "s = '" + "(" * many + "'",
    ):
        parse(asked(condition))


def test_a_deep_alias_does_not_make_a_condition_deeper_than_the_bound() -> None:
    deep = "v" + " + v" * 150
    text = f"SELECT {deep} AS x, max(v) AS m FROM t [TUMBLING 10 WATTR at] GROUP BY x"
    assert panes.sql(text, t=ROWS).num_rows == 3
    with pytest.raises(QueryError, match="nested too deeply"):
        parse(f"{text} HAVING x{' + x' * 150} > 0")


def test_streams_of_a_join_are_bounded() -> None:
    def text(n: int) -> str:
        on = (f"JOIN t{i} ON t{i - 1}.v = t{i}.v AND t{i}.at = t{i - 1}.at" for i in range(1, n))
        return f"SELECT t0.v FROM t0 {' '.join(on)}"

    assert len(read(text(32)).streams) == 32
    with pytest.raises(QueryError, match="joins 32 streams at the most"):
        read(text(33))
    with pytest.raises(QueryError, match="joins 32 streams at the most"):
        read(text(2_000))
    with pytest.raises(QueryError, match="nested too deeply"):
        read(f"SELECT l.v FROM l JOIN r ON l.v = r.v AND {DEEP['brackets'](500)}")


CONDITIONS = st.recursive(
    st.sampled_from(["a", "b = 1", "NOT c", "(d)"]),
    lambda inner: st.builds(
        lambda word, parts: word.join(parts),
        st.sampled_from([" AND ", " OR "]),
        st.lists(inner, min_size=2, max_size=9),
    ),
    max_leaves=60,
)


@given(CONDITIONS)
def test_a_balanced_tree_is_the_same_text(condition: str) -> None:
    tree = parse_select(f"SELECT {condition}")
    before = {name: tree.sql(name) for name in ("spark", "duckdb")}
    balance(tree)
    assert {name: tree.sql(name) for name in before} == before


def test_a_balanced_chain_is_as_deep_as_the_logarithm_of_its_length() -> None:
    for n in (2, 3, 4, 5, 100, 1_000):
        tree = parse_select("SELECT " + LONG["OR"](n))
        balance(tree)
        level, levels = [tree.expressions[0]], 0
        while level := [c for node in level for c in node.args.values() if isinstance(c, exp.Or)]:
            levels += 1
        assert levels == max(0, (n - 1).bit_length() - 1), n


def test_a_stack_that_is_half_used_up_already_is_enough() -> None:
    def down(levels: int) -> None:
        if levels:
            return down(levels - 1)
        panes.sql(asked(DEEP["calls"](MOST_OPEN - 1)), t=ROWS)
        panes.sql(asked("v" + " + v" * 150 + " > 0"), t=ROWS)
        return None

    down(sys.getrecursionlimit() // 10)


CHAINS = {
    "SELECT at, v + v AS v FROM {}": "nested too deeply",
    "SELECT at, v FROM {0} UNION ALL SELECT at, v FROM {0}": "too many words",
    "SELECT at, v FROM {}": "nested too deeply",
}


@pytest.mark.parametrize(("body", "reason"), CHAINS.items())
def test_names_of_with_in_each_other_do_not_grow_for_ever(body: str, reason: str) -> None:
    parts = ["w0 AS (SELECT at, v FROM t)"]
    parts += [f"w{i + 1} AS ({body.format(f'w{i}')})" for i in range(60)]
    text = f"WITH {', '.join(parts)} SELECT max(v) AS m FROM w60 [TUMBLING 10 WATTR at]"
    with pytest.raises(QueryError, match=reason):
        panes.open(text)


def test_names_of_with_that_double_are_bounded_before_they_are_deep() -> None:
    parts = ["w0 AS (SELECT at, v FROM t)"]
    parts += [f"w{i + 1} AS (SELECT at, v + v AS v FROM w{i})" for i in range(20)]
    with pytest.raises(QueryError, match="too long as one"):
        panes.open(f"WITH {', '.join(parts)} SELECT max(v) AS m FROM w20 [TUMBLING 10 WATTR at]")
