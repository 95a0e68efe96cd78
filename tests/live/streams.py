"""A small stream with late rows, and a look at a page as a script takes it."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

TEXT = (
    "SELECT item, count(*) AS n, max(price) AS high FROM bids [RANGE 40 SLIDE 10 WATTR at] "
    "GROUP BY item"
)


def bids(at: list[int], item: str = "a") -> pa.Table:
    """Bids at these positions."""
    return pa.table({"at": at, "item": [item] * len(at), "price": [float(t) for t in at]})


def ask(
    url: str,
    path: str = "/api/snapshot",
    *,
    method: str = "GET",
    token: str | None = None,
    body: object = None,
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
        connection.request(method, f"{path}?token={given}", data, sent | named)
        reply = connection.getresponse()
        content = reply.read()
        is_json = reply.headers.get_content_type() == "application/json"
        return reply.status, dict(reply.headers), json.loads(content) if is_json else content
    finally:
        connection.close()
