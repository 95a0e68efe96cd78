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
from panes.planning.terms import StreamOptions
from panes.shards import register_state
from panes.shards.state import ABOUT
from panes.sharing import manifest, needs, queries
from panes.sharing.columns import SharedRows
from panes.sharing.failures import QueriesFailed, reasons_in
from panes.stores import codec
from panes.stores.contents import ValueSet
from tests.sharded_register import ShardedRegister
from tests.sharing.workload import QUERIES, SCHEMA, assert_same_answers, rows

FIRST, SECOND = rows(1, 60, 0), rows(2, 60, 30)


def saved(tmp_path: Path, *names: str) -> Path:
    register = panes.register("s", lateness=4, schema=SCHEMA)
    for name in names:
        register.add(name, QUERIES[name])
    register.push(FIRST)
    register.save(tmp_path / "register")
    return tmp_path / "register"


def sharded(*names: str) -> ShardedRegister:
    register = ShardedRegister("s", StreamOptions(lateness=4), SCHEMA)
    for name in names:
        register.add(name, QUERIES[name])
    register.push(FIRST)
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
    doubles = ShardedRegister(
        "s", StreamOptions(lateness=4), SCHEMA.set(2, pa.field("x", pa.int32()))
    )
    doubles.add("keyed", QUERIES["keyed"])
    doubles.states = before.states
    with pytest.raises(StateError, match="limb_sum was over 1 int64; present 1, is over 1 int32"):
        doubles.push(SECOND.set_column(2, "x", SECOND["x"].cast(pa.int32())))


def test_another_group_by_type_is_refused() -> None:
    before = sharded("keyed")
    schema = SCHEMA.set(1, pa.field("k", pa.large_string()))
    other = ShardedRegister("s", StreamOptions(lateness=4), schema)
    other.add("keyed", QUERIES["keyed"])
    other.states = before.states
    with pytest.raises(StateError, match="its GROUP BY was `k` string, is `k` large_string"):
        other.push(SECOND.cast(schema))


def test_another_window_is_refused() -> None:
    before = sharded("all")
    other = ShardedRegister("s", StreamOptions(lateness=4), SCHEMA)
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
    monkeypatch.setattr(manifest, "_READ", (9,))
    with pytest.raises(StateError, match=r"written in format 3; .* reads format 9"):
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


def test_what_a_batch_that_was_given_up_has_left_does_no_harm() -> None:
    """A batch is given up and runs again without a query; the host keeps what it wrote at first.

    It writes the changes of the batch after it on top: these alone must say everything.
    """
    batches = [rows(number, 60, 30 * number) for number in range(5)]
    texts = {
        "gone": "SELECT k, min(x) AS a, sum(x * x) AS b FROM s [RANGE 90 SLIDE 5 WATTR at] "
        "GROUP BY k",
        "stays": "SELECT k, sum(x) AS a FROM s [RANGE 120 SLIDE 10 WATTR at] GROUP BY k",
    }
    register = ShardedRegister("s", StreamOptions(lateness=4), SCHEMA)
    alone = panes.register("s", lateness=4, schema=SCHEMA)
    for name, text in texts.items():
        register.add(name, text)
        alone.add(name, text)
    register.push(batches[0])
    alone.push(batches[0])
    before = copied(register.states)
    register.push(batches[1])
    given_up = copied(register.states)
    register.states[:] = before
    register.remove("gone")
    alone.remove("gone")
    for batch in batches[1:3]:
        register.states[:] = [Changes(state) for state in register.states]
        register.push(batch)
        alone.push(batch)
    for state, left in zip(register.states, given_up, strict=True):
        assert isinstance(state, Changes)
        written = {name: data for name, data in state.items() if name in state.written}
        kept = {name: data for name, data in left.items() if name not in state.deleted}
        state.clear()
        state |= kept | written
    for batch in batches[3:]:
        assert_same_answers(register.push(batch), alone.push(batch))


def copied(states: list[dict[str, bytes]]) -> list[dict[str, bytes]]:
    return [dict(state) for state in states]


class Changes(dict[str, bytes]):
    """A state that notes what was written and deleted, as a host's log of changes does."""

    def __init__(self, state: dict[str, bytes]) -> None:
        super().__init__(state)
        self.written, self.deleted = set[str](), set[str]()

    def __setitem__(self, name: str, data: bytes) -> None:
        super().__setitem__(name, data)
        self.written.add(name)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self.written.discard(name)
        self.deleted.add(name)
