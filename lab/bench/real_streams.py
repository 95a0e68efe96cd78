"""All stores over two recorded streams with real disorder, held to `panes bench stores`'s bars.

    python -m lab.bench.real_streams FOLDER

FOLDER has ``flights.parquet`` (departures, in the order of landing) and ``earthquakes.parquet``
(events, in the order of their last update). They are not part of the project.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq

from lab.bench.measure import Report
from lab.bench.stores import Workload, compared

FLIGHTS = (
    "origin, count(*) AS n FROM s [RANGE 1 hour SLIDE 10 minutes WATTR departed] GROUP BY origin",
    "dest, avg(distance) AS a, max(distance) AS m FROM s [RANGE 6 hours SLIDE 1 hour "
    "WATTR departed] GROUP BY dest",
    "origin, dest, count(*) AS n FROM s [RANGE 1 day SLIDE 1 hour WATTR departed] "
    "GROUP BY origin, dest",
    "dest, median(distance) AS m FROM s [RANGE 12 hours SLIDE 1 hour WATTR departed] GROUP BY dest",
    "carrier, sum(distance) AS d FROM s [TUMBLING 1 day WATTR departed] GROUP BY carrier",
    "dest, max(distance) AS m FROM s [RANGE 90 minutes SLIDE 40 minutes WATTR departed] "
    "GROUP BY dest",
)
EARTHQUAKES = (
    "count(*) AS n, max(mag) AS m FROM s [RANGE 1 day SLIDE 1 hour WATTR at]",
    "net, count(*) AS n, max(mag) AS m FROM s [RANGE 6 hours SLIDE 1 hour WATTR at] GROUP BY net",
)


def main(folder: Path) -> int:
    """Compare the stores on every query; 1 if a bar is not met."""
    report = Report("real-streams", "python -m lab.bench.real_streams FOLDER")
    asked = {("flights", "11 hours"): FLIGHTS, ("earthquakes", "7 days"): EARTHQUAKES}
    for (name, lateness), queries in asked.items():
        table = pq.read_table(folder / f"{name}.parquet")
        for query in queries:
            load = Workload(f"{name}: {query}", f"SELECT {query}", table, lateness)
            compared(report, load, 5, lambda said: print(said, file=sys.stderr))  # noqa: T201
    for what, measured, met in report.bars:
        print(f"{'met   ' if met else 'MISSED'} {measured:>7}  {what}")  # noqa: T201
    return 0 if all(met for _, _, met in report.bars) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
