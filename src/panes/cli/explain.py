"""`panes explain`: how a query would be answered, and what it costs if it is."""

from __future__ import annotations

from typing import Annotated

import typer

from panes.api import explain as explain_text
from panes.cli.files import Source
from panes.cli.run import QueryFile, Store, read_lateness, read_query
from panes.engine.stream import OpenQuery
from panes.engine.terms import Run
from panes.frames import require_streams

EXAMPLE = "Example: panes explain busy.sql --input packets=packets.parquet"


def explain(
    query: QueryFile,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", help="A stream: name=path.")
    ] = None,
    store: Store = None,
    run: Annotated[
        bool, typer.Option("--run", help="Answer it, and tell estimated and measured costs.")
    ] = False,
    lateness: Annotated[
        str | None, typer.Option(help="With --run: the files are streams whose rows come late.")
    ] = None,
) -> None:
    """Show panes per window, partial columns, kernels and state size, and why."""
    sources = [Source.parse(text) for text in inputs or []]
    text = read_query(query)
    if not run:
        streams = {s.name: next(iter(s.batches())) for s in sources}
        print(explain_text(text, store=store, **streams), end="")
        return
    terms = Run(
        lateness=read_lateness(lateness), max_ahead=None, bounded=lateness is None, store=store
    )
    asked = OpenQuery(text, terms)
    require_streams(asked.query, {s.name: s for s in sources})
    _warm_up(OpenQuery(text, terms), sources)
    for source in sources:
        for batch in source.batches():
            asked.push(**{source.name: batch})
    asked.finish()
    print(asked.explain(), end="")


def _warm_up(asked: OpenQuery, sources: list[Source]) -> None:
    """A few rows first, so that the loading of compiled loops is not taken for work."""
    for source in sources:
        for _, batch in zip(range(2), source.batches(), strict=False):
            asked.push(**{source.name: batch.slice(0, 100)})
    asked.finish()
