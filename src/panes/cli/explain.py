"""`panes explain`: how a query would be answered."""

from __future__ import annotations

from typing import Annotated

import typer

from panes.api import explain as explain_text
from panes.cli.files import Source
from panes.cli.run import QueryFile, read_query

EXAMPLE = "Example: panes explain busy.sql --input packets=packets.parquet"


def explain(
    query: QueryFile,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", help="A stream: name=path.")
    ] = None,
) -> None:
    """Show panes per window, partial columns, kernels and state size, and why."""
    sources = [Source.parse(text) for text in inputs or []]
    streams = {s.name: next(iter(s.batches())) for s in sources}
    print(explain_text(read_query(query), **streams), end="")
