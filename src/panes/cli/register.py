"""`panes register`: answer many queries over one stream, which is read once."""

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
    queries: Annotated[Path, typer.Argument(help="A folder with a .sql file for each query.")],
    given: Annotated[str, typer.Option("--input", "-i", help="The stream: name=path.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A folder, for the answers of each query.")
    ],
    engine: Annotated[
        Literal["local", "spark"], typer.Option(help="In this process, or on Spark.")
    ] = "local",
    lateness: Annotated[
        str | None, typer.Option(help="How late rows may be; they are read as a stream then.")
    ] = None,
    late: Annotated[
        Literal["open", "drop"], typer.Option(help="What becomes of rows that are later still.")
    ] = "open",
    kind: Annotated[
        Literal["parquet", "csv", "ndjson"],
        typer.Option("--format", help="In this process: what files of answers are."),
    ] = "parquet",
    saved: Annotated[
        Path | None,
        typer.Option(help="In this process: a file to go on from, and to keep the state in."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="On Spark: a folder to go on from.")
    ] = None,
    files_per_batch: Annotated[
        int, typer.Option(min=1, help="On Spark: files of a folder in one micro-batch.")
    ] = 1,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="On Spark: run on, and follow the folder of queries as it changes."
        ),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what is shared with whom, to stderr.")
    ] = False,
) -> None:
    """Answer all queries of a folder over one stream of Parquet, CSV or NDJSON files."""
    source = Source.parse(given)
    if engine == "spark":
        if saved is not None or kind != "parquet":
            raise OptionError("--saved and --format are for one process", hint="--checkpoint")
        job = require_spark("panes.cli.register_on_spark")
        job.run(source, queries, output, read_lateness(lateness), late, checkpoint,
                files_per_batch, follow=follow, explain=explain)  # fmt: skip
        return
    if checkpoint is not None or follow:
        raise OptionError("--checkpoint and --follow need --engine spark", hint="--saved, here")
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
        raise OptionError(f"no folder of queries at {folder}", hint="one .sql file for each query")
    files = sorted(folder.glob("*.sql"))
    if not files:
        raise OptionError(f"no query in {folder}", hint="one .sql file for each query")
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
