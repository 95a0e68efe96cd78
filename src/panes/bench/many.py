"""Many queries over one stream: what ten thousand cost against one.

A register reads the stream once, keeps panes once, and answers all due windows together. The mix:
ranges up to an hour, slides of 10 seconds to 5 minutes (half of them from 10, 15, 30, 60 and 300
seconds, half any whole second), ten aggregates, five filters; seeded. The stream comes in batches,
and every answer is collected.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import panes
from panes.bench.workloads import bids
from panes.reference.compare import difference

AGGREGATES = (
    "count(*)",
    "sum(price)",
    "avg(price)",
    "min(price)",
    "max(price)",
    "var_pop(price)",
    "stddev(price)",
    "sum(quantity)",
    "max(quantity)",
    "avg(quantity)",
)
FILTERS = (
    "",
    "WHERE price > 100",
    "WHERE price <= 40",
    "WHERE quantity > 5",
    "WHERE quantity > 2 AND price > 60",
)
COMMON_SLIDES = (10, 15, 30, 60, 300)
COUNTS = (1, 10, 100, 1_000, 10_000)
BATCHES = 4
LATENESS = "10 seconds"


def queries(count: int, *, seed: int = 5) -> dict[str, str]:
    """The mix, by name; the first ones are the same whatever the count."""
    rng = np.random.default_rng(seed)
    return {f"q{i}": _query(rng) for i in range(count)}


def _query(rng: np.random.Generator) -> str:
    common = int(rng.choice(COMMON_SLIDES))
    slide = common if rng.random() < 0.5 else int(rng.integers(10, 301))
    size = int(rng.integers(slide, 3_601))
    aggregate = AGGREGATES[int(rng.integers(len(AGGREGATES)))]
    where = FILTERS[int(rng.integers(len(FILTERS)))]
    return (
        f"SELECT item, {aggregate} AS a FROM bids [RANGE {size} seconds SLIDE {slide} seconds "
        f"WATTR ts] {where} GROUP BY item"
    )


def stream(rows: int, *, keys: int) -> pa.Table:
    """An hour of bids with a quantity."""
    table = bids(rows, keys=keys, hours=1)
    quantity = np.random.default_rng(3).integers(1, 9, rows)
    return table.append_column("quantity", pa.array(quantity))


def registered(asked: dict[str, str], schema: pa.Schema) -> panes.Register:
    """A register with these queries, ready for the first batch."""
    reg = panes.register("bids", lateness=LATENESS, max_ahead=None, schema=schema)
    for name, text in asked.items():
        reg.add(name, text)
    return reg


def run_through(reg: panes.Register, table: pa.Table) -> dict[str, list[pa.Table]]:
    """All answers, as they came."""
    found: dict[str, list[pa.Table]] = {name: [] for name in reg.queries()}
    length = -(-len(table) // BATCHES)
    for begin in range(0, len(table), length):
        _collect(found, reg.push(table.slice(begin, length)))
    _collect(found, reg.finish())
    return found


def _collect(found: dict[str, list[pa.Table]], answers: dict[str, pa.Table]) -> None:
    for name, table in answers.items():
        found[name].append(table)


def check(table: pa.Table, asked: dict[str, str], sample: Sequence[str]) -> int:
    """Some queries of a register against each of them alone; gives the number of all answers."""
    found = run_through(registered(asked, table.schema), table)
    for name in sample:
        want = panes.sql(asked[name], bids=table)
        got = pa.concat_tables([want.schema.empty_table(), *found[name]])
        said = difference(got, want)
        if said is not None:
            raise AssertionError(f"{asked[name]} differs from itself alone: {said}")
    return sum(len(t) for tables in found.values() for t in tables)
