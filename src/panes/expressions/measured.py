"""Calls of functions that multiply their arguments: measured before, and an error if it is much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from panes.expressions import types as t
from panes.expressions.sizes import LOOKING, MAKING, MOST_MADE, MOST_STEPS, SHORT
from panes.expressions.typed import Typed, each_once, failure


def measured(name: str, arguments: Sequence[Typed], build: Callable[[list[Typed]], Typed]) -> Typed:
    """A call by its arguments, which is an error where their lengths multiply to too much."""
    found = build(list(arguments))
    pair = MAKING.get(name) or LOOKING.get(name)
    if pair is None or max(pair) >= len(arguments) or _is_harmless(name, arguments):
        return found
    most = MOST_MADE if name in MAKING else MOST_STEPS
    error = failure(too_much(name, most))

    def guarded(known: list[Typed]) -> str:
        sizes = " * ".join(f"coalesce({_length(known[at])}, 0)" for at in pair)
        return (
            f"CASE WHEN {sizes} > {most} THEN {error}::{t.duckdb_name(found.type)} "
            f"ELSE {build(known).text} END"
        )

    return replace(found, text=each_once(arguments, guarded))


def too_much(name: str, most: int) -> str:
    """The error for a row whose values are too long for a function."""
    what = "characters or more" if name in MAKING else "steps or more"
    return f"`{name}` of values that are so long may take {most:,} {what}"


def _is_harmless(name: str, arguments: Sequence[Typed]) -> bool:
    """True if a constant is so short that nothing multiplies."""
    written = [a.constant for a in arguments if a.is_constant and isinstance(a.constant, str)]
    if name == "replace":
        old, *new = (a.constant for a in arguments[1:])
        return isinstance(old, str) and all(isinstance(n, str) and len(n) <= len(old) for n in new)
    if name == "regexp_replace":
        return arguments[2].constant == ""
    if name in MAKING:
        return any(len(text) <= 1 for text in written)
    return any(len(text) <= SHORT for text in written)


def _length(value: Typed) -> str:
    if t.is_array(value.type):
        return f"CAST(len({value.text}) AS BIGINT)"
    measure = "octet_length" if value.type == t.BINARY else "length"
    text = value.text if value.type in (t.STRING, t.BINARY) else f"CAST({value.text} AS VARCHAR)"
    return f"CAST({measure}({text}) AS BIGINT)"
