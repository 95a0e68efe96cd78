"""What a query over one stream and a query over a join have in common beside their answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

import pyarrow as pa

from panes.aggregates.custom import UserAggregate
from panes.errors import QueryError
from panes.nodes.set_aside import SetAside
from panes.planning.terms import StreamOptions
from panes.process.keeper import KeptQuery
from panes.process.step import in_turn, kept, whole


class QueryOnStreams(KeptQuery):
    """A running query with its options, and the rows that it has set aside."""

    _run: StreamOptions
    _aggregates: Sequence[UserAggregate]
    _set_aside: SetAside
    _finished: bool

    @abstractmethod
    def _made(self) -> Iterable[pa.Schema]:
        """The columns of its streams, as they are set aside."""

    @property
    def run(self) -> StreamOptions:
        """The options, as they were said."""
        return self._run

    @property
    def aggregates(self) -> Sequence[UserAggregate]:
        """The user's own aggregates."""
        return self._aggregates

    @property
    @in_turn
    def late(self) -> pa.Table:
        """Rows that broke a promise, with the reason."""
        return self._set_aside.late(self._made())

    @in_turn
    @whole
    @kept
    def take_late(self) -> pa.Table:
        """The late rows so far, which are then forgotten: for queries that run for long."""
        return self._set_aside.take_late(self._made())

    @property
    @in_turn
    def rejected(self) -> pa.Table:
        """Rows that have no place on the axis, with the reason."""
        return self._set_aside.rejected(self._made())

    @property
    def is_finished(self) -> bool:
        """Whether the stream has ended, or all streams of a join have."""
        return self._finished

    def _require_running(self) -> None:
        if self._finished:
            raise QueryError("the query has finished; open it again to ask once more")
