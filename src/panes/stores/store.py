"""The interface of all stores, and the numbers that they give to keys.

Every store gives the same answers; they differ in time and memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.key_numbers import KeyNumbers
from panes.stores.contents import Contents
from panes.stores.rolled import AnswerPartials, WindowPartials
from panes.windows.cover import Wids


class Store(ABC):
    """Where rows, or partials of them, wait until their windows are answered.

    A store adds rows, rolls windows as often as it is asked, and evicts what no open window needs.
    It knows nothing of progress. Every combination of key values, a group, has a number.
    """

    def __init__(self, contents: Contents, numbers: KeyNumbers | None = None) -> None:
        """With `numbers`, they are shared with another store, which forgets keys for both."""
        self.contents = contents
        self.numbers = KeyNumbers(contents.key_types) if numbers is None else numbers

    @property
    def keys(self) -> int:
        """The number of combinations of key values."""
        return len(self.numbers)

    @property
    def rows(self) -> int:
        """The number of rows that are buffered: none, unless a store says otherwise."""
        return 0

    @property
    def key_bytes(self) -> int:
        """Bytes that the key values take."""
        return self.numbers.nbytes

    @property
    def key_columns(self) -> list[pa.Array]:
        """The key values of every group, by its number."""
        return self.numbers.columns(np.arange(self.keys))

    def key_values(self, groups: NDArray[np.int64]) -> list[pa.Array]:
        """The key values of some groups."""
        return self.numbers.columns(groups)

    def number(self, keys: Sequence[pa.Array], rows: int) -> NDArray[np.int32]:
        """The group of each row of key values."""
        return self.numbers.encode(keys, rows)

    def groups_of(
        self, columns: Sequence[pa.Array], rows: int, known: NDArray[np.int32] | None
    ) -> NDArray[np.int32]:
        """The group of each row of the plan's projected columns, unless they are known."""
        if known is not None:
            return known
        return self.number([columns[c] for c in self.contents.group_columns], rows)

    @abstractmethod
    def __len__(self) -> int:
        """The number of partials that are stored."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all that is stored, keys aside."""

    @abstractmethod
    def add(
        self,
        at: NDArray[np.int64],
        columns: Sequence[pa.Array],
        groups: NDArray[np.int32] | None = None,
    ) -> None:
        """Take in rows: positions, the plan's projected columns, and groups if they are known."""

    @abstractmethod
    def roll_named(
        self, groups: NDArray[np.int64], offsets: NDArray[np.int64], wid: NDArray[np.int64]
    ) -> AnswerPartials:
        """The partials of windows named one by one, ascending within each of the groups.

        `offsets` tells where the windows of each of the `groups` begin among `wid`.
        """

    @abstractmethod
    def evict(self, first_open: Wids) -> bool:
        """Drop what no open window holds; says whether there was anything."""

    @abstractmethod
    def forget_keys(self) -> NDArray[np.int64] | None:
        """Drop keys that nothing is stored of, if they are many; gives the new number of each."""


class WindowStore(Store):
    """A store of windows that close in the order of their ends."""

    @abstractmethod
    def roll(
        self, first_due: Wids, end_due: Wids, *, in_order: bool = True
    ) -> WindowPartials | None:
        """The partials of the windows ``[first_due, end_due)``; None if none of them has rows."""

    @abstractmethod
    def roll_named(
        self, groups: NDArray[np.int64], offsets: NDArray[np.int64], wid: NDArray[np.int64]
    ) -> WindowPartials:
        """The same for windows named one by one."""
