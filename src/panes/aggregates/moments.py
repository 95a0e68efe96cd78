"""Variance, skewness, kurtosis, covariance, correlation and regression, from running moments.

Partials hold counts, means and sums of powers of deviations and merge by Chan, Golub and LeVeque
(1979), above the second power by Pébay (2008). Nothing is squared before it is centred, so large
offsets do not eat the digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.aggregate import (
    Argument,
    Bounded,
    Rows,
    Selection,
    nullable,
    require_numbers,
)
from panes.aggregates.identity import identity
from panes.aggregates.lanes import Op
from panes.aggregates.monoid import Columns, Lanes, Slots

MOMENTS = Lanes(Op.MOMENTS, ("n", "mean", "m2"), (0.0, 0.0, 0.0))
HIGHER_MOMENTS = Lanes(Op.HIGHER_MOMENTS, ("n", "mean", "m2", "m3", "m4"), (0.0,) * 5)
COMOMENTS = Lanes(Op.COMOMENTS, ("n", "mean_x", "mean_y", "m2_x", "m2_y", "c"), (0.0,) * 6)


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and squared deviations of one column, or of two together."""

    arguments: tuple[Argument, ...]
    where: int | None
    VERSION: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        arguments = ", ".join(a.identity for a in self.arguments)
        return identity("moments", self.VERSION, arguments, Selection((), self.where).identity)

    @property
    def monoid(self) -> Lanes:
        return MOMENTS if len(self.arguments) == 1 else COMOMENTS

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        selection = Selection(tuple(a.column for a in self.arguments), self.where)
        given = [rows.numbers(a) for a in self.arguments]
        values = given[0][None, :] if len(given) == 1 else np.stack(given)
        return self.monoid.absorb(values, selection.slots(rows, slots), size)


@dataclass(frozen=True, slots=True)
class HigherMoments:
    """Count, mean and deviations of one column up to their fourth power."""

    argument: Argument
    where: int | None
    monoid: Lanes = HIGHER_MOMENTS
    VERSION: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        selected = Selection((), self.where).identity
        return identity("higher_moments", self.VERSION, self.argument.identity, selected)

    def lift(self, rows: Rows, slots: Slots, size: int) -> Columns:
        selection = Selection((self.argument.column,), self.where)
        values = rows.numbers(self.argument)[None, :]
        return self.monoid.absorb(values, selection.slots(rows, slots), size)


def variance(argument: Argument, where: int | None, *, sample: bool, root: bool) -> Bounded:
    """``var_pop``, ``var_samp``, ``stddev_pop``, ``stddev_samp``; a sample needs two rows."""

    def lower(partials: Sequence[Columns]) -> pa.Array:
        n, _, m2 = partials[0]
        value = _divided(m2, n - 1 if sample else n)
        return nullable(np.sqrt(value) if root else value, n <= int(sample), pa.float64())

    return _moments((argument,), where, lower)


def covariance(x: Argument, y: Argument, where: int | None, *, sample: bool) -> Bounded:
    """``covar_pop``, ``covar_samp``; a sample needs two rows."""

    def lower(partials: Sequence[Columns]) -> pa.Array:
        n, c = partials[0][0], partials[0][5]
        return nullable(_divided(c, n - 1 if sample else n), n <= int(sample), pa.float64())

    return _moments((x, y), where, lower)


def correlation(x: Argument, y: Argument, where: int | None) -> Bounded:
    """``corr``: NULL for fewer than two rows or where either column does not vary."""

    def lower(partials: Sequence[Columns]) -> pa.Array:
        n, _, _, x2, y2, c = partials[0]
        with np.errstate(all="ignore"):
            spread = np.sqrt(x2) * np.sqrt(y2)
        is_constant = (x2 == 0) | (y2 == 0)
        return nullable(_divided(c, spread), (n < 2) | is_constant, pa.float64())

    return _moments((x, y), where, lower)


def skewness(argument: Argument, where: int | None) -> Bounded:
    """``skewness``, of the population; NULL where the values do not vary."""

    def lower(partials: Sequence[Columns]) -> pa.Array:
        n, _, m2, m3, _ = partials[0]
        with np.errstate(all="ignore"):
            return nullable(np.sqrt(n) * m3 / np.sqrt(m2 * m2 * m2), m2 == 0, pa.float64())

    return _higher(argument, where, lower)


def kurtosis(argument: Argument, where: int | None) -> Bounded:
    """``kurtosis``, of the population, above that of a normal distribution; NULL as above."""

    def lower(partials: Sequence[Columns]) -> pa.Array:
        n, _, m2, _, m4 = partials[0]
        with np.errstate(all="ignore"):
            return nullable(n * m4 / (m2 * m2) - 3.0, m2 == 0, pa.float64())

    return _higher(argument, where, lower)


def _higher(
    argument: Argument, where: int | None, lower: Callable[[Sequence[Columns]], pa.Array]
) -> Bounded:
    require_numbers((argument,), what="skewness and kurtosis")
    return Bounded((HigherMoments(argument, where),), lower, pa.float64(), "full")


Regression = Literal["sxx", "syy", "sxy", "slope", "intercept", "r2"]


def regression(y: Argument, x: Argument, where: int | None, *, what: Regression) -> Bounded:
    """``regr_slope(y, x)`` and its kin: the line through the pairs in which neither is NULL."""

    def lower(partials: Sequence[Columns]) -> pa.Array:
        n, mean_y, mean_x, y2, x2, c = partials[0]
        with np.errstate(all="ignore"):
            slope = c / x2
            if what in ("slope", "intercept"):
                value = slope if what == "slope" else mean_y - slope * mean_x
                return nullable(value, (n == 0) | (x2 == 0), pa.float64())
            if what == "r2":
                corr = c / np.sqrt(x2 * y2)
                value = np.where(y2 == 0, 1.0, corr * corr)
                return nullable(value, (n == 0) | (x2 == 0), pa.float64())
        plain = {"sxx": x2, "syy": y2, "sxy": c}
        return nullable(plain[what], n == 0, pa.float64())

    return _moments((y, x), where, lower)


def _moments(
    arguments: tuple[Argument, ...],
    where: int | None,
    lower: Callable[[Sequence[Columns]], pa.Array],
) -> Bounded:
    require_numbers(arguments, what="a variance, covariance, correlation or regression")
    return Bounded((Moments(arguments, where),), lower, pa.float64(), "full")


def _divided(
    numerator: NDArray[np.float64], denominator: NDArray[np.float64]
) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        quotient: NDArray[np.float64] = numerator / denominator
    return quotient
