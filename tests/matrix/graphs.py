"""The queries that every host is asked: a line each, from one window to graphs of several nodes.

A line says what it needs of a host. What a host lacks is in `hosts`, where it is a word less once
the host can do it.
"""

from __future__ import annotations

from dataclasses import dataclass

from panes.language.query_graph import read_graph


@dataclass(frozen=True)
class Graph:
    """A query over the streams `s` and `u`, and what a host needs for it."""

    name: str
    text: str
    needs: frozenset[str] = frozenset()

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return read_graph(self.text).streams


def _graph(name: str, text: str, *needs: str) -> Graph:
    return Graph(name, text, frozenset(needs))


PEAKS = "SELECT k, max(v) AS m, count(*) AS n FROM s [TUMBLING 10 WATTR at] GROUP BY k"
LONG = "SELECT k, avg(v) AS a, stddev_pop(v) AS d FROM s [RANGE 40 SLIDE 10 WATTR at] GROUP BY k"
OTHERS = "SELECT k, count(*) AS n FROM u [RANGE 20 SLIDE 10 WATTR at] GROUP BY k"
NEAR = "s.k = u.k AND u.at BETWEEN s.at - 3 AND s.at + 5"
MOVED = "(SELECT at, k, v FROM s WHERE v > 3 UNION ALL SELECT at + 4 AS at, k, v FROM s)"

GRAPHS = (
    _graph("sliding", "SELECT k, sum(v) AS t, median(v) AS m FROM s [RANGE 20 SLIDE 10 WATTR at] "
           "WHERE v > 1 GROUP BY k HAVING count(*) > 1"),
    _graph("sampling", "SELECT count(*) AS n, max(id) AS i FROM s [RANGE 3 SLIDE 10 WATTR at]"),
    _graph("landmark", "SELECT k, count(*) AS n, sum(v) AS t FROM s [RANGE ALL SLIDE 10 WATTR at] "
           "GROUP BY k", "landmark"),
    _graph("per row", "SELECT id, at, sum(v) AS t FROM s [RANGE 12 RATTR at SLIDE 1 ROW PA k]",
           "per row"),
    _graph("set", "SELECT DISTINCT k FROM s [TUMBLING 10 WATTR at] WHERE v > 4", "set"),
    _graph("union", "SELECT k, count(*) AS n FROM (s UNION ALL u) [RANGE 20 SLIDE 10 WATTR at] "
           "GROUP BY k", "union"),
    _graph("select", "SELECT w, count(*) AS n FROM (SELECT at + 2 AS at, k * v AS w FROM s "
           "WHERE v > 2) [TUMBLING 10 WATTR at] GROUP BY w", "select"),
    _graph("distinct", "SELECT count(*) AS n FROM (SELECT DISTINCT at, k FROM s) "
           "[RANGE 20 SLIDE 10 WATTR at]", "select", "distinct"),
    _graph("split and united", f"SELECT k, count(*) AS n FROM {MOVED} [TUMBLING 10 WATTR at] "
           "GROUP BY k", "union", "select"),
    _graph("selects in each other", "WITH a AS (SELECT at + 1 AS at, k, 10 * v AS v FROM s WHERE "
           "v > 1 UNION ALL SELECT at, k, v FROM s), b AS (SELECT DISTINCT at, k, v % 7 AS v FROM "
           "(SELECT * FROM u WHERE v <> 0) WHERE 10 / v > 1), c AS (SELECT * FROM b WHERE v > 1) "
           "SELECT k, sum(w) AS t FROM (SELECT at + 2 AS at, k, v + 1 AS w FROM a WHERE v < 60 "
           "UNION ALL SELECT at, k, v AS w FROM c) [RANGE 20 SLIDE 10 WATTR at] GROUP BY k",
           "union", "select", "distinct"),
    _graph("band join", f"SELECT s.id AS i, u.id AS j FROM s LEFT JOIN u ON {NEAR}", "join"),
    _graph("anti join", f"SELECT s.id AS i FROM s ANTI JOIN u ON {NEAR} AND u.v < s.v",
           "join"),
    _graph("window join", "SELECT s.id AS i, u.id AS j FROM s FULL JOIN u ON s.k = u.k "
           "[RANGE 20 SLIDE 10 WATTR at]", "join"),
    _graph("as of", "SELECT s.id AS i, u.id AS j FROM s ASOF LEFT JOIN u [RANGE 9 WATTR at] "
           "ON s.k = u.k", "join"),
    _graph("windows above a join", "SELECT s.k, count(*) AS n, sum(u.v) AS t "
           f"[RANGE 20 SLIDE 10 WATTR s.at] FROM s JOIN u ON {NEAR} GROUP BY s.k", "join"),
    _graph("windows over windows", f"SELECT k, avg(m) AS a, sum(n) AS n FROM ({PEAKS}) "
           "[RANGE 40 SLIDE 20] GROUP BY k", "nested"),
    _graph("three levels", "SELECT count(*) AS c, max(a) AS a FROM (SELECT k, avg(m) AS a FROM "
           f"({PEAKS}) [TUMBLING 20] GROUP BY k) [RANGE 60 SLIDE 20 WATTR window_end]", "nested"),
    _graph("named", f"WITH p AS ({PEAKS}), q AS (SELECT k, m + 1 AS m, window_end FROM p "
           "WHERE m > 2) SELECT count(*) AS n, max(m) AS m FROM q [RANGE 60 SLIDE 20 WATTR "
           "window_end]", "nested"),
    _graph("selects of selects of windows", f"WITH p AS ({PEAKS}), q AS (SELECT * FROM p WHERE "
           "m > 1), r AS (SELECT k, m + 1 AS m, window_end - 1 AS e FROM q), x AS (SELECT k, 2 * m "
           "AS m, e - 2 AS e FROM r WHERE k < 3 UNION ALL SELECT k, m, e FROM r) SELECT k, sum(m) "
           "AS m FROM (SELECT * FROM x WHERE m <> 4) [RANGE 40 SLIDE 20 WATTR e] GROUP BY k",
           "nested", "union"),
    _graph("per row over windows", f"SELECT k, m, window_end, sum(n) AS t FROM ({PEAKS}) "
           "[RANGE 30 RATTR window_end SLIDE 1 ROW]", "nested", "per row"),
    _graph("z-score", "SELECT a.k AS k, a.window_end AS e, (a.m - b.a) / b.d AS z FROM "
           f"({PEAKS}) a JOIN ({LONG}) b ON a.k = b.k AND a.window_end = b.window_end "
           "WHERE b.d > 0", "nested", "join"),
    _graph("join of windows", f"SELECT a.k AS k, a.m AS m, b.n AS n FROM ({PEAKS}) a LEFT JOIN "
           f"({OTHERS}) b ON a.k = b.k AND b.window_end BETWEEN a.window_end AND a.window_end + 10",
           "nested", "join"),
    _graph("a stream and windows", f"SELECT s.id AS i, b.n AS n FROM s JOIN ({OTHERS}) b "
           "ON s.k = b.k AND b.window_end <= s.at AND b.window_end > s.at - 10", "nested", "join"),
    _graph("windows over a join of windows", "SELECT count(*) AS c, sum(n) AS n FROM (SELECT "
           f"a.window_end AS e, b.n AS n FROM ({PEAKS}) a JOIN ({OTHERS}) b ON a.k = b.k AND "
           "a.window_end = b.window_end) [TUMBLING 20 WATTR e]", "nested", "join"),
    _graph("windows over a join", "SELECT k, count(*) AS c FROM (SELECT s.k AS k, s.at AS at FROM "
           f"s JOIN u ON {NEAR}) [RANGE 20 SLIDE 10 WATTR at] GROUP BY k", "nested", "join"),
    _graph("union of windows and rows", f"SELECT count(*) AS c, sum(m) AS m FROM (SELECT DISTINCT "
           f"m, window_end FROM ({PEAKS}) UNION ALL SELECT v AS m, at AS window_end FROM u) "
           "[TUMBLING 20 WATTR window_end]", "nested", "union"),
)  # fmt: skip
