"""Where a run lives: its rows as files, its checkpoint, its sinks, and what is planned for it.

One file is one micro-batch, in the order of their times. A file whose name begins with ``_`` is
not there yet for Spark; `release` lets it come.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from panes.crash.kills import Kills

_BEGINNING = 1_700_000_000
_SINK_LOG, _COMPACT = "_spark_metadata", ".compact"


def write_batches(
    folder: Path, tables: Sequence[pa.Table], *, first: int = 0, hidden: int | None = None
) -> Path:
    """A folder in which every table is a file, each a second newer than the one before.

    Those from number `hidden` on do not come before they are released.
    """
    folder.mkdir(exist_ok=True, parents=True)
    for number, table in enumerate(tables, start=first):
        path = folder / f"_{number:04}.parquet"
        pq.write_table(table, path)
        os.utime(path, (_BEGINNING + number,) * 2)
        if hidden is None or number < hidden:
            release(folder, number)
    return folder


def cut(table: pa.Table, batches: int) -> list[pa.Table]:
    """A table in so many parts, as equal as can be; fewer if it has fewer rows."""
    edges = np.linspace(0, len(table), min(batches, max(1, len(table))) + 1).astype(int).tolist()
    return [table.slice(a, b - a) for a, b in pairwise(edges)]


def read_stream(spark: Any, folder: Path, files: int = 1) -> Any:
    """The files of a folder as a streaming DataFrame, so many per micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(folder))


def release(folder: Path, number: int) -> None:
    """Let a file come, if it has not come yet."""
    path = folder / f"_{number:04}.parquet"
    if path.exists():
        path.rename(folder / path.name.removeprefix("_"))


def is_released(folder: Path, number: int) -> bool:
    """Whether a file has come."""
    return (folder / f"{number:04}.parquet").exists()


@dataclass(frozen=True, slots=True)
class JobPlace:
    """The folder of one run."""

    folder: Path

    @property
    def rows(self) -> Path:
        """The streams, each a folder of files."""
        return self.folder / "in"

    @property
    def out(self) -> Path:
        """The sinks."""
        return self.folder / "out"

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.folder / "checkpoint"

    @property
    def kills(self) -> Kills:
        """What is planned."""
        return Kills(self.folder / "kills")

    def make(self, streams: Mapping[str, Sequence[pa.Table]], hidden: int | None) -> None:
        """A new run over these streams, batch by batch."""
        self.kills.folder.mkdir(parents=True)
        for name, tables in streams.items():
            write_batches(self.rows / name, tables, hidden=hidden)

    # What the driver says to those who watch

    def say(self, **what: Any) -> None:
        """Tell how the run goes: it has started, is done, or has failed."""
        partial = self.folder / "_said"
        partial.write_text(json.dumps(what))
        partial.rename(self.folder / "said")

    def said(self) -> dict[str, Any]:
        """What was told last."""
        try:
            found: dict[str, Any] = json.loads((self.folder / "said").read_text())
        except FileNotFoundError:
            return {}
        return found

    def hush(self) -> None:
        """Nothing has been told yet."""
        (self.folder / "said").unlink(missing_ok=True)


def answers_in(folder: Path) -> pa.Table | None:
    """All rows of a sink; None if it has none. A sink of Spark's own has a log of its files."""
    log = folder / _SINK_LOG
    paths = _logged(log) if log.exists() else folder.rglob("part-*.parquet")
    tables = [pq.ParquetFile(p, coerce_int96_timestamp_unit="us").read() for p in sorted(paths)]
    return pa.concat_tables(tables).combine_chunks() if tables else None


def _logged(log: Path) -> Iterator[Path]:
    """The files that a file sink has committed. Now and then its log is written anew as a whole."""
    entries = {int(p.name.removesuffix(_COMPACT)): p for p in log.iterdir() if p.name[0].isdigit()}
    whole = max((n for n, p in entries.items() if p.name.endswith(_COMPACT)), default=0)
    for number in sorted(n for n in entries if n >= whole):
        for line in entries[number].read_text().splitlines()[1:]:
            yield Path(json.loads(line)["path"].removeprefix("file://"))
