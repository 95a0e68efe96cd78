"""What a push of a register gives: a mapping by name, whose tables are cut out when looked at."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import panes

ROWS = pa.table({"ts": [1, 2, 3, 11, 25], "item": ["a", "b", "a", "a", "b"], "x": [5, 1, 7, 2, 9]})
QUERIES = {
    "highs": "SELECT item, max(x) AS v FROM bids [TUMBLING 10 WATTR ts] GROUP BY item",
    "large": "SELECT item, max(x) AS v FROM bids [TUMBLING 10 WATTR ts] WHERE x > 4 GROUP BY item",
    "counts": "SELECT count(*) AS n FROM bids [RANGE 20 SLIDE 10 WATTR ts]",
    "nothing": "SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR ts] WHERE x > 99",
}


def register() -> panes.Register:
    reg = panes.register("bids", lateness=0)
    for name, text in QUERIES.items():
        reg.add(name, text)
    return reg


def test_each_query_has_its_own_table_and_one_without_answers_has_none() -> None:
    reg = register()
    answers = reg.push(ROWS)
    assert set(answers) == {"highs", "large", "counts"}
    assert len(answers) == 3
    assert "nothing" not in answers
    with pytest.raises(KeyError):
        answers["nothing"]
    rest = reg.finish()
    for name, text in QUERIES.items():
        given = [some[name] for some in (answers, rest) if name in some]
        alone = panes.sql(text, bids=ROWS)
        assert pa.concat_tables([alone.schema.empty_table(), *given]) == alone
    assert answers["large"].to_pydict()["v"] == [7]
    assert answers["highs"].to_pydict()["v"] == [7, 1, 2]


def test_all_answers_together_name_their_queries() -> None:
    answers = register().push(ROWS)
    tables = answers.together()
    assert len(tables) == 2, "highs and large have the same columns"
    assert sum(map(len, tables)) == answers.rows == sum(map(len, answers.values()))
    for table in tables:
        assert table.column_names[0] == "query"
        for name in set(table.column("query").to_pylist()):
            mine = table.filter(pc.equal(table.column("query"), name))
            assert mine.drop_columns("query") == answers[name]


def test_a_push_that_closes_nothing_gives_an_empty_mapping() -> None:
    reg = panes.register("bids", lateness=100)
    reg.add("counts", QUERIES["counts"])
    answers = reg.push(ROWS)
    assert not answers
    assert dict(answers) == {}
    assert answers.together() == []
    assert repr(answers) == "<0 answers of 0 queries>"
