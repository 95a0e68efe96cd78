"""What is noted of the batches of a register on Spark: each once, rows only if somebody looks."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

from panes.live.feed import Look
from panes.spark.register.tap import Tap

ANSWERS = pa.table({"window_start": [0], "window_end": [10], "n": [3]})


class Batch:
    """A batch of one answer and one late row, and what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def answers(self, name: str) -> pa.Table:
        self.asked.append(name)
        return ANSWERS

    def set_aside(self) -> list[tuple[str, pa.Table]]:
        self.asked.append("late")
        return [("late", pa.table({"reason": ["behind"]}))]


def noted(tap: Tap, batch_id: int) -> list[str]:
    batch = Batch()
    tap.note(batch_id, {"one": 1, "two": 2}, batch.answers, batch.set_aside)  # type: ignore[arg-type]
    return batch.asked


def test_rows_are_fetched_only_while_a_page_is_open() -> None:
    tap = Tap()
    tap.followed.follow_first({"one": 0, "two": 0})
    assert noted(tap, 0) == []
    tap.open()
    assert noted(tap, 1) == ["one", "late"]
    tap.close()
    assert noted(tap, 2) == []
    assert tap.given == {"one": 3, "two": 6}
    assert list(tap.followed.shown({"one": 0}, Look()).rows) == [[0, 10, 3]]


def test_a_batch_that_runs_again_is_noted_once() -> None:
    tap = Tap()
    tap.begin("here")
    noted(tap, 0)
    noted(tap, 0)
    tap.begin("here")
    noted(tap, 0)
    assert tap.given["one"] == 1
    tap.begin("elsewhere")
    noted(tap, 0)
    assert tap.given["one"] == 2
    tap.begin("elsewhere", is_new=True)  # deleted, and begun again
    noted(tap, 0)
    assert tap.given["one"] == 3
    tap.forget("one")
    assert "one" not in tap.given


def test_what_cannot_be_shown_does_not_fail_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> list[tuple[str, pa.Table]]:
        raise RuntimeError("no executor is left")

    tap = Tap()
    tap.open()
    with caplog.at_level(logging.WARNING, logger="panes"):
        tap.note(0, {"one": 1}, lambda _: None, fail)  # type: ignore[arg-type]
    assert "batch 0: no executor is left" in caplog.text
    assert tap.given["one"] == 1
