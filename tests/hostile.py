"""What strangers write: expressions that reach for more than a row, and names of any characters."""

from __future__ import annotations

# Everything that may stand for an expression, and every place where one may stand.
ATTACKS = {
    "subquery": "(SELECT content FROM read_text('secret.txt'))",
    "subquery in a call": "upper((SELECT item FROM read_text('secret.txt') AS t(x, item)))",
    "exists": "EXISTS (SELECT * FROM read_text('secret.txt'))",
    "in": "1 IN (SELECT 1 FROM read_text('secret.txt'))",
    "table function": "read_text('secret.txt')",
    "name of an argument": "struct_pack(`a := 1).a || (SELECT content FROM read_text('secret.txt'))"
    " || struct_pack(b` => 1)",
    "unit": "extract(`YEAR FROM NOW()) FROM BATCH; COPY (SELECT 42) TO 'written.csv'; SELECT (1`"
    " FROM moment)",
    "type": "CAST(price AS `INT) FROM batch; COPY (SELECT 42) TO 'written.csv'; SELECT (1`)",
    "function in backticks": "`pi(); COPY (SELECT 42) TO 'written.csv'; SELECT upper`('x')",
    "java": "java_method('java.lang.Runtime', 'getRuntime')",
    "reflection": "reflect('java.util.UUID', 'randomUUID')",
    "setting": "current_setting('home_directory')",
    "clock": "now()",
    "clock without parentheses": "current_timestamp",
    "clock by default": "unix_timestamp()",
    "chance": "random()",
    "uuid": "uuid()",
    "generator": "explode(array(1, 2))",
    "ranking": "rank() OVER (ORDER BY price)",
    "rows before": "lag(price) OVER (ORDER BY at)",
    "variable": "@@version",
    "parameter": ":name",
    "unknown function": "system('ls')",
    "function of elements that makes more": "transform(array(1), x -> x + 1)",
    "function inside of a function": "filter(array(1), x -> exists(array(2), y -> y > x))",
    "fold that grows": "aggregate(array(1, 2), 'a', (a, x) -> a || a)",
    "function where none belongs": "upper(x -> x)",
    "parameter of any characters": "filter(array(1), `x) FROM batch; --` -> true)",
}
PLACES = {
    "argument": "SELECT max({}) AS n FROM bids [TUMBLING 10 WATTR at]",
    "filter": "SELECT count(*) FILTER (WHERE {} IS NULL) AS n FROM bids [TUMBLING 10 WATTR at]",
    "where": "SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR at] WHERE {} IS NULL",
    "key": "SELECT count(*) AS n FROM bids [TUMBLING 10 WATTR at] GROUP BY {}",
    "selected key": "SELECT {} AS k, count(*) AS n FROM bids [TUMBLING 10 WATTR at] GROUP BY 1",
    "output": "SELECT max(price) + {} AS n FROM bids [TUMBLING 10 WATTR at]",
    "having": "SELECT max(price) AS n FROM bids [TUMBLING 10 WATTR at] HAVING {} IS NULL",
    "per row": "SELECT item, {} AS n FROM bids [RANGE 10 RATTR at SLIDE 1 ROW]",
    "inner column": "SELECT count(*) AS n FROM (SELECT at, {} AS x FROM bids)"
    " [TUMBLING 10 WATTR at] GROUP BY x",
    "inner where": "SELECT count(*) AS n FROM (SELECT * FROM bids WHERE {} IS NULL)"
    " [TUMBLING 10 WATTR at]",
}  # fmt: skip

HOSTILE_NAMES = (
    "\0",
    '"',
    "'",
    "`",
    "\n",
    ";--",
    "*/",
    "a b",
    "a.b",
    "\\",
    '"; SELECT 1; --',
    "ünïcode",
    "%s",
)
