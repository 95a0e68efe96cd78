"""Files as streams: which files an ``--input`` means, and what they hold.

A path is a file, a folder with everything in it, a pattern such as ``logs/*.csv.gz``, or ``-`` for
standard input. All files of an input are of one format. Folders named ``day=2026-01-01`` give their
rows a column ``day``.
"""

from __future__ import annotations

import atexit
import difflib
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from panes.cli import readers
from panes.cli.time_formats import options_of, spark_options_of
from panes.errors import InputError, MissingStreamError, OptionError
from panes.frames import require_streams

BATCH = readers.BATCH
Format: TypeAlias = Literal["parquet", "csv", "json"]
TEXT_FORMATS: dict[str, Format] = {
    ".csv": "csv", ".ndjson": "json", ".jsonl": "json", ".json": "json",
}  # fmt: skip
_FORMATS: dict[str, Format] = {".parquet": "parquet", ".tsv": "csv", **TEXT_FORMATS}
_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class InputFiles:
    """A named input: its path as it was given, and the files that this means.

    `timestamp_format` says how dates are written in text files, as a pattern of Spark's.
    """

    name: str
    path: Path
    files: tuple[Path, ...]
    format: Format
    timestamp_format: str | None = None

    @classmethod
    def parse(cls, text: str, timestamp_format: str | None = None) -> InputFiles:
        """An ``--input name=path`` option."""
        if timestamp_format is not None:
            options_of(timestamp_format)  # which refuses what is no pattern
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            meant = "bids=bids.parquet" if equals or not text else f"{Path(text).stem}={text}"
            raise OptionError(f"--input takes name=path, got {text!r}", hint=f"--input {meant}")
        if path == _STANDARD_INPUT:
            spooled = _spooled()
            return cls(name, spooled, (spooled,), _format(spooled, name), timestamp_format)
        files = tuple(_files(Path(path)))
        if not files and Path(path).is_dir():
            raise OptionError(
                f"--input {name}: {path} has no files in it",
                hint="put .parquet, .csv or .ndjson files into it",
            )
        if not files:
            raise OptionError(
                f"--input {name}: {path} is no file or folder",
                hint=near(path) or f"look for it: ls {Path(path).parent}",
            )
        formats = {_format(file, name): file for file in reversed(files)}
        if len(formats) > 1:
            one, other, *_ = sorted(formats.values())
            raise InputError(
                f"--input {name}: {one} and {other} are of different formats",
                hint=f"a stream of each, --input old='{one.parent}/*{one.suffix}' "
                f"--input new='{other.parent}/*{other.suffix}', and in the query "
                "FROM (old UNION ALL new) [...]",
            )
        return cls(name, Path(path), files, next(iter(formats)), timestamp_format)

    @property
    def spark_options(self) -> dict[str, str]:
        """What Spark is told of the files."""
        return {} if self.timestamp_format is None else spark_options_of(self.timestamp_format)

    @classmethod
    def parse_all(
        cls,
        texts: Iterable[str],
        timestamp_format: str | None = None,
        *,
        read: Iterable[str] | None = None,
    ) -> list[InputFiles]:
        """All ``--input`` options: one for each stream that is to be read, and no other."""
        sources = [cls.parse(text, timestamp_format) for text in texts]
        by_name = {source.name: source for source in sources}
        if len(by_name) < len(sources):
            names = [source.name for source in sources]
            twice = next(name for name in names if names.count(name) > 1)
            raise OptionError(
                f"--input {twice} is given twice",
                hint=f"name its files together, as a folder or a pattern: {twice}='logs/*.csv'",
            )
        for name in read or ():
            if name not in by_name:
                raise MissingStreamError(
                    name, given=by_name, write=f"--input {name}={name}.parquet"
                )
        if read is not None:
            require_streams(tuple(read), by_name)
        return sources

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known without reading them."""
        if self.format != "parquet":
            return None
        with readers.told(f"--input {self.name}", self.path):
            return readers.parquet(self.files, self._base).count_rows()

    def batches(self, rows: int = BATCH) -> Iterator[pa.Table]:
        """The rows in the order of the files' names, so many at a time; the last may be fewer.

        Where batches end does not depend on row groups. There is at least one batch, so that types
        are known.
        """
        with readers.told(f"--input {self.name}", self.path):
            if self.format == "parquet":
                read = readers.parquet_batches(self.files, self._base)
            else:
                read = readers.text_batches(
                    self.files,
                    is_csv=self.format == "csv",
                    timestamp_format=self.timestamp_format,
                )
            yield from _in_batches(read, rows)

    def in_utc(self, batch: pa.Table, known: pa.Schema) -> pa.Table:
        """Times of text without a zone as moments of UTC, where the stream has moments already."""
        for place, field in enumerate(batch.schema):
            is_known = self.format != "parquet" and field.name in known.names
            if is_known and pa.types.is_timestamp(field.type) and field.type.tz is None:
                before = known.field(field.name).type
                if pa.types.is_timestamp(before) and before.tz is not None:
                    moments = pc.assume_timezone(batch[field.name], "UTC")
                    batch = batch.set_column(place, field.name, moments)
        return batch

    def require_readable(self) -> None:
        """Refuse now what Spark would refuse in its own words, or read as NULL without a word."""
        with readers.told(f"--input {self.name}", self.path):
            if self.format == "parquet":
                readers.parquet(self.files, self._base)
            else:
                next(
                    readers.text_batches(
                        self.files,
                        is_csv=self.format == "csv",
                        timestamp_format=self.timestamp_format,
                    )
                )

    def is_among(self, path: Path) -> bool:
        """Whether a file is one of these, or lies in their folder."""
        real = Path(os.path.realpath(path))
        within = [Path(os.path.realpath(f)) for f in (*self.files, self.path)]
        return any(real.is_relative_to(one) for one in within)

    @property
    def _base(self) -> Path | None:
        """The folder below which names of folders are values."""
        return self.path if self.path.is_dir() else None


def near(path: str) -> str | None:
    """What to type instead of a path that leads nowhere, if anything is like it."""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    names = sorted(entry.name for entry in folder.iterdir())
    found = difflib.get_close_matches(Path(path).name, names, n=1)
    return f"did you mean {folder / found[0]}?" if found else None


def _files(path: Path) -> Iterator[Path]:
    """The files that a path means, by name; hidden ones and Spark's own marks are left out."""
    if path.is_dir():
        found = (file for file in sorted(path.rglob("*")) if file.is_file())
        for file in found:
            if not any(part[0] in "._" for part in file.relative_to(path).parts):
                yield file
    elif path.exists():
        yield path
    else:
        yield from (
            Path(f) for f in sorted(glob.glob(str(path), recursive=True)) if Path(f).is_file()
        )


def _format(file: Path, name: str) -> Format:
    suffixes = [s.lower() for s in file.suffixes]
    if suffixes and suffixes[-1] in readers.PACKED:
        suffixes.pop()
    found = _FORMATS.get(suffixes[-1]) if suffixes else None
    if found is None or (found == "parquet" and file.suffix.lower() in readers.PACKED):
        raise InputError(
            f"--input {name}: {file} is neither Parquet, CSV nor NDJSON",
            hint="name it .parquet, .csv, .ndjson or .jsonl; text may be packed: .csv.gz",
        )
    return found


def _spooled() -> Path:
    """Standard input as a file, which is gone when the command ends; its first bytes say its kind.

    Rows are read more than once, to know their types first, so they cannot be read from a pipe.
    """
    folder = Path(tempfile.mkdtemp(prefix="panes-input-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    plain = folder / "standard input"
    with plain.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    head = readers.first_bytes(plain)
    packed = next((s for s, (_, magic) in readers.PACKED.items() if head.startswith(magic)), "")
    plain = plain.rename(plain.with_name(f"{plain.name}{packed}"))
    head = readers.first_bytes(plain)
    kind = ".parquet" if head.startswith(b"PAR1") else ".csv"
    if head.lstrip().startswith(b"{"):
        kind = ".ndjson"
    return plain.rename(folder / f"standard input{kind}{packed}")


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
