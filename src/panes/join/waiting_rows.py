"""Joins whose left rows wait until all their partners are there.

An as-of join must know which partner is the last, and a fold over the partners of each row must
know all of them: a row on the left waits until the right stream has passed its reach. Rows on the
right are stored while a row on the left may come, or waits, that reaches them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from panes.axis import BEGINNING
from panes.join.key_codes import equal_keys
from panes.join.rule import JoinRule
from panes.join.sorted_rows import SortedRows
from panes.join.time_blocks import TimeBlocks
from panes.windows.partners import Band


class WaitingRows:
    """Rows on the left that wait, and rows on the right they may find."""

    def __init__(self, rule: JoinRule) -> None:
        assert isinstance(rule.partners, Band)
        self.rule, self.band = rule, rule.partners
        self.left, self.right = TimeBlocks(rule.partners.width), TimeBlocks(rule.partners.width)

    def partners_of(self, due: SortedRows) -> SortedRows | None:
        """All rows on the right that rows on the left may reach; None if there are none."""
        low, high = int(due.at.min()), int(due.at.max())
        return together(list(self.right.runs(*self.band.span(low, high, of_left=True))))


def take_due(blocks: TimeBlocks, before: int) -> list[SortedRows]:
    """The rows before a position, which wait no more."""
    found = []
    for run in list(blocks.runs(BEGINNING, before - 1)):
        is_due = run.at < before
        due = run if is_due.all() else run.where(is_due)
        if len(due):
            found.append(due)
            blocks.replace(run, run.where(~is_due))
    return found


def together(runs: Sequence[SortedRows]) -> SortedRows | None:
    """Runs as one."""
    pool: SortedRows | None = None
    for run in runs:
        pool = run if pool is None else pool.merged(run)
    return pool


def codes_collide(pool: SortedRows, hashed: int) -> bool:
    """Whether rows of different keys have the same code, which next to never happens."""
    place = np.flatnonzero(pool.code[1:] == pool.code[:-1])
    keys = pool.columns[-hashed:]
    one, other = (pa.array(pool.row[p]) for p in (place, place + 1))
    return not equal_keys([k.take(one) for k in keys], [k.take(other) for k in keys]).all()
