"""Combine every pane of every window anew.

Any monoid. Panes-per-window combines per answer, in as many vectorised steps: the best choice
where windows hold one or two panes (tumbling, sampling), and the plainest to check others by.
"""

from __future__ import annotations

import numpy as np

from panes.aggregates.monoid import Columns, Monoid
from panes.windows.cover import Cover


def from_scratch(monoid: Monoid, panes: Columns, cover: Cover) -> Columns:
    """One partial per answer of `cover`."""
    answers = panes[:, cover.first]
    length = cover.last - cover.first
    for step in range(1, int(length.max(initial=0))):
        longer = np.flatnonzero(length > step)
        answers[:, longer] = monoid.combine(
            answers[:, longer], panes[:, cover.first[longer] + step]
        )
    return answers
