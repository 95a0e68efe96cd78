"""`panes run`: answer a query over files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa
import typer

from panes.cli.files import BATCH, InputFiles
from panes.cli.kept_run import answer_kept, answers_folder
from panes.cli.live_option import STAY, Live, LiveStay, live_page
from panes.cli.meter import metered
from panes.cli.options import (
    Engine,
    FilesPerBatch,
    Inputs,
    Overwrite,
    QueryFile,
    Store,
    TimestampFormat,
    read_lateness,
    read_query,
    require_spark,
    require_use,
)
from panes.cli.outputs import OutputFile
from panes.cli.show import say
from panes.errors import OptionError
from panes.planning.public_options import told
from panes.planning.terms import StreamOptions
from panes.process import in_steps
from panes.process.opened import opened
from panes.process.running_query import OpenQuery, RunningQuery
from panes.windows.limit import MOST_ANSWERS

EXAMPLE = "Example: panes run busy.sql --input bids=bids.parquet --output busy.csv"


def run(
    query: QueryFile,
    inputs: Inputs,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="The file for the answers: .parquet, .csv or .ndjson. With - they are printed as "
            "CSV. With --checkpoint or --state it is a folder.",
        ),
    ] = "-",
    timestamp_format: TimestampFormat = None,
    engine: Engine = "local",
    lateness: Annotated[
        str | None,
        typer.Option(help=f"Read the files as streams. {told('lateness')}"),
    ] = None,
    late: Annotated[
        Literal["open", "drop", "revise"],
        typer.Option(help=told("late")),
    ] = "open",
    rows_late: Annotated[
        int | None,
        typer.Option(help=told("rows_late")),
    ] = None,
    late_output: Annotated[
        str | None, typer.Option(help="Write late rows to this file, with the reason.")
    ] = None,
    punctuation: Annotated[
        str | None,
        typer.Option(help=told("punctuation")),
    ] = None,
    store: Store = None,
    why: Annotated[
        bool,
        typer.Option("--why", help=told("why")),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="On Spark: a folder for the state. The next run continues from it. --output must "
            "be a folder then."
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="In this process: a folder for the state. The next run continues from it, also "
            "one that was killed, with the rows that are new in the files; windows that are still "
            "open are not answered yet. --output is a folder then."
        ),
    ] = None,
    files_per_batch: FilesPerBatch = 1,
    keep_open: Annotated[
        bool,
        typer.Option(
            "--keep-open",
            help="On Spark: more files will come in a later run, so do not answer windows that "
            "are still open at the end. A checkpoint has it in all its runs, or in none.",
        ),
    ] = False,
    overwrite: Overwrite = False,
    batch_rows: Annotated[
        int, typer.Option(min=1, help="In this process: how many rows one batch reads.")
    ] = BATCH,
    max_answers: Annotated[
        int,
        typer.Option(min=1, help="Refuse a step that would give more answers at once."),
    ] = MOST_ANSWERS,
    live: Live = False,
    live_stay: LiveStay = STAY,
) -> None:
    """Answer a window query over Parquet, CSV or NDJSON files.

    Answers go to --output. Everything else is printed to stderr.
    """
    text = read_query(query)
    streamed = any(o is not None for o in (lateness, rows_late, punctuation, checkpoint))
    require_use(engine, files_per_batch, late, is_late_known=streamed, is_stream=streamed)
    options = StreamOptions(
        lateness=read_lateness(lateness),
        late=late,
        rows_late=rows_late,
        store=store,
        why=why,
        max_answers=max_answers,
        max_ahead=None,
        punctuation=punctuation,
        bounded=not keep_open if engine == "spark" else not streamed,
    )
    asked = opened(text, options)
    sources = InputFiles.parse_all(inputs, timestamp_format, read=asked.query.streams)
    if late_output is not None and Path(late_output) == Path(output):
        raise OptionError("--output and --late-output name the same file")
    if state is not None:
        _require_kept(engine, query, inputs, streamed=streamed)
    to_folders = state is not None or (engine == "spark" and checkpoint is not None)
    if not to_folders:
        for option, path in (("--output", output), ("--late-output", late_output or "-")):
            OutputFile.checked(path, option=option, sources=sources, overwrite=overwrite)
    if engine == "spark":
        require_spark()
        from panes.cli import on_spark

        if live and not streamed:
            raise OptionError(
                "--live shows a stream, and without --lateness Spark answers the files at once",
                hint="--lateness '0 seconds'",
            )
        if streamed:
            stay = live_stay if live else None
            job = on_spark.StreamJob(text, options, sources, files_per_batch, stay)
            job.run(output, late_output, checkpoint)
        else:
            on_spark.answer(text, options, sources, output)
        return
    if checkpoint is not None or keep_open:
        raise OptionError(
            "--checkpoint and --keep-open are for Spark",
            hint="add --engine spark, or leave them out",
        )
    if state is not None:
        folder = answers_folder(output)
        asked = opened(text, options, state=state)
        with live_page(asked, wanted=live, stay=live_stay):
            _report(asked, answer_kept(asked, sources, folder, batch_rows), late_output)
        return
    with live_page(asked, wanted=live, stay=live_stay):
        answers = OutputFile(output).write_each(_answers(asked, sources, batch_rows))
        _report(asked, answers, late_output)


def _require_kept(engine: str, query: str, inputs: list[str], *, streamed: bool) -> None:
    """Refuse what cannot be read again where it was left."""
    if engine == "spark":
        raise OptionError("--state is for one process", hint="--checkpoint state")
    if not streamed:
        raise OptionError(
            "--state keeps a stream, and without --lateness the files are tables",
            hint="--lateness '0 seconds'",
        )
    if query == "-" or any(given.endswith("=-") for given in inputs):
        raise OptionError("--state needs files: standard input cannot be read again")


def _answers(asked: RunningQuery, sources: list[InputFiles], batch_rows: int) -> Iterator[pa.Table]:
    """The answers, as files are read: some of them at a time, in their order."""
    batches = ((source.name, batch) for source in sources for batch in source.batches(batch_rows))
    for name, batch in metered(batches, sources, asked):
        if isinstance(asked, OpenQuery):
            yield from in_steps.push(asked, {name: batch})
        else:
            given = asked.push(**{name: batch})
            yield from [given] if given.num_columns else []
    yield from in_steps.finish(asked) if isinstance(asked, OpenQuery) else [asked.finish()]


def _report(asked: RunningQuery, answers: int, late_output: str | None) -> None:
    late, rejected = asked.late, asked.rejected
    if late_output is not None:
        OutputFile(late_output).write(late)
    say(f"{answers:,} answers")
    for what, rows in (("late", late), ("rejected", rejected)):
        for entry in rows.group_by("reason").aggregate([([], "count_all")]).to_pylist():
            say(f"{entry['count_all']:,} rows {what}: {entry['reason']}")
