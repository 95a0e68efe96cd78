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

from panes.cli.files import TEXT_FORMATS, InputFiles
from panes.cli.table_writer import write_tables
from panes.errors import OptionError, PanesError, is_interrupt
from panes.whole_file import replacing

_FORMATS = {".parquet": "parquet", **TEXT_FORMATS}


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file to write, by its ending; ``-`` is CSV on standard output."""

    path: str

    @classmethod
    def checked(
        cls,
        path: str,
        *,
        option: str = "--output",
        sources: Iterable[InputFiles] = (),
        overwrite: bool = False,
    ) -> OutputFile:
        """The output that an option names, refused now if it could not be written later."""
        if path == "-":
            return cls(path)
        target = Path(path)
        if target.is_dir():
            raise OptionError(
                f"{option} {path}: this is a folder, not a file",
                hint=f"{option} {target / 'answers.parquet'}",
            )
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
        real = Path(os.path.realpath(path))
        for source in sources:
            if source.is_among(real):
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
        self.write_each([table], replace=replace)

    def write_each(self, tables: Iterable[pa.Table], *, replace: bool = True) -> int:
        """Write tables, at least one, one behind the other as they come; says how many rows.

        Nothing is seen of them before the last one is written.
        """
        if self.path == "-":
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "answers.csv"
                with _writing("standard output"):
                    rows = write_tables(tables, file, "csv")
                _print(file)
            return rows
        with _writing(self.path), replacing(self.path) as partial:
            text_format = TEXT_FORMATS.get(Path(self.path).suffix.lower())
            rows = write_tables(tables, partial, text_format)
            target = Path(self.path)
            if not replace and target.exists() and not cmp(partial, target, shallow=False):
                raise OptionError(
                    f"{self.path} exists and has other answers",
                    hint="choose another folder; --overwrite replaces the file",
                )
        return rows


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
    except RuntimeError as failure:
        if is_interrupt(failure):
            raise KeyboardInterrupt from None
        raise


def _print(file: Path) -> None:
    """A file's text on standard output, piece by piece."""
    with file.open(encoding="utf-8", newline="") as text:
        while piece := text.read(_PIECE):
            sys.stdout.write(piece)
    sys.stdout.flush()


_PIECE = 1 << 20
