"""Short answers share memory, and what was given stays as it was.

Catches answers that are written over by later ones, and a sheet that is left too late.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import panes
from panes.index.short_answers import _ROOM, FEW, ShortAnswers

SCHEMA = pa.schema([("at", pa.int64()), ("x", pa.float64())])


def test_answers_stay_as_they_were_given() -> None:
    """Three sheets full of answers of every short length."""
    at = np.arange(1024, dtype=np.int64)
    columns = at.view(np.uint64), (at / 4).view(np.uint64)
    answers: list[tuple[NDArray[np.int64], pa.Table]] = []
    short, given = ShortAnswers(SCHEMA), 0
    while given < 3 * _ROOM:
        rows = np.arange(given, given + len(answers) % (FEW + 1))
        answers.append((rows & 1023, short.take(columns, rows, 1023)))
        given += len(rows)
    for rows, table in answers:
        assert table.schema == SCHEMA
        assert table["at"].to_pylist() == rows.tolist()
        assert table["x"].to_pylist() == (rows / 4).tolist()


def test_rows_of_a_value_stay_while_the_window_slides() -> None:
    index = panes.window_index(SCHEMA, at="at", size=100, basic=10, on="x")
    before = []
    for begin in range(0, 1_000, 10):
        at = range(begin, begin + 10)
        index.add(pa.table({"at": at, "x": [float(a % 3) for a in at]}, schema=SCHEMA))
        index.advance(begin + 10)
        want = [a for a in range(max(begin - 90, 0), begin + 10) if a % 3 == 1]
        before.append((want, index.rows(1.0)))
    for want, table in before:
        assert table["at"].to_pylist() == want
