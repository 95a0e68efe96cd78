"""A second oracle: window queries written out by hand in DuckDB SQL.

It shares no code with the library. Window ids are generated, every id becomes an extent by the
formulas of the contract, rows join the extents that hold them, and GROUP BY does the rest:

    ids  ->  extents [start, end)  ->  rows with start <= place < end  ->  GROUP BY extent, keys
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

Row = tuple[Any, ...]

_DUCKDB = duckdb.connect(config={"threads": "1"})


@dataclass(frozen=True)
class Window:
    """A window clause and the numbers it means; ``range is None`` is a landmark window."""

    clause: str
    place: str
    slide: int
    range: int | None
    origin: int = 0
    align_start: bool = False
    by_row: bool = False

    @property
    def extent(self) -> tuple[str, str]:
        """The bounds of window ``w`` as SQL: ``[start, end)``."""
        if self.range is None:
            return "CAST(NULL AS BIGINT)", f"{self.origin} + (w + 1) * {self.slide}"
        if self.align_start:
            start = f"{self.origin} + w * {self.slide}"
            return start, f"{start} + {self.range}"
        end = f"{self.origin} + (w + 1) * {self.slide}"
        return f"{end} - {self.range}", end

    @property
    def answered(self) -> str:
        """Which windows are answered at the end of the input, as SQL over `members`."""
        conditions = []
        if self.by_row:
            conditions.append("window_end <= (SELECT count(*) FROM stream)")
        if self.range is None:
            conditions.append(f"window_end - {self.slide} <= (SELECT hi FROM reach)")
        return " AND ".join(conditions) or "true"


@dataclass(frozen=True)
class Item:
    """One column of the SELECT, as the library is asked and as DuckDB is asked."""

    asked: str
    duckdb: str

    @classmethod
    def same(cls, text: str) -> Item:
        """An expression that both sides spell the same way."""
        return cls(text, text)


@dataclass(frozen=True)
class Question:
    """A window query over the stream ``stream``; item k answers under the alias ``ck``."""

    window: Window
    items: tuple[Item, ...]
    keys: tuple[str, ...] = ()
    where: str | None = None
    having: str | None = None
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        aliases = tuple(f"c{k}" for k in range(len(self.items)))
        object.__setattr__(self, "names", aliases)

    @property
    def columns(self) -> list[str]:
        """The answer's columns, in order."""
        return ["window_start", "window_end", *self.keys, *self.names]

    @property
    def text(self) -> str:
        """The query in the library's language."""
        aliased = [f"{i.asked} AS {n}" for i, n in zip(self.items, self.names, strict=True)]
        text = f"SELECT {', '.join([*self.keys, *aliased])} FROM stream [{self.window.clause}]"
        if self.where is not None:
            text += f" WHERE {self.where}"
        if self.keys:
            text += f" GROUP BY {', '.join(self.keys)}"
        if self.having is not None:
            text += f" HAVING {self.having}"
        return text

    @property
    def written_out(self) -> str:
        """The same question as plain DuckDB SQL."""
        window = self.window
        start, end = window.extent
        reach = window.range or 0
        aliased = [f"{i.duckdb} AS {n}" for i, n in zip(self.items, self.names, strict=True)]
        keys = "".join(f", {key}" for key in self.keys)
        low = f"(lo - {window.origin} - {reach}) // {window.slide} - 2"
        high = f"(hi - {window.origin} + {reach}) // {window.slide} + 2"
        return f"""
            WITH placed AS (SELECT *, CAST({window.place} AS BIGINT) AS place FROM stream),
            kept AS (SELECT * FROM placed WHERE {self.where or "true"}),
            reach AS (SELECT min(place) AS lo, max(place) AS hi FROM kept),
            ids AS (SELECT unnest(generate_series({low}, {high})) AS w FROM reach),
            extents AS (SELECT {start} AS window_start, {end} AS window_end FROM ids),
            members AS (
                SELECT * FROM extents JOIN kept
                ON place < window_end AND (window_start IS NULL OR place >= window_start)
            ),
            answers AS (
                SELECT window_start, window_end{keys}, {", ".join(aliased)}
                FROM members WHERE {window.answered}
                GROUP BY window_start, window_end{keys}
            )
            SELECT * FROM answers WHERE {self.having or "true"}
        """


def expected(question: Question, stream: pa.Table) -> dict[Row, Row]:
    """DuckDB's answers: (window_start, window_end, keys...) to the selected values."""
    numbered = stream.append_column("arrival", pa.array(range(len(stream)), pa.int64()))
    _DUCKDB.register("stream", numbered)
    try:
        found = _DUCKDB.sql(question.written_out).to_arrow_table()
    finally:
        _DUCKDB.unregister("stream")
    return _by_window_and_key(question, found)


def assert_answers(question: Question, found: pa.Table, wanted: dict[Row, Row]) -> None:
    """The answers are the wanted ones: floats within tolerance, everything else exactly."""
    told = f"{question.text}\n{found.to_pylist()}"
    assert found.column_names == question.columns, told
    got = _by_window_and_key(question, found)
    assert got.keys() == wanted.keys(), (
        f"missing {sorted(wanted.keys() - got.keys(), key=str)}, "
        f"unwanted {sorted(got.keys() - wanted.keys(), key=str)}\n{told}"
    )
    for where, values in wanted.items():
        for item, want, have in zip(question.items, values, got[where], strict=True):
            assert same(want, have), f"{where} {item.asked}: {have!r}, not {want!r}\n{told}"


def same(want: object, have: object) -> bool:
    """Equal and of one type; two floats may differ by rounding, and NaN is itself."""
    if type(want) is not type(have):
        return False
    if isinstance(want, float) and isinstance(have, float):
        if math.isnan(want) or math.isnan(have):
            return math.isnan(want) and math.isnan(have)
        return math.isclose(want, have, rel_tol=1e-9, abs_tol=1e-9)
    return want == have


def places(column: pa.ChunkedArray) -> list[int]:
    """A column's places on the axis: integers as they are, timestamps in microseconds."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz))
    numbers: list[int] = column.cast(pa.int64()).to_pylist()
    return numbers


def _by_window_and_key(question: Question, answers: pa.Table) -> dict[Row, Row]:
    bounds = [places(answers["window_start"]), places(answers["window_end"])]
    rest = [answers[name].to_pylist() for name in answers.column_names[2:]]
    rows: list[Row] = list(zip(*bounds, *rest, strict=True))
    named = 2 + len(question.keys)
    result = {row[:named]: row[named:] for row in rows}
    assert len(result) == len(rows), f"a window and key is answered twice: {rows}"
    return result
