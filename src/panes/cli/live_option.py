"""``--live``: a page in the browser while a command runs, and after it while somebody looks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Event
from typing import Annotated

import typer

from panes.api import live as open_page
from panes.cli.show import say
from panes.live.live_page import LivePage

Live = Annotated[
    bool,
    typer.Option(
        "--live",
        help="Show the run in the browser. The address of the page is printed to stderr.",
    ),
]
LiveStay = Annotated[
    float,
    typer.Option(
        min=0,
        help="How many seconds the live page stays after the end once nobody looks at it. "
        "Ctrl-C ends it at once.",
    ),
]
STAY = 20.0


@contextmanager
def live_page(query: object, *, wanted: bool, stay: float, edit: bool = False) -> Iterator[None]:
    """A page beside a query of this process, if it is wanted, until nobody looks any more."""
    with staying(open_page(query, edit=edit), stay) if wanted else nullcontext():
        yield


@contextmanager
def staying(page: LivePage, stay: float, interrupted: Event | None = None) -> Iterator[LivePage]:
    """Tell the address; after the block, stay as long as somebody looks.

    Where Ctrl-C raises nothing but sets `interrupted`, the page ends by that.
    """
    interrupted = Event() if interrupted is None else interrupted
    with page:
        say(f"live page: {page.url}")
        yield page
        if stay and not interrupted.is_set():
            say("done; the live page stays while somebody looks at it. Ctrl-C ends it.")
        with suppress(KeyboardInterrupt):
            page.wait(stay, stop=interrupted)
