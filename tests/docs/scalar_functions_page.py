"""The page of all scalar functions, made from the table that evaluates them.

``python -m tests.docs.scalar_functions_page`` writes it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from panes.expressions.names import NAMES
from panes.expressions.rules import Rule
from panes.expressions.table import RULES
from panes.language.functions import ON_SPARK, REFUSED, SCALARS

APPROXIMATED = frozenset({
    "exp", "expm1", "ln", "log", "log10", "log1p", "log2", "pow", "power", "sin", "cos", "tan",
    "cot", "sec", "csc", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "degrees",
    "radians", "cbrt", "asinh", "acosh", "atanh",
})  # fmt: skip
"""Functions that Java and C each approximate: doubles may differ by two in the last digit."""
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scalar_functions.md"
HEAD = """\
# Scalar functions

The functions that an expression may call, by their Spark names. This page is made from the table
of functions itself (`python -m tests.docs.scalar_functions_page`).

Expressions mean what they mean in Spark's ANSI mode, on every engine. A division by zero, a cast
that cannot be done and an overflow stop the query; `try_divide`, `try_cast`, `try_add` and the
other `try_` functions give NULL instead. Moments are in UTC. What one process does not evaluate is
refused by name when a query meets its columns, and can be asked on Spark.
"""
_KINDS = {
    "T": "any type", "O": "any type that has an order", "any": "any type", "array": "array",
    "array<T>": "array", "array<O>": "array", "array<Z>": "array",
    "number": "number", "integer": "whole number",
    "fraction": "float or double", "moment": "timestamp", "void": "NULL",
}  # fmt: skip


def page() -> str:
    """The whole page."""
    return HEAD + "\n" + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "## The same on every engine"
    yield ""
    yield "| function | arguments | result |"
    yield "|---|---|---|"
    for name in sorted(NAMES & SCALARS):
        yield from _rows(name)
    yield ""
    yield "These are approximated by Java and by C, and may differ in the last digit of a double:"
    yield f"{_names(APPROXIMATED)}."
    yield ""
    yield "## On Spark only"
    yield ""
    yield f"{_names(ON_SPARK)}."
    yield ""
    yield "## Refused everywhere"
    yield ""
    for reason in dict.fromkeys(REFUSED.values()):
        named = _names(name for name, why in REFUSED.items() if why == reason)
        yield f"- What {reason}: {named}."


def _rows(name: str) -> Iterator[str]:
    rules = RULES.get(name, [])
    if not rules:
        yield f"| `{name}` | as in Spark | as in Spark |"
    for rule in rules:
        yield f"| `{name}` | {_arguments(rule)} | {_result(rule)} |"


def _arguments(rule: Rule) -> str:
    found = []
    for parameter in rule.parameters:
        said = _KINDS.get(parameter.kind, parameter.kind)
        said = f"{said} (a constant)" if parameter.constant else said
        said = f"[{said}]" if parameter.optional else said
        found.append(f"{said}, ..." if parameter.repeated else said)
    return ", ".join(found) or "none"


def _result(rule: Rule) -> str:
    if rule.result.startswith("{"):
        return "the type of the argument"
    return "the type of the arguments" if rule.result in ("T", "O") else _KINDS.get(
        rule.result, rule.result
    )  # fmt: skip


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


if __name__ == "__main__":
    PAGE.write_text(page())
