"""A register of five queries over joins of two small streams, of which three share a join."""

from __future__ import annotations

import pyarrow as pa

import panes

BAND = "FROM l [RANGE 3 WATTR at], r [RANGE 3 WATTR at] WHERE l.k = r.k"
QUERIES = {
    "pairs": f"SELECT l.id, r.x {BAND}",
    "dear": f"SELECT l.id, r.x {BAND} AND r.x > 5",
    "counted": f"SELECT r.x, count(*) AS n [TUMBLING 5 WATTR l.at] {BAND} GROUP BY r.x",
    "windows": "SELECT l.id, r.x FROM l LEFT JOIN r ON l.k = r.k [TUMBLING 5 WATTR at]",
    "spent": "SELECT l.id, l.at, sum(r.x) AS s FROM l LEFT JOIN r "
    "ON l.k = r.k AND r.at BETWEEN l.at - 5 AND l.at GROUP BY l.id, l.at",
}
LEFT = pa.table({"at": [1, 5, 9, 12], "k": [1, 2, 1, 3], "id": [0, 1, 2, 3]})
RIGHT = pa.table({"at": [2, 4, 9, 11], "k": [1, 2, 1, 1], "x": [5, 6, 0, 8]})


def registered() -> panes.JoinRegister:
    reg: panes.JoinRegister = panes.register(("l", "r"), lateness=0)
    for name, text in QUERIES.items():
        reg.add(name, text)
    return reg


def require_whole_windows() -> None:
    """A window that misses rows is not answered."""
    text = "SELECT count(*) AS n [TUMBLING 100 WATTR l.at] FROM l JOIN r ON r.at = l.at"
    reg = panes.register(("l", "r"), lateness=0)
    reg.add("first", text)
    some = pa.table({"at": [1, 2]})
    reg.push(l=some, r=some)
    assert reg.add("second", text).exact_from == 100
    more = pa.table({"at": [3, 120]})
    given = [reg.push(l=more, r=more), reg.finish()]
    counts = {
        name: [n for answers in given for n in answers[name]["n"].to_pylist()]
        for name in ("first", "second")
    }
    assert counts == {"first": [3, 1], "second": [1]}
