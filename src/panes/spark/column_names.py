"""The names of columns that only Panes sees, between a user's rows and the answers.

Names of what a task's rows have in every host are in `panes.shards.names`, those of keys in
`panes.language.query`; the rest are here. Two underscores keep them apart from a user's columns,
but for those that Spark hands to Python as named tuples, whose names cannot begin with one.
"""

from __future__ import annotations

from panes.shards.names import ASIDE, WINDOW_END, WINDOW_START

SHARD, PACKAGE, WHEN = "shard", "package", "sent_at"
"""What travels in the shuffle: to which shard, the bytes, and in which micro-batch."""

START, END = WINDOW_START, WINDOW_END
"""Where an answer's window starts and ends, in ticks."""
STATUS, SET_ASIDE = "__status", ASIDE
"""What a shard says of itself, and a row that was late or rejected."""

PANE, TAG, NEWEST, COUNT = "__pane", "__tag", "__newest", "__count"
"""Of partials: where their pane starts, what they are of (-1, or the number of a set of values),
the newest position of all rows, and how often a value occurs."""
RANK, ROWS = "__rank", "__rows"
"""A row's rank in its partition, and how many rows that has."""
PLACE = "__place"
"""Where a row that was kept stands among those at the same position."""
PASSES = "__passes"
"""Whether a row passes the WHERE of a SELECT inside FROM."""
