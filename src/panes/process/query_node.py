"""One query as a node: windows or a join, over streams or answers of other nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.answers.portions import Portion
from panes.axis import BEGINNING
from panes.errors import OptionError, QueryError
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.nodes.parts import run_inside
from panes.nodes.promised_answers import as_rows, column_read, least
from panes.nodes.set_aside import Aside, SetAside
from panes.planning.terms import StreamOptions
from panes.process.node import Instant, Node, Step
from panes.process.watched import Watcher


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
    nodes: frozenset[str] = frozenset()

    def run(self, run: StreamOptions) -> StreamOptions:
        """The options for a query that reads these."""
        inside = [name for name, source in self.reads.items() if source in self.nodes]
        return run_inside(run, self.reads, inside)

    def mine(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is given for streams and nodes, by the names that the query has for them."""
        return {name: given[source] for name, source in self.reads.items() if source in given}


class QueryNode(Node):
    """A query which is stepped with others, or alone.

    `heard` is what it was last told of each name that it reads. A `watcher` is told of its batches.
    """

    UNCHANGED = frozenset({"_came", "watcher"})
    answers_one = True

    def __init__(
        self,
        query: Query | JoinQuery,
        inside: Inside,
        run: StreamOptions,
        *,
        aggregates: Sequence[UserAggregate],
        now: Callable[[], int],
    ) -> None:
        self.query, self._inside, self.name = query, inside, ""
        self.run, self.aggregates, self._now = inside.run(run), tuple(aggregates), now
        self.set_aside = SetAside()
        self.is_finished = False
        self.heard: dict[str, int] = {}
        self.is_known = False
        self._came: Came | None = None
        self.watcher: Watcher | None = None

    @property
    def reads(self) -> Sequence[str]:
        """The names of the streams and nodes that it reads."""
        return tuple(dict.fromkeys(self._inside.reads.values()))

    @property
    def reads_streams(self) -> bool:
        """Whether it reads any stream itself."""
        return not self._inside.nodes.issuperset(self.reads)

    @property
    def columns_read(self) -> Sequence[tuple[str, str]]:
        """The streams that it reads, each with the column that its rows are placed by."""
        placed = [one for one in self._columns() if one[1] not in self._inside.nodes]
        return [(source, column) for _, source, column in placed if column is not None]

    def _columns(self) -> Iterable[tuple[str, str, str | None]]:
        """The names that it reads, what each stands for, and the column that places its rows."""
        for query in self._placed():
            for name in query.streams:
                yield name, self._inside.reads[name], column_read(query, name)

    @abstractmethod
    def _placed(self) -> Iterable[Query]:
        """Queries that say by which column the rows of each name are placed."""

    def named(self, name: str) -> QueryNode:
        """The same under the name that others read it by."""
        self.name = name
        return self

    # Steps

    def take(self, step: Step) -> Sequence[Portion]:
        """Take in rows and promises of what it reads; gives its answers."""
        answers = self._answers(step)
        return [Portion(-1, [self.name], np.array([0, len(answers)]), answers)]

    @abstractmethod
    def _answers(self, step: Step) -> pa.Table:
        """The answers that a step gives."""

    def hand_on(self, step: Step, given: Sequence[Portion]) -> None:
        """Those that read it have its answers as rows, and its promise."""
        answers = given[0].table
        if answers.num_columns and (len(answers) or not self.is_known):
            step.rows[self.name] = as_rows(answers)
            self.is_known = True
        if self.is_known:
            step.promised[self.name] = self.promised_answers()

    def _told(self, step: Step) -> list[tuple[str, Instant]]:
        """What nodes promise of their answers, and streams of their rows."""
        now: dict[str, Instant] = {}
        for name, source, column in () if step.is_last else self._columns():
            at = least(step.promised.get(source, {}), column)
            if self._came is not None and column is not None:
                at = max(at, self._came.promised(source, column))
            if at > self.heard.get(name, BEGINNING):
                now[name] = self.heard[name] = at
        return [*now.items(), *self._inside.mine(step.told).items()]

    def _beats(self, step: Step) -> bool:
        """Whether the clock is to say how far the streams are."""
        if step.beats and self.reads_streams and self.run.heartbeat is None:
            raise OptionError("the query has no heartbeat", hint='open(..., heartbeat="5 seconds")')
        return step.beats and self.reads_streams

    # Rows have come before

    @property
    def asks_what_came(self) -> bool:
        """Whether it has begun behind rows, and asks what was promised before it."""
        return self._came is not None

    def go_on_behind(self, came: Came) -> None:
        """It has begun behind rows, in a process before this one."""
        self._came = came

    def begin_behind(self, came: Came) -> None:  # noqa: ARG002
        """Begin after rows have come: only windows that miss none are answered."""
        raise missed("a join inside another query would miss their partners")

    @property
    def exact_from(self) -> object | None:
        """Where the first window starts that is answered; None: at the beginning."""
        return None

    def exact_from_now(self) -> object | None:
        """The same for who comes now and gets what is not answered yet."""
        raise missed("what it has answered before is not answered again")

    def behind(self, column: str) -> int:  # noqa: ARG002
        """Up to where answers may have been given, or are missing, on a column of theirs."""
        raise missed("nobody knows which answers of a join came before")

    # What there is to see

    @abstractmethod
    def promised_answers(self) -> dict[str, int]:
        """What is promised of the columns of answers to come, by their names in small letters."""

    @abstractmethod
    def early(self) -> pa.Table:
        """The windows that are still open, as they are now; their answers are not final."""

    @property
    @abstractmethod
    def progress(self) -> Any:
        """Up to where the whole input is complete, or each side of a join by its name."""

    @property
    @abstractmethod
    def open_from(self) -> int:
        """The first position that an open window holds, or of rows that may still be joined."""

    @property
    @abstractmethod
    def given(self) -> Mapping[str, pa.Schema]:
        """The columns of batches, by the names of the query, as far as they are known."""

    @property
    def given_columns(self) -> dict[str, pa.Schema]:
        """The same by the names of streams and nodes."""
        return {self._inside.reads[name]: schema for name, schema in self.given.items()}

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of its answers as others read them, once they are known."""
        return None

    def aside(self) -> Sequence[Aside]:
        """The rows of streams that were set aside; of answers of other nodes, none ever is."""
        return [Aside(self.set_aside, self._made())] if self.reads_streams else []

    @abstractmethod
    def _made(self) -> Sequence[pa.Schema]:
        """The columns of its streams, as they are set aside."""

    def checked(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Refuse the query if it cannot be answered over streams with these columns."""
        if self._inside.mine(schemas) and not self.is_known:
            self._of(schemas)

    @abstractmethod
    def _of(self, schemas: Mapping[str, pa.Schema]) -> QueryNode:
        """Another node of the same query, over streams with these columns."""


def missed(why: str) -> QueryError:
    """The refusal of a query that could not know what it has missed."""
    return QueryError(
        f"rows have come before this query, and {why}", hint="add it before the first batch"
    )
