"""A sink that a live page looks into: rows pass through it, and some of them are kept."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from panes.language.query import WINDOW_COLUMNS
from panes.live.answer_history import AnswerHistory
from panes.live.apart import Apart
from panes.spark.query import Sent, Sink, ToldSink, send
from panes.spark.register.tap import MOST_ROWS


class LiveRows(ToldSink):
    """A sink that passes rows on, and keeps some of each micro-batch for a live page.

    For ``foreachBatch``, and wherever `panes.spark.split` or a register takes a function. `keys`
    is how many columns after the window's are the key of an answer. Not for Spark Connect, where
    such functions run elsewhere.
    """

    def __init__(self, sink: Sink | None = None, *, keys: int = 1) -> None:
        self._sink = sink
        self.history, self.apart = AnswerHistory(keys), Apart()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Rows of which nobody says what they are: with a reason and no window, they are late."""
        is_apart = "reason" in frame.columns and WINDOW_COLUMNS[1] not in frame.columns
        self.take(frame, batch_id, "late" if is_apart else "answers")

    def take(self, frame: DataFrame, batch_id: int, kind: Sent) -> None:
        """Answers, or rows that came late or were rejected."""
        if self._sink is not None:
            send(frame, self._sink, batch_id, kind)
        shown: pa.Table = frame.limit(MOST_ROWS).toArrow()
        if kind != "answers":
            self.apart.add(kind, [shown])
        elif WINDOW_COLUMNS[1] in shown.column_names:
            self.history.give(shown.sort_by(WINDOW_COLUMNS[1]))
        else:
            self.history.give(shown)
