"""Names as parts of paths: of folders and files that are called after a query.

A name is whatever a user, a watched folder or the live page says. Here it becomes one part of a
path and no more. It is written as Spark and Hive write the value of a partition, with `%2F` for a
slash, so that whoever reads ``query=NAME`` as a partition has the name again.
"""

from __future__ import annotations

import re

from panes.errors import QueryError

_MOST_BYTES = 200
"""File systems take 255, of which ``query=`` and what is added while writing are some."""
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]|\A\.""")


def path_part(name: str) -> str:
    r"""A name as one part of a path, which neither leads elsewhere nor is hidden.

    >>> path_part("../a/b"), path_part("50 % of <x>"), path_part("é")
    ('%2E.%2Fa%2Fb', '50 %25 of <x>', 'é')
    """
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", name)


def require_path_part(name: str) -> None:
    """Refuse a name that no folder could have, however it is written."""
    try:
        size = len(path_part(name).encode())
    except UnicodeEncodeError:
        raise QueryError(f"{name!r} cannot be a query's name: it has half of a character") from None
    if not name or "\x00" in name:
        raise QueryError(f"{name!r} cannot be a query's name: no folder can be called so")
    if size > _MOST_BYTES:
        raise QueryError(
            f"a query's name has {_MOST_BYTES} bytes at the most, and `{name[:20]}...` has {size:,}"
        )
