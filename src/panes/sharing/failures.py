"""Which queries a step of a register failed of: one bad query must not stop the others.

Queries are read, filled and answered together, so an error does not say whose it is. Once there is
one, everything is tried again for each query by itself. That is slow, and happens only then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panes.aggregates.custom import UserAggregate
from panes.axis import BEGINNING
from panes.errors import LimitError, QueryError, StateError, UserFunctionError, pass_interrupt
from panes.sharing.classed_panes import ClassedPanes
from panes.sharing.due import Due, Finish
from panes.sharing.roll_together import answer
from panes.sharing.shape import Member, Shape
from panes.sharing.shared_store import SharedStore

One = TypeVar("One")
_TOLD = "panes: queries failed "


class QueriesFailed(Exception):  # noqa: N818 - not for users: a register always catches it
    """Some queries cannot be read, filled or answered; what each of them failed of.

    Its text tells as much: a host may hand on no more of an exception than that.
    """

    def __init__(self, reasons: Mapping[str, object]) -> None:
        self.reasons = dict(reasons)
        told = {name: str(why) for name, why in reasons.items()}
        super().__init__(_TOLD + json.dumps(told))


def reasons_in(text: str) -> dict[str, str]:
    """What `QueriesFailed` tells in a text that quotes it; nothing if none does.

    >>> reasons_in(f"Traceback: {QueriesFailed({'hot': 'too large'})} at Worker.java")
    {'hot': 'too large'}
    """
    at = text.find(_TOLD)
    if at < 0:
        return {}
    found: dict[str, str]
    found, _ = json.JSONDecoder().raw_decode(text, at + len(_TOLD))
    return found


@contextmanager
def naming(shapes: Callable[[], Iterable[Shape]]) -> Iterator[None]:
    """Where an aggregate of the user's own fails, the queries that call it."""
    try:
        yield
    except UserFunctionError as error:
        reasons = failed_calling(shapes(), error)
        if not reasons:
            raise
        raise QueriesFailed(reasons) from error


def failing(several: Sequence[One], fails: Callable[[Sequence[One]], str | None]) -> dict[One, str]:
    """Those among several things that fail by themselves, and why, by halving.

    >>> failing("abcd", lambda some: "no c" if "c" in some else None)
    {'c': 'no c'}
    """
    reason = fails(several) if several else None
    if reason is None:
        return {}
    if len(several) == 1:
        return {several[0]: reason}
    half = len(several) // 2
    return failing(several[:half], fails) | failing(several[half:], fails)


def set_aside_words(name: str, reason: object) -> str:
    """What a register says of a query that it sets aside."""
    return f"query `{name}` failed and is set aside; the others go on. {reason}"


@contextmanager
def blaming(find: Callable[[], Mapping[str, Exception]]) -> Iterator[None]:
    """Where a step fails, the queries that `find` says are at fault, if it finds any."""
    try:
        yield
    except UserFunctionError:  # it says itself whose fault it is
        raise
    except Exception as error:
        pass_interrupt(error)
        is_full = isinstance(error, MemoryError) and not isinstance(error, LimitError)
        reasons = {} if is_full else find()
        if not reasons:
            raise
        raise QueriesFailed(reasons) from error


@contextmanager
def noted(failing: dict[str, Exception], names: Iterable[str]) -> Iterator[None]:
    """Whatever fails within is these queries' fault, and is noted; what comes after goes on.

    An error that names queries itself is theirs. Without names, no other is anybody's.
    """
    names = list(names)
    try:
        yield
    except StateError:  # what is stored is damaged, or of another version
        raise
    except QueriesFailed as failed:
        failing.update({n: _as_error(why) for n, why in failed.reasons.items()})
    except Exception as error:
        pass_interrupt(error)
        if not names or (isinstance(error, MemoryError) and not isinstance(error, LimitError)):
            raise
        failing.update(dict.fromkeys(names, error))


def _as_error(reason: object) -> Exception:
    return reason if isinstance(reason, Exception) else QueryError(str(reason))


def require_none(failing: Mapping[str, Exception]) -> None:
    """Raise if queries have failed."""
    if failing:
        raise QueriesFailed(failing) from next(iter(failing.values()))


def failed_reading(
    store: SharedStore,
    aggregates: Sequence[UserAggregate],
    at: NDArray[np.int64],
    rows: pa.Table,
) -> dict[str, Exception]:
    """The queries of a store whose expressions or aggregates cannot take these rows."""
    found: dict[str, Exception] = {}
    for shape in store.shapes:
        try:
            _alone(shape, rows.schema, aggregates).fill(at, rows)
        except Exception as error:
            pass_interrupt(error)
            found |= dict.fromkeys(_names(shape), error)
    return found


def failed_answering(
    panes: ClassedPanes, due: Iterable[Due], finish: Finish
) -> dict[str, Exception]:
    """The queries that have windows due and cannot be answered."""
    found: dict[str, Exception] = {}
    for several in due:
        if _error_of(panes, several, finish) is None:
            continue
        for i, name in enumerate(several.shape.names(several.which)):
            which, first, end = (a[i : i + 1] for a in (several.which, several.first, several.end))
            error = _error_of(panes, Due(several.shape, which, first, end), finish)
            if error is not None:
                found[name] = error
    return found


def failed_calling(shapes: Iterable[Shape], error: UserFunctionError) -> dict[str, Exception]:
    """The queries that call an aggregate of the user's own, which has failed."""
    calling = (s for s in shapes if any(n.call.name == error.aggregate for n in s.needs))
    return {name: error for shape in calling for name in _names(shape)}


def _alone(shape: Shape, schema: pa.Schema, aggregates: Sequence[UserAggregate]) -> SharedStore:
    """A store that has this shape only."""
    store = SharedStore(shape.plan, schema, aggregates)
    same = store.add_shape(shape.plan, BEGINNING)
    for member in shape.members:
        same.add(Member(member.name, member.spec, None, BEGINNING))
    return store


def _error_of(panes: ClassedPanes, due: Due, finish: Finish) -> Exception | None:
    try:
        for _ in answer(panes, [due], finish):
            pass
    except Exception as error:
        pass_interrupt(error)
        return error
    return None


def _names(shape: Shape) -> list[str]:
    return [member.name for member in shape.members]
