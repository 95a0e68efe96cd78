"""Who may read a page, what the server sends, and what a slow reader costs."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

import pytest

import panes
from panes.errors import OptionError
from panes.live.feed import Look
from panes.live.query_feed import QueryFeed
from panes.live.server import LiveServer
from panes.live.snapshot import Snapshot
from tests.live.streams import TEXT, ask, bids
from tests.support import open_query


@pytest.fixture
def page() -> Iterator[panes.LivePage]:
    query = open_query(TEXT, lateness=5)
    with panes.live(query) as page:
        query.push(bids=bids([1, 3, 12, 25]))
        yield page


def test_the_address_gives_the_page_and_scripts_read_the_snapshot(page: panes.LivePage) -> None:
    status, headers, body = ask(page.url, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"<title>panes live</title>" in body
    status, headers, shown = ask(page.url)
    assert (status, shown["version"], shown["counts"]["rows"]) == (200, 1, 4)
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/api/snapshot", "/api/queries", "/nothing"])
@pytest.mark.parametrize("token", ["", "wrong"])
def test_without_the_token_there_is_nothing(page: panes.LivePage, path: str, token: str) -> None:
    status, _, body = ask(page.url, path, token=token)
    assert (status, body) == (403, {"said": "the address lacks its token"})


def test_the_token_may_come_in_a_header(page: panes.LivePage) -> None:
    token = urlsplit(page.url).query.partition("=")[2]
    assert ask(page.url, token="", Authorization=f"Bearer {token}")[0] == 200
    assert ask(page.url, token=token, Authorization="Bearer wrong")[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", ""])
def test_another_name_for_this_machine_is_refused(page: panes.LivePage, host: str) -> None:
    """A page of another site, whose name was pointed at 127.0.0.1, can send it no request."""
    assert ask(page.url, Host=host)[0] == 421
    assert ask(page.url, "/main.js", Host=host)[0] == 421


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_another_origin_is_refused(page: panes.LivePage, origin: str) -> None:
    status, headers, _ = ask(page.url, Origin=origin)
    assert status == 403
    assert not [name for name in headers if name.lower().startswith("access-control")]


def test_the_page_may_load_and_ask_nothing_but_its_own(page: panes.LivePage) -> None:
    for path in ("/", "/main.js", "/live.css", "/api/snapshot"):
        _, headers, _ = ask(page.url, path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_the_page_is_text_nodes_and_loads_nothing_from_elsewhere(page: panes.LivePage) -> None:
    files = list((resources.files("panes.live") / "page").iterdir())
    assert len(files) > 8
    for file in files:
        text = file.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)
        assert not re.search(r"https?://", text), file.name
        path = "/" if file.name == "index.html" else f"/{file.name}"
        assert ask(page.url, path)[0] == 200, f"{file.name} is not served"


def test_no_file_beside_the_page_is_served(page: panes.LivePage) -> None:
    for path in ("/../server.py", "/page/main.js", "/%2e%2e/server.py", "//etc/passwd"):
        assert ask(page.url, path)[0] == 404


def test_only_loopback_is_listened_on(page: panes.LivePage) -> None:
    assert urlsplit(page.url).hostname == "127.0.0.1"
    port = urlsplit(page.url).port
    assert port is not None
    with socket.socket() as other:
        other.settimeout(2)
        assert other.connect_ex(("127.0.0.2", port)) != 0


def test_after_it_is_closed_nothing_answers_and_nobody_watches() -> None:
    query = open_query(TEXT, lateness=5)
    page = panes.live(query)
    port = urlsplit(page.url).port or 0
    page.close()
    with socket.socket() as other:
        assert other.connect_ex(("127.0.0.1", port)) != 0
    assert query.watcher is None


def test_a_connection_that_was_kept_open_ends_with_the_page() -> None:
    """Browsers ask again on the same connection: that must not be served by what is closed."""
    page = panes.live(open_query(TEXT, lateness=5))
    parts = urlsplit(page.url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    connection.request("GET", f"/api/snapshot?{parts.query}")
    assert connection.getresponse().read()
    page.close()
    assert connection.sock.recv(1) == b""
    connection.close()


def test_a_port_that_is_taken_is_refused_in_words(page: panes.LivePage) -> None:
    query = open_query(TEXT, lateness=5)
    with pytest.raises(OptionError, match=r"cannot be used for a live page"):
        panes.live(query, port=urlsplit(page.url).port or 0)
    assert query.watcher is None, "nobody would ever end to watch it"


@pytest.mark.parametrize("port", [-1, 65_536, True, "80", 1.5])
def test_a_port_that_does_not_exist_is_refused_in_words(port: Any) -> None:
    with pytest.raises(OptionError, match="whole number from 0 to 65535"):
        panes.live(open_query(TEXT, lateness=5), port=port)


@pytest.mark.parametrize("token", ["", b"secret", 5])
def test_a_token_that_anyone_could_leave_out_is_refused(token: Any) -> None:
    with pytest.raises(OptionError, match="at least one character"):
        panes.live(open_query(TEXT, lateness=5), token=token)


def test_browsers_leave_the_usual_port_out_of_the_host(page: panes.LivePage) -> None:
    server = page._server
    assert not server.is_own_host("localhost")
    server.port = 80
    assert [server.is_own_host(h) for h in ("localhost", "127.0.0.1", "evil.example", "")] == [
        *(True, True, False, False)
    ]


def test_two_pages_of_one_query_both_go_on() -> None:
    query = open_query(TEXT, lateness=5)
    with panes.live(query) as one:
        with panes.live(query) as two, panes.live(query) as three:
            query.push(bids=bids([1, 30]))
            assert [ask(p.url)[2]["counts"]["rows"] for p in (one, two, three)] == [2, 2, 2]
        query.push(bids=bids([31]))
        assert [ask(one.url)[2]["counts"]["rows"]] == [3]
    assert query.watcher is None


def test_two_pages_of_one_register_both_go_on() -> None:
    reg = panes.register("bids", lateness=5)
    reg.add("q", TEXT)
    with panes.live(reg) as one, panes.live(reg) as two:
        reg.push(bids([1, 30]))
        assert [ask(p.url)[2]["counts"]["rows"] for p in (one, two)] == [2, 2]
    assert reg.watcher is None


def test_a_page_that_is_closed_shows_nothing_more() -> None:
    query = open_query(TEXT, lateness=5)
    page = panes.live(query)
    page.close()
    page.close()
    with pytest.raises(OptionError, match="the live page is closed"):
        page.show(query)
    assert query.watcher is None


def test_only_a_register_can_be_edited(page: panes.LivePage) -> None:
    query = open_query(TEXT, lateness=5)
    with pytest.raises(OptionError, match="edit=True is for a register"):
        panes.live(query, edit=True)
    assert query.watcher is None
    reg = panes.register("bids", lateness=5)
    with panes.live(reg, edit=True) as edited:
        edited.show(query)
        asked = {"name": "a", "text": TEXT}
        status, _, said = ask(edited.url, "/api/queries", method="POST", body=asked)
        assert (status, said["said"]) == (403, "queries cannot be changed from this page")


def test_a_snapshot_that_fails_is_told() -> None:
    class Failing(Counting):
        def snapshot(self, look: Look) -> Snapshot:
            raise RuntimeError(f"nothing to see {look.answers}")

    server = LiveServer(Failing())
    try:
        status, _, said = ask(server.url)
        assert (status, said["said"]) == (500, "no snapshot could be taken: nothing to see ")
    finally:
        server.close()


def test_the_same_address_shows_the_next_query(page: panes.LivePage) -> None:
    before = ask(page.url)[2]
    again = open_query(TEXT, lateness=5)
    page.show(again, title="again")
    after = ask(page.url)[2]
    assert after["run"] != before["run"]
    assert (after["title"], after["status"]) == ("again", "waiting")


class Counting:
    """A feed that counts how often it was looked at."""

    can_edit = False

    def __init__(self) -> None:
        self.looks = 0
        self._feed = QueryFeed(open_query(TEXT, lateness=5))

    def snapshot(self, look: Look) -> Snapshot:
        self.looks += 1
        return self._feed.snapshot(look)

    def detach(self) -> None:
        self._feed.detach()


def test_several_pages_cost_what_one_does() -> None:
    clock = [0.0]
    feed = Counting()
    server = LiveServer(feed, now=lambda: clock[0])
    try:
        for _ in range(5):
            server.snapshot(Look())
        assert feed.looks == 1
        clock[0] += 1
        server.snapshot(Look())
        assert feed.looks == 2
    finally:
        server.close()


def test_a_page_that_does_not_read_makes_nobody_wait() -> None:
    """Pushes go on while a reader has asked and takes nothing in; what it missed is not kept."""
    query = open_query(TEXT, lateness=5)
    with panes.live(query) as page:
        parts = urlsplit(page.url)
        with socket.create_connection(("127.0.0.1", parts.port or 0)) as slow:
            asked = f"GET /api/snapshot?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n"
            slow.sendall(asked.encode() * 200)
            for start in range(0, 2_000, 10):
                query.push(bids=bids([start, start + 5]))
            assert ask(page.url)[2]["counts"]["rows"] == 400


def test_hostile_names_and_keys_travel_as_plain_json() -> None:
    evil = '</script><img src=x onerror="alert(1)">'
    rows = bids([1, 30]).set_column(1, evil, [[evil, evil]])
    named = f"`{evil}`"
    text = f"SELECT {named}, count(*) AS n FROM bids [TUMBLING 10 WATTR at] GROUP BY {named}"
    query = open_query(text, lateness=0)
    with panes.live(query, title=evil) as page:
        query.push(bids=rows)
        status, headers, shown = ask(page.url)
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert shown["title"] == evil
        assert evil in shown["answers"]["columns"]
        assert shown["answers"]["rows"][0][2] == evil
        page_html = ask(page.url, "/")[2]
        assert evil.encode() not in page_html
    assert "onerror=&quot;" not in page._repr_html_()
