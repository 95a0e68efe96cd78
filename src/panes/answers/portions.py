"""The answers of many queries, in few tables.

Queries whose answers have the same columns are answered together, and their answers stay together:
a portion is one table, and where in it each query's answers lie. A query's own table is cut out
when it is looked at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.html import counted, tables_html

QUERY = "query"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Portion:
    """Answers of some queries: those of ``names[i]`` are ``table[bounds[i]:bounds[i + 1]]``.

    Every name has answers. `columns` is a number that queries share whose answers have the same
    columns and are finished alike.
    """

    columns: int
    names: Sequence[str]
    bounds: NDArray[np.int64]
    table: pa.Table

    @classmethod
    def of(
        cls, columns: int, names: Sequence[str], bounds: NDArray[np.int64], table: pa.Table
    ) -> Portion:
        """The same, where some names may have no answers."""
        is_some = bounds[1:] > bounds[:-1]
        if not is_some.all():
            names = [names[i] for i in np.flatnonzero(is_some).tolist()]
            bounds = np.append(bounds[:-1][is_some], bounds[-1])
        return cls(columns, names, bounds, table)

    def cut_out(self, i: int) -> pa.Table:
        """The answers of one query."""
        begin = int(self.bounds[i])
        return self.table.slice(begin, int(self.bounds[i + 1]) - begin)

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Each query and its answers."""
        return ((name, self.cut_out(i)) for i, name in enumerate(self.names))

    def numbers(self) -> NDArray[np.int32]:
        """For each answer, the index of its query among the names."""
        return np.repeat(np.arange(len(self.names), dtype=np.int32), np.diff(self.bounds))


class QueryAnswers(Mapping[str, pa.Table]):
    """The answers of a push: a mapping from the names of queries that have some to tables.

    Cutting ten thousand tables apart takes longer than answering them; who wants all answers takes
    them `together`.
    """

    def __init__(self, portions: Iterable[Portion] = ()) -> None:
        self._portions = list(portions)
        self._where: dict[str, tuple[Portion, int]] | None = None

    def _find(self) -> dict[str, tuple[Portion, int]]:
        if self._where is None:
            self._where = {
                name: (portion, i)
                for portion in self._portions
                for i, name in enumerate(portion.names)
            }
        return self._where

    def __getitem__(self, name: str) -> pa.Table:
        portion, i = self._find()[name]
        return portion.cut_out(i)

    def __iter__(self) -> Iterator[str]:
        return iter(self._find())

    def __len__(self) -> int:
        return sum(len(portion.names) for portion in self._portions)

    def __repr__(self) -> str:
        answers = counted(self.rows, "answer", "answers")
        return f"<{answers} of {counted(len(self), 'query', 'queries')}>"

    def _repr_html_(self) -> str:
        few = list(itertools.islice(self, _SHOWN))
        return tables_html(((name, self[name]) for name in few), left=len(self) - len(few))

    @property
    def rows(self) -> int:
        """The number of answers of all queries."""
        return sum(len(portion.table) for portion in self._portions)

    @property
    def portions(self) -> Sequence[Portion]:
        """The answers as they were found, in few tables."""
        return self._portions

    def together(self) -> list[pa.Table]:
        """All answers, with the name of their query in a first column, ``query``.

        One table for all queries whose answers have the same columns.
        """
        alike: dict[pa.Schema, list[Portion]] = {}
        for portion in self._portions:
            alike.setdefault(portion.table.schema, []).append(portion)
        return [joined(portions) for portions in alike.values()]


def joined(portions: Sequence[Portion], title: str = QUERY) -> pa.Table:
    """Portions with the same columns as one table, the names of queries in front."""
    names = [name for portion in portions for name in portion.names]
    begins = np.cumsum([0, *(len(p.names) for p in portions[:-1])]).astype(np.int32)
    numbers = np.concatenate([p.numbers() + b for p, b in zip(portions, begins, strict=True)])
    query = pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(names, pa.string()))
    return pa.concat_tables([p.table for p in portions]).add_column(0, title, query)
