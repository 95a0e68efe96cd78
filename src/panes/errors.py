"""Everything that can be wrong with a question or its data, in one place.

Every error is a `PanesError` and also the builtin a Python user would expect. The message
says what was asked and what was given; a blank line and ``Hint:`` follow where there is
something to type.
"""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self


class PanesError(Exception):
    """Root of all errors raised by this library."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\n\nHint: {hint}")
        self.message, self.hint = message, hint

    def of(self, what: str) -> Self:
        """The same error, which says first what is wrong: a query, a question, a file."""
        self.args = (f"{what}: {self.args[0]}", *self.args[1:])
        return self


class QueryError(PanesError, ValueError):
    """The text of a query cannot be understood, or asks for something that has no meaning.

    `line` and `column` are 1-based; both are None where the fault has no single place.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        where = "" if line is None else f"line {line}, column {column}: "
        super().__init__(where + message, hint=hint)
        self.message = message
        self.line = line
        self.column = column


class UnknownColumnError(PanesError, LookupError):
    """A query names a column that its stream does not have."""

    def __init__(self, column: str, *, stream: str, columns: Iterable[str]) -> None:
        known = list(columns)
        meant = did_you_mean(column, known)
        if column.lower() in ("window_start", "window_end"):
            meant = f"the `{column}` of a window is known in SELECT and HAVING, beside aggregates; "
        super().__init__(
            f"no column `{column}` in {_place(stream)}",
            hint=f"{meant}columns: {', '.join(known) or 'none'}",
        )


def _place(stream: str) -> str:
    """Where columns come from; a query inside FROM has a name that the user has not given."""
    if re.fullmatch(r"inner_\d+", stream):
        return "the query inside FROM"
    return f"stream `{stream}`"


class MissingStreamError(PanesError, LookupError):
    """A query names a stream that was not given."""

    def __init__(self, stream: str, *, given: Iterable[str], write: str = "") -> None:
        known = list(given)
        told = f"{did_you_mean(stream, known)}streams given: {', '.join(known) or 'none'}"
        super().__init__(
            f"the query reads a stream `{stream}`, which was not given",
            hint=f"{write}; {told}" if write else told,
        )


class UnknownStreamError(PanesError, LookupError):
    """A stream was given that the query does not read."""

    def __init__(self, stream: str, *, streams: Iterable[str]) -> None:
        known = list(streams)
        super().__init__(
            f"a stream `{stream}` was given, which the query does not read",
            hint=f"{did_you_mean(stream, known)}the query reads: {', '.join(known)}",
        )


class ColumnTypeError(PanesError, TypeError):
    """A column has a type that its place in the query cannot take."""


class OptionError(PanesError, ValueError):
    """An option (lateness, late, max_ahead, ...) has a value that makes no sense."""


class InputError(PanesError, ValueError):
    """A file or frame cannot be read as a stream of rows."""


class StateError(PanesError, ValueError):
    """Kept state cannot be used: it is damaged, of another version, or of another query."""


class ArithmeticOverflowError(PanesError, ArithmeticError):
    """An exact sum does not fit its type, as in Spark's ANSI mode."""


class LimitError(PanesError, MemoryError):
    """A step would give more answers than `max_answers` allows, or take more memory than it can."""


class UserFunctionError(PanesError, RuntimeError):
    """A function of the user's own aggregate raised; what it raised is the cause."""

    def __init__(self, aggregate: str, function: str, error: BaseException) -> None:
        super().__init__(
            f"`{function}` of the aggregate `{aggregate}` failed: {type(error).__name__}: {error}"
        )
        self.aggregate = aggregate


class WrongAnswerError(PanesError, AssertionError):
    """An experiment gave an answer that differs from the one worked out plainly."""


ASKED_WRONGLY = (
    ColumnTypeError,
    MissingStreamError,
    OptionError,
    QueryError,
    UnknownColumnError,
    UnknownStreamError,
)
"""Errors in the question, whatever the rows are: exit code 2 of the commands."""


class RejectedRowsWarning(UserWarning):
    """Rows that could not be placed on the axis were left out of a bounded query."""


class NoProgressWarning(UserWarning):
    """Many rows have come to a stream and nothing says that windows are complete."""


class FailedQueryWarning(UserWarning):
    """A query of a register could not be answered and was set aside; the others go on."""


class UtcDaysWarning(UserWarning):
    """Windows of days lie over a column whose zone has its midnights elsewhere than UTC."""


def is_interrupt(error: RuntimeError) -> bool:
    """Whether an error is how DuckDB says that Ctrl-C was pressed while it worked."""
    return str(error) == "Query interrupted"


def interrupt_in(error: BaseException) -> BaseException | None:
    """The interrupt that an error is, or that it was made of by whoever called us from outside.

    Numba makes a `SystemError` of an interrupt that falls into its own code.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt | SystemExit):
        cause = cause.__cause__
    return cause


def pass_interrupt(error: BaseException) -> None:
    """Raise the interrupt that an error was made of: whatever it fell into is not at fault."""
    interrupt = interrupt_in(error)
    if interrupt is not None:
        raise interrupt from None


def warn(message: str, category: type[Warning]) -> None:
    """A warning at the line of the user's own code that led to it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def tell(message: str, category: type[Warning]) -> None:
    """As `warn`, of what may well be meant: where warnings are errors, nothing is said."""
    with suppress(category):
        warn(message, category)


_OWN = str(Path(__file__).parent)


def did_you_mean(name: str, known: list[str]) -> str:
    """The one of the known names that is likely meant, as the beginning of a hint; or nothing."""
    lowered = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    return f"did you mean `{lowered[close[0]]}`? " if close else ""
