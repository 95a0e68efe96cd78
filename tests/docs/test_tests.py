"""Rules of the tests themselves, which no linter knows."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def imported(module: Path) -> set[str]:
    """The last words of what a module imports, with those it imports them from."""
    words: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        names = (
            [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        )
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names.append(node.module)
        words |= {name.rpartition(".")[2] for name in names}
    return words


def test_tests_import_no_tests() -> None:
    """What two of them need lives in a module that is no test."""
    found = {
        f"{module.relative_to(TESTS)} imports {name}"
        for module in TESTS.rglob("*.py")
        for name in imported(module)
        if name.startswith("test_")
    }
    assert found == set()


def test_every_room_has_its_tests() -> None:
    """Tests of a room are in the folder that is called as it is."""
    rooms = {room.parent.name for room in (TESTS.parent / "src" / "panes").glob("*/__init__.py")}
    assert len(rooms) > 10
    assert {room for room in rooms if not any((TESTS / room).rglob("test_*.py"))} == set()
