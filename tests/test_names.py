"""One word has one meaning: no two public classes of the product share a name.

Catches a new class that is called as another one is: whoever reads `Reach` should not have to look
which of two it is.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "panes"


def test_no_public_class_has_the_name_of_another() -> None:
    modules = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(str(path.relative_to(SOURCE)))
    assert len(modules) > 400
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}
