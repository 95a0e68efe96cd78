"""`panes explain`: how a query is answered, and what that costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from panes.api import explain as explain_text
from panes.axis import format_duration
from panes.cli.files import InputFiles
from panes.cli.options import Store, TimestampFormat, read_lateness, read_query
from panes.errors import OptionError
from panes.language.parse import parse
from panes.language.query_graph import read_graph
from panes.planning.terms import StreamOptions
from panes.process.opened import opened
from panes.process.running_query import RunningQuery
from panes.progress.draw import draw_dot, draw_mermaid, draw_tree
from panes.progress.optimise import optimise
from panes.progress.sliding_graph import SlidingGraph
from panes.windows.families import ends_of
from panes.windows.spec import Landmark, Sliding

EXAMPLE = "Example: panes explain busy.sql --input bids=bids.parquet"


def explain(
    queries: Annotated[
        list[str],
        typer.Argument(
            help="A file with the query text, or - for standard input. Several with --slides."
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", help="A stream, as name=path. Repeat it for several."),
    ] = None,
    timestamp_format: TimestampFormat = None,
    store: Store = None,
    run: Annotated[
        bool,
        typer.Option("--run", help="Also run the query, and print estimated and measured costs."),
    ] = False,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Also print what is inside: columns of partial results, algorithms, formulas.",
        ),
    ] = False,
    lateness: Annotated[
        str | None,
        typer.Option(help="With --run: read the files as streams with this lateness."),
    ] = None,
    slides: Annotated[
        Literal["text", "dot", "mermaid"] | None,
        typer.Option(help="Draw how the windows of several queries slide (the sliding graph)."),
    ] = None,
) -> None:
    """Show how a query is answered: its panes, what is stored, and how large that gets."""
    if lateness is not None and not run:
        raise OptionError(
            "--lateness says how the files are read, and without --run they are not", hint="--run"
        )
    if slides is not None:
        print(_sliding_graph(queries, slides))
        return
    if len(queries) > 1:
        raise OptionError(
            "panes explain takes one query at a time", hint="only --slides text takes several"
        )
    text = read_query(queries[0])
    streams_read = read_graph(text).streams
    sources = InputFiles.parse_all(
        inputs or (), timestamp_format, read=streams_read if run or inputs else None
    )
    if not run:
        streams = {s.name: next(iter(s.batches())) for s in sources}
        print(explain_text(text, store=store, details=details, **streams), end="")
        return
    terms = StreamOptions(
        lateness=read_lateness(lateness), max_ahead=None, bounded=lateness is None, store=store
    )
    asked = opened(text, terms)
    _warm_up(opened(text, terms), sources)
    for source in sources:
        for batch in source.batches():
            asked.push(**{source.name: batch})
    asked.finish()
    print(asked.explain(details=details), end="")


def _sliding_graph(files: list[str], how: str) -> str:
    """The sliding graph of several queries, optimised as the paper does it."""
    graph, measures = SlidingGraph(), set()
    for file in files:
        window = parse(read_query(file)).window
        if window is None or not isinstance(window.spec, Sliding | Landmark):
            raise OptionError(f"the windows of {file} have no fixed SLIDE, so they cannot be drawn")
        graph.add(Path(file).stem, ends_of(window.spec))
        measures.add(window.measure)
    optimise(graph)
    draw = {"text": draw_tree, "dot": draw_dot, "mermaid": draw_mermaid}[how]
    return draw(graph, format_duration if measures == {"time"} else str)


def _warm_up(asked: RunningQuery, sources: list[InputFiles]) -> None:
    """A few rows first, so that the loading of compiled loops is not taken for work."""
    for source in sources:
        for _, batch in zip(range(2), source.batches(), strict=False):
            asked.push(**{source.name: batch.slice(0, 100)})
    asked.finish()
