"""Text that is no text: refused by name, and nobody else's query suffers."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import panes
from panes.errors import InputError, PanesError, QueryError
from panes.expressions import projection as scalar

COUNT = "SELECT upper(item) AS u, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY upper(item)"
GOOD = pa.table({"at": [1], "item": ["a"]})
BAD = pa.table({"at": [1], "item": pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())})


@pytest.mark.parametrize("column", [BAD["item"], pa.chunked_array([BAD["item"].chunk(0)] * 2)])
def test_bytes_that_are_no_text_are_refused_by_name(column: pa.ChunkedArray) -> None:
    table = pa.table({"at": [1] * len(column), "item": column})
    with pytest.raises(InputError, match="`item` of stream `s` is not valid text"):
        panes.sql(COUNT, s=table)
    nested = pa.table({"at": [1], "item": ["a"], "more": [[]]}).set_column(
        2, "more", pa.ListArray.from_arrays([0, 1], BAD["item"].chunk(0))
    )
    with pytest.raises(InputError, match="`more` of stream `s` is not valid text"):
        panes.sql(COUNT, s=nested)


def test_an_evaluator_that_broke_down_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB that met bytes which are no text answers nothing any more, to anybody."""
    monkeypatch.setattr("panes.frames._require_text", lambda *_: None)
    query = panes.open(COUNT, lateness=0)
    with pytest.raises(PanesError, match="cannot evaluate"):
        query.push(s=BAD)
    monkeypatch.undo()
    assert query.push(s=GOOD).num_rows == 0
    assert query.finish().column("u").to_pylist() == ["A"]
    assert panes.sql(COUNT, s=GOOD).column("u").to_pylist() == ["A"]


def test_the_evaluator_does_break_down_so() -> None:
    """If this fails, DuckDB has mended it, and what stands against it may go."""
    opened = duckdb.connect()
    opened.register("batch", BAD)
    with pytest.raises(duckdb.Error):
        opened.sql("SELECT upper(item) FROM batch").to_arrow_table()
    with pytest.raises(duckdb.FatalException):
        opened.sql("SELECT 1").to_arrow_table()


def test_half_a_character_is_no_text() -> None:
    with pytest.raises(QueryError, match="not valid text"):
        panes.sql("SELECT count(*) FROM s [TUMBLING 10 WATTR at] WHERE item = '\ud800'", s=GOOD)


def test_the_evaluator_is_made_once() -> None:
    assert scalar._database() is scalar._database()


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("at > (", r"something is missing behind `\("),
        ("at = = 1", "something is missing behind `=`"),
        ("at > 1)", r"`\)` is not understood here"),
        ("at IN (1", r"expected `\)`, found `1`"),
    ],
)
def test_a_query_that_breaks_off_is_refused_without_words_of_the_grammar(
    where: str, said: str
) -> None:
    with pytest.raises(QueryError, match=rf"line 1, column \d+: {said}"):
        panes.sql(f"SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at] WHERE {where}", s=GOOD)
