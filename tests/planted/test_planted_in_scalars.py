"""Wrong edits of the table of functions: the examples with Spark's answers must disagree.

If one of these tests fails, the examples have become blind to that bug.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from panes.expressions import casts
from panes.expressions import types as t
from panes.expressions.rules import Rule
from panes.expressions.table import RULES
from tests.expressions import examples

Plant = Callable[[pytest.MonkeyPatch], None]


def _line(name: str, line: str) -> Plant:
    return lambda patch: patch.setitem(RULES, name, [Rule.parse(line)])


def _rounding_cast(patch: pytest.MonkeyPatch) -> None:
    own = casts._cast

    def rounding(x: str, kind: pa.DataType, to: pa.DataType, otherwise: str) -> str | None:
        if t.is_float(kind) and t.is_integer(to):
            return f"CAST({x} AS {t.duckdb_name(to)})"
        return own(x, kind, to, otherwise)

    patch.setattr(casts, "_cast", rounding)


PLANTED: dict[str, Plant] = {
    "a cast that rounds": _rounding_cast,
    "a week that begins on Sunday": _line("weekday", "weekday | date | int | dayofweek({0})"),
    "days of the week from zero": _line("dayofweek", "dayofweek | date | int | dayofweek({0})"),
    "whole names of days": _line("dayname", "dayname | date | string | dayname({0})"),
    "a date that becomes a moment": _line(
        "date_add", "date_add | date, int | timestamp_ntz | {0} + {1}"
    ),
    "the floor as a double": _line("floor", "floor | fraction | double | floor({0})"),
    "swapped arguments": _line("instr", "instr | string, string | int | instr({1}, {0})"),
}  # fmt: skip


def wrong() -> list[str]:
    """The examples that are not as in Spark; one that breaks down counts as caught too."""
    cases = (*examples.CASTS, *examples.DATES, *examples.NUMBERS, *examples.TEXT)
    found = []
    for sql, value, kind in cases:
        try:
            examples.require_as_in_spark(sql, value, kind)
        except Exception:  # whatever a planted bug does
            found.append(sql)
    return found


def test_without_a_bug_nothing_is_found() -> None:
    assert wrong() == []


@pytest.mark.parametrize("bug", PLANTED)
def test_the_examples_catch(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[bug](monkeypatch)
    assert wrong() != []
