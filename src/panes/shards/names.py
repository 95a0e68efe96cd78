"""The names of what tasks and shards exchange: columns of a task's rows, tables of a package."""

from __future__ import annotations

from panes.axis import LIMIT

SOURCE, AT, PASSING, PROMISE, ROW = "__source", "__at", "__passing", "__promise", "__row"
"""Columns of a task's rows beside the plan's: which stream a row is of, its position, whether it
passes WHERE, what is promised with it, and the whole row. All but the position may be left out."""

ASIDE = "__apart"
"""A column of rows that another shard has set aside, with the kind and the reason, and the table of
a package that has them: they are on their way to the sink."""

WINDOW_START, WINDOW_END = "__start", "__end"
"""Columns of lowered answers: where an answer's window starts and ends, in ticks."""

HIDDEN = (PROMISE, ROW, ASIDE)
"""Columns of a stream that come along with a user's: rows that are a promise have `PROMISE` (its
value says no more than `ENDED` or not), and its positions in the columns that it is about; rows
that were set aside have `ASIDE`; and `ROW` is the whole row as it was when it came."""

TOO_FAR_AHEAD = LIMIT + 1
"""The position of a row that lies too far ahead of the clock."""
ENDED = LIMIT
"""The promise of a source that has ended: not that time has passed, but that nothing more comes."""
EVERY_SOURCE = -1
"""The source of what is no row of any stream, but may promise something for all of them."""

MARKS, ROWS, REJECTED = "marks", "rows", "rejected"
"""Tables of a package: how far its rows reach, rows as they are, and rows without a position."""
KEPT = "kept"
"""The table of a package with rows that are kept for questions; and what begins their names in a
state."""
_POSITIONS = "positions"


def column_name(index: int) -> str:
    """What the plan's projected column `index` is called in a task's rows."""
    return f"__c{index}"


def positions_name(source: int) -> str:
    """The table of a package with the positions of one source's rows."""
    return f"{_POSITIONS}{source}"
