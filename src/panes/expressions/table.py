"""The functions that mean in this process what they mean in Spark: one line each.

How a line is read is said in `panes.expressions.rules`. A line is here where no example of Spark's
own documentation differs; what is not certain for all values of its types is refused or an error.
"""

from __future__ import annotations

from collections.abc import Iterable

from panes.expressions.rules import Rule
from panes.expressions.table_collections import COLLECTIONS
from panes.expressions.table_dates import DATES
from panes.expressions.table_numbers import CONDITIONS, MATHEMATICS
from panes.expressions.table_text import TEXT


def _rules(*parts: str) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for line in _lines(parts):
        rule = Rule.parse(line)
        for name in rule.names:
            found.setdefault(name, []).append(rule)
    return found


def _lines(parts: Iterable[str]) -> Iterable[str]:
    for part in parts:
        yield from (line for line in part.strip().splitlines() if line)


APPROXIMATED = frozenset({
    "exp", "expm1", "ln", "log", "log10", "log1p", "log2", "pow", "power", "sin", "cos", "tan",
    "cot", "sec", "csc", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "degrees",
    "radians", "cbrt", "asinh", "acosh", "atanh",
})  # fmt: skip
"""Functions that Java and C each approximate: doubles may differ by two in the last digit."""

RULES = _rules(DATES, MATHEMATICS, CONDITIONS, TEXT, COLLECTIONS)
