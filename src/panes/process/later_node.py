"""Windows that may begin behind rows which came before them: those that miss a row give no answer.

A node that is added to a graph while rows come asks the graph up to where they have come (`Came`).
Answers of windows that start at or before that position (`begins_behind`) are not given: rows that
they hold may have come before the node. From there on it gives what it would have given had it
always been there.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.arrays.columns import column_of
from panes.axis import BEGINNING
from panes.language.query import WINDOW_COLUMNS, Query
from panes.nodes.inner import chain_of
from panes.nodes.promised_answers import column_read, promised_by_windows
from panes.nodes.promised_columns import promising_columns
from panes.planning.plan import Plan
from panes.process.query_node import Came, QueryNode, missed
from panes.windows.spec import PerRow, Sliding


class LaterNode(QueryNode):
    """Windows of one query, which miss nothing as long as `begin_behind` is not asked for."""

    query: Query
    begins_behind: int

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """The plan, once it is known."""

    @property
    @abstractmethod
    def next_end(self) -> int:
        """No window that is yet to be answered ends before; `BEGINNING` if that is not known."""

    @abstractmethod
    def count_on(self, arrived: int) -> None:
        """So many rows have come before the first one that is pushed: their numbers are taken."""

    def begin_behind(self, came: Came) -> None:
        """Begin after rows have come: only windows that miss none are answered."""
        query, window = self.query, self.query.window
        if window is None or window.origin_first or not isinstance(window.spec, Sliding | PerRow):
            raise missed("its windows reach back to the first row")
        if isinstance(window.spec, PerRow) and window.spec.every > 1:
            raise missed("which rows it answers for is counted from the first one")
        if isinstance(window.spec, PerRow) and not promising_columns(query):
            raise missed(f"which answers are whole is not seen without `{window.column}`")
        if window.partition and not isinstance(window.spec, PerRow):
            raise missed("the rows of each partition are counted from the first one")
        if window.measure == "rows":
            self._count_on(came)
            return
        self._came = came
        for name in query.streams:
            source = self._inside.reads[name]
            chain, column = self._chain(name), column_read(query, name)
            if chain is not None and chain.places is not None:
                raise missed(f"it computes where rows of `{source}` lie")
            assert column is not None
            newest = came.newest(source, column)
            if newest > BEGINNING:
                at = newest if chain is None else chain.punctuate(newest)
                self.begins_behind = max(self.begins_behind, at)

    def _count_on(self, came: Came) -> None:
        """Rows are counted as they arrive: go on counting where the streams are."""
        query = self.query
        if query.window is None or query.window.column is not None:
            raise missed("rows are counted in the order of a column, from the first one")
        arrived = [came.rows_before(self._inside.reads[name]) for name in query.streams]
        if BEGINNING in arrived or any(inner is not None for inner in query.inner):
            raise missed("nobody has counted the rows that came before")
        self.count_on(sum(arrived))
        self.begins_behind = sum(arrived) - 1 if sum(arrived) else BEGINNING

    def _chain(self, name: str) -> Any:
        inner = dict(zip(self.query.streams, self.query.inner, strict=False)).get(name)
        if inner is None:
            return None
        if name not in self.given:
            raise missed(f"nothing is known of the columns of `{self._inside.reads[name]}`")
        return chain_of(self.query, name, self.given[name])

    def _whole(self, answers: pa.Table) -> pa.Table:
        """Answers without those of windows that may miss rows."""
        if self.begins_behind == BEGINNING or not len(answers):
            return answers
        spec = self.plan.window.spec
        if isinstance(spec, PerRow):
            said = promising_columns(self.query)
            position = next(name for name in answers.column_names if name.lower() in said)
            at = self.plan.placing.ticks(column_of(answers, position))[0]
            starts = pa.array(at - spec.size + 1)
        else:
            starts = column_of(answers, WINDOW_COLUMNS[0]).cast(pa.int64())
        return answers.filter(pc.greater(starts, self.begins_behind))

    @property
    def exact_from(self) -> object | None:
        """Where the first window starts that is answered; None: at the beginning."""
        return None if self.begins_behind == BEGINNING else self._label(self.begins_behind + 1)

    def exact_from_now(self) -> object | None:
        """The same for who comes now and gets what is not answered yet."""
        window = self.query.window
        if window is None or not isinstance(window.spec, Sliding | PerRow):
            return super().exact_from_now()
        if self.next_end == BEGINNING:
            return self.exact_from
        return self._label(max(self.next_end - window.spec.size, self.begins_behind + 1))

    def _label(self, first: int) -> object:
        """The start of the first window at or behind a position, as the axis shows it."""
        window = self.query.window
        if window is not None and isinstance(window.spec, Sliding) and not window.origin_first:
            spec = window.spec
            first += (spec.origin - spec.size - first) % spec.slide
        return self.plan.placing.label(np.array([first]))[0].as_py()

    def behind(self, column: str) -> int:
        """Up to where answers may have been given, or are missing, on a column of theirs."""
        window, next_end = self.query.window, self.next_end
        if self.begins_behind > BEGINNING:
            assert window is not None
            assert isinstance(window.spec, Sliding | PerRow)
            next_end = max(next_end, self.begins_behind + 1 + window.spec.size)
        if next_end == BEGINNING:
            return BEGINNING
        promised = promised_by_windows(self.query, next_end)
        if column not in promised:
            raise missed(f"nothing is promised of `{column}`")
        return promised[column] - 1
