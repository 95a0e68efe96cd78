"""A live page beside a running query: its address, and what it shows."""

from __future__ import annotations

import time
from html import escape
from threading import Event
from types import TracebackType

from panes.errors import OptionError
from panes.live.feed import Feed
from panes.live.query_feed import QueryFeed
from panes.live.register_feed import RegisterFeed
from panes.process.register import Register
from panes.process.running_query import OpenGraph, OpenJoin, OpenQuery

_GLANCE = 0.2


class LivePage:
    """A page in the browser, served by this process until it is closed or the process ends.

    `show` lets the same address show another query, for example after a restart. It can be used
    in a ``with`` block.
    """

    def __init__(
        self, feed: Feed, *, port: int = 0, token: str | None = None, edit: bool = False
    ) -> None:
        self._feed, self._edit = feed, edit
        from panes.live.server import LiveServer  # HTTP is loaded where it is used

        try:
            if edit and not feed.can_edit:
                raise OptionError("edit=True is for a register: one query cannot be changed")
            self._server = LiveServer(feed, port=port, token=token)
        except OptionError:
            feed.detach()
            raise
        self._is_closed = False

    @property
    def url(self) -> str:
        """The address to open; whoever knows it may look, on this machine."""
        return self._server.url

    def show(self, query: object, *, title: str = "") -> None:
        """Show another query from now on; open pages notice."""
        self.show_feed(feed_of(query, title, edit=self._edit))

    def show_feed(self, feed: Feed) -> None:
        """The same of what is not a query in this process."""
        if self._is_closed:
            feed.detach()
            raise OptionError("the live page is closed", hint="open another: panes.live(query)")
        before, self._feed = self._feed, feed
        self._server.feed = feed
        before.detach()

    def wait(self, seconds: float, *, stop: Event | None = None) -> None:
        """Return once nobody has looked at the page for so many seconds, or `stop` is set."""
        stop = Event() if stop is None else stop
        until = time.monotonic() + seconds
        while (left := max(until, self._server.asked_at + seconds) - time.monotonic()) > 0:
            if stop.wait(min(left, _GLANCE)):
                return

    def close(self) -> None:
        """Serve the page no longer, and watch the query no longer."""
        if self._is_closed:
            return
        self._is_closed = True
        self._server.close()
        self._feed.detach()

    def __enter__(self) -> LivePage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<live page at {self.url}>"

    def _repr_html_(self) -> str:
        url = escape(self.url, quote=True)
        return f'<a href="{url}" target="_blank" rel="noopener noreferrer">live page</a>'


def feed_of(query: object, title: str = "", *, edit: bool = False) -> Feed:
    """What gives snapshots of a query or register in this process."""
    if isinstance(query, OpenQuery | OpenJoin):
        return QueryFeed(query, title)
    if isinstance(query, Register):
        return RegisterFeed(query, title, can_edit=edit)
    if isinstance(query, OpenGraph):
        raise OptionError(
            "a live page shows the windows of one query, and this one has queries inside",
            hint="a register shows its answers: reg = panes.register(...), reg.add(name, text), "
            "panes.live(reg); or on the command line: panes register FOLDER --live",
        )
    raise OptionError(
        f"a live page shows a query that runs in this process, got {type(query).__name__}",
        hint="panes.live(panes.open(...)) or panes.live(panes.register(...)); "
        "for a Spark stream, panes.spark.live(streaming_query)",
    )
