"""The growth of each function's result and work with its arguments.

A test says of every function that may be called whether it is in one of these lists, and why not.
What multiplies its arguments is measured before it is called, row by row and on both engines. So no
value is ever made longer than `MOST_MADE` by one of them, whatever is called over what.
"""

from __future__ import annotations

from collections.abc import Mapping

MOST_MADE = 10_000_000
"""The most characters that a function that multiplies may make of one row."""
MOST_STEPS = 100_000_000
"""The most times that it may compare, or look at, characters or elements of one row."""
SHORT = 64
"""Beside a constant as short as this, looking is linear."""

MAKING: Mapping[str, tuple[int, int]] = {
    "replace": (0, 2), "regexp_replace": (0, 2), "array_join": (0, 1), "concat_ws": (1, 0),
}  # fmt: skip
"""Functions that put one argument in many places of another: their lengths multiply."""

LOOKING: Mapping[str, tuple[int, int]] = {
    "levenshtein": (0, 1), "instr": (0, 1), "locate": (0, 1), "position": (0, 1),
    "contains": (0, 1), "split_part": (0, 1), "substring_index": (0, 1), "find_in_set": (0, 1),
    "array_distinct": (0, 0), "array_union": (0, 1), "array_intersect": (0, 1),
    "array_except": (0, 1), "arrays_overlap": (0, 1), "translate": (0, 1),
    "jaro_winkler_similarity": (0, 1),
}  # fmt: skip
"""Functions that may look at one argument for every part of another: their time multiplies."""

PATTERNS: Mapping[str, int] = {
    "rlike": 1, "regexp": 1, "regexp_like": 1, "regexp_replace": 1, "regexp_extract": 1,
    "regexp_extract_all": 1, "regexp_count": 1, "regexp_substr": 1, "regexp_instr": 1, "split": 1,
    "str_to_map": 1,
}  # fmt: skip
"""Functions that search for a regular expression, and which argument it is: `backtracking`."""
