"""Values and calls that could make much of little, and some that do not."""

from __future__ import annotations

import pyarrow as pa

LONG = pa.table({"at": [1], "s": ["a" * 100_000], "t": ["b" * 20_000], "words": [["a"] * 20_000]})
SHORT = pa.table({"at": [1], "s": ["aaab" * 500], "t": ["c" * 2000], "words": [["a", "b"]]})
BOMBS = (
    "replace(s, 'a', t)",
    "replace(replace(replace(s, 'a', repeat('b', 90)), 'b', repeat('a', 90)), 'a', 'bb')",
    "levenshtein(s, t)",
    f"array_join(words, '{'b' * 1000}')",
    "array_distinct(words)",
    "array_except(words, words)",
    "instr(s, t)",
)
WRITTEN = (
    "replace(repeat('a', 100000), 'a', repeat('b', 20000))",
    "levenshtein(repeat('a', 100000), repeat('b', 100000))",
    "array_union(sequence(1, 100000), sequence(1, 100000))",
    "regexp_replace(repeat(s, 1000), 'a', repeat('b', 20000))",
    "replace(replace(repeat('a', 1000), 'a', repeat('b', 1000)), 'b', repeat('c', 1000))",
)
PLAIN = (
    "replace(s, 'a', 'b')", "replace(s, 'aa', t)", "regexp_replace(s, 'a', '')", "instr(s, 'aab')",
    "levenshtein(left(s, 5000), left(t, 5000))", "array_distinct(array(1, 2))",
    "concat_ws(',', words)", "contains(s, t)",
)  # fmt: skip

EXPLODING = ("(.*a){20}b", "(a+)+b", "(a|ab)*c", "([a-z]+,?)*;", "(a?){30}a{30}")
