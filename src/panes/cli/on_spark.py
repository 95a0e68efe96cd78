"""What `panes run --engine spark` does: a bounded query, or a stream run to its end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa

from panes.api import sql
from panes.cli.files import InputFiles
from panes.cli.interrupts import ends, interrupts, stopped
from panes.cli.live_option import staying
from panes.cli.outputs import OutputFile
from panes.cli.show import errors_in, say
from panes.errors import OptionError, PanesError
from panes.language.join_query import JoinQuery
from panes.language.query import Query
from panes.language.query_graph import read_graph
from panes.planning.terms import StreamOptions
from panes.spark import LiveRows, files, live, split
from panes.spark.checkpoint import require_sources, require_whole
from panes.spark.observe import DEFAULT
from panes.spark.query import answer as answer_frames
from panes.spark.session import quiet
from panes.windows.spec import PerRow

_KINDS = ("answers", "late", "rejected")


def answer(text: str, options: StreamOptions, sources: list[InputFiles], output: str) -> None:
    """Answer a bounded query on Spark and write it where the command was told to."""
    for source in sources:
        source.require_readable()
    with tempfile.TemporaryDirectory() as folder, told():
        start(Path(folder))
        quiet(files.spark())  # what goes wrong is told
        frames: dict[str, Any] = {
            s.name: files.read(s.path, s.format, s.spark_options) for s in sources
        }
        found = sql(text, frames, store=options.store, why=options.why,
                    max_answers=options.max_answers)  # fmt: skip
        answers = found.toArrow()
    OutputFile(output).write(_in_order(answers, read_graph(text).asked))
    say(f"{len(answers):,} answers")


@dataclass(frozen=True, slots=True)
class StreamJob:
    """A streaming query over files, run until nothing is left to read.

    With `live_stay` there is a live page, which stays so many seconds once nobody looks at it.
    """

    text: str
    options: StreamOptions
    sources: list[InputFiles]
    files_per_batch: int
    live_stay: float | None = None

    def run(self, output: str, late_output: str | None, checkpoint: Path | None) -> None:
        """Answers go to a file at the end; with a checkpoint, to a folder batch by batch."""
        require_folder(checkpoint)
        for source in self.sources:
            source.require_readable()
        with tempfile.TemporaryDirectory() as folder, ExitStack() as pages:
            start(Path(folder))
            places = {kind: Path(folder) / kind for kind in _KINDS}
            if checkpoint is not None:
                places["answers"] = _folder(output, "--output")
                if late_output is not None:
                    places["late"] = _folder(late_output, "--late-output")
            counts = self._stream(places, checkpoint or Path(folder) / "checkpoint", pages)
            if counts is None and checkpoint is None:
                raise KeyboardInterrupt
            if counts is None:
                raise stopped(output, checkpoint)
            if checkpoint is None:
                answers = _in_order(_collected(places["answers"]), read_graph(self.text).asked)
                OutputFile(output).write(answers)
                if late_output is not None:
                    OutputFile(late_output).write(_collected(places["late"]))
            say(f"{counts['answers']:,} answers")
            for what in ("late", "rejected"):
                if counts[what]:
                    say(f"{counts[what]:,} rows {what}")

    def _stream(
        self, places: dict[str, Path], checkpoint: Path, pages: ExitStack
    ) -> dict[str, int] | None:
        """Run until nothing is left to read, and count; None after Ctrl-C.

        A live page is left open in `pages`: it stays while the answers are written.
        """
        interrupted = interrupts()
        frames = {
            s.name: files.read_stream(s.path, s.format, self.files_per_batch, s.spark_options)
            for s in self.sources
        }
        tagged = answer_frames(
            self.text, frames, run=replace(self.options, with_late=True, name=DEFAULT)
        )
        require_sources(str(checkpoint), tagged)
        asked = read_graph(self.text).asked
        keys = len(asked.shown_keys) if isinstance(asked, Query) else 0
        shown = {kind: LiveRows(place, keys=keys) for kind, place in places.items()}
        sinks = places if self.live_stay is None else shown
        writer = tagged.writeStream.foreachBatch(split(**sinks))
        writer = writer.option("checkpointLocation", str(checkpoint))
        counts = dict.fromkeys(_KINDS, 0)
        quiet(files.spark())  # what goes wrong is told below
        query = writer.trigger(availableNow=True).start()
        try:
            if not self._ends(query, shown, interrupted, pages):
                return None
        except Exception as failure:
            require_whole(files.spark(), str(checkpoint))
            raise PanesError(f"the stream stopped: {reason(failure)}") from None
        finally:
            query.stop()
        for progress in query.recentProgress:
            observed = progress["observedMetrics"].get(DEFAULT)
            for kind in _KINDS if observed is not None else ():
                counts[kind] += observed[kind]
        return counts

    def _ends(
        self, query: Any, shown: Mapping[str, LiveRows], interrupted: Event, pages: ExitStack
    ) -> bool:
        """Wait for the end, with a live page beside it if there is to be one."""
        if self.live_stay is not None:
            page = live(query, text=self.text, answers=shown["answers"], late=shown["late"],
                        rejected=shown["rejected"], name=DEFAULT)  # fmt: skip
            pages.enter_context(staying(page, self.live_stay, interrupted))
        return ends(query.awaitTermination, interrupted)


@contextmanager
def told() -> Iterator[None]:
    """Whatever Spark raises while it answers becomes one clear error."""
    try:
        yield
    except PanesError:
        raise
    except Exception as failure:
        raise PanesError(f"Spark cannot answer the query: {reason(failure)}") from None


def require_folder(checkpoint: Path | None) -> None:
    """Refuse a checkpoint that is a file."""
    if checkpoint is not None and checkpoint.is_file():
        raise OptionError(
            f"--checkpoint {checkpoint}: this is a file, not a folder", hint="--checkpoint state"
        )


def start(folder: Path) -> None:
    """Start Spark without what it says of itself while it does; shown if it fails."""
    with errors_in(folder / "spark.log"):
        files.spark()


def _folder(path: str, option: str) -> Path:
    if path == "-" or Path(path).suffix or Path(path).is_file():
        raise OptionError(
            f"with --checkpoint, {option} must be a folder, got {path}",
            hint=f"{option} answers",
        )
    return Path(path)


def _collected(folder: Path) -> pa.Table:
    found: pa.Table = files.spark().read.parquet(str(folder)).drop("batch").toArrow()
    return found


def _in_order(answers: pa.Table, query: Query | JoinQuery) -> pa.Table:
    if isinstance(query, JoinQuery):  # joined rows have no order
        return answers
    if query.window is not None and isinstance(query.window.spec, PerRow):
        return answers
    names = answers.column_names[: 2 + len(query.keys)]
    return answers.sort_by([(n, "ascending", "at_start") for n in names])


def reason(failure: Exception) -> str:
    """What went wrong, without the stack traces that Spark wraps around it."""
    lines = [line.strip() for line in str(failure).splitlines()]
    ours = [line for line in lines if line.startswith("panes.errors.")]
    return ours[-1].partition(": ")[2] if ours else lines[0]
