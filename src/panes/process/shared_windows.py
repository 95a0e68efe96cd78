"""Windows of many queries over one stream, as one node: they share its read, panes and partials.

Each batch is placed on the axis once, late rows are set aside once, and every store (one for each
GROUP BY) takes it in once. When progress moves, the schedule names the queries that have windows
due, and these are answered in one pass per store (`panes.sharing.roll_together`).

The stream may be the answers of another node. Without queries, the node still knows where the
stream is on its column: how far it has come, what it promises, and which rows are late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.answers.portions import Portion
from panes.arrays.workers import apart_from_interrupts
from panes.asking.prepared import Prepared
from panes.asking.row_questions import ordering_by
from panes.axis import BEGINNING, FOREVER, Duration, axis_over, parse_instant
from panes.errors import PanesError
from panes.expressions.projection import find_column
from panes.html import Explained
from panes.language.query import Query
from panes.nodes.promised_answers import least
from panes.nodes.set_aside import Aside
from panes.planning.terms import StreamOptions, check_options
from panes.process.in_turn import Turn
from panes.process.kept_windows import read_windows, windows_tree
from panes.process.node import Instant, Node, Step, bytes_of, position_of
from panes.process.object_tree import Tree
from panes.process.reading import Reading
from panes.process.rounds import HandOver, run_round, set_aside
from panes.process.tree_reader import TreeReader
from panes.process.tree_writer import TreeWriter
from panes.sharing.completeness import after
from panes.sharing.explain import explain_stores
from panes.sharing.queries import Queries
from panes.sharing.shared_store import SharedStore


@dataclass(frozen=True, slots=True)
class Unfit:
    """Queries by name and questions by text that do not fit the columns of a stream, and why."""

    queries: Mapping[str, Exception]
    prepared: Mapping[tuple[str, float | None], Exception]
    row_questions: Mapping[str, Exception]

    @property
    def reasons(self) -> list[Exception]:
        """All reasons."""
        return [*self.queries.values(), *self.prepared.values(), *self.row_questions.values()]


class SharedWindows(Node):
    """Queries over one stream and one column of it. `column` is None until somebody says it.

    `turn` is that of the register: what a round changes is put back with everything else.
    """

    UNCHANGED = frozenset({"queries", "reading", "prepared", "_turn", "_hand_over"})

    def __init__(
        self,
        source: str,
        run: StreamOptions,
        turn: Turn,
        *,
        is_part: bool = False,
        aggregates: Sequence[UserAggregate] = (),
        now: Callable[[], int],
        keep_rows: int = 0,
        hand_over: HandOver | None = None,
    ) -> None:
        self.source = source
        self._is_part, self._run, self._turn, self._hand_over = is_part, run, turn, hand_over
        self.queries = Queries(source, aggregates)
        self.queries.hands_over = hand_over is not None
        self.prepared = Prepared(source, aggregates)
        self.reading = Reading(self.queries, run, aggregates, now, keep_rows)
        self.ended_at: int | None = None
        self.laid: str | None = None

    @property
    def reads(self) -> Sequence[str]:
        """The stream or node that it reads."""
        return (self.source,)

    # The column

    @property
    def column(self) -> str | None:
        """The column that places rows, in small letters; None as long as nobody has said it."""
        if self.queries.axis is not None:
            return (self.queries.axis.column or "").lower()
        asked = (one.query.window for one in self.queries.asked.values())
        said = [window.column for window in asked if window is not None]
        said += [rows.window.column for rows in self.reading.row_questions.asked.values()]
        first = next((one for one in [*said, self.laid] if one is not None), None)
        return None if first is None else first.lower()

    def lay(self, column: str) -> None:
        """Other nodes lie on this column too: know where the stream is on it."""
        self.laid = column if self.laid is None else self.laid
        if self.reading.schema is not None:
            self._settle()

    def _settle(self) -> None:
        schema = self.reading.schema
        if self.reading.has_axis or self.laid is None or schema is None:
            return
        name = find_column(self.laid, schema, stream=self.source)
        axis = axis_over(name, schema.field(name).type, stream=self.source)
        self.reading.settle_by(ordering_by(self.source, name, axis.kind), schema)

    def begin_behind(self, newest: int) -> None:
        """Rows up to a position came before the node."""
        self.queries.newest = max(newest, self.queries.newest)

    def require_instants(self, told: Mapping[str, Instant]) -> None:
        """Refuse promises that are no positions of the stream."""
        if self.source not in told:
            return
        axis = self.queries.axis
        asked = (one.query.window for one in self.queries.asked.values())
        kinds = {window.measure for window in asked if window is not None}
        kind = next(iter(kinds), None) if axis is None or len(kinds) == 1 else axis.kind
        position_of(self.source, told[self.source], kind or "time")

    @property
    def is_read(self) -> bool:
        """Whether a query or question reads the stream, or has done so before."""
        asked = len(self.queries.asked) + len(self.prepared) + len(self.reading.row_questions)
        return self.reading.terms is not None and (self.reading.has_axis or asked > 0)

    # Queries

    def add(self, name: str, text: str, query: Query, deadline: Duration | None = None) -> None:
        """Answer one more query from now on."""
        asked = self.queries.asked_as(name, text, query, deadline)
        terms = check_options(query, self._run)
        if self.reading.schema is not None:
            self.reading.bind(asked, self.reading.schema)
        self.reading.settle_terms(terms)
        self.queries.failed.pop(name, None)
        self.queries.asked[name] = asked

    def exact_from(self, name: str) -> object | None:
        """Where the first answered window of a query starts; None: at the stream's beginning."""
        at, axis = self.queries.exact_from.get(name), self.queries.axis
        if at is None or axis is None:
            return None
        return axis.label(np.array([at]))[0].as_py()

    # Columns become known

    @property
    def waiting(self) -> int:
        """How many queries and questions wait for the columns."""
        is_known = self.reading.schema is not None
        asked = len(self.queries.asked), len(self.prepared), len(self.reading.row_questions)
        return 0 if is_known else sum(asked)

    def bind(self, schema: pa.Schema) -> Unfit:
        """Give every query its shape, now that the columns are known; says which do not fit."""
        failing = self.reading.bind_waiting(schema)
        unprepared = self.prepared.bind(schema, self.reading.settle_axis)
        unfit = Unfit(failing, unprepared, self.reading.bind_row_questions(schema))
        with suppress(PanesError):  # then those that lie on it do not fit either, and say so
            self._settle()
        return unfit

    def set_aside(self, unfit: Unfit) -> None:
        """Answer these no longer."""
        set_aside(self.queries, unfit.queries)
        self.prepared.set_aside(unfit.prepared)
        self.reading.row_questions.set_aside(unfit.row_questions)

    # Steps

    def take(self, step: Step) -> Sequence[Portion]:
        """Take in rows and promises of the stream; gives what they close, query by query."""
        rows = step.rows.get(self.source)
        if rows is not None and self._is_part and self.reading.schema is None:
            schema = rows.schema
            apart_from_interrupts(lambda: self.set_aside(self.bind(schema)))
        if not self.reading.has_axis:
            rows = None
        promised = self._promised(step)
        if rows is None and promised is None and not step.is_last:
            return ()

        def come() -> Iterator[Portion]:
            read = None
            if rows is not None:
                if self.reading.watcher is not None:
                    self.reading.watcher.began()
                read = self.reading.take_in(rows, self.prepared)
                self.reading.beat()
            if promised is not None:
                self.queries.promise.punctuate(promised)
            if step.is_last:
                yield from self._last_answers()
                return
            yield from self.queries.answers()
            if read is not None:
                self.prepared.push(*read)

        ended_at = max(self.queries.promise.at, after(self.queries.newest))
        changed = self.reading, self.prepared, self
        found = run_round(self.queries, come, self._hand_over, self._turn.undo, *changed)
        if step.is_last:
            self.ended_at, self.prepared = ended_at, Prepared(self.source)
        return found.portions

    def _promised(self, step: Step) -> int | None:
        """What a step promises of the rows to come."""
        if self.source in step.told:
            return parse_instant(step.told[self.source])
        at = least(step.promised.get(self.source, {}), self.column)
        return None if at <= max(self.queries.promise.at, BEGINNING) else at

    def _last_answers(self) -> Iterator[Portion]:
        queries = self.queries
        yield from queries.last_answers()
        queries.promise.punctuate(FOREVER, "the end")
        exact_from, axis = queries.exact_from, queries.axis
        queries.forget_bindings()
        queries.exact_from, queries.axis = exact_from, axis

    # In a state

    def written_by(self, writer: TreeWriter) -> Tree:
        """All that is remembered; queries are written by their texts."""
        return windows_tree(self, writer)

    def read_from(self, tree: Tree, reader: TreeReader) -> None:
        """Remember what was written."""
        read_windows(self, tree, reader)

    # What there is to see

    @property
    def progress(self) -> int:
        """Up to where the stream is complete; after the end, how far it had come."""
        return self.queries.promise.at if self.ended_at is None else self.ended_at

    @property
    def stores(self) -> Sequence[SharedStore]:
        """The stores, one for each GROUP BY."""
        return list(self.queries.stores.values())

    def aside(self) -> list[Aside]:
        """The rows that were set aside, with the columns of the stream, if they are known."""
        schema = self.reading.schema
        return [Aside(self.reading.set_aside, [] if schema is None else [schema])]

    @property
    def state(self) -> Mapping[str, int]:
        """How much is stored."""
        stores, tail, row_questions = self.stores, self.reading.tail, self.reading.row_questions
        stored = {
            "queries": len(self.queries.asked),
            "stores": len(stores),
            "keys": sum(len(s.panes.groups) for s in stores if len(s.panes)),
            "partials": sum(len(s.panes) for s in stores),
            "bytes": sum(s.panes.nbytes for s in stores),
            "key_bytes": sum(s.panes.key_bytes for s in stores),
            "table_bytes": sum(s.panes.table_bytes for s in stores),
            "rows": row_questions.rows + (0 if tail is None else len(tail)),
            "row_bytes": row_questions.nbytes + (0 if tail is None else tail.nbytes),
            "prepared": len(self.prepared) + len(row_questions),
            "prepared_bytes": self.prepared.nbytes,
            **self.reading.set_aside.counts,
        }
        return stored | {"total_bytes": bytes_of(stored)}

    def explain(self, *, details: bool = False) -> str:
        """What the queries share, and how much is stored."""
        prepared = [*self.prepared.explain(), *self.reading.row_questions.explain()]
        waiting = len(self.queries.asked) - len(self.queries.homes)
        return Explained(
            explain_stores(self.source, self.stores, prepared, waiting=waiting, details=details)
        )
