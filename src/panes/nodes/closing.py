"""What progress closes, and what answers say it was closed by.

Windows close at edges, so punctuation between two edges is held back (`Describe`). While there are
promises for some keys, every group has its own progress, and groups close one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from panes.axis import BEGINNING, FOREVER
from panes.nodes.pipeline import Pipeline
from panes.nodes.promises import Promised
from panes.nodes.status import ends_of
from panes.progress.describe import Describe
from panes.windows.families import ends_of as edges_of_ends

THE_END = "the end of the stream"


class Closed(NamedTuple):
    """Answers of windows that are closed now, before the SELECT's expressions; and by what."""

    answers: pa.Table
    why: str


def closed_by(pipeline: Pipeline, progress: int, why: str, *, in_steps: bool) -> Iterator[Closed]:
    """The windows that a progress completes: at once, or some of them with each step."""
    if in_steps:
        yield from (Closed(answers, why) for answers in pipeline.close_in_steps(progress))
    else:
        yield Closed(pipeline.close(progress), why)


class Closing:
    """How far windows have been closed by the promises of a query's streams."""

    def __init__(self, nothing: Promised) -> None:
        """`nothing` is what has been promised before any stream has promised anything."""
        self._before = nothing
        self._punctuation: Describe | None = None

    @property
    def received(self) -> int:
        """How often progress moved."""
        return 0 if self._punctuation is None else self._punctuation.received

    @property
    def passed(self) -> int:
        """How often it moved past the end of a window."""
        return 0 if self._punctuation is None else self._punctuation.passed

    def advance(
        self, pipeline: Pipeline, promised: Promised, progress: int, why: str, *, in_steps: bool
    ) -> Iterator[Closed]:
        """Close what is complete; `progress` is that of every row, whatever its key.

        In steps, each has some of the answers. Where promises are for some keys only, two have all.
        """
        if promised.of_keys:
            answers = pipeline.close_each(self._before, promised)
            self._before = promised
            by_all = ends_of(answers) <= progress
            yield Closed(answers.filter(pa.array(by_all)), why)
            yield Closed(answers.filter(pa.array(~by_all)), "a promise for the key")
        elif progress != BEGINNING and self._passes(pipeline, progress):
            yield from closed_by(pipeline, progress, why, in_steps=in_steps)

    def finish(self, pipeline: Pipeline, promised: Promised, *, in_steps: bool) -> Iterator[Closed]:
        """Close everything: the stream has ended."""
        if promised.of_keys:
            end = Promised(dict.fromkeys(promised.at, FOREVER))
            yield Closed(pipeline.close_each(self._before, end), THE_END)
        elif in_steps:
            yield from (Closed(answers, THE_END) for answers in pipeline.close_all_in_steps())
        else:
            yield Closed(pipeline.close_all(), THE_END)

    def _passes(self, pipeline: Pipeline, progress: int) -> bool:
        """Whether progress has reached the end of a window since it was last asked."""
        windows = pipeline.closing_at_ends
        if windows is None:
            return True  # rows wait there that a later row, or any progress, may free
        if self._punctuation is None:
            self._punctuation = Describe([edges_of_ends(windows)])
        return self._punctuation.up_to(progress) is not None
