"""Aggregates of the user's own, in Python on columns.

A `CustomAggregate` that can be combined is bounded and uses panes like any other. A
`WindowFunction` sees all values of a window at once and is holistic. Both are handed to a query
by value (``panes.sql(text, aggregates=[...])``): there is no registry to forget about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Argument, Bounded, Holistic, Rows, Selection
from panes.aggregates.identity import identity
from panes.aggregates.monoid import Columns, Slots, merge_slots
from panes.aggregates.multiset import from_values
from panes.arrays.type_names import type_name
from panes.errors import PanesError, UserFunctionError, pass_interrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomAggregate:
    """An aggregate from three functions on columns.

    Partial results are a 2-D array: a row for each number in one, a column for each key. `combine`
    must be associative and commutative, and `empty` its neutral element. NULL arguments are passed
    over.

    Parameters
    ----------
    lift
        Argument columns (Arrow arrays without NULLs) to one partial result per row.
    combine
        Two arrays of partial results to one, column by column: ``combine(older, newer)``.
    lower
        Partial results to an answer column (anything ``pyarrow.array`` takes).
    empty
        One number per row of the array: all are integers if these are, doubles otherwise.
    arity
        How many arguments it takes; as many as `lift`, if it is not said. A row counts if none of
        them is NULL.

    Examples
    --------
    >>> geometric_mean = CustomAggregate(
    ...     name="geometric_mean",
    ...     lift=lambda x: np.stack([np.log(x), np.ones(len(x))]),
    ...     combine=np.add,
    ...     lower=lambda p: np.exp(p[0] / p[1]),
    ...     empty=(0.0, 0.0),
    ...     type=pa.float64(),
    ... )
    """

    name: str
    lift: Callable[..., Columns] = field(repr=False)
    combine: Callable[[Columns, Columns], Columns] = field(repr=False)
    lower: Callable[[Columns], object] = field(repr=False)
    empty: tuple[float | None, ...]
    type: pa.DataType
    arity: int | None = None

    @property
    def columns(self) -> int:
        """The number of its arguments."""
        return _arguments_of(self.lift) if self.arity is None else self.arity

    def build(self, arguments: tuple[Argument, ...], where: int | None) -> Bounded:
        """The aggregate over these arguments."""
        selection = Selection(tuple(a.column for a in arguments), where)
        piece = CustomPiece(self, arguments, selection)

        def lower(partials: Sequence[Columns]) -> pa.Array:
            with _calling(self.name, "lower"):
                return pa.array(self.lower(_read_only(partials[0])), type=self.type)

        return Bounded((piece,), lower, self.type, "none")


def _arguments_of(lift: Callable[..., Columns]) -> int:
    """The number of arguments of a function; one if it does not tell, as some compiled ones."""
    try:
        parameters = signature(lift).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return max(1, sum(p.kind in positional and p.default is p.empty for p in parameters))


@dataclass(frozen=True, slots=True)
class CustomMonoid:
    """The user's `combine` and `empty`."""

    aggregate: CustomAggregate

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.aggregate.name}{i}" for i in range(len(self.aggregate.empty)))

    @property
    def dtype(self) -> np.dtype[np.generic]:
        if all(isinstance(e, int) for e in self.aggregate.empty):
            return np.dtype(np.int64)
        is_number = all(isinstance(e, int | float) for e in self.aggregate.empty)
        return np.dtype(np.float64 if is_number else object)

    def empty(self, n: int) -> Columns:
        column = np.array(self.aggregate.empty, dtype=self.dtype)[:, None]
        return np.repeat(column, n, axis=1)

    def combine(self, older: Columns, newer: Columns) -> Columns:
        with _calling(self.aggregate.name, "combine"):
            combined = self.aggregate.combine(_read_only(older), _read_only(newer))
            return combined.astype(self.dtype, copy=False)


@contextmanager
def _calling(aggregate: str, function: str) -> Iterator[None]:
    """Errors of a user's function say whose function it was."""
    try:
        yield
    except PanesError:
        raise
    except Exception as error:
        pass_interrupt(error)
        raise UserFunctionError(aggregate, function, error) from error


def _read_only(columns: Columns) -> Columns:
    """The same partials, which a user's function cannot change: others may refer to them."""
    view = columns.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class CustomPiece:
    """Rows lifted one by one, in one call, and merged per slot with the user's combine.

    Its identity has the name, the type and the neutral element of the aggregate: what a user's
    functions do has no name that could be written.
    """

    aggregate: CustomAggregate
    arguments: tuple[Argument, ...]
    selection: Selection
    VERSION: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        own = self.aggregate
        lanes = " ".join(map(repr, own.empty))
        named = f"{own.name} {type_name(own.type)} from {lanes}"
        arguments = ", ".join(a.identity for a in self.arguments)
        return identity("custom", self.VERSION, named, arguments, self.selection.identity)

    @property
    def monoid(self) -> CustomMonoid:
        return CustomMonoid(self.aggregate)

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        own = self.selection.slots(rows, slots)
        chosen = np.flatnonzero(own >= 0)
        indexes = pa.array(chosen)
        columns = [rows.columns[a.column].take(indexes) for a in self.arguments]
        with _calling(self.aggregate.name, "lift"):
            lifted = self.aggregate.lift(*columns).astype(self.monoid.dtype, copy=False)
        return merge_slots(self.monoid, lifted, own[chosen], size)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFunction:
    """An aggregate that is any function of a window's values, given sorted and without NULLs.

    Examples
    --------
    >>> spread = WindowFunction(
    ...     name="spread", function=lambda v: v[-1].as_py() - v[0].as_py() if len(v) else None,
    ...     type=pa.float64())
    """

    name: str
    function: Callable[[pa.Array], object]
    type: pa.DataType

    @property
    def columns(self) -> int:
        """The number of its arguments."""
        return 1

    def build(self, arguments: tuple[Argument, ...], where: int | None) -> Holistic:
        """The aggregate over this argument."""

        def called(values: pa.Array) -> object:
            with _calling(self.name, "function"):
                return self.function(values)

        return from_values(arguments[0], where, called, self.type)


UserAggregate = CustomAggregate | WindowFunction
