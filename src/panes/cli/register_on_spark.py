"""What `panes register --engine spark` does: a register over streams of files."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import typer

from panes.api import register as open_register
from panes.axis import Duration
from panes.cli.files import InputFiles
from panes.cli.interrupts import ends, interrupts, stopped
from panes.cli.live_option import staying
from panes.cli.on_spark import reason, require_folder, start
from panes.cli.register import names_of, tell_counts, texts
from panes.cli.show import say
from panes.errors import FailedQueryWarning, PanesError
from panes.planning.terms import Late
from panes.spark import files, live
from panes.spark.register.register import SparkRegister
from panes.spark.session import quiet


def run(
    sources: Sequence[InputFiles],
    queries: Path,
    output: Path,
    lateness: Duration | None,
    late: Late,
    checkpoint: Path | None,
    files_per_batch: int,
    *,
    follow: bool,
    explain: bool,
    live_stay: float | None = None,
) -> None:
    """Answers go to ``output/query=NAME``, batch by batch."""
    texts(queries)
    require_folder(checkpoint)
    for source in sources:
        source.require_readable()
    with tempfile.TemporaryDirectory() as folder:
        start(Path(folder))
        quiet(files.spark())  # what goes wrong is told below
        streams = {
            s.name: files.read_stream(s.path, s.format, files_per_batch, s.spark_options)
            for s in sources
        }
        names: Any = names_of(sources)
        frames = streams if len(streams) > 1 else streams[names]
        reg: SparkRegister = open_register(
            names, frames, lateness=lateness, late=late, max_ahead=None
        )
        try:
            place = checkpoint or Path(folder) / "checkpoint"
            if (
                not _has_ended(reg, queries, output, place, follow=follow, live_stay=live_stay)
                and not follow
            ):
                raise stopped(output, checkpoint)
            if reg.failed:
                raise typer.Exit(1)
        finally:
            if explain:
                say(reg.explain())
            reg.stop()


def _has_ended(
    reg: SparkRegister,
    queries: Path,
    output: Path,
    checkpoint: Path,
    *,
    follow: bool,
    live_stay: float | None,
) -> bool:
    """Run until the input ends, which a followed one never does, or until Ctrl-C."""
    interrupted = interrupts()
    apart = None if live_stay is None else _shown_only
    reg.start(
        checkpoint=str(checkpoint),
        sink=str(output),
        late=apart,
        rejected=apart,
        bounded=not follow,
        watch=str(queries),
    )
    if reg.refused:
        name, why = next(iter(reg.refused.items()))
        raise PanesError(f"the query `{name}` cannot run: {why}")
    if follow:
        say(f"{len(reg.queries()):,} queries run; change {queries} to change them, Ctrl-C to end")
    try:
        page: AbstractContextManager[object] = nullcontext()
        if live_stay is not None:
            page = staying(live(reg), live_stay, interrupted)
        with page, warnings.catch_warnings():
            warnings.simplefilter("ignore", FailedQueryWarning)  # they are told at the end
            has_ended = ends(reg.await_end, interrupted)
            reg.stop()
            tell_counts(reg.counted, reg.queries(), reg.failed)
    except Exception as failure:
        raise PanesError(f"the register stopped: {reason(failure)}") from None
    return has_ended


def _shown_only(rows: object, batch_id: int) -> None:
    """Late and rejected rows are kept with their columns for the live page, and written nowhere."""
