"""The version of what is written: states and files of another format are refused by name.

`panes.stores.codec` has a version of its own, for how tables become bytes. The versions here are
those of what the tables say.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from panes.errors import StateError

FORMAT = "format"
"""The table of a state that tells what it is a state of, and in which format."""


def format_table(what: str, version: int) -> pa.Table:
    """The table to be written with a state."""
    return pa.table({"what": [what], "version": [version]})


def require_format(tables: Mapping[str, pa.Table], what: str, version: int) -> None:
    """Refuse a state of something else, or of another version."""
    if FORMAT not in tables:  # as the first format was written
        require_version(what, 1, version)
        return
    [found] = tables[FORMAT].to_pylist()
    if found["what"] != what:
        raise StateError(
            f"the state is that of {found['what']}, and not that of {what}",
            hint="start with a new checkpoint",
        )
    require_version(what, found["version"], version)


def require_version(what: str, found: object, version: int) -> None:
    """Refuse what was written in another format than the one that is read here.

    >>> require_version("a register", 1, 2)
    Traceback (most recent call last):
    panes.errors.StateError: the state of a register was written in format 1; this version of \
panes reads format 2
    <BLANKLINE>
    Hint: go on with the version of panes that wrote it, or start with a new checkpoint
    """
    if found != version:
        raise StateError(
            f"the state of {what} was written in format {found}; this version of panes reads "
            f"format {version}",
            hint="go on with the version of panes that wrote it, or start with a new checkpoint",
        )
