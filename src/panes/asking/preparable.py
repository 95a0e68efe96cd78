"""Which questions can be prepared, and which structures they need.

Without `within` the answer is exact: min and max over the last rows. With it, five aggregates over
ROWS or RANGE are answered by an interval. What else can be asked is read from panes or from the
last rows; nothing here is answered by something else than was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, TypeAlias, get_args

import pyarrow as pa
from sqlglot import exp

from panes.aggregates.custom import UserAggregate
from panes.arrays.order_keys import has_key
from panes.asking.timegram_column import has_buckets
from panes.errors import ColumnTypeError, OptionError, QueryError
from panes.language.query import AGGREGATE, AggregateCall, Query
from panes.planning.plan import Plan
from panes.stores.nested.buckets import Buckets, Number
from panes.stores.nested.timegram import Aggregate
from panes.windows.spec import Sliding

Form: TypeAlias = Literal["newest", "min", "max", "timegram"]
_SPELLED: dict[str, Aggregate] = {name: name for name in get_args(Aggregate)} | {"mean": "avg"}


@dataclass(frozen=True, slots=True)
class StructureKey:
    """What a structure is over: an argument, under a filter, by arrival or by position.

    Without an argument, the rows themselves. `width` is that of a TimeGram's buckets.
    """

    form: Form
    argument: exp.Expression | None
    where: exp.Expression | None
    by_arrival: bool
    width: Number | None = None

    @property
    def title(self) -> str:
        """The same as text."""
        trees = (t if t is None else t.sql(dialect="spark") for t in (self.argument, self.where))
        return repr((self.form, *trees, self.by_arrival, self.width))


@dataclass(frozen=True, slots=True)
class QuestionShape:
    """Questions that differ in nothing but the size of their window.

    `rows` tells whether a window holds a row that WHERE lets through, `calls` are for its
    aggregates, one for each; `needs` are all of these, each once.
    """

    plan: Plan
    within: Number | None
    rows: StructureKey
    calls: tuple[StructureKey, ...]
    needs: tuple[StructureKey, ...]

    @property
    def names(self) -> tuple[Aggregate, ...]:
        """The aggregates, by the names that a TimeGram has for them."""
        return tuple(_SPELLED[call.name] for call in self.plan.query.calls)


def as_width(within: object) -> Number | None:
    """The width of buckets; whole ones are cut in integers."""
    if within is None:
        return None
    if isinstance(within, bool) or not isinstance(within, Real):
        raise OptionError(
            f"within is a width of values, a number, got {within!r}",
            hint="within=10: prices from 20 to 30 are told apart from those from 30 to 40",
        )
    number = int(within) if isinstance(within, Integral) else float(within)
    Buckets(width=number)
    if isinstance(number, float) and number.is_integer() and Buckets(width=int(number)).is_whole:
        return int(number)
    return number


def require_preparable(
    query: Query, within: Number | None, stream: str, aggregates: Sequence[UserAggregate] = ()
) -> None:
    """Refuse what cannot be prepared, as far as the text tells."""
    window = query.window
    if query.streams != (stream,) or any(i is not None for i in query.inner):
        raise QueryError(
            f"only questions over `{stream}` alone can be prepared",
            hint=f"FROM {stream} [ROWS 500], without a SELECT inside FROM",
        )
    is_counted = window is not None and window.measure == "rows" and window.column is None
    is_placed = window is not None and window.measure != "rows"
    if (
        window is None
        or not isinstance(window.spec, Sliding)
        or window.partition
        or not (is_counted or is_placed)
    ):
        raise QueryError(
            "what is prepared is one window over a column, or over the last rows as they came",
            hint="[ROWS 500] or [RANGE 10 minutes WATTR ts]",
        )
    if query.keys and not query.calls:
        values = ", ".join(key.name for key in query.keys)
        raise QueryError(
            f"which values of {values} are there is read from panes, and needs no preparing",
            hint=f"reg.add(...) SELECT DISTINCT {values} with a SLIDE, and ask for whole panes",
        )
    if query.keys:
        raise QueryError(
            "a prepared question has no GROUP BY: every key would need structures of its own",
            hint=f"panes.register(..., keep_rows={window.spec.size}) answers it from the last rows"
            if is_counted
            else "add a query with that GROUP BY, and ask for whole panes",
        )
    own = {aggregate.name.lower() for aggregate in aggregates}
    for call in query.calls:
        if call.name.lower() in own:
            raise QueryError(f"{call.sql} is an aggregate of your own, which cannot be prepared")
    if within is None:
        _require_exact(query, window.spec.size, is_counted=is_counted)
    else:
        _require_bounded(query)


def _require_exact(query: Query, size: int, *, is_counted: bool) -> None:
    if not is_counted:
        raise QueryError(
            "an exact answer over RANGE is read from panes, and needs no preparing",
            hint="add a query that cuts such panes, or reg.prepare(..., within=10) for an interval",
        )
    for call in query.calls:
        if call.name not in ("min", "max"):
            raise QueryError(
                f"{call.sql} cannot be prepared for exact answers, only min and max can",
                hint=f"panes.register(..., keep_rows={size})"
                + (", or reg.prepare(..., within=10) for an interval" if _has(call) else ""),
            )


def _require_bounded(query: Query) -> None:
    for call in query.calls:
        if not _has(call):
            raise QueryError(f"no interval is known of {call.sql}", hint=", ".join(_SPELLED))
    if query.having is not None:
        raise QueryError("HAVING cannot decide about an interval", hint="filter the answers")
    for output in query.outputs:
        tree = output.expression
        if not (isinstance(tree, exp.Column) and tree.name.startswith(AGGREGATE)):
            raise QueryError(
                f"an interval is known of an aggregate, not of an expression such as {output.name}",
                hint="select the aggregates themselves",
            )
    names = [name for output in query.outputs for name in bounded_names(output.name)]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f"two columns of the answer are named `{name}`")


def _has(call: AggregateCall) -> bool:
    """Whether a TimeGram has an interval for a call."""
    return call.name in _SPELLED and not call.distinct and len(call.arguments) <= 1


def bounded_names(name: str) -> tuple[str, str, str]:
    """The columns that stand for one with `within`: the middle, and the two ends."""
    return name, f"low_{name}", f"high_{name}"


def question_shape(plan: Plan, within: Number | None) -> QuestionShape:
    """What a question needs, once its columns are known."""
    by_arrival = plan.axis.column is None
    rows = StructureKey("newest", None, plan.rows.where, by_arrival)
    calls = tuple(_over(plan, i, within, by_arrival) for i in range(len(plan.query.calls)))
    return QuestionShape(plan, within, rows, calls, tuple(dict.fromkeys((rows, *calls))))


def _over(plan: Plan, index: int, within: Number | None, by_arrival: bool) -> StructureKey:
    call, (given, chosen) = plan.query.calls[index], plan.call_columns[index]
    tree = plan.rows.expressions[given[0]] if given else None
    filters = [plan.rows.where, None if chosen is None else plan.rows.expressions[chosen]]
    where = _all_of([f for f in filters if f is not None])
    data_type = plan.row_types[given[0]] if given else pa.int64()
    if within is not None:
        _require_buckets(call, data_type, within)
        return StructureKey("timegram", tree, where, by_arrival, within)
    if not has_key(data_type):
        raise ColumnTypeError(
            f"{call.sql} can be prepared for numbers and times, got {data_type}",
            hint="panes.register(..., keep_rows=...) answers it from the last rows",
        )
    return StructureKey("min" if call.name == "min" else "max", tree, where, by_arrival)


def _require_buckets(call: AggregateCall, data_type: pa.DataType, within: Number) -> None:
    if _SPELLED[call.name] != "count" and not has_buckets(data_type):
        argument = call.arguments[0].sql(dialect="spark")
        raise ColumnTypeError(
            f"no interval is known of {call.sql}: values must be 64-bit numbers, got {data_type}",
            hint=f"{call.name}(CAST({argument} AS DOUBLE))",
        )
    is_counted = not call.arguments
    if pa.types.is_integer(data_type) and not (is_counted or Buckets(width=within).is_whole):
        raise OptionError(
            f"{call.sql} is over whole numbers, so within is a whole number up to 2**31, "
            f"got {within}"
        )


def _all_of(conditions: list[exp.Expression]) -> exp.Expression | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    first, second = conditions
    return exp.And(this=exp.paren(first.copy()), expression=exp.paren(second.copy()))
