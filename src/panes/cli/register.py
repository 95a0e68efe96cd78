"""`panes register`: answer many queries over one stream. The stream is read once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa
import typer

from panes.api import register as open_register
from panes.cli.files import Source
from panes.cli.outputs import Output
from panes.cli.run import read_lateness, require_spark
from panes.cli.show import meter, say
from panes.engine.register import Register
from panes.errors import OptionError

EXAMPLE = "Example: panes register queries --input bids=bids.parquet --output answers"


def register(
    queries: Annotated[Path, typer.Argument(help="A folder with one .sql file per query.")],
    given: Annotated[str, typer.Option("--input", "-i", help="The stream, as name=path.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A folder for the answers of all queries.")
    ],
    engine: Annotated[
        Literal["local", "spark"], typer.Option(help="Where to run: in this process, or on Spark.")
    ] = "local",
    lateness: Annotated[
        str | None,
        typer.Option(
            help="Read the file as a stream. A row may be this far behind the newest row, for "
            "example '10 seconds'."
        ),
    ] = None,
    late: Annotated[
        Literal["open", "drop"],
        typer.Option(
            help="What to do with a row that comes later than that. open: count it in its open "
            "windows. drop: do not count it."
        ),
    ] = "open",
    kind: Annotated[
        Literal["parquet", "csv", "ndjson"],
        typer.Option("--format", help="In this process: the format of the answer files."),
    ] = "parquet",
    saved: Annotated[
        Path | None,
        typer.Option(
            help="In this process: a file for the state. The next run continues from it, and "
            "windows that are still open are not answered yet."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="On Spark: a folder for the state. The next run continues from it."),
    ] = None,
    files_per_batch: Annotated[
        int, typer.Option(min=1, help="On Spark: how many files one micro-batch reads.")
    ] = 1,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="On Spark: keep running. Start and stop queries when .sql files come and go.",
        ),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print to stderr what the queries share.")
    ] = False,
) -> None:
    """Answer all queries of a folder over one stream, which is read once.

    The stream is a Parquet, CSV or NDJSON file, or a folder of Parquet files.
    """
    source = Source.parse(given)
    if engine == "spark":
        if saved is not None or kind != "parquet":
            raise OptionError(
                "--saved and --format work in one process only, not with --engine spark",
                hint="use --checkpoint state",
            )
        job = require_spark("panes.cli.register_on_spark")
        job.run(source, queries, output, read_lateness(lateness), late, checkpoint,
                files_per_batch, follow=follow, explain=explain)  # fmt: skip
        return
    if checkpoint is not None or follow:
        raise OptionError(
            "--checkpoint and --follow need --engine spark",
            hint="use --saved state in one process",
        )
    is_there = saved is not None and saved.exists()
    reg: Register = open_register(
        source.name,
        lateness=read_lateness(lateness),
        late=late,
        max_ahead=None,
        saved=saved if is_there else None,
    )
    _follow(reg, texts(queries))
    answers: dict[str, list[pa.Table]] = {}
    with meter("rows", source.rows) as bar:
        for batch in source.batches():
            _collect(answers, reg.push(batch))
            bar.advance(len(batch))
    if explain:
        say(reg.explain())
    if saved is not None:
        reg.save(saved)
    else:
        _collect(answers, reg.finish())
    output.mkdir(parents=True, exist_ok=True)
    for name, tables in answers.items():
        Output(str(output / f"{name}.{kind}")).write(pa.concat_tables(tables))
    count = sum(len(t) for tables in answers.values() for t in tables)
    say(f"{count:,} answers of {len(reg.queries()):,} queries")
    for what, rows in (("late", reg.late), ("rejected", reg.rejected)):
        if len(rows):
            say(f"{len(rows):,} rows {what}")


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
    return {f.stem: f.read_text(encoding="utf-8").strip().rstrip(";") for f in files}


def _follow(reg: Register, wanted: dict[str, str]) -> None:
    """Ask what the folder says; what a saved register had beside that is gone."""
    for name, text in reg.queries().items():
        if wanted.get(name) != text:
            reg.remove(name)
    for name, text in wanted.items():
        if name not in reg.queries():
            reg.add(name, text)


def _collect(found: dict[str, list[pa.Table]], answers: Mapping[str, pa.Table]) -> None:
    for name, table in answers.items():
        found.setdefault(name, []).append(table)
