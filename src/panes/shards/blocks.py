"""Blocks: runs of neighbouring panes that a host keeps together.

A window should be made of several blocks, so that a batch rewrites only the newest few; and there
should be few of them, since a host fetches each one by itself.
"""

from __future__ import annotations

from panes.axis import FOREVER
from panes.windows.spec import Landmark, PanedSpec

MOST_BLOCKS = 64
_PER_WINDOW = 8


def block_span(spec: PanedSpec) -> int:
    """How long a block is at first, a whole number of slides; a landmark keeps one block.

    >>> from panes.windows.spec import Sliding
    >>> block_span(Sliding(size=3600, slide=60))
    480
    """
    if isinstance(spec, Landmark):
        return FOREVER
    slides = -(-spec.size // (spec.slide * _PER_WINDOW))
    return slides * spec.slide
