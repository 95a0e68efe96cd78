"""What leaves Spark's store: rows that are answers, a status, or were set apart, as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812 - as everyone writes it

from panes.shards.names import ENDED, PROMISE, ROW
from panes.shards.outcome import Promised, ShardOutcome
from panes.shards.sent_answers import PACKED
from panes.spark.batches import Batches, as_schema, in_batches
from panes.spark.column_names import PACKAGE, SET_ASIDE, STATUS
from panes.spark.internals import to_arrow_schema
from panes.spark.observe import status_of
from panes.stores import codec

if TYPE_CHECKING:
    import pandas as pd

KIND, REASON, WHOLE = "kind", "reason", "row"
LATE: Final = "late"
REJECTED: Final = "rejected"

Promising: TypeAlias = Callable[[Promised], Mapping[str, pa.Array] | None]
"""What a promise says of columns; None: nothing."""


@dataclass(frozen=True, slots=True)
class Emit:
    """What leaves the store: rows that are an answer, a status, or were set apart.

    Spark takes pandas frames from a store. Columns backed by Arrow go through them unchanged but
    for timestamps and nested values; where there are any, the rows leave `packed`, as bytes. `rows`
    are the answers under the names of the schema. What is promised of others is a row, with the
    positions that `promise` finds for columns, if it says anything; None: nobody asks.
    """

    schema: pa.Schema
    packed: bool
    rows: Callable[[pa.Table], pa.Table]
    promise: Promising | None = None

    @classmethod
    def of(
        cls,
        given: T.StructType,
        rows: Callable[[pa.Table], pa.Table],
        promise: Promising | None = None,
    ) -> Emit:
        """What leaves as rows with these columns."""
        plain = (T.NumericType, T.StringType, T.BooleanType, T.BinaryType)
        packed = not all(isinstance(f.dataType, plain) for f in given.fields)
        return cls(to_arrow_schema(given), packed, rows, promise)

    def __call__(self, outcome: ShardOutcome) -> Iterator[pd.DataFrame]:
        import pandas as pd

        late, rejected = outcome.late, outcome.rejected
        counts = {"answers": outcome.answers, LATE: late, REJECTED: rejected}
        status = status_of(outcome, **{kind: len(rows) for kind, rows in counts.items()})
        parts = [self.rows(outcome.answers), *self._promised(outcome), pa.table({STATUS: [status]})]
        if SET_ASIDE in self.schema.names:
            parts += [set_aside_rows(late, LATE), set_aside_rows(rejected, REJECTED)]
            parts += outcome.aside
        rows = pa.concat_tables([as_schema(part, self.schema) for part in parts if len(part)])
        if self.packed:
            yield pd.DataFrame({PACKAGE: [codec.pack({PACKED: rows})]})
            return
        for batch in in_batches(rows):
            yield batch.to_pandas(types_mapper=pd.ArrowDtype)

    def _promised(self, outcome: ShardOutcome) -> Iterator[pa.Table]:
        if self.promise is not None and outcome.has_ended:
            yield pa.table({PROMISE: [ENDED]})
        elif self.promise is not None:
            said = self.promise(outcome.promised)
            if said is not None:
                yield pa.table({PROMISE: [0], **said})


@dataclass(frozen=True, slots=True)
class Unpack:
    """Packages as rows of a schema."""

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for package in batch.column(0):
                yield from in_batches(self.table(package.as_py()))

    def table(self, package: bytes) -> pa.Table:
        """One package."""
        return as_schema(codec.unpack(package)[PACKED], self.schema)


def set_aside_rows(table: pa.Table, kind: str) -> pa.Table:
    if not len(table) or ROW not in table.column_names:  # joined rows are no rows of a stream
        return pa.table({SET_ASIDE: pa.nulls(0)})
    table = table.filter(pc.is_valid(table.column(ROW)))  # answers are no rows of a stream either
    each = pa.array([kind] * len(table))
    columns = [each, *(table.column(n).combine_chunks() for n in (REASON, ROW))]
    return pa.table({SET_ASIDE: pa.StructArray.from_arrays(columns, names=[KIND, REASON, WHOLE])})


def with_status(schema: T.StructType, row: T.DataType | None) -> T.StructType:
    """The columns of what a store emits: also its status, and rows set apart if wanted."""
    found = T.StructType([*schema.fields]).add(STATUS, "string")
    if row is not None:
        apart = T.StructType().add(KIND, "string").add(REASON, "string").add(WHOLE, row)
        found = found.add(SET_ASIDE, apart)
    return found
