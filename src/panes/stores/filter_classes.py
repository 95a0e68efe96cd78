"""Filter classes: the sets of filters that hold of rows, each with a number.

A set is a row of 64-bit words, with bit `f` for the filter in column `f`. Equal sets get one
number: they are found by hashing and compared in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from panes.arrays.compiled import compiled

Words = NDArray[np.uint64]
_WORD = 64


class Classes:
    """Sets of filters, numbered in the order in which they were first seen.

    >>> classes = Classes()
    >>> classes.number(to_words([0b10, 0b11, 0b10])), classes.holding(0), classes.sets()
    (array([0, 1, 0]), array([False,  True]), [2, 3])
    """

    def __init__(self) -> None:
        self._words: Words = np.zeros((8, 1), dtype=np.uint64)
        self._table = np.full(16, -1, dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of the sets, and of what finds their numbers."""
        return self._words.nbytes + self._table.nbytes

    def written(self) -> dict[str, object]:
        """The sets of now, as attributes that nobody writes to."""
        return {"_words": self._words.copy(), "_table": self._table.copy(), "_count": self._count}

    def number(self, words: Words) -> NDArray[np.int64]:
        """The numbers of sets; new ones get the next."""
        width = max(words.shape[1], self._words.shape[1])
        if width > self._words.shape[1]:
            self._resize(len(self._words), width)
        words = np.ascontiguousarray(_widened(words, width))
        numbers, done = np.empty(len(words), dtype=np.int64), 0
        while done < len(words):
            done, self._count = _number(words, done, self._words, self._table, self._count, numbers)
            if done < len(words):
                self._resize(2 * len(self._words), width)
        return numbers

    def holding(self, where: int) -> NDArray[np.bool_]:
        """The classes, by number, in which a filter holds."""
        word, bit = divmod(where, _WORD)
        if word >= self._words.shape[1]:
            return np.zeros(self._count, dtype=np.bool_)
        bits = self._words[: self._count, word] >> np.uint64(bit) & np.uint64(1)
        return bits.astype(np.bool_)

    def only(self, filters: Iterable[int]) -> Words:
        """All sets, by number, as they are without any other filters."""
        needed = to_words([sum(1 << f for f in filters)])
        width = self._words.shape[1]
        return self.words() & _widened(needed, max(width, needed.shape[1]))[:, :width]

    def words(self) -> Words:
        """All sets, by number."""
        return self._words[: self._count]

    def sets(self) -> list[int]:
        """All sets, by number, as integers of any length."""
        return [int.from_bytes(w.tobytes(), "little") for w in self.words().astype("<u8")]

    def _resize(self, room: int, width: int) -> None:
        larger = np.zeros((room, width), dtype=np.uint64)
        larger[: self._count, : self._words.shape[1]] = self._words[: self._count]
        self._words, self._table = larger, np.full(2 * room, -1, dtype=np.int64)
        _fill_table(larger, self._count, self._table)


def to_words(sets: Sequence[int]) -> Words:
    """Sets given as integers of any length."""
    width = max(1, *(-(-s.bit_length() // _WORD) for s in sets)) if sets else 1
    joined = b"".join(s.to_bytes(8 * width, "little") for s in sets)
    return np.frombuffer(joined, dtype="<u8").reshape(-1, width).astype(np.uint64)


def _widened(words: Words, width: int) -> Words:
    if words.shape[1] == width:
        return words
    wider = np.zeros((len(words), width), dtype=np.uint64)
    wider[:, : words.shape[1]] = words
    return wider


@compiled
def _find(words, i, known, table):  # type: ignore[no-untyped-def]
    """Where in the table a set is, or would be."""
    code = np.uint64(14695981039346656037)
    for word in words[i]:
        code = (code ^ word) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    index = np.int64(code & np.uint64(table.shape[0] - 1))
    while table[index] >= 0:
        if np.array_equal(known[table[index]], words[i]):
            break
        index = (index + 1) & (table.shape[0] - 1)
    return index


@compiled
def _number(words, begin, known, table, count, numbers):  # type: ignore[no-untyped-def]
    """Number sets until there is no room for another one; says how far that was."""
    for i in range(begin, words.shape[0]):
        index = _find(words, i, known, table)
        if table[index] < 0:
            if count == known.shape[0]:
                return i, count
            known[count] = words[i]
            table[index] = count
            count += 1
        numbers[i] = table[index]
    return words.shape[0], count


@compiled
def _fill_table(known, count, table):  # type: ignore[no-untyped-def]
    for i in range(count):
        table[_find(known, i, known, table)] = i
