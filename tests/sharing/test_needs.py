"""What questions and queries leave behind in a store: nothing, once they are answered or gone."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from sqlglot import exp

import panes
from panes.aggregates.monoid import Monoid
from panes.errors import PanesError
from panes.planning.plan import Plan
from panes.sharing.needs import Needs
from panes.sharing.shape import Computed
from panes.stores.contents import ValueSet
from panes.stores.fragments import Fragments

STANDING = "SELECT item, count(*) AS n, sum(price) AS s FROM bids [RANGE 10 SLIDE 5 WATTR at] {}"
ROWS = pa.table({"at": [1, 2, 7], "item": [1, 2, 1], "price": [1.0, 2.0, 3.0]})


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Needs]:
    """The needs of every store that is made."""
    found: list[Needs] = []
    before = Needs.__init__

    def remember(self: Needs, *arguments: object) -> None:
        before(self, *arguments)  # type: ignore[arg-type]
        found.append(self)

    monkeypatch.setattr(Needs, "__init__", remember)
    return found


def size_of(needs: Needs) -> tuple[int, ...]:
    rows = needs.rows
    return rows.end, len(rows), len(rows.filters), len(needs.since), len(needs._alike)


def test_asking_many_different_questions_spends_no_column_numbers(
    made: list[Needs], monkeypatch: pytest.MonkeyPatch
) -> None:
    register = panes.register("bids", lateness=0)
    register.add("standing", STANDING.format("GROUP BY item"))
    register.push(ROWS)
    looked_at: list[Plan] = []
    describe = Needs.describe

    def watched(self: Needs, plan: Plan) -> object:
        looked_at.append(plan)
        return describe(self, plan)

    monkeypatch.setattr(Needs, "describe", watched)
    before = [size_of(needs) for needs in made]
    for i in range(20):
        shown = f"SELECT item, sum(price) AS s{i} FROM bids [RANGE 10 WATTR at] GROUP BY item"
        assert len(register.ask(shown)) == 2
        new = f"SELECT item, sum(price + {i}) AS s FROM bids [RANGE 10 WATTR at] WHERE price > {i}"
        with pytest.raises(PanesError, match="nothing is stored"):
            register.ask(f"{new} GROUP BY item")
    assert len(looked_at) == 40
    assert [size_of(needs) for needs in made] == before


def test_queries_that_come_and_go_leave_no_columns_behind(made: list[Needs]) -> None:
    register = panes.register("bids", lateness=0)
    register.add("standing", STANDING.format("GROUP BY item"))
    register.push(ROWS)
    before = [size_of(needs)[1:] for needs in made]
    for i in range(5):
        register.add("guest", STANDING.format(f"WHERE price > {i} GROUP BY item, price + {i}"))
        register.remove("guest")
        added = f"SELECT item, max(price + {i}) AS m FROM bids [RANGE 10 SLIDE 5 WATTR at]"
        register.add("guest", f"{added} WHERE price > {i} GROUP BY item")
        register.remove("guest")
    assert [size_of(needs)[1:] for needs in made[: len(before)]] == before


def test_adding_a_query_takes_as_many_comparisons_however_many_there_are(
    made: list[Needs], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every query has a WHERE of its own, so every one has a filter and a shape of its own."""
    compared = 0
    before = exp.Expression.__eq__

    def counting(self: exp.Expression, other: object) -> bool:
        nonlocal compared
        compared += 1
        return before(self, other)

    def add(first: int, count: int) -> None:
        for i in range(first, first + count):
            register.add(f"q{i}", STANDING.format(f"WHERE price > {i} GROUP BY item"))

    register = panes.register("bids", lateness=0)
    register.add("standing", STANDING.format("GROUP BY item"))
    register.push(ROWS)
    monkeypatch.setattr(exp.Expression, "__eq__", counting)
    add(0, 10)
    few, compared = compared, 0
    add(10, 200)
    compared = 0
    add(210, 10)
    assert compared <= few
    assert len(made[0].shapes) == len(made[0].rows.filters) + 1 == 221
    pieces = [one for one in made[0].since if not isinstance(one, ValueSet | int | Computed)]
    assert made[0].pieces == pieces


def test_a_column_is_evaluated_only_where_some_query_needs_it() -> None:
    """It would fail for the row without a price; the query that wants it leaves that row out."""
    register = panes.register("bids", lateness=0)
    text = "SELECT sum(CAST(name AS INT)) AS s FROM bids [TUMBLING 10 WATTR at] {}"
    register.add("some", text.format("WHERE at > 1"))
    register.add("other", text.format("WHERE at > 2"))
    rows = pa.table({"at": [1, 2, 3, 20], "name": ["no number", "2", "3", "4"]})
    answers = register.push(rows)
    assert {name: t["s"].to_pylist() for name, t in answers.items()} == {"some": [5], "other": [3]}
    register.remove("some")
    register.push(pa.table({"at": [22, 23, 41], "name": ["5", "6", "7"]}))
    assert not register.failed
    register.add("all", text.format(""))
    with pytest.warns(panes.FailedQueryWarning, match="`all`"):
        register.push(pa.table({"at": [1, 60], "name": ["no number", "8"]}))


def test_adding_a_piece_visits_as_many_pieces_however_many_are_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Room for new pieces is made when panes are next needed, for all that came since."""
    made = 0
    before = Fragments.__init__

    def counting(self: Fragments, monoids: Sequence[Monoid]) -> None:
        nonlocal made
        made += len(monoids)
        before(self, monoids)

    register = panes.register("bids", lateness=0)
    register.add("standing", STANDING.format("GROUP BY item"))
    register.push(ROWS)
    monkeypatch.setattr(Fragments, "__init__", counting)
    for i in range(30):
        text = f"SELECT item, max(price + {i}) AS m FROM bids [TUMBLING 10 WATTR at] GROUP BY item"
        register.add(str(i), text)
    assert made == 0
    assert len(register.push(pa.table({"at": [30], "item": [1], "price": [2.0]}))) == 1
