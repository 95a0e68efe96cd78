"""What an operator is: rows go through it, and so do promises about rows that are yet to come.

None of them needs its rows in order. A promise that has gone through says of the operator's
output what it said of its input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


class Operator(Protocol):
    """One input, one output."""

    def push(self, rows: pa.Table) -> pa.Table:
        """The rows that come out for rows that go in."""
        ...

    def punctuate(self, at: int) -> int:
        """No row before `at` will go in: what that says of those that come out."""
        ...

    def settle(self, progress: int) -> None:
        """What was pushed has been taken in, and no row before `progress` will come out again.

        Until then an operator is as it was before: a batch that is refused leaves no trace.
        """
        ...


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators one after the other."""

    operators: Sequence[Operator] = ()

    def push(self, rows: pa.Table) -> pa.Table:
        """Rows through all of them."""
        for operator in self.operators:
            rows = operator.push(rows)
        return rows

    def punctuate(self, at: int) -> int:
        """A promise through all of them."""
        for operator in self.operators:
            at = operator.punctuate(at)
        return at

    def settle(self, progress: int) -> None:
        """The same for all of them."""
        for operator in self.operators:
            operator.settle(progress)
