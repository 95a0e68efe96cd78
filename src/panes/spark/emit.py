"""What leaves Spark's store: rows that are answers, a status, or were set apart, as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812 - as everyone writes it

from panes.shards.names import ROW
from panes.spark.column_names import PACKAGE, SET_ASIDE, STATUS
from panes.spark.host import Batches
from panes.spark.observe import status_of
from panes.stores import codec

if TYPE_CHECKING:
    import pandas as pd

ANSWERS = "answers"
KIND, REASON, WHOLE = "kind", "reason", "row"
LATE: Final = "late"
REJECTED: Final = "rejected"

_EMITTED_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class Emit:
    """What leaves the store: rows that are an answer, a status, or were set apart.

    Spark takes pandas frames from a store. Columns backed by Arrow go through them unchanged but
    for timestamps and nested values; where there are any, the rows leave `packed`, as bytes.
    `shown` are the tables of rows that an outcome has beside its status.
    """

    schema: pa.Schema
    packed: bool
    shown: Callable[[Any], Sequence[pa.Table]]

    def __call__(self, outcome: Any) -> Iterator[pd.DataFrame]:
        import pandas as pd

        counts = {name: len(getattr(outcome, name)) for name in (ANSWERS, LATE, REJECTED)}
        status = pa.table({STATUS: [status_of(outcome, **counts)]})
        parts = [*self.shown(outcome), status]
        if SET_ASIDE in self.schema.names:
            parts += [set_aside_rows(getattr(outcome, kind), kind) for kind in (LATE, REJECTED)]
            parts += getattr(outcome, "aside", ())
        rows = pa.concat_tables([self._filled(part) for part in parts if len(part)])
        if self.packed:
            yield pd.DataFrame({PACKAGE: [codec.pack({ANSWERS: rows})]})
            return
        for batch in rows.combine_chunks().to_batches(max_chunksize=_EMITTED_AT_ONCE):
            yield batch.to_pandas(types_mapper=pd.ArrowDtype)

    def unpack(self, batches: Batches) -> Batches:
        """Packed rows, as rows again."""
        for batch in batches:
            for package in batch.column(0):
                rows = codec.unpack(package.as_py())[ANSWERS]
                yield from rows.combine_chunks().to_batches(max_chunksize=_EMITTED_AT_ONCE)

    def _filled(self, table: pa.Table) -> pa.Table:
        """A table's rows, with NULL in the columns that it does not have."""
        columns = [
            table.column(f.name).cast(f.type)
            if f.name in table.column_names
            else pa.nulls(len(table), f.type)
            for f in self.schema
        ]
        return pa.table(columns, schema=self.schema)


def set_aside_rows(table: pa.Table, kind: str) -> pa.Table:
    if not len(table) or ROW not in table.column_names:  # joined rows are no rows of a stream
        return pa.table({SET_ASIDE: pa.nulls(0)})
    table = table.filter(pc.is_valid(table.column(ROW)))  # answers are no rows of a stream either
    each = pa.array([kind] * len(table))
    columns = [each, *(table.column(n).combine_chunks() for n in (REASON, ROW))]
    return pa.table({SET_ASIDE: pa.StructArray.from_arrays(columns, names=[KIND, REASON, WHOLE])})


def with_status(schema: T.StructType, row: T.DataType | None) -> T.StructType:
    """The columns of what a store emits: also its status, and rows set apart if wanted."""
    schema = schema.add(STATUS, "string")
    if row is not None:
        apart = T.StructType().add(KIND, "string").add(REASON, "string").add(WHOLE, row)
        schema = schema.add(SET_ASIDE, apart)
    return schema


def survives_pandas(schema: T.StructType) -> bool:
    plain = (T.NumericType, T.StringType, T.BooleanType, T.BinaryType)
    return all(isinstance(f.dataType, plain) for f in schema.fields)
