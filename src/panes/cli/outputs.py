"""Where commands write answers: checked before the work begins, written all or nothing.

A file appears under its name only when it is whole and on the disk. An input is never replaced,
and an older result only if the user says so.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from panes.cli.files import TEXT_FORMATS, Source
from panes.errors import OptionError, PanesError
from panes.whole_file import replacing

_FORMATS = {".parquet": "parquet", **TEXT_FORMATS}


@dataclass(frozen=True, slots=True)
class Output:
    """A file to write, by its ending; ``-`` is CSV on standard output."""

    path: str

    @classmethod
    def checked(
        cls,
        path: str,
        *,
        option: str = "--output",
        sources: Iterable[Source] = (),
        overwrite: bool = False,
    ) -> Output:
        """The output that an option names, refused now if it could not be written later."""
        if path == "-":
            return cls(path)
        target = Path(path)
        if target.suffix.lower() not in _FORMATS:
            raise OptionError(
                f"{option} {path}: write .parquet, .csv, .ndjson or .jsonl, or -",
                hint=f"{option} answers.parquet",
            )
        folder = target.absolute().parent
        if not folder.is_dir():
            raise OptionError(
                f"{option} {path}: there is no folder {target.parent}",
                hint=f"mkdir -p {target.parent}",
            )
        if target.is_dir():
            raise OptionError(f"{option} {path}: this is a folder, not a file")
        real = Path(os.path.realpath(path))
        for source in sources:
            if real.is_relative_to(os.path.realpath(source.path)):
                raise OptionError(
                    f"{option} {path} would replace the file that --input {source.name} reads",
                    hint=f"{option} answers{target.suffix}",
                )
        if real.exists() and not overwrite:
            raise OptionError(f"{option} {path}: the file exists", hint="--overwrite replaces it")
        if not os.access(real if real.exists() else real.parent, os.W_OK):
            raise OptionError(f"{option} {path}: you have no permission to write there")
        return cls(path)

    def write(self, table: pa.Table, *, replace: bool = True) -> None:
        """Write a table; a file of that name is replaced at once, by a whole one.

        Unless it may `replace` one, a file of that name must already say the same.
        """
        if self.path == "-":
            sys.stdout.write(as_csv(table))
            sys.stdout.flush()
            return
        with _writing(self.path), replacing(self.path) as partial:
            text_format = TEXT_FORMATS.get(Path(self.path).suffix.lower())
            if text_format is None:
                pq.write_table(table, partial)
            else:
                _copy(table, partial, text_format)
            target = Path(self.path)
            if not replace and target.exists() and not cmp(partial, target, shallow=False):
                raise OptionError(
                    f"{self.path} exists and has other answers",
                    hint="choose another folder; --overwrite replaces the file",
                )


@contextmanager
def _writing(path: str) -> Iterator[None]:
    """Whatever goes wrong while a file is written, in the user's words."""
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.Error, pa.ArrowException, OSError) as failure:
        first = str(failure).strip().splitlines()[0]
        raise PanesError(f"cannot write {path}: {first}") from None


def as_csv(table: pa.Table) -> str:
    """A table as CSV text."""
    with tempfile.TemporaryDirectory() as folder, _writing("standard output"):
        file = Path(folder) / "answers.csv"
        _copy(table, file, "csv")
        return file.read_text(encoding="utf-8")


def _copy(table: pa.Table, path: Path, text_format: str) -> None:
    options = "FORMAT csv, HEADER" if text_format == "csv" else "FORMAT json"
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("answers", table)
    quoted = str(path).replace("'", "''")
    connection.execute(f"COPY answers TO '{quoted}' ({options})")
