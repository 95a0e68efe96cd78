"""Registers over joins in which queries come, go, fail and come back while rows are pushed.

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
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)

import panes
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
    def queries(self) -> Mapping[str, str]: ...
    def exact_from(self, name: str) -> object | None: ...
    def push(self, **batches: pa.Table) -> Mapping[str, pa.Table]: ...
    def finish(self) -> Mapping[str, pa.Table]: ...


class OverShards:
    """A register over shards: a batch that fails is read again without the queries at fault."""

    def __init__(self) -> None:
        self._host = Host(dict.fromkeys(STREAMS, SCHEMA), LATENESS)
        self._queries: dict[str, str] = {}

    def add(self, name: str, text: str) -> None:
        self._queries[name] = text

    def remove(self, name: str) -> None:
        del self._queries[name]

    def queries(self) -> Mapping[str, str]:
        return self._queries

    def exact_from(self, name: str) -> object | None:
        self._host.run(self._queries)
        return self._host.exact_from(name)

    def push(self, **batches: pa.Table) -> Mapping[str, pa.Table]:
        before = [dict(s) for s in (*self._host.below, *self._host.above)]
        while True:
            self._host.run(self._queries)
            try:
                return self._host.push(**batches)
            except QueriesFailed as failed:
                for name in failed.reasons:
                    del self._queries[name]
                for state, then in zip((*self._host.below, *self._host.above), before, strict=True):
                    state.clear()
                    state.update(then)

    def finish(self) -> Mapping[str, pa.Table]:
        self._host.run(self._queries)
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

    def add_text(self, text: str) -> None:
        name = f"q{self.number}"
        self.number += 1
        self.register.add(name, text)
        self.texts[name], self.given[name] = text, []

    @precondition(lambda self: len(self.texts) > 2)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.texts)[2:]))
        exact = self.register.exact_from(name)
        self.register.remove(name)
        self.leave(name, exact)

    @rule(data=st.data())
    def push(self, data: st.DataObject) -> None:
        """Some batches come, one after the other."""
        for _ in range(data.draw(st.integers(1, 3))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", panes.FailedQueryWarning)
                self.note(self.register.push(**self.batches(data)))
            for name in [name for name in self.texts if name not in self.register.queries()]:
                assert self.texts[name] in FAILING, self.texts[name]
                self.leave(name, None)

    def batches(self, data: st.DataObject) -> dict[str, pa.Table]:
        found = {}
        for stream, before in self.rows.items():
            at = [a for a in before["at"].to_pylist() if a is not None]
            least = max(at) - LATENESS if at else 0
            found[stream] = data.draw(st.composite(rows)(len(before), least))
            self.rows[stream] = pa.concat_tables([before, found[stream]])
        return found

    def note(self, answers: Mapping[str, pa.Table]) -> None:
        for name, table in answers.items():
            self.given[name].append(table)

    def leave(self, name: str, exact: object) -> None:
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
        if text in FAILING:
            return
        streams = [s for s in STREAMS if f"{s}." in text or f" {s} " in text]
        wanted = counted(panes.oracle(text, **{s: self.rows[s] for s in streams}))
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


class SharedShardsMachine(JoinRegisterMachine):
    """Any history over shards, which are built anew from their states in every batch."""

    in_process = False

    def opened(self) -> Register:
        return OverShards()


SETTINGS = settings(
    max_examples=9,
    stateful_step_count=8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.target],
)
"""A failing history is not made smaller: that takes minutes."""
