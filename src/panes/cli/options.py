"""Arguments and options that several commands take, and what is read of them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal

import typer

from panes.axis import written_whole
from panes.cli.files import near
from panes.errors import OptionError, PanesError
from panes.planning.public_options import told
from panes.stores.by_name import STORES

QueryFile = Annotated[
    str, typer.Argument(help="A file with the query text. Use - to read it from standard input.")
]
Inputs = Annotated[
    list[str],
    typer.Option(
        "--input",
        "-i",
        help="A stream, as name=path. The path is a Parquet, CSV or NDJSON file, a folder of such "
        "files, a pattern in quotes, or - for standard input. Text may be packed (.csv.gz). Repeat "
        "the option for several streams.",
    ),
]

TimestampFormat = Annotated[
    str | None,
    typer.Option(
        help="How dates and times are written in CSV and NDJSON files, for example "
        "'dd/MM/yyyy HH:mm:ss'. Without it, values that could be read in two ways are refused."
    ),
]

Engine = Annotated[
    Literal["local", "spark"], typer.Option(help="Where to run: in this process, or on Spark.")
]
Store = Annotated[
    str | None,
    typer.Option(help=f"{told('store')} One of: {', '.join(STORES)}."),
]


FilesPerBatch = Annotated[
    int, typer.Option(min=1, help="On Spark: how many files one micro-batch reads.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the output file if it exists.")
]


def read_lateness(given: str | None) -> str | int | None:
    """A lateness: a duration, or a whole number of an integer axis."""
    number = None if given is None else written_whole(given)
    return given if number is None else number


def require_use(
    engine: str, files_per_batch: int, late: str, *, is_late_known: bool, is_stream: bool
) -> None:
    """Refuse options of a stream where they would change nothing."""
    if late != "open" and not is_late_known:
        raise OptionError(
            f"--late {late} changes nothing: without --lateness no row is late",
            hint="--lateness '0 seconds'",
        )
    if files_per_batch != 1 and not (engine == "spark" and is_stream):
        raise OptionError(
            "--files-per-batch is for a stream on Spark",
            hint="--engine spark --lateness '0 seconds'",
        )


def read_query(path: str) -> str:
    """The text of a query, from a file or standard input."""
    if path == "-":
        text, place = sys.stdin.read(), "standard input"
    else:
        text, place = _query_file(path), f"the query file {path}"
    if not text.strip():
        raise OptionError(f"{place} is empty", hint=f"write a query, for example {_QUERY}")
    return text


_QUERY = "SELECT item, count(*) AS n FROM bids [TUMBLING 1 minute WATTR ts] GROUP BY item"


def _query_file(path: str) -> str:
    if Path(path).is_dir():
        raise OptionError(
            f"there is no query file at {path}, which is a folder",
            hint=f"name one of its files; panes register {path} answers all of them",
        )
    if not Path(path).is_file():
        hint = near(path) or "write the query to a file, or pass it on standard input with -"
        raise OptionError(f"there is no query file at {path}", hint=hint)
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise OptionError(
            f"the query file {path} is not UTF-8 text", hint="save it as UTF-8"
        ) from None


def require_spark() -> ModuleType:
    """The Spark host, or a clear word if PySpark is not installed."""
    try:
        return importlib.import_module("panes.spark")
    except ModuleNotFoundError as missing:
        raise PanesError(
            f"the Spark engine needs {missing.name}, which is not installed",
            hint="pip install 'panes[spark]'",
        ) from None
