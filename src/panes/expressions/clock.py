"""Text that Spark reads by the clock: `now` and its like, and a time of day, which is *today's*.

The same rows would give other answers tomorrow, so such text is no moment: refused where it is
written, and where it is a value an error, or NULL for what is tried.
"""

from __future__ import annotations

import re

WORDS = "now|today|tomorrow|yesterday|epoch"
_TEXT = re.compile(rf"\s*(?:(?:{WORDS})(?:[ \t].*)?|T\d{{1,2}}|T?\d{{1,2}}:.*)\s*", re.I | re.S)
IN_JAVA = rf"^\s*(?i:(?:{WORDS})(?:\s.*)?$|T?[0-9]{{1,2}}:|T[0-9]{{1,2}}\s*$)"
"""The same as a pattern of Java's."""
REASON = "depends on the clock, so the same rows would give other answers tomorrow"
HINT = "write the moment: TIMESTAMP '2026-01-31 12:00:00', or DATE '2026-01-31'"


def reads_clock(text: str) -> bool:
    """True if Spark reads a text as a moment by the clock.

    >>> reads_clock(" Now"), reads_clock("12:30:00"), reads_clock("2026-01-31 12:30")
    (True, True, False)
    """
    return _TEXT.fullmatch(text) is not None
