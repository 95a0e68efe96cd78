"""A query's name is one part of a path: it leads nowhere else, and can be read again.

Catches: a name that climbs out of its folder, is hidden in it, or meets another name there.
"""

from __future__ import annotations

from pathlib import Path, PureWindowsPath
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panes.errors import QueryError
from panes.path_part import path_part, require_path_part

NAMES = ["..", ".", "/", "a/b", "../../x", "\\", "c:\\x", "a:b", "query=x", "%2F", "a%", "é/ü",
         "*", "x\n", " ", "A", "a", "x=1/y=2", "~", "\x7f", "__HIVE", "#", "?x"]  # fmt: skip


@given(st.sampled_from(NAMES) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_name_is_one_part_and_is_read_again(name: str) -> None:
    part = path_part(name)
    assert unquote(part) == name
    assert Path(part).parts == (part,)
    assert PureWindowsPath(f"query={part}").parts == (f"query={part}",)
    assert part not in (".", "..")
    assert not part.startswith(".")
    assert "\x00" not in part


def test_no_two_names_are_one_part() -> None:
    assert len({path_part(name) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", ["", "a\x00b", "x" * 201, "/" * 70, "\ud800"])
def test_what_no_folder_can_be_called_is_refused(name: str) -> None:
    with pytest.raises(QueryError, match="query's name"):
        require_path_part(name)
