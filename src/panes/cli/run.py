"""`panes run`: answer a query over files."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal

import pyarrow as pa
import typer

from panes.cli.files import BATCH, Source
from panes.cli.outputs import Output
from panes.cli.show import meter, say
from panes.engine.open_query import OpenQuery
from panes.errors import OptionError, PanesError
from panes.frames import require_streams
from panes.planning.terms import Run
from panes.stores.store import STORES

EXAMPLE = "Example: panes run busy.sql --input bids=bids.parquet --output busy.csv"

QueryFile = Annotated[str, typer.Argument(help="A file with the query, or - for standard input.")]
Inputs = Annotated[
    list[str], typer.Option("--input", "-i", help="A stream: name=path. Repeat for several.")
]

Store = Annotated[
    str | None,
    typer.Option(help=f"What is kept until windows close: {', '.join(STORES)}."),
]


Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a file of answers that exists.")
]


def read_lateness(given: str | None) -> str | int | None:
    """A lateness: a duration, or a whole number of an integer axis."""
    return int(given) if given is not None and given.isdigit() else given


def read_query(path: str) -> str:
    """The text of a query, from a file or standard input."""
    if path == "-":
        return sys.stdin.read()
    if not Path(path).is_file():
        hint = "put the query in a file, or give it on standard input with -"
        raise OptionError(f"no query file at {path}", hint=hint)
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise OptionError(f"the query file {path} is not UTF-8 text") from None


def run(
    query: QueryFile,
    inputs: Inputs,
    output: Annotated[
        str, typer.Option("--output", "-o", help=".parquet, .csv, .ndjson; - for CSV on stdout.")
    ] = "-",
    engine: Annotated[
        Literal["local", "spark"], typer.Option(help="In this process, or on Spark.")
    ] = "local",
    lateness: Annotated[
        str | None,
        typer.Option(help="Read the files as streams, so late at most."),
    ] = None,
    late: Annotated[
        Literal["open", "drop", "revise"],
        typer.Option(help="What becomes of rows that are later still."),
    ] = "open",
    rows_late: Annotated[
        int | None, typer.Option(help="Instead of a lateness: so many rows late at most.")
    ] = None,
    late_output: Annotated[
        str | None, typer.Option(help="Where to write late rows, with the reason.")
    ] = None,
    punctuation: Annotated[
        str | None, typer.Option(help="A column that promises: nothing before this will come.")
    ] = None,
    store: Store = None,
    why: Annotated[
        bool, typer.Option("--why", help="Answers tell what closed their window.")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="On Spark: a folder to go on from. Answers go to a folder then, too."),
    ] = None,
    files_per_batch: Annotated[
        int, typer.Option(min=1, help="On Spark: files of a folder in one micro-batch.")
    ] = 1,
    keep_open: Annotated[
        bool, typer.Option("--keep-open", help="On Spark: more files may come in a later run.")
    ] = False,
    overwrite: Overwrite = False,
    batch_rows: Annotated[
        int, typer.Option(min=1, help="In this process: rows of a file in one batch.")
    ] = BATCH,
) -> None:
    """Answer a window query over Parquet, CSV or NDJSON files."""
    text = read_query(query)
    streamed = any(o is not None for o in (lateness, rows_late, punctuation, checkpoint))
    options = Run(
        lateness=read_lateness(lateness),
        late=late,
        rows_late=rows_late,
        store=store,
        why=why,
        max_ahead=None,
        punctuation=punctuation,
        bounded=not keep_open if engine == "spark" else not streamed,
    )
    asked = OpenQuery(text, options)
    sources = [Source.parse(text) for text in inputs]
    require_streams(asked.query, {s.name: s for s in sources})
    if late_output is not None and Path(late_output) == Path(output):
        raise OptionError("--output and --late-output name the same file")
    to_folders = engine == "spark" and checkpoint is not None
    if not to_folders:
        for option, path in (("--output", output), ("--late-output", late_output or "-")):
            Output.checked(path, option=option, sources=sources, overwrite=overwrite)
    if engine == "spark":
        on_spark = require_spark("panes.cli.on_spark")
        if streamed:
            job = on_spark.Job(text, options, sources, files_per_batch)
            job.run(output, late_output, checkpoint)
        else:
            on_spark.answer(text, asked.query, sources, output)
        return
    if checkpoint is not None or keep_open:
        raise OptionError("--checkpoint and --keep-open need --engine spark")
    answers = pa.concat_tables(_answers(asked, sources, batch_rows))
    Output(output).write(answers)
    _report(asked, len(answers), late_output)


def _answers(asked: OpenQuery, sources: list[Source], batch_rows: int) -> list[pa.Table]:
    counts = [s.rows for s in sources]
    total = None if None in counts else sum(c or 0 for c in counts)
    found = []
    with meter("rows", total) as bar:
        for source in sources:
            for batch in source.batches(batch_rows):
                found.append(asked.push(**{source.name: batch}))
                bar.advance(len(batch))
    found.append(asked.finish())
    return found


def require_spark(module: str) -> ModuleType:
    """A module of the Spark host, or a clear word if PySpark is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        raise PanesError(
            f"the Spark engine needs {missing.name}, which is not installed",
            hint="pip install 'panes[spark]'",
        ) from None


def _report(asked: OpenQuery, answers: int, late_output: str | None) -> None:
    late, rejected = asked.late, asked.rejected
    if late_output is not None:
        Output(late_output).write(late)
    say(f"{answers:,} answers")
    for what, rows in (("late", late), ("rejected", rejected)):
        for entry in rows.group_by("reason").aggregate([([], "count_all")]).to_pylist():
            say(f"{entry['count_all']:,} rows {what}: {entry['reason']}")
