"""Files as streams: Parquet, CSV and NDJSON, read in batches of a fixed number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads

from panes.errors import InputError, OptionError, is_interrupt

BATCH = 1 << 20
TEXT_FORMATS = {".csv": "csv", ".ndjson": "json", ".jsonl": "json", ".json": "json"}


@dataclass(frozen=True, slots=True)
class Source:
    """A named input: a file, or a folder of Parquet files."""

    name: str
    path: Path

    @classmethod
    def parse(cls, text: str) -> Source:
        """An ``--input name=path`` option."""
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            raise OptionError(
                f"--input takes name=path, got {text!r}", hint="--input bids=bids.parquet"
            )
        if not Path(path).exists():
            raise OptionError(f"--input {name}: no file or folder at {path}")
        return cls(name, Path(path))

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known without reading them."""
        if self._text_format():
            return None
        with self._reading():
            return pads.dataset(self.path, format="parquet").count_rows()

    def batches(self, rows: int = BATCH) -> Iterator[pa.Table]:
        """The rows in the order of the file, so many at a time; the last batch may be smaller.

        Where batches end does not depend on the file's row groups. There is at least one batch, so
        that types are known.
        """
        with self._reading():
            read = self._text_batches() if self._text_format() else self._parquet_batches()
            yield from _in_batches(read, rows)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Whatever goes wrong in a reader becomes one clear error."""
        try:
            yield
        except (pa.ArrowInvalid, pa.ArrowTypeError, duckdb.Error, OSError) as failure:
            first = str(failure).strip().splitlines()[0]
            raise InputError(f"--input {self.name}: cannot read {self.path}: {first}") from None
        except RuntimeError as failure:
            if is_interrupt(failure):
                raise KeyboardInterrupt from None
            raise

    def _text_format(self) -> str | None:
        suffix = self.path.suffix.lower()
        if suffix in TEXT_FORMATS:
            return TEXT_FORMATS[suffix]
        if suffix == ".parquet" or self.path.is_dir():
            return None
        raise InputError(
            f"--input {self.name}: {self.path} is neither Parquet, CSV nor NDJSON",
            hint="name it .parquet, .csv, .ndjson or .jsonl",
        )

    def _parquet_batches(self) -> Iterator[pa.Table]:
        data = pads.dataset(self.path, format="parquet")
        schemas = {f.physical_schema.remove_metadata() for f in data.get_fragments()}
        if len(schemas) > 1:
            raise InputError(
                f"--input {self.name}: the files in {self.path} have different columns"
            )
        yield data.schema.empty_table()
        for batch in data.to_batches(batch_size=BATCH):
            if len(batch):
                yield pa.Table.from_batches([batch])

    def _text_batches(self) -> Iterator[pa.Table]:
        if self.path.stat().st_size == 0:
            raise InputError(f"--input {self.name}: {self.path} is empty, not even a header")
        connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        connection.execute("SET TimeZone = 'UTC'")
        if self._text_format() == "csv":
            rows = connection.read_csv(str(self.path))
        else:
            rows = connection.sql(
                "SELECT * FROM read_json($path, format = 'newline_delimited')",
                params={"path": str(self.path)},
            )
        has_rows = False
        for batch in rows.to_arrow_reader(BATCH):
            if len(batch):
                has_rows = True
                yield pa.Table.from_batches([batch])
        if not has_rows:
            raise InputError(
                f"--input {self.name}: {self.path} has no rows, so its columns have no types"
            )


def _in_batches(tables: Iterator[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Tables cut and joined to batches of so many rows; an empty first one is passed on."""
    waiting: list[pa.Table] = []
    count = 0
    for number, table in enumerate(tables):
        if not number and not len(table):
            yield table
        waiting.append(table)
        count += len(table)
        while count >= rows:
            joined = pa.concat_tables(waiting)
            yield joined.slice(0, rows).combine_chunks()
            waiting, count = [joined.slice(rows)], count - rows
    if count:
        yield pa.concat_tables(waiting).combine_chunks()
