"""A small stream with late rows, and a look at a page as a script takes it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

TEXT = (
    "SELECT item, count(*) AS n, max(price) AS high FROM bids [RANGE 40 SLIDE 10 WATTR at] "
    "GROUP BY item"
)


def bids(at: list[int] | list[int | None], item: str = "a") -> pa.Table:
    """Bids at these positions; one without a position is rejected."""
    price = [0.0 if t is None else float(t) for t in at]
    return pa.table({"at": pa.array(at, pa.int64()), "item": [item] * len(at), "price": price})


def ask(
    url: str,
    path: str = "/api/snapshot",
    *,
    method: str = "GET",
    token: str | None = None,
    body: object = None,
    of: str = "",
    **headers: str,
) -> tuple[int, dict[str, str], Any]:
    """Status, headers and body of a request to the server of a page."""
    parts = urlsplit(url)
    given = parts.query.partition("=")[2] if token is None else token
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    try:
        data = None if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"Content-Type": "application/json"} if data is not None else {}
        connection.request(method, f"{path}?token={given}&of={of}", data, sent | named)
        reply = connection.getresponse()
        content = reply.read()
        is_json = reply.headers.get_content_type() == "application/json"
        return reply.status, dict(reply.headers), json.loads(content) if is_json else content
    finally:
        connection.close()


def once(url: str, holds: Callable[[Any], bool], of: str = "") -> Any:
    """The first snapshot of which something holds: a listener is told a moment after the batch."""
    for _ in range(600):
        shown = ask(url, of=of)[2]
        if holds(shown):
            return shown
    raise AssertionError("it never held")
