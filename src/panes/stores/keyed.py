"""The common half of stores that number their keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.arrays.key_numbers import KeyNumbers
from panes.stores.contents import Contents


class Keyed:
    """A store of `contents` in which every combination of key values, a group, has a number."""

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
