"""A register's state fits the queries that take it up, or is refused with what has changed.

Catches: partials that are left out because a piece, a type or a filter is no longer recognised, so
that answers would come out too small; and a state of another format that is misread.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import panes
from panes.aggregates.arithmetic import Count, LimbSum
from panes.errors import StateError
from panes.planning.terms import Run
from panes.register import manifest, needs, queries
from panes.register.columns import SharedRows
from panes.register.failures import QueriesFailed, reasons_in
from panes.shards import register_state
from panes.shards.state import ABOUT
from panes.stores import codec
from panes.stores.contents import ValueSet
from tests.register.workload import QUERIES, SCHEMA, assert_same_answers, rows
from tests.sharded_register import ShardedRegister

FIRST, SECOND = rows(1, 60, 0), rows(2, 60, 30)


def saved(tmp_path: Path, *names: str) -> Path:
    register = panes.register("s", lateness=4, schema=SCHEMA)
    for name in names:
        register.add(name, QUERIES[name])
    register.push(FIRST)
    register.save(tmp_path / "register")
    return tmp_path / "register"


def sharded(*names: str, first: pa.Table = FIRST) -> ShardedRegister:
    register = ShardedRegister("s", Run(lateness=4), SCHEMA)
    for name in names:
        register.add(name, QUERIES[name])
    register.push(first)
    return register


def take_up_both(tmp_path: Path, *names: str, change: object) -> list[str]:
    """What a saved register and a sharded one say if something changes while they are at rest."""
    path, shards = saved(tmp_path, *names), sharded(*names)
    change()  # type: ignore[operator]
    said = []
    with pytest.raises(StateError) as refused:
        panes.register("s", lateness=4, saved=path)
    said.append(str(refused.value))
    with pytest.raises(StateError) as refused:
        shards.push(SECOND)
    said.append(str(refused.value))
    return said


def test_what_has_not_changed_goes_on(tmp_path: Path) -> None:
    names = ("all", "keyed", "dear", "middle", "some", "long")
    alone = panes.register("s", lateness=4, schema=SCHEMA)
    for name in names:
        alone.add(name, QUERIES[name])
    alone.push(FIRST)
    wanted = alone.push(SECOND)
    assert_same_answers(
        panes.register("s", lateness=4, saved=saved(tmp_path, *names)).push(SECOND), wanted
    )
    assert_same_answers(sharded(*names).push(SECOND), wanted)


def test_a_piece_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = take_up_both(
        tmp_path, "keyed", change=lambda: monkeypatch.setattr(LimbSum, "VERSION", 2)
    )
    for text in said:
        assert "the state does not fit query `keyed`: limb_sum was version 1, is version 2" in text
        assert "columns: 1 is `x`" in text


def test_the_count_of_all_rows_is_no_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = take_up_both(tmp_path, "all", change=lambda: monkeypatch.setattr(Count, "VERSION", 7))
    assert all("query `all`: count was version 1, is version 7" in text for text in said)


def test_a_multiset_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = lambda: monkeypatch.setattr(ValueSet, "VERSION", 2)  # noqa: E731
    said = take_up_both(tmp_path, "middle", change=change)
    assert all("query `middle`: multiset was version 1, is version 2" in text for text in said)


def test_a_filter_that_is_written_otherwise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a library printed expressions in another way."""

    def change() -> None:
        monkeypatch.setattr(SharedRows, "text", lambda self, n: f"#{self.expressions[n].sql()}")

    said = take_up_both(tmp_path, "dear", change=change)
    assert all("filter was over 2 `x` > 5, is over 2 #" in text for text in said)


def test_a_piece_that_is_not_known_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state was written by a version of panes that stores something else for the same query."""
    own = property(lambda self: f"big_sum/1({self.argument.identity})")
    before = LimbSum.identity
    monkeypatch.setattr(LimbSum, "identity", own)
    said = take_up_both(
        tmp_path, "keyed", change=lambda: monkeypatch.setattr(LimbSum, "identity", before)
    )
    for text in said:
        assert "big_sum/1(1 int64) is stored, which this version of panes does not need" in text
        assert "limb_sum/1(1 int64; present 1) is needed, and was never stored" in text


def test_a_column_of_another_type_is_refused() -> None:
    """On Spark, the type of a column may change while the stream stands still."""
    before = sharded("keyed")
    doubles = ShardedRegister("s", Run(lateness=4), SCHEMA.set(2, pa.field("x", pa.int32())))
    doubles.add("keyed", QUERIES["keyed"])
    doubles.states = before.states
    with pytest.raises(StateError, match="limb_sum was over 1 int64; present 1, is over 1 int32"):
        doubles.push(SECOND.set_column(2, "x", SECOND["x"].cast(pa.int32())))


def test_another_group_by_type_is_refused() -> None:
    before = sharded("keyed")
    schema = SCHEMA.set(1, pa.field("k", pa.large_string()))
    other = ShardedRegister("s", Run(lateness=4), schema)
    other.add("keyed", QUERIES["keyed"])
    other.states = before.states
    with pytest.raises(StateError, match="its GROUP BY was `k` string, is `k` large_string"):
        other.push(SECOND.cast(schema))


def test_another_window_is_refused() -> None:
    before = sharded("all")
    other = ShardedRegister("s", Run(lateness=4), SCHEMA)
    other.add("all", QUERIES["all"].replace("RANGE 20", "RANGE 30"))
    other.states = before.states
    with pytest.raises(StateError, match=r"its window was RANGE 20 .* is RANGE 30"):
        other.push(SECOND)


def test_a_query_that_came_later_is_answered_from_then_on() -> None:
    """What the state does not have is no mistake if no query of the state needs it."""
    alone = panes.register("s", lateness=4, schema=SCHEMA)
    alone.add("keyed", QUERIES["keyed"])
    alone.push(FIRST)
    register = sharded("keyed")
    for each in (alone, register):
        each.add("dear", QUERIES["dear"])
        each.add("middle", QUERIES["middle"])
    assert_same_answers(register.push(SECOND), alone.push(SECOND))
    assert register.exact_from("dear") == alone.exact_from("dear") is not None


def test_what_only_a_query_that_is_gone_needed_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register = sharded("keyed", "middle")
    register.remove("middle")
    monkeypatch.setattr(ValueSet, "VERSION", 2)
    assert "keyed" in register.push(SECOND)


@pytest.mark.parametrize("version", [1, 3])
def test_another_format_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    def change() -> None:
        monkeypatch.setattr(register_state, "_FORMAT", 2)

    monkeypatch.setattr(register_state, "_FORMAT", version)
    for text in take_up_both(tmp_path, "all", change=change):
        assert (
            f"a register was written in format {version}; this version of panes reads format 2"
            in text
        )


def test_the_first_format_had_no_name_and_is_refused() -> None:
    register = sharded("all")
    for state in register.states:
        tables = codec.unpack(state[ABOUT])
        del tables["format"]
        state[ABOUT] = codec.pack(tables)
    with pytest.raises(StateError, match="written in format 1"):
        register.push(SECOND)


def test_a_manifest_of_another_format_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, "all")
    monkeypatch.setattr(manifest, "_FORMAT", 9)
    with pytest.raises(StateError, match=r"written in format 2; .* reads format 9"):
        panes.register("s", lateness=4, saved=path)


def test_identities_of_stores_and_filters_are_pinned() -> None:
    register = panes.register("s", lateness=4, schema=SCHEMA)
    register.add("dear", QUERIES["dear"])
    register.add("all", QUERIES["all"])
    titles = [store.title for store in register.stores]
    assert titles == ["group_by/1(`k` string)", "group_by/1()"]
    store = register.stores[0]
    assert [needs.identity_of(n, store.rows) for n in store.needs.since] == [
        "filter/1(2 `x` > 5)",
        "count/1()",
        "pick/1(greatest of seen, value 1 int64; present 1)",
    ]
    assert queries.grouping(store.shapes[0].plan) == titles[0]


def test_a_block_of_another_state_is_refused() -> None:
    """As it would be if a file of a batch that was given up took the place of the right one."""
    register, other = sharded("keyed"), sharded("keyed", first=rows(9, 60, 0))
    for state, wrong in zip(register.states, other.states, strict=True):
        state.update({n: wrong[n] for n in state.keys() & wrong.keys() if n != ABOUT})
    with pytest.raises(StateError, match="is not the one that its state was written with"):
        register.push(SECOND)


def test_a_shard_names_the_queries_at_fault() -> None:
    """A host hands on the text of an error, and no more."""
    register = sharded("all")
    for name, size in (("wide", 20), ("wider", 40)):
        text = f"SELECT sum(x + 9223372036854775000) AS a FROM s [TUMBLING {size} WATTR at]"
        register.add(name, text)
    with pytest.raises(QueriesFailed) as failed:
        register.push(rows(3, 60, 200))
    found = reasons_in(f"Traceback\n{failed.value}\n\tat Worker.run")
    assert set(found) == {"wide", "wider"}
    assert "does not fit" in found["wide"]
    assert not reasons_in("Traceback: something else")
