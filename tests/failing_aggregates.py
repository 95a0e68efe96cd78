"""Aggregates of a user's own that raise: at the first row, at the first combine, at a window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import panes


def _fails(_: object) -> Any:
    raise RuntimeError("no such luck")


shaky = panes.CustomAggregate(
    name="shaky",
    lift=lambda x: _fails(x),
    combine=np.add,
    lower=lambda p: p[0],
    empty=(0.0,),
    type=pa.float64(),
)
brittle = panes.CustomAggregate(
    name="brittle",
    lift=lambda x: np.ones((1, len(x))),
    combine=lambda a, b: _fails(a),
    lower=lambda p: p[0],
    empty=(0.0,),
    type=pa.float64(),
)
picky = panes.WindowFunction(name="picky", function=lambda v: _fails(v), type=pa.float64())
