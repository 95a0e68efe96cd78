"""`panes register`: answer many queries over one stream. The stream is read once."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa
import typer

from panes.api import register as open_register
from panes.cli.files import InputFiles
from panes.cli.live_option import STAY, Live, LiveStay, live_page
from panes.cli.meter import metered
from panes.cli.options import (
    Engine,
    FilesPerBatch,
    TimestampFormat,
    read_lateness,
    read_query,
    require_spark,
    require_use,
)
from panes.cli.outputs import OutputFile
from panes.cli.show import say
from panes.errors import FailedQueryWarning, OptionError, PanesError, QueryError
from panes.html import counted
from panes.language.query_graph import read_graph
from panes.path_part import path_part, require_path_part
from panes.planning.public_options import told
from panes.process.register import Register

EXAMPLE = "Example: panes register queries --input bids=bids.parquet --output answers"


def register(
    queries: Annotated[Path, typer.Argument(help="A folder with one .sql file per query.")],
    given: Annotated[str, typer.Option("--input", "-i", help="The stream, as name=path.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A folder for the answers of all queries.")
    ],
    timestamp_format: TimestampFormat = None,
    engine: Engine = "local",
    lateness: Annotated[
        str | None,
        typer.Option(help=f"Read the file as a stream. {told('lateness')}"),
    ] = None,
    late: Annotated[
        Literal["open", "drop"],
        typer.Option(help=told("late")),
    ] = "open",
    kind: Annotated[
        Literal["parquet", "csv", "ndjson"],
        typer.Option("--format", help="In this process: the format of the answer files."),
    ] = "parquet",
    saved: Annotated[
        Path | None,
        typer.Option(
            help="In this process: a file for the state. The next run continues from it, and "
            "windows that are still open are not answered yet. Every run has its own answer files: "
            "OUTPUT/QUERY/000001.parquet and so on."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="On Spark: a folder for the state. The next run continues from it."),
    ] = None,
    files_per_batch: FilesPerBatch = 1,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="On Spark: keep running. Start and stop queries when .sql files come and go.",
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="In this process: replace answers that are there.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print to stderr what the queries share.")
    ] = False,
    live: Live = False,
    live_stay: LiveStay = STAY,
) -> None:
    """Answer all queries of a folder over one stream, which is read once.

    The stream is a Parquet, CSV or NDJSON file, or a folder of such files. In this process the
    queries may be of any kind that `panes run` takes over one stream.
    """
    source = InputFiles.parse(given, timestamp_format)
    is_late_known = lateness is not None
    require_use(engine, files_per_batch, late, is_late_known=is_late_known, is_stream=True)
    if engine == "spark":
        if saved is not None or kind != "parquet" or overwrite:
            raise OptionError(
                "--saved, --format and --overwrite work in one process only, not with "
                "--engine spark",
                hint="use --checkpoint state",
            )
        require_spark()
        from panes.cli import register_on_spark

        register_on_spark.run(
            source, queries, output, read_lateness(lateness), late, checkpoint, files_per_batch,
            follow=follow, explain=explain, live_stay=live_stay if live else None,
        )  # fmt: skip
        return
    if checkpoint is not None or follow:
        raise OptionError(
            "--checkpoint and --follow need --engine spark",
            hint="use --saved state in one process",
        )
    is_there = saved is not None and saved.exists()
    if saved is not None and not saved.absolute().parent.is_dir():
        raise OptionError(
            f"--saved {saved}: there is no folder {saved.parent}", hint=f"mkdir -p {saved.parent}"
        )
    reg: Register = open_register(
        source.name,
        lateness=read_lateness(lateness),
        late=late,
        max_ahead=None,
        saved=saved if is_there else None,
    )
    wanted = texts(queries)
    _follow(reg, wanted, queries, source)
    if saved is not None:
        reg.require_saveable()
    run = reg.saves + 1 if saved is not None else None
    outputs = _outputs(output, wanted, kind, run, source, overwrite=overwrite)
    with live_page(reg, wanted=live, stay=live_stay):
        answers: dict[str, list[pa.Table]] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FailedQueryWarning)  # they are told at the end
            known = reg.late.schema  # the columns of earlier runs
            batches = ((source.name, batch) for batch in source.batches())
            for _, batch in metered(batches, [source], reg):
                _collect(answers, reg.push(source.in_utc(batch, known)))
            explained = reg.explain() if explain else None
            if saved is None:
                _collect(answers, reg.finish())
        if explained is not None:
            say(explained)
        for name, tables in answers.items():
            outputs[name].write(pa.concat_tables(tables), replace=overwrite)
        if saved is not None:  # not before the answers are on the disk: they are not given again
            reg.save(saved)
        total = sum(len(table) for tables in answers.values() for table in tables)
        counts = {"answers": total, "late": len(reg.late), "rejected": len(reg.rejected)}
        tell_counts(counts, reg.queries(), reg.failed)
    if reg.failed:
        raise typer.Exit(1)


def tell_counts(
    counts: Mapping[str, int], queries: Collection[str], failed: Mapping[str, str]
) -> None:
    """Say how many answers and rows set aside a register gave, and which queries failed."""
    answers = counted(counts.get("answers", 0), "answer", "answers")
    say(f"{answers} of {counted(len(queries), 'query', 'queries')}")
    for what in ("late", "rejected"):
        if counts.get(what):
            say(f"{counts[what]:,} rows {what}")
    for name, reason in failed.items():
        say(f"query {name} failed and was set aside: {reason}")


def _outputs(
    folder: Path,
    names: Iterable[str],
    kind: str,
    run: int | None,
    source: InputFiles,
    *,
    overwrite: bool,
) -> dict[str, OutputFile]:
    """The file for the answers of each query, refused now if it could not be written later.

    A run that goes on from a saved state, and will save its own, has a number. Its files may be
    there already, if it was killed after it had written them: then they have the same answers.
    """
    found = {}
    for name in names:
        require_path_part(name)
        part = path_part(name)
        path = folder / f"{part}.{kind}" if run is None else folder / part / f"{run:06}.{kind}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise OptionError(
                f"--output {folder}: {error.filename} is a file, and answers go to a folder",
                hint="--output answers",
            ) from None
        except OSError as error:
            raise OptionError(f"--output {folder}: {error.strerror}: {error.filename}") from None
        may_be_there = overwrite or run is not None
        found[name] = OutputFile.checked(str(path), sources=[source], overwrite=may_be_there)
    return found


def texts(folder: Path) -> dict[str, str]:
    """The queries of a folder, by the names of their files."""
    if not folder.is_dir():
        raise OptionError(
            f"there is no folder of queries at {folder}",
            hint="make a folder with one .sql file per query",
        )
    files = sorted(folder.glob("*.sql"))
    if not files:
        raise OptionError(
            f"there is no query in {folder}", hint="put one .sql file per query into it"
        )
    return {f.stem: read_query(str(f)).strip().rstrip(";") for f in files}


def _follow(reg: Register, wanted: dict[str, str], folder: Path, source: InputFiles) -> None:
    """Ask what the folder says; what a saved register had beside that is gone."""
    for name, text in reg.queries().items():
        if wanted.get(name) != text:
            reg.remove(name)
    for name, text in wanted.items():
        if name not in reg.queries():
            try:
                _require_input(name, text, source)
                reg.add(name, text)
            except OptionError:
                raise
            except PanesError as failure:
                raise failure.of(str(folder / f"{name}.sql")) from None


def _require_input(name: str, text: str, source: InputFiles) -> None:
    """Refuse a query over a stream that has another name than what was given."""
    read = read_graph(text).streams
    if source.name not in read:
        raise QueryError(
            f"query `{name}` reads {', '.join(read)}, and --input names the stream `{source.name}`",
            hint=f"--input {read[0]}={source.path}",
        )


def _collect(found: dict[str, list[pa.Table]], answers: Mapping[str, pa.Table]) -> None:
    for name, table in answers.items():
        found.setdefault(name, []).append(table)
