"""Text that Spark would read by the clock, as it is written and as a value: no engine does."""

from __future__ import annotations

import pyarrow as pa

ROWS = pa.table({
    "row": [1],
    "words": ["now"],
    "s": ["12:34:56"],
    "ok": ["2020-01-02 03:04:05"],
    "ts": pa.array([0], pa.timestamp("us", "UTC")),
    "d": pa.array([0], pa.date32()),
    "list": [["12:34"]],
})  # fmt: skip
WRITTEN = (
    "TIMESTAMP 'now'", "DATE 'today'", "CAST(' Tomorrow ' AS DATE)", "TIMESTAMP 'epoch'",
    "to_timestamp('now')", "to_date('yesterday')", "try_cast('now' AS TIMESTAMP)", "hour('12:34')",
    "TIMESTAMP '12:34:56'", "TIMESTAMP 'T12'", "try_to_timestamp('12:34')", "ts < 'now'",
    "'tomorrow' > d", "date_trunc('hour', 'now UTC')", "coalesce(ts, 'now')", "ts IN ('12:34')",
    "ts BETWEEN 'epoch' AND '2020-01-01'", "CASE WHEN ts IS NULL THEN '12:34' ELSE ts END",
)  # fmt: skip
ERRORS = (
    "CAST(s AS TIMESTAMP)", "to_timestamp(s)", "hour(s)", "ts < s", "s >= ts", "ts IN (s)",
    "if(ts IS NULL, ts, s)", "extract(HOUR FROM s)", "CAST(words AS TIMESTAMP)",
    "CAST(concat('n', 'ow') AS TIMESTAMP)", "CAST(list AS ARRAY<TIMESTAMP>)", "to_date(words)",
    "CAST(list[0] AS TIMESTAMP)", "timestampadd(HOUR, 1, s)", "CAST(words AS DATE)",
)  # fmt: skip
NULLS = (
    "try_cast(s AS TIMESTAMP)", "try_to_timestamp(s)", "try_cast(words AS TIMESTAMP)",
    "try_cast(list[0] AS TIMESTAMP)", "try_cast(concat('n', 'ow') AS TIMESTAMP)",
    "try_cast(words AS DATE)",
)  # fmt: skip
FINE = {
    "CAST(ok AS TIMESTAMP)": 1577934245000000,
    "to_timestamp('2020-01-02', 'yyyy-MM-dd')": 1577923200000000,
    "hour(ok)": 3,
    "ts < ok": True,
    "s = 'now'": False,
    "concat(words, ' and then')": "now and then",
    "date_format(ts, 'yyyy')": "1970",
}
