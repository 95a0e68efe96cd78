"""The server of a live page: loopback only, one token, and nothing that a page elsewhere can read.

It is Python's own HTTP server in a thread of its own. A snapshot is taken when it is asked for and
kept for a moment, so several pages cost what one does; nothing is sent that nobody asked for, so a
slow page gets fewer snapshots and never makes anyone wait.

What is refused, before anything is looked at:

- another name in the ``Host`` header than that of this machine: a page of another site whose name
  was pointed at 127.0.0.1 gets nothing;
- a request of another origin, and any without the token, except for the page's own files, which
  are the same everywhere and hold no data;
- anything but GET, and POST and DELETE of queries where the host allows it.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from socket import SHUT_RDWR
from threading import Lock, Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, quote, urlsplit

from panes.errors import OptionError, PanesError
from panes.live.feed import Feed, Look
from panes.planning.options import require_options

HOST = "127.0.0.1"
_NAMES = {HOST, "localhost"}
_UNSAID_PORT = 80
"""Browsers leave this port out of the ``Host`` header."""
_KEEP = 0.1
"""Seconds that a snapshot is given again."""
_MOST_BODY = 64_000
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/live.css": ("live.css", "text/css; charset=utf-8"),
    **{
        f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8")
        for name in (
            *("main", "axis_picture", "arrivals_picture", "charts", "sliding_graph"),
            *("tables", "format", "plot", "theme", "poll"),
        )
    },
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class LiveServer:
    """Serves the page and the snapshots of whatever `feed` is at the time."""

    def __init__(
        self,
        feed: Feed,
        *,
        port: int = 0,
        token: str | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        require_options(port=port, token=token)
        self.feed = feed
        self.token = secrets.token_urlsafe(24) if token is None else token
        self._now = now
        self._lock = Lock()
        self._kept: dict[Look, tuple[float, Feed, bytes]] = {}
        self.asked_at = 0.0
        handler = type("Handler", (_Handler,), {"live": self})
        try:
            self._http = _Server((HOST, port), handler)
        except OSError as error:
            raise OptionError(
                f"port {port} cannot be used for a live page: {error.strerror}",
                hint="leave out the port, and a free one is chosen",
            ) from None
        self.port = int(self._http.server_address[1])
        self._thread = Thread(
            target=self._http.serve_forever, args=(0.1,), name="panes-live", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return f"http://{HOST}:{self.port}/?token={quote(self.token, safe='')}"

    def close(self) -> None:
        """Serve no longer."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def snapshot(self, look: Look) -> bytes:
        """A snapshot as JSON, taken now or a moment ago."""
        with self._lock:
            at, feed, body = self._kept.get(look, (0.0, None, b""))
            if feed is not self.feed or self._now() - at > _KEEP:
                feed = self.feed
                body = feed.snapshot(look).as_json().encode()
                self._kept = {look: (self._now(), feed, body)}
            self.asked_at = time.monotonic()
        return body

    def is_own_host(self, given: str | None) -> bool:
        """Whether a request was made to this machine by a name of this machine."""
        names = {f"{name}:{self.port}" for name in _NAMES}
        return given in (names | _NAMES if self.port == _UNSAID_PORT else names)

    def knows(self, token: str) -> bool:
        """Whether it is the token, told in a time that does not depend on what was guessed."""
        return hmac.compare_digest(token.encode(), self.token.encode())


class _Server(ThreadingHTTPServer):
    """A thread for each connection; when it is closed, so are they: browsers keep them open."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: set[Any] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for request in list(self._open):
            with suppress(OSError):
                request.shutdown(SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away in the middle is nobody's error."""


class _Handler(BaseHTTPRequestHandler):
    live: ClassVar[LiveServer]
    protocol_version = "HTTP/1.1"
    server_version = "panes"
    sys_version = ""
    timeout = 30

    # Methods that http.server calls

    def do_GET(self) -> None:
        path = self._allowed()
        if path is None:
            return
        if path == "/api/snapshot":
            self._snapshot()
        else:
            self._say(HTTPStatus.NOT_FOUND, "there is no such page")

    def do_POST(self) -> None:
        self._edit("add")

    def do_DELETE(self) -> None:
        self._edit("remove")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged: the token is in the address."""

    # What is allowed

    def _allowed(self) -> str | None:
        """The path, if whoever asks may have it; otherwise the refusal has been sent."""
        url = urlsplit(self.path)
        origin = self.headers.get("Origin")
        if not self.live.is_own_host(self.headers.get("Host")):
            self._say(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
        elif origin is not None and origin != f"http://{self.headers['Host']}":
            self._say(HTTPStatus.FORBIDDEN, "pages of other sites may not read this")
        elif self.command == "GET" and url.path in _FILES and self._is_file(url.path):
            name, kind = _FILES[url.path]
            file = resources.files("panes.live") / "page" / name
            self._give(HTTPStatus.OK, file.read_bytes(), kind)
        elif not self.live.knows(self._token(url.query)):
            self._say(HTTPStatus.FORBIDDEN, "the address lacks its token")
        else:
            return url.path
        return None

    def _is_file(self, path: str) -> bool:
        """The page itself wants the token, to say so at once; what it loads holds no data."""
        return path != "/" or self.live.knows(self._token(urlsplit(self.path).query))

    def _token(self, query: str) -> str:
        kind, _, bearer = self.headers.get("Authorization", "").partition(" ")
        if kind == "Bearer":
            return bearer
        return parse_qs(query).get("token", [""])[0]

    def _snapshot(self) -> None:
        try:
            body = self.live.snapshot(self._look())
        except Exception as error:  # whatever it is, the page says it
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, f"no snapshot could be taken: {error}")
        else:
            self._give(HTTPStatus.OK, body, "application/json")

    def _look(self) -> Look:
        given = parse_qs(urlsplit(self.path).query)
        first = {name: values[0][:200] for name, values in given.items()}
        return Look(**{name: first.get(name, "") for name in ("answers", "queries", "of")})

    # Queries come and go

    def _edit(self, what: str) -> None:
        path = self._allowed()
        if path is None:
            return
        if path != "/api/queries" or not self.live.feed.can_edit:
            self._say(HTTPStatus.FORBIDDEN, "queries cannot be changed from this page")
            return
        try:
            asked = self._body()
            change = getattr(self.live.feed, what)
            change(**asked)
        except PanesError as error:
            self._say(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except (ValueError, TypeError):
            self._say(HTTPStatus.BAD_REQUEST, "a query is a JSON object with a name and a text")
        else:
            self._say(HTTPStatus.OK, "done")

    def _body(self) -> dict[str, str]:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 < length <= _MOST_BODY:
            raise ValueError(length)
        if self.headers.get_content_type() != "application/json":
            raise ValueError("not JSON")
        given: Any = json.loads(self.rfile.read(length))
        if not isinstance(given, dict) or not all(isinstance(v, str) for v in given.values()):
            raise TypeError("not a query")
        return given

    # What is sent

    def _say(self, status: HTTPStatus, words: str) -> None:
        self.close_connection = status >= HTTPStatus.BAD_REQUEST
        self._give(status, json.dumps({"said": words}).encode(), "application/json")

    def _give(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
