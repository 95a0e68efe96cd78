"""What a notebook shows of answers, plans and running queries; nothing in it is markup of data."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import panes
from panes.html import table_html
from tests.live.streams import TEXT, bids
from tests.support import open_join, open_query

EVIL = "<script>alert(1)</script>"


def shown(thing: Any) -> str:
    html: str = thing._repr_html_()
    return html


def test_answers_are_a_table_with_their_count() -> None:
    html = table_html(pa.table({"item": ["a", None], "n": [1_234_567, 2]}))
    assert "1,234,567" in html
    assert "NULL" in html
    assert "2 rows" in html


def test_of_many_rows_the_first_are_shown() -> None:
    html = table_html(pa.table({"n": list(range(100))}))
    assert html.count("<tr>") == 21
    assert "100 rows, the first 20 of them shown" in html


def test_names_and_values_are_escaped() -> None:
    html = table_html(pa.table({EVIL: [EVIL]}))
    assert "<script>" not in html
    assert html.count("&lt;script&gt;") == 2
    column = f"`{EVIL}`"
    text = f"SELECT {column}, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY {column}"
    query = open_query(text, lateness=0)
    query.push(s=pa.table({"at": [1], EVIL: ["x"]}))
    reg = panes.register("s", lateness=0)
    reg.add(EVIL, f"SELECT count(*) AS n FROM s [TUMBLING 10 WATTR at] WHERE {column} = 'x'")
    answers = reg.push(pa.table({"at": [1, 20], EVIL: ["x", "x"]}))
    for thing in (query, query.plan, query.explain(), reg, answers):
        assert "<script>" not in shown(thing)
        assert "&lt;script&gt;" in shown(thing)


def test_a_running_query_tells_how_it_stands() -> None:
    query = open_query(TEXT, lateness=5)
    assert "open" in shown(query)
    query.push(bids=bids([1, 12, 25]))
    assert "20, lateness of bids" in shown(query)
    query.finish()
    assert "finished" in shown(query)


def test_a_join_and_a_register_tell_how_they_stand() -> None:
    join = open_join("SELECT l.price FROM l [RANGE 5 WATTR at], r [RANGE 5 WATTR at] "
                      "WHERE l.item = r.item", lateness=0)  # fmt: skip
    join.push(l=bids([1]), r=bids([2]))
    assert "open join" in shown(join)
    reg = panes.register("bids", lateness=0)
    for i in range(7):
        reg.add(f"q{i}", f"SELECT count(*) AS n FROM bids [TUMBLING {i + 1} WATTR at]")
    answers = reg.push(bids([1, 30]))
    assert "register of bids" in shown(reg)
    assert "and 2 more" in shown(answers)


def test_a_plan_is_text_that_a_notebook_shows_as_it_stands() -> None:
    text = panes.explain("SELECT count(*) FROM bids [RANGE 10 SLIDE 4 WATTR at]")
    assert isinstance(text, str)
    assert shown(text) == f"<pre>{text}</pre>"


def test_the_extension_shows_arrow_tables() -> None:
    class Html:
        def for_type(self, kind: type, function: object) -> None:
            self.known = {kind: function}

    class Notebook:
        def __init__(self) -> None:
            self.html = Html()
            self.display_formatter = self
            self.formatters = {"text/html": self.html}

    notebook = Notebook()
    panes.load_ipython_extension(notebook)
    assert notebook.html.known == {pa.Table: table_html}


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_are_said_right(rows: int) -> None:
    assert f"{rows} row{'s' * (rows != 1)}</p>" in table_html(pa.table({"n": list(range(rows))}))
