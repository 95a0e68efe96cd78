"""What is kept of rows so that prepared questions can be answered: how far back, which columns."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from sqlglot import exp

from panes.asking.row_window import outputs_of
from panes.expressions.projection import resolve
from panes.language.row_question import RowQuestion
from panes.sharing.keep import Keep


def columns_read(asked: RowQuestion, schema: pa.Schema) -> list[str]:
    """The columns that a question reads, in the order of the stream.

    >>> from panes.language.row_question import read_row_question
    >>> schema = pa.schema(dict.fromkeys(["at", "item", "price", "note"], pa.int64()))
    >>> text = "SELECT price FROM s [RANGE 10 WATTR at] WHERE Item = 7 ORDER BY price"
    >>> columns_read(read_row_question(text), schema)
    ['item', 'price']
    """
    asked_for = [*(ordering.expression for ordering in asked.order)]
    asked_for += [] if asked.where is None else [asked.where]
    trees = [resolve(tree, schema, stream=asked.stream) for tree in asked_for]
    trees += outputs_of(asked, schema).values()
    read = {column.name for tree in trees for column in tree.find_all(exp.Column)}
    return [name for name in schema.names if name in read]


def keep_for(questions: Iterable[RowQuestion], schema: pa.Schema) -> Keep | None:
    """The rows that all of these questions need; None if there are none."""
    asked = list(questions)
    if not asked:
        return None
    read = {name for question in asked for name in columns_read(question, schema)}
    columns = pa.schema([field for field in schema if field.name in read])
    return Keep(max(question.size for question in asked), columns)
