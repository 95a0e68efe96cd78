"""One query as a node: windows, a join or a union, over streams or answers of other nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.custom import UserAggregate
from panes.answers.portions import Portion
from panes.arrays.columns import column_of
from panes.axis import BEGINNING
from panes.errors import QueryError
from panes.language.join_query import JoinQuery
from panes.language.query import WINDOW_COLUMNS, Query
from panes.nodes.inner import chain_of
from panes.nodes.promised_answers import as_rows, column_read, least, promised_by_windows
from panes.nodes.promised_columns import promising_columns
from panes.planning.plan import Plan
from panes.planning.terms import StreamOptions
from panes.process.node import Step
from panes.process.open_join import OpenJoin
from panes.process.open_query import Instant, OpenQuery
from panes.windows.spec import PerRow, Sliding


class Came(Protocol):
    """What a graph knows of rows that came before a node: of streams and of other nodes."""

    def newest(self, source: str, column: str) -> int:
        """Up to where rows may have come, on a column; refused if nobody knows."""
        ...

    def rows_before(self, source: str) -> int:
        """How many rows have come; `BEGINNING` if nobody has counted."""
        ...

    def promised(self, source: str, column: str) -> int:
        """What is promised of rows to come, on a column."""
        ...


@dataclass(frozen=True, slots=True)
class Inside:
    """The names that a query reads, each with the stream or node that it stands for.

    `nodes` are those that are nodes: their rows are final answers, of which none is late.
    """

    reads: Mapping[str, str]
    nodes: frozenset[str]

    def run(self, run: StreamOptions) -> StreamOptions:
        """The options for a query that reads these."""
        inside = frozenset(name for name, source in self.reads.items() if source in self.nodes)
        run = replace(run, inside=inside)
        if len(inside) < len(self.reads):
            return run
        return replace(
            run, lateness=None, rows_late=None, punctuation=None, heartbeat=None, max_ahead=None,
            stall_rows=None,
        )  # fmt: skip


class QueryNode:
    """A running query which is stepped with others.

    Answers of windows that start at or before `begins_behind` are not given: rows that they hold
    may have come before the node. `heard` is what it was last told of each name that it reads,
    `origin` the text and the part that the node was made of.
    """

    UNCHANGED = frozenset({"_came"})

    def __init__(
        self,
        query: Query | JoinQuery,
        inside: Inside,
        run: StreamOptions,
        *,
        aggregates: Sequence[UserAggregate] = (),
        schemas: Mapping[str, pa.Schema],
        now: Callable[[], int],
    ) -> None:
        """`schemas` are those of the sources, as far as they are known."""
        self.inside, self._name = inside, ""
        known = {name: schemas[s] for name, s in inside.reads.items() if s in schemas}
        run = inside.run(run)
        self.query: OpenQuery | OpenJoin
        if isinstance(query, JoinQuery):
            self.query = OpenJoin(query, run, aggregates=aggregates, schemas=known, now=now)
        else:
            self.query = OpenQuery(query, run, aggregates=aggregates, schemas=known, now=now)
        self._asked, self.schemas = query, known
        self.heard: dict[str, int] = {}
        self.is_known = False
        self.begins_behind = BEGINNING
        self.origin = "", ""
        self._came: Came | None = None

    @property
    def reads(self) -> Sequence[str]:
        """The names of the streams and nodes that it reads."""
        return tuple(dict.fromkeys(self.inside.reads.values()))

    @property
    def reads_streams(self) -> bool:
        """Whether it reads any stream itself."""
        return not self.inside.nodes.issuperset(self.reads)

    @property
    def columns_read(self) -> Sequence[tuple[str, str]]:
        """The streams that it reads, each with the column that its rows are placed by."""
        found = []
        for query in self._placed():
            for name in query.streams:
                source, column = self.inside.reads[name], column_read(query, name)
                if source not in self.inside.nodes and column is not None:
                    found.append((source, column))
        return found

    # Steps

    def take(self, step: Step) -> Sequence[Portion]:
        """Take in rows and promises of what it reads; gives its answers."""
        rows = self._mine(step.rows)
        given: list[pa.Table] = [self.query.push(**rows)] if rows else []
        if not step.is_last:
            given += self._hear(step.promised)
        given += self._told(self._mine(step.told))
        if step.beats and self.reads_streams:
            given.append(self.query.beat())
        if step.is_last:
            given.append(self.query.finish())
        answers = self._whole(_together(given or [self.query.punctuate()]))
        return [Portion(-1, [self._name], np.array([0, len(answers)]), answers)]

    def hand_on(self, step: Step, given: Sequence[Portion]) -> None:
        """Those that read it have its answers as rows, and its promise."""
        answers = given[0].table
        if answers.num_columns and (len(answers) or not self.is_known):
            step.rows[self._name] = as_rows(answers)
            self.is_known = True
        if self.is_known:
            step.promised[self._name] = self.promised_answers()

    def named(self, name: str) -> QueryNode:
        """The same under the name that others read it by."""
        self._name = name
        return self

    def _mine(self, given: Mapping[str, Any]) -> dict[str, Any]:
        reads = self.inside.reads
        return {name: given[source] for name, source in reads.items() if source in given}

    def _hear(self, promised: Mapping[str, Mapping[str, int]]) -> list[pa.Table]:
        """Take in what other nodes promise of their answers, and streams of their rows."""
        now: dict[str, int] = {}
        for query in self._placed():
            for name in query.streams:
                source, column = self.inside.reads[name], column_read(query, name)
                at = least(promised.get(source, {}), column)
                if self._came is not None and column is not None:
                    at = max(at, self._came.promised(source, column))
                if at > self.heard.get(name, BEGINNING):
                    now[name] = at
        self.heard |= now
        return self._told(now)

    def _told(self, promised: Mapping[str, Instant]) -> list[pa.Table]:
        given: dict[str, Any] = dict(promised)
        return [self.query.punctuate(**given)] if given else []

    def _placed(self) -> Iterable[Query]:
        """Queries that say by which column the rows of each name are placed."""
        if isinstance(self.query, OpenQuery):
            return (self.query.query,)
        return (side.plan.query for side in self.query.sides)

    def _whole(self, answers: pa.Table) -> pa.Table:
        """Answers without those of windows that may miss rows."""
        if self.begins_behind == BEGINNING or not len(answers):
            return answers
        query, plan = self._windows(), self.query.plan
        assert isinstance(plan, Plan)
        if isinstance(plan.window.spec, PerRow):
            at = plan.placing.ticks(column_of(answers, self._position(query, answers)))[0]
            starts = pa.array(at - plan.window.spec.size + 1)
        else:
            starts = column_of(answers, WINDOW_COLUMNS[0]).cast(pa.int64())
        return answers.filter(pc.greater(starts, self.begins_behind))

    def _windows(self) -> Query:
        assert isinstance(self.query, OpenQuery)
        return self.query.query

    @staticmethod
    def _position(query: Query, answers: pa.Table) -> str:
        """The column of the answers that is the position of the row that they are for."""
        said = promising_columns(query)
        return next(name for name in answers.column_names if name.lower() in said)

    # Rows have come before

    @property
    def has_begun_behind(self) -> bool:
        """Whether it asks the graph what was promised before it."""
        return self._came is not None

    def goes_on_behind(self, came: Came) -> None:
        """It had begun behind rows, and so it goes on."""
        self._came = came

    def begin_behind(self, came: Came) -> None:
        """Begin after rows have come: only windows that miss none are answered."""
        if isinstance(self.query, OpenJoin):
            raise missed("a join inside another query would miss their partners")
        query, window = self.query.query, self.query.query.window
        if window is None or window.origin_first or not isinstance(window.spec, Sliding | PerRow):
            raise missed("its windows reach back to the first row")
        if isinstance(window.spec, PerRow) and window.spec.every > 1:
            raise missed("which rows it answers for is counted from the first one")
        if isinstance(window.spec, PerRow) and not promising_columns(query):
            raise missed(f"which answers are whole is not seen without `{window.column}`")
        if window.partition and not isinstance(window.spec, PerRow):
            raise missed("the rows of each partition are counted from the first one")
        if window.measure == "rows":
            self._count_on(query, came)
            return
        self._came = came
        for name in query.streams:
            source = self.inside.reads[name]
            chain, column = self._chain(query, name), column_read(query, name)
            if chain is not None and chain.places is not None:
                raise missed(f"it computes where rows of `{source}` lie")
            assert column is not None
            newest = came.newest(source, column)
            if newest > BEGINNING:
                at = newest if chain is None else chain.punctuate(newest)
                self.begins_behind = max(self.begins_behind, at)

    def _count_on(self, query: Query, came: Came) -> None:
        """Rows are counted as they arrive: go on counting where the streams are."""
        if query.window is None or query.window.column is not None:
            raise missed("rows are counted in the order of a column, from the first one")
        arrived = [came.rows_before(self.inside.reads[name]) for name in query.streams]
        if BEGINNING in arrived or any(inner is not None for inner in query.inner):
            raise missed("nobody has counted the rows that came before")
        assert isinstance(self.query, OpenQuery)
        self.query.count_on(sum(arrived))
        self.begins_behind = sum(arrived) - 1 if sum(arrived) else BEGINNING

    def _chain(self, query: Query, name: str) -> Any:
        inner = dict(zip(query.streams, query.inner, strict=False)).get(name)
        if inner is None:
            return None
        if name not in self.schemas:
            raise missed(f"nothing is known of the columns of `{self.inside.reads[name]}`")
        return chain_of(query, name, self.schemas[name])

    @property
    def exact_from(self) -> object | None:
        """Where the first window starts that is answered; None: at the beginning."""
        if self.begins_behind == BEGINNING or not isinstance(self.query, OpenQuery):
            return None
        return self._label(self.begins_behind + 1)

    def exact_from_now(self) -> object | None:
        """The same for who comes now and gets what is not answered yet."""
        query, window = self.query.query, None
        if isinstance(query, Query):
            window = query.window
        if window is None or not isinstance(window.spec, Sliding | PerRow):
            raise missed("what it has answered before is not answered again")
        if self.query.next_end == BEGINNING:
            return self.exact_from
        first = self.query.next_end - window.spec.size
        return self._label(max(first, self.begins_behind + 1))

    def _label(self, first: int) -> object:
        """The start of the first window at or behind a position, as the axis shows it."""
        window = self._windows().window
        if window is not None and isinstance(window.spec, Sliding) and not window.origin_first:
            spec = window.spec
            first += (spec.origin - spec.size - first) % spec.slide
        plan = self.query.plan
        assert isinstance(plan, Plan)
        return plan.placing.label(np.array([first]))[0].as_py()

    # What there is to see

    def promised_answers(self) -> dict[str, int]:
        """What is promised of the columns of answers to come, by their names in small letters."""
        return self.query.promised_answers()

    @property
    def open_from(self) -> int:
        """The first position that an open window holds."""
        return self.query.open_from

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of its answers as others read them, once they are known."""
        found = self.query.answer_schema
        return None if found is None else as_rows(found.empty_table()).schema

    def behind(self, column: str) -> int:
        """Up to where answers may have been given, or are missing, on a column of theirs."""
        if not isinstance(self.query, OpenQuery):
            raise missed("nobody knows which answers of a join came before")
        window, next_end = self.query.query.window, self.query.next_end
        if self.begins_behind > BEGINNING:
            assert window is not None
            assert isinstance(window.spec, Sliding | PerRow)
            next_end = max(next_end, self.begins_behind + 1 + window.spec.size)
        if next_end == BEGINNING:
            return BEGINNING
        promised = promised_by_windows(self.query.query, next_end)
        if column not in promised:
            raise missed(f"nothing is promised of `{column}`")
        return promised[column] - 1

    def checked(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Refuse the query if it cannot be answered over streams with these columns."""
        known = {name: schemas[s] for name, s in self.inside.reads.items() if s in schemas}
        if not known or self.is_known:
            return
        if isinstance(self._asked, JoinQuery):
            OpenJoin(self._asked, self.query.run, aggregates=self.query.aggregates, schemas=known)
        else:
            OpenQuery(self._asked, self.query.run, aggregates=self.query.aggregates, schemas=known)

    def require_instants(self, told: Mapping[str, Instant]) -> None:
        """Refuse promises that are no positions of what it reads."""
        self.query.require_instants(self._mine(told))

    @property
    def state(self) -> Mapping[str, int]:
        """How much is stored."""
        return self.query.state

    def explain(self, *, details: bool = False) -> str:
        """How it is run, as text."""
        return self.query.explain(details=details)


def missed(why: str) -> QueryError:
    """The refusal of a query that could not know what it has missed."""
    return QueryError(
        f"rows have come before this query, and {why}", hint="add it before the first batch"
    )


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one; those without columns say nothing."""
    some = [table for table in tables if table.num_columns]
    return pa.concat_tables(some) if some else pa.table({})
