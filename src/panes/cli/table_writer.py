"""Tables written to one file as they come: Parquet by row groups, CSV and NDJSON piece by piece.

Memory holds the rows of one piece, however many there are in all.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

_A_PIECE = 1 << 17


def write_tables(tables: Iterable[pa.Table], path: Path, text_format: str | None) -> int:
    """Write tables, at least one, all with the same columns; says how many rows they had.

    `text_format` is ``csv`` or ``json``; None is Parquet.
    """
    pieces = _pieces(iter(tables))
    if text_format is None:
        return _write_parquet(pieces, path)
    return _write_text(pieces, path, text_format)


def _pieces(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Small tables put together: every piece but the last has many rows, and there is one."""
    waiting: list[pa.Table] = [next(tables)]
    rows = len(waiting[0])
    for table in tables:
        if rows >= _A_PIECE:
            yield pa.concat_tables(waiting)
            waiting, rows = [], 0
        waiting.append(table)
        rows += len(table)
    yield pa.concat_tables(waiting)


def _write_parquet(pieces: Iterator[pa.Table], path: Path) -> int:
    first = next(pieces)
    rows = 0
    with pq.ParquetWriter(path, first.schema) as file:
        for piece in chain([first], pieces):
            file.write_table(piece)
            rows += len(piece)
    return rows


def _write_text(pieces: Iterator[pa.Table], path: Path, text_format: str) -> int:
    """Each piece by DuckDB to a file of its own, which is appended."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute("SET TimeZone = 'UTC'")
    own = path.with_name(f"{path.name}.piece")
    quoted = str(own).replace("'", "''")
    rows = 0
    try:
        with path.open("wb") as file:
            for number, piece in enumerate(pieces):
                header = f"HEADER {'false' if number else 'true'}"
                options = f"FORMAT csv, {header}" if text_format == "csv" else "FORMAT json"
                connection.register("answers", piece)
                connection.execute(f"COPY answers TO '{quoted}' ({options})")
                connection.unregister("answers")
                with own.open("rb") as written:
                    shutil.copyfileobj(written, file)
                rows += len(piece)
    finally:
        connection.close()
        own.unlink(missing_ok=True)
    return rows
