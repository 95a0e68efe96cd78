"""Answers of a register as they leave a shard: packages of those with the same columns.

Answer columns have a number. Those of rows that were set aside are below zero.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from panes.answers.portions import Portion, joined
from panes.language.query import WINDOW_COLUMNS
from panes.shards.names import WINDOW_END, WINDOW_START
from panes.shards.shared_joins import part_key
from panes.stores import codec

PACKED = "answers"
"""The table of a package with answers, or rows set aside."""
TITLE = "__query"
"""The first column of such a table: whose an answer is."""
LATE, REJECTED = 1, 2
_ROWS_PER_PACKAGE = 1 << 20
PASSED_ON = part_key("passed on")
"""The key of packages with answers that are passed on."""
_SENT = "sent"
_SCHEMA = pa.schema({"content": pa.int32(), "package": pa.binary(), "names": pa.string()})


class SentAnswers(NamedTuple):
    """A package, the number of its columns, and how many answers of which queries it has."""

    content: int
    package: bytes
    names: str | None = None


def set_aside_content(kind: int, stream: int) -> int:
    """The number of late or rejected rows of a stream, which are no answers.

    >>> [set_aside_content(kind, stream) for stream in (0, 1) for kind in (LATE, REJECTED)]
    [-1, -2, -3, -4]
    """
    return -2 * stream - kind


def with_ticks(lowered: pa.Table) -> pa.Table:
    """Lowered answers with their edges in ticks, in front; zeros where windows are not named."""
    columns = {}
    for name, edge_name in zip(WINDOW_COLUMNS, (WINDOW_START, WINDOW_END), strict=True):
        if name in lowered.column_names:
            columns[edge_name] = lowered.column(name).combine_chunks().view(pa.int64())
        else:
            columns[edge_name] = pa.array(np.zeros(len(lowered), dtype=np.int64))
    others = [n for n in lowered.column_names if n not in WINDOW_COLUMNS]
    return pa.table(columns | {n: lowered.column(n) for n in others})


def sent_portions(portions: Iterable[Portion]) -> Iterator[SentAnswers]:
    """Lowered answers of queries that share panes."""
    by_columns: dict[int, list[Portion]] = {}
    for portion in portions:
        by_columns.setdefault(portion.columns, []).append(portion)
    for columns, several in by_columns.items():
        for some in _together(several):
            given: Counter[str] = Counter()
            for portion in some:
                given.update(
                    dict(zip(portion.names, np.diff(portion.bounds).tolist(), strict=True))
                )
            packed = codec.pack({PACKED: with_ticks(joined(some, TITLE))})
            yield SentAnswers(columns, packed, json.dumps(given))


def sent_answers(content: int, names: Sequence[str], answers: pa.Table) -> Iterator[SentAnswers]:
    """Answers of some queries that have the same ones, under the name of each."""
    for name in names if len(answers) else ():
        title = pa.array([name] * len(answers)).dictionary_encode()
        packed = codec.pack({PACKED: answers.add_column(0, TITLE, title)})
        yield SentAnswers(content, packed, json.dumps({name: len(answers)}))


def sent_set_aside(content: int, rows: pa.Table) -> Iterator[SentAnswers]:
    """Rows that were set aside, of one kind and stream."""
    if len(rows):
        yield SentAnswers(content, codec.pack({PACKED: rows}))


def passed_on(sent: Sequence[SentAnswers]) -> bytes:
    """Packages in one package, on their way through other shards."""
    rows = [one._asdict() for one in sent]
    return codec.pack({_SENT: pa.Table.from_pylist(rows, schema=_SCHEMA)})


def arrived(package: bytes) -> Iterator[SentAnswers]:
    """The packages that `passed_on` put into one."""
    for row in codec.unpack(package)[_SENT].to_pylist():
        yield SentAnswers(**row)


def counts(sent: Iterable[SentAnswers]) -> Mapping[str, int]:
    """How many answers each query has in some packages."""
    found: Counter[str] = Counter()
    for one in sent:
        found.update({} if one.names is None else json.loads(one.names))
    return found


def _together(portions: Sequence[Portion]) -> Iterator[list[Portion]]:
    """Portions that are sent together: as many as make no package too large."""
    some: list[Portion] = []
    rows = 0
    for portion in portions:
        if some and rows + len(portion.table) > _ROWS_PER_PACKAGE:
            yield some
            some, rows = [], 0
        some.append(portion)
        rows += len(portion.table)
    yield some
