"""Registers over joins in which queries come, go, fail and come back while rows are pushed.

One goes before the next one comes, those that failed are put back under their names, promises are
made, and questions are asked, which a register of several streams refuses.

Whatever has happened, no answer is ever given that the oracle does not give over all rows; of
windows and groups, none before `exact_from`; and a query that is there at the end has given all
answers from there on. In one process, and over shards.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from typing import ClassVar, Protocol

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)

import panes
from panes.language.join_text import read_join
from panes.sharing.failures import QueriesFailed
from tests.join.registered_queries import (
    FAILING,
    LATENESS,
    SCHEMA,
    Drawn,
    counted,
    joins,
    lies_at,
    queries_over,
    rows,
)
from tests.shards.shared_joins_host import Host

STREAMS = ("l", "r", "m")


class Register(Protocol):
    """Queries over joins, wherever they run."""

    def add(self, name: str, text: str) -> object: ...
    def remove(self, name: str) -> object: ...
    def put_back(self, name: str) -> object: ...
    def queries(self) -> Mapping[str, str]: ...
    def exact_from(self, name: str) -> object | None: ...
    def push(self, **batches: pa.Table) -> Mapping[str, pa.Table]: ...
    def finish(self) -> Mapping[str, pa.Table]: ...


class Asked(Register, Protocol):
    """A register in one process, which hears promises and questions."""

    def punctuate(self, **promised: int) -> Mapping[str, pa.Table]: ...
    def ask(self, text: str) -> pa.Table: ...


class OverShards:
    """A register over shards: a batch that fails is read again without the queries at fault."""

    def __init__(self) -> None:
        self._host = Host(dict.fromkeys(STREAMS, SCHEMA), LATENESS)
        self._queries: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._planned: dict[str, str] = {}

    def _plan(self) -> None:
        """The host runs the queries that there are now."""
        if self._planned != self._queries:
            self._host.run(self._queries)
            self._planned = dict(self._queries)

    def add(self, name: str, text: str) -> None:
        self._queries[name] = text

    def remove(self, name: str) -> None:
        del self._queries[name]

    def put_back(self, name: str) -> None:
        self.add(name, self._failed.pop(name))

    def queries(self) -> Mapping[str, str]:
        return self._queries

    def exact_from(self, name: str) -> object | None:
        self._plan()
        return self._host.exact_from(name)

    def push(self, **batches: pa.Table) -> Mapping[str, pa.Table]:
        before = [dict(s) for s in (*self._host.below, *self._host.above)]
        while True:
            self._plan()
            try:
                return self._host.push(**batches)
            except QueriesFailed as failed:
                for name in failed.reasons:
                    self._failed[name] = self._queries.pop(name)
                for state, then in zip((*self._host.below, *self._host.above), before, strict=True):
                    state.clear()
                    state.update(then)

    def finish(self) -> Mapping[str, pa.Table]:
        self._plan()
        return self._host.finish()


class JoinRegisterMachine(RuleBasedStateMachine):
    """Any history of a register in one process."""

    in_process: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.register: Register = self.opened()
        self.rows = dict.fromkeys(STREAMS, SCHEMA.empty_table())
        self.given: dict[str, list[pa.Table]] = {}
        self.texts: dict[str, str] = {}
        self.gone: list[tuple[str, object, list[pa.Table]]] = []
        self.failed: dict[str, str] = {}
        self.exact: dict[str, object] = {}
        self.promised = 0
        self.number = 0
        self.joins: list[Drawn] = []

    def opened(self) -> Register:
        opened: Register = panes.register(STREAMS, lateness=LATENESS)
        return opened

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        for stream in "rm":  # every stream is read from the start
            near = "b.at BETWEEN a.at AND a.at"
            self.add_text(f"SELECT a.at AS la FROM l a JOIN {stream} b ON {near} AND a.id < 0")
        self.joins = [data.draw(joins(in_process=self.in_process)) for _ in range(2)]
        if data.draw(st.booleans()):
            self.add(data)

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        """Some queries come; now and then one that was there before, or one that will fail."""
        texts = [data.draw(self.query()) for _ in range(data.draw(st.integers(1, 4)))]
        texts += data.draw(st.lists(st.sampled_from(FAILING), max_size=1))
        if self.gone:
            texts += data.draw(st.lists(st.sampled_from([t for t, *_ in self.gone]), max_size=1))
        for text in texts:
            self.add_text(text)

    def query(self) -> st.SearchStrategy[str]:
        """One over a join that others share, or over another one."""
        others = joins(in_process=self.in_process)
        return st.one_of(st.sampled_from(self.joins), others).flatmap(queries_over)

    def add_text(self, text: str, name: str = "") -> None:
        name = name or f"q{self.number}"
        self.number += 1
        self.register.add(name, text)
        self.live(name, text)

    def live(self, name: str, text: str) -> None:
        self.failed.pop(name, None)
        self.texts[name], self.given[name] = text, []

    @precondition(lambda self: len(self.texts) > 2)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.texts)[2:]))
        exact = self.register.exact_from(name)
        self.register.remove(name)
        self.leave(name, exact)

    @rule(data=st.data())
    def exchange(self, data: st.DataObject) -> None:
        """A query comes to a join and the one before it goes; then a third one takes its name."""
        first, second, third = (
            data.draw(queries_over(data.draw(st.sampled_from(self.joins)))) for _ in range(3)
        )
        self.add_text(first, "first" if "first" not in self.texts else "")
        name = list(self.texts)[-1]
        self.push(data)
        self.add_text(second)
        if name in self.texts:
            exact = self.register.exact_from(name)
            self.register.remove(name)
            self.leave(name, exact)
            self.add_text(third, name)

    @precondition(lambda self: self.failed)
    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.failed)))
        text = self.failed[name]
        self.register.put_back(name)
        self.live(name, text)

    @rule(data=st.data())
    def push(self, data: st.DataObject) -> None:
        """Some batches come, one after the other."""
        for _ in range(data.draw(st.integers(1, 3))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", panes.FailedQueryWarning)
                self.note(self.register.push(**self.batches(data)))
            self.look_at_failed()

    def look_at_failed(self) -> None:
        """Only queries that may fail have gone, and what a query says of itself stays so."""
        for name in [name for name in self.texts if name not in self.register.queries()]:
            assert self.texts[name] in FAILING, self.texts[name]
            self.failed[name] = self.texts[name]
            self.leave(name, self.exact.get(name))
        for name in self.texts:
            exact = self.register.exact_from(name)
            assert self.exact.setdefault(name, exact) == exact, self.texts[name]

    def batches(self, data: st.DataObject) -> dict[str, pa.Table]:
        found = {}
        for stream, before in self.rows.items():
            at = [a for a in before["at"].to_pylist() if a is not None]
            least = max(at) - LATENESS if at else 0
            least = max(least, self.promised)
            found[stream] = data.draw(st.composite(rows)(len(before), least))
            self.rows[stream] = pa.concat_tables([before, found[stream]])
        return found

    def note(self, answers: Mapping[str, pa.Table]) -> None:
        for name, table in answers.items():
            self.given[name].append(table)

    def leave(self, name: str, exact: object) -> None:
        self.exact.pop(name, None)
        self.gone.append((self.texts.pop(name), exact, self.given.pop(name)))

    def teardown(self) -> None:
        if not all(len(table) for table in self.rows.values()):
            return
        exact = {name: self.register.exact_from(name) for name in self.texts}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", panes.FailedQueryWarning)
            self.note(self.register.finish())
        for text, since, given in self.gone:
            self.compare(text, since, given, is_over=False)
        for name, text in self.texts.items():
            self.compare(text, exact[name], self.given[name], is_over=True)

    def compare(self, text: str, exact: object, given: list[pa.Table], *, is_over: bool) -> None:
        try:
            wanted = counted(
                panes.oracle(text, **{s: self.rows[s] for s in read_join(text).streams})
            )
        except panes.PanesError:
            assert text in FAILING, text
            return
        got: Counter[tuple[tuple[str, object], ...]] = sum(map(counted, given), Counter())
        assert not got - wanted, f"{text}\nexact from {exact}, never so: {got - wanted}"
        assert exact is None or isinstance(exact, int)
        if exact is None:
            assert not is_over or got == wanted, f"{text}\nmissing: {wanted - got}"
            return
        for answer in got:
            at = lies_at(dict(answer))  # type: ignore[arg-type]
            if "n" in dict(answer):
                assert at is not None, text
                assert at >= exact, f"{text}\nexact from {exact}: {answer}"
        if is_over:
            at_or_after = {a for a in wanted if (lies_at(dict(a)) or -1) >= exact}  # type: ignore[arg-type]
            missing = Counter({a: wanted[a] - got[a] for a in at_or_after if got[a] < wanted[a]})
            assert not missing, f"{text}\nexact from {exact}, missing: {missing}"


class InOneProcess(JoinRegisterMachine):
    """What shards do not have: promises by hand, and questions."""

    register: Asked

    @rule(ahead=st.integers(1, 9), stream=st.sampled_from(STREAMS))
    def punctuate(self, ahead: int, stream: str) -> None:
        """No row lies before an instant; on `half`, positions are half as far."""
        if any(not len(table) for table in self.rows.values()):
            return
        at = [a for a in self.rows[stream]["at"].to_pylist() if a is not None]
        promised = (max(at, default=0) + ahead) // 2
        self.promised = max(self.promised, 2 * promised)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", panes.FailedQueryWarning)
            self.note(self.register.punctuate(**{stream: promised}))
        self.look_at_failed()

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        """Joined rows are not stored, so nothing is answered; nothing changes."""
        text = data.draw(self.query())
        for asked in (text, "SELECT count(*) AS n FROM l [RANGE 5 WATTR at]"):
            with pytest.raises(panes.QueryError, match="answers no questions"):
                self.register.ask(asked)


class SharedShardsMachine(JoinRegisterMachine):
    """Any history over shards, which are built anew from their states in every batch."""

    in_process = False

    def opened(self) -> Register:
        return OverShards()


SETTINGS = settings(
    max_examples=6,
    stateful_step_count=8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.target],
)
"""A failing history is not made smaller: that takes minutes."""
