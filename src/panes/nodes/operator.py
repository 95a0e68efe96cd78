"""What an operator is: rows go through it, and so do promises about rows that are yet to come.

None of them needs its rows in order. A promise that has gone through says of the operator's
output what it said of its input.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.axis import Axis


class Operator(ABC):
    """One input, one output; most of them remember nothing, and pass promises as they are.

    A push takes effect in two steps, so that a batch which is refused leaves no trace: `push` says
    what comes out, `settle` remembers that it went in.
    """

    __slots__ = ()

    @property
    def nbytes(self) -> int:
        """Bytes of what is remembered."""
        return 0

    @abstractmethod
    def push(self, rows: pa.Table) -> pa.Table:
        """The rows that come out for rows that go in."""

    def settle(self) -> None:  # noqa: B027
        """What was pushed last has been taken in."""

    def punctuate(self, at: int) -> int:
        """No row before `at` will go in: what that says of those that come out."""
        return at

    def forget(self, progress: int) -> None:  # noqa: B027
        """No row before `progress` will come out any more, by what all inputs promise."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators one after the other, and where rows lie before they go in.

    `moves` tells where rows come out, for rows and their positions before. Where rows have no such
    position, `places` gives what they come out with, for all rows that go in.
    """

    operators: Sequence[Operator] = ()
    axis: Axis | None = None
    moves: Callable[[pa.Table, NDArray[np.int64]], NDArray[np.int64]] | None = None
    places: Callable[[pa.Table], pa.Array] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of what they remember."""
        return sum(operator.nbytes for operator in self.operators)

    def push(self, rows: pa.Table) -> pa.Table:
        """Rows through all of them."""
        for operator in self.operators:
            rows = operator.push(rows)
        return rows

    def settle(self) -> None:
        """What was pushed last has been taken in."""
        for operator in self.operators:
            operator.settle()

    def punctuate(self, at: int) -> int:
        """A promise through all of them."""
        for operator in self.operators:
            at = operator.punctuate(at)
        return at

    def forget(self, progress: int) -> None:
        """Nothing before `progress` will come out any more."""
        for operator in self.operators:
            operator.forget(progress)
