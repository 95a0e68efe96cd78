"""The columns of a register's answers, by number: how packages of answers become what was asked.

Queries share *answer columns* if their answers have the same columns and are finished by the same
expressions. However many queries there are, these are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from panes.answers.portions import QUERY
from panes.language.expressions import quoted
from panes.planning.plan import Plan
from panes.shards.sent_answers import TITLE
from panes.sharing.queries import Queries
from panes.spark.answers import finished, handed_over_schema, named, with_start
from panes.spark.internals import spark_type


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """How packages of answers are read, and finished by Spark if there is a plan."""

    schema: T.StructType
    taken: frozenset[str]
    plan: Plan | None = None
    axis_type: T.DataType | None = None
    status: tuple[str, ...] = ()

    def with_names(self) -> T.StructType:
        """The columns of a package: in front the names of queries."""
        return T.StructType([T.StructField(TITLE, T.StringType()), *self.schema.fields])

    def finished(self, lowered: DataFrame) -> DataFrame:
        """What was asked, behind a column of names that no answer has."""
        name = QUERY
        while name in self.taken:
            name += "_"
        title = named(TITLE, name)
        if self.plan is not None:
            assert self.axis_type is not None
            return finished(self.plan, lowered, self.axis_type, title, status=self.status)
        return lowered.selectExpr(title, *map(quoted, self.schema.names))


class AllAnswerColumns:
    """Answer columns in the order of their numbers."""

    def __init__(self) -> None:
        self.all: list[AnswerColumns] = []
        self._known: dict[object, int] = {}

    def of_windows(self, queries: Queries, axis_type: T.DataType) -> None:
        """Give every shape the number of its answer columns."""
        for shape in queries.shapes:
            shape.answer_columns = self.of_plan(shape.plan, axis_type)

    def of_plan(self, plan: Plan, axis_type: T.DataType, status: tuple[str, ...] = ()) -> int:
        """The number of what a plan answers."""
        query = plan.query
        outputs = tuple((o.name, o.expression) for o in query.outputs)
        shown = tuple((i, query.keys[i].name) for i in query.shown_keys)
        taken = frozenset(name.lower() for name in [o[0] for o in outputs] + [s[1] for s in shown])
        finish = (str(plan.lowered_schema()), query.having, outputs, shown, str(axis_type), status)
        schema = with_start(handed_over_schema(plan, status))
        columns = AnswerColumns(schema, taken, plan, axis_type, status)
        return self._number((*finish, plan.axis.kind), columns)

    def of_joined(self, schema: pa.Schema) -> int:
        """The number of answers that leave a shard as they are."""
        types = T.StructType([T.StructField(f.name, spark_type(f.type)) for f in schema])
        taken = frozenset(name.lower() for name in schema.names)
        return self._number(types.json(), AnswerColumns(types, taken))

    def _number(self, finish: object, columns: AnswerColumns) -> int:
        if finish not in self._known:
            self._known[finish] = len(self.all)
            self.all.append(columns)
        return self._known[finish]
