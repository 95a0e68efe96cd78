"""Query text comes from strangers: it may not reach files, settings, clocks or other statements.

Two walls, each tested without the other: the rule on what an expression may be, and the DuckDB
that evaluates expressions, which sees nothing but the batch it is given.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

import panes
from panes.errors import PanesError
from panes.expressions.projection import _answered, _database
from panes.language.expressions import quoted, require_known
from panes.language.functions import REFUSED, SCALARS
from panes.language.grammar import parse_select
from panes.language.tokens import tokenize
from tests.hostile import ATTACKS, HOSTILE_NAMES, PLACES

BIDS = pa.table(
    {
        "at": [1, 2, 3],
        "item": ["a", "b", "c"],
        "price": [1.0, 2.0, 3.0],
        "moment": pa.array([0, 1_000_000, 2_000_000], pa.timestamp("us")),
    }
)


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("the secret")


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_expression_reaches_beyond_its_row(attack: str, place: str, tmp_path: Path) -> None:
    text = PLACES[place].format(ATTACKS[attack])
    for ask in (panes.sql, panes.explain, panes.oracle):
        with pytest.raises(PanesError) as refusal:
            ask(text, bids=BIDS)
        assert "the secret" not in str(refusal.value)
    with pytest.raises(PanesError):
        panes.explain(text)
    assert not (tmp_path / "written.csv").exists()


@pytest.mark.usefixtures("_elsewhere")
def test_a_register_refuses_a_strangers_query_when_it_is_added() -> None:
    register = panes.register("bids", schema=BIDS.schema)
    with pytest.raises(PanesError, match="without subqueries"):
        register.add("q", PLACES["key"].format(ATTACKS["subquery"]))
    assert register.queries() == {}


@pytest.mark.long
@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT content FROM read_text('secret.txt')",
        "SELECT * FROM 'secret.txt'",
        "COPY (SELECT 42) TO 'written.csv'",
        "SELECT 1; SELECT 2",
        "ATTACH 'other.db'",
        "SET threads = 1",
        "INSTALL httpfs",
        "SELECT * FROM BIDS",
        "SELECT repeat('x', 1000000000) FROM range(100) ORDER BY 1",
    ],
)
def test_the_evaluating_database_sees_only_its_batch(text: str, tmp_path: Path) -> None:
    with pytest.raises((duckdb.Error, PanesError)):
        _answered(_database().cursor(), pa.table({"v0": [1]}), text)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["secret.txt"]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_any_name_is_a_name(name: str) -> None:
    """As a column, a key, an alias and the axis: what the oracle and brute force say."""
    table = pa.table({f"t{name}": [1, 2, 11], name: ["a", "a", "b"], f"x{name}": [1, 2, 3]})
    at, key, value = (quoted(n) for n in table.column_names)
    text = (
        f"SELECT {key}, max({value} + 1) AS {quoted(name + '!')}, upper({key}) AS u FROM s "
        f"[TUMBLING 10 WATTR {at}] WHERE {value} + 0 < 9 GROUP BY {key}"
    )
    expected = [
        {"window_start": 0, "window_end": 10, name: "a", f"{name}!": 3, "u": "A"},
        {"window_start": 10, "window_end": 20, name: "b", f"{name}!": 4, "u": "B"},
    ]
    assert panes.sql(text, s=table).to_pylist() == expected
    assert panes.oracle(text, s=table).to_pylist() == expected


# Typographic quotes are what papers print for plain ones, and are read as such everywhere.
LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="“”‘’")


@given(st.text(LETTERS, max_size=12))
def test_any_string_is_a_string(value: str) -> None:
    """A literal comes back as it was written, whatever other engines think of its characters."""
    written = value.replace("\\", "\\\\").replace("'", "\\'")
    text = f"SELECT max(concat(item, '{written}')) AS n FROM bids [TUMBLING 10 WATTR at]"
    assert panes.sql(text, bids=BIDS).column("n").to_pylist() == ["c" + value]


@pytest.mark.parametrize("count", range(1, 5))
def test_known_functions_are_parsed_into_known_parts(count: int) -> None:
    """However many arguments they are given: every function is a call by its own name."""
    arguments = ", ".join(f"c{i}" for i in range(count))
    for name in sorted(SCALARS - OPERATORS):
        tree = parse_select(tokenize(f"SELECT {name}({arguments})"), "")
        assert "written in the query" in refusal(tree), name
        (call,) = tree.expressions
        kept = (exp.Substring, exp.Trim, exp.StrPosition, exp.Overlay)
        assert isinstance(call, kept) or call.name.lower() == name


OPERATORS = {"position", "overlay", "trim"}
"""Functions whose arguments are written with words between them."""


def refusal(tree: exp.Expression) -> str:
    """Why a tree is refused; columns as lengths are, which is right and not meant here."""
    try:
        require_known(tree)
    except panes.QueryError as error:
        return str(error)
    return "none, it is written in the query"


def test_a_function_is_known_or_refused_but_not_both() -> None:
    assert not SCALARS & REFUSED.keys()


def test_what_a_comment_says_goes_nowhere() -> None:
    text = "SELECT max(price /* ; */ + 1 /*+ */) AS n FROM bids [TUMBLING 10 WATTR at] -- */ ;"
    assert panes.sql(text, bids=BIDS).column("n").to_pylist() == [4.0]


@pytest.mark.usefixtures("_elsewhere")
def test_a_field_of_a_struct_may_have_any_name(tmp_path: Path) -> None:
    name = "`a: 1}); COPY (SELECT 42) TO 'written.csv'; SELECT ({'b`"
    text = PLACES["argument"].format(f"struct(price AS {name}).{name}")
    assert panes.sql(text, bids=BIDS).column("n").to_pylist() == [3.0]
    assert not (tmp_path / "written.csv").exists()


def test_what_only_spark_evaluates_is_refused_by_name_with_a_way_out() -> None:
    documents = pa.table({"at": [1], "doc": ["{}"]})
    text = "SELECT max(get_json_object(doc, '$.a')) AS n FROM s [TUMBLING 10 WATTR at]"
    for ask in (panes.sql, panes.oracle, panes.explain):
        with pytest.raises(panes.QueryError, match=r"(?s)`get_json_object`.*Hint: .*Spark"):
            ask(text, s=documents)
    with pytest.raises(panes.QueryError, match="`get_json_object`"):
        panes.register("s", schema=documents.schema).add("q", text)
