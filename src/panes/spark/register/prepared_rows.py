"""The questions for rows that a register on Spark was told of, and what is kept for all of them.

They are known by their texts, which are in the checkpoint. Invariant: after every change, the
queries say which rows the shards keep.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame

from panes.aggregates.custom import UserAggregate
from panes.asking.kept_columns import keep_for
from panes.asking.row_questions import ordering_of
from panes.errors import PanesError, QueryError
from panes.language.parse import parse
from panes.language.query import Query
from panes.language.row_question import RowQuestion, read_row_question
from panes.planning.terms import StreamOptions, check_options, require_clock, require_lateness
from panes.sharing.queries import Queries
from panes.spark.bind import arrow_schema
from panes.spark.register.ask_rows import require_answerable


class PreparedStreamRows:
    """Prepared questions for rows of one stream, in the order in which they came."""

    def __init__(
        self,
        stream: str,
        frame: DataFrame,
        run: StreamOptions,
        aggregates: tuple[UserAggregate, ...],
    ) -> None:
        self._stream, self._frame, self._run, self._aggregates = stream, frame, run, aggregates
        self._asked: dict[str, RowQuestion] = {}

    def copied(self) -> PreparedStreamRows:
        """The same questions, to try a change on."""
        found = PreparedStreamRows(self._stream, self._frame, self._run, self._aggregates)
        found._asked = dict(self._asked)
        return found

    def __len__(self) -> int:
        return len(self._asked)

    def __contains__(self, text: str) -> bool:
        return text in self._asked

    @property
    def texts(self) -> list[str]:
        """The questions as they were prepared."""
        return list(self._asked)

    def orderings(self) -> list[Query]:
        """For each question, a query over the column that orders its rows."""
        return [parse(ordering_of(asked)) for asked in self._asked.values()]

    def add(self, queries: Queries, text: str) -> None:
        """Keep the rows that a question asks for; refused before anything changes."""
        asked = read_row_question(text, self._aggregates)
        if asked is None:
            raise QueryError(
                "on Spark, questions for rows are prepared, and others are answered from panes",
                hint="add a query with that GROUP BY and a RANGE as long: reg.add(...)",
            )
        if asked.stream.lower() != self._stream.lower():
            raise QueryError(f"only rows of `{self._stream}` can be asked for")
        planned = require_answerable(self._frame, asked)
        queries.require_same_axis(None, planned)
        require_lateness(self._run.lateness, planned.axis.kind)
        check_options(planned.query, self._run)
        require_clock(self._run)
        queries.axis, self._asked[text] = planned.axis, asked
        self._keep(queries)

    def forget(self, queries: Queries, text: str) -> None:
        """Keep no longer what only this question needs."""
        if text not in self._asked:
            known = "; ".join(self._asked) or "none"
            raise QueryError("that question is not prepared", hint=f"prepared: {known}")
        del self._asked[text]
        self._keep(queries)

    def taken_up(self, queries: Queries, texts: Iterable[str]) -> PreparedStreamRows:
        """The same for other queries over the stream, with more questions before these."""
        found = PreparedStreamRows(self._stream, self._frame, self._run, self._aggregates)
        for text in (*texts, *self._asked):
            try:
                found.add(queries, text)
            except PanesError as error:
                raise error.of(f"the prepared question `{text}`") from None
        return found

    def _keep(self, queries: Queries) -> None:
        queries.keep = keep_for(self._asked.values(), arrow_schema(self._frame))
