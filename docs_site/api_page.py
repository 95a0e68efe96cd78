"""The page of the API: a line for mkdocstrings for every public name, by what kind of thing it is.

Names are read from the `__all__` of the two public modules, not listed here, so none is forgotten.
Nothing is imported: docstrings are read from the source.
"""

from __future__ import annotations

import ast
from pathlib import Path

from docs_site.places import ROOT

SOURCE = ROOT / "src" / "panes"
WITHOUT_DOCSTRING = {"Late", "__version__"}
HEAD = """\
# API

Every public name with its docstring, made from the source. [Functions](functions.md) has every
option in tables, [errors](errors.md) what each error means.
"""


def public_names(module: Path) -> list[str]:
    """The names in the `__all__` of a module that have docstrings.

    >>> "sql" in public_names(SOURCE / "__init__.py")
    True
    """
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [n for n in ast.literal_eval(node.value) if n not in WITHOUT_DOCSTRING]
    raise ValueError(f"{module} has no __all__")


def kind_of(name: str) -> str:
    """Under which heading a name stands.

    >>> kind_of("sql"), kind_of("OpenQuery"), kind_of("QueryError")
    ('Functions', 'Classes', 'Errors and warnings')
    """
    if name.endswith(("Error", "Warning")):
        return "Errors and warnings"
    return "Functions" if name[0].islower() else "Classes"


def api_page() -> str:
    """The whole page."""
    here = public_names(SOURCE / "__init__.py")
    kinds = ("Functions", "Classes", "Errors and warnings")
    by_kind = {kind: [f"panes.{n}" for n in here if kind_of(n) == kind] for kind in kinds}
    spark = public_names(SOURCE / "spark" / "__init__.py")
    by_kind["On Spark"] = [f"panes.spark.{name}" for name in spark]
    return HEAD + "".join(_section(kind, names) for kind, names in by_kind.items())


def _section(kind: str, names: list[str]) -> str:
    """The lines of a heading; a class is shown with what it has of those it is made of."""
    options = "    options:\n      inherited_members: true\n" if kind == "Classes" else ""
    return f"\n## {kind}\n\n" + "".join(f"::: {name}\n{options}\n" for name in names)
