"""What is wrong with answers that came out of kills: lost, twice, wrong, as counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from panes.reference.compare import same

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many answers are missing, came more often than they should, or say something else."""

    lost: int = 0
    twice: int = 0
    wrong: int = 0

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(self.lost + other.lost, self.twice + other.twice, self.wrong + other.wrong)

    def __bool__(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.lost or self.twice or self.wrong)


def judge(got: pa.Table | None, want: pa.Table, keys: Sequence[str]) -> Verdict:
    """Answers against those that should be there, in any order.

    Answers with the same values in `keys` are answers to the same question. Of those, one that is
    in both is right. What is left over is wrong where both have something, lost where only `want`
    has, twice where only `got` has, and wrong if nobody asked that question.

    >>> want = pa.table({"end": [10, 20, 30], "n": [1, 2, 3]})
    >>> judge(pa.table({"end": [10, 10, 20, 40], "n": [1, 1, 5, 1]}), want, ["end"])
    Verdict(lost=1, twice=1, wrong=2)
    """
    if got is None:
        return Verdict(lost=len(want))
    if sorted(got.column_names) != sorted(want.column_names):
        return Verdict(wrong=max(len(got), len(want)))
    asked, given = _by_key(want, want, keys), _by_key(_with_zones(got, want), want, keys)
    total = Verdict(wrong=sum(len(given[key]) for key in given.keys() - asked.keys()))
    for key, rows in asked.items():
        total += _of_one_question(given.get(key, []), rows)
    return total


def _of_one_question(given: Sequence[Row], asked: Sequence[Row]) -> Verdict:
    missing, extra = list(asked), []
    for row in given:
        found = next((i for i, other in enumerate(missing) if same(row, other)), None)
        if found is None:
            extra.append(row)
        else:
            missing.pop(found)
    repeated = [row for row in extra if any(same(row, other) for other in asked)]
    twice = len(repeated)
    wrong = len(extra) - twice
    return Verdict(lost=max(0, len(missing) - wrong), twice=twice, wrong=wrong)


def _with_zones(table: pa.Table, like: pa.Table) -> pa.Table:
    """Answers as Spark writes them to files, where timestamps lose the zone that they have."""
    columns = {name: table.column(name) for name in like.column_names}
    for field in like.schema:
        if pa.types.is_timestamp(field.type):
            columns[field.name] = columns[field.name].cast(field.type)
    return pa.table(columns)


def _by_key(table: pa.Table, like: pa.Table, keys: Sequence[str]) -> dict[str, list[Row]]:
    columns = [table.column(name).to_pylist() for name in like.column_names]
    places = [like.column_names.index(name) for name in keys]
    found = defaultdict(list)
    for row in zip(*columns, strict=True):
        found[repr([row[i] for i in places])].append(row)
    return found


def exact_columns(table: pa.Table) -> list[str]:
    """The columns whose values are the same however often they are computed: all but floats."""
    return [f.name for f in table.schema if not pa.types.is_floating(f.type)]
