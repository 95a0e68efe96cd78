"""A driver of Spark that runs jobs until it is killed.

``python -m panes.crash.driver MASTER [MODULE]``, where a module may know more kinds of jobs.

It is told folders, one a line, each with a job in it. It says in the folder how the job goes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import panes.spark
from panes.crash.place import JobPlace
from panes.crash.written import read
from panes.errors import PanesError
from panes.spark.session import WARM_DAEMON

JOB = "job"
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def session(master: str) -> Any:
    """A small session; what it writes beside its checkpoint goes to the temporary folder."""
    scratch = tempfile.gettempdir()
    return panes.spark.session(
        master=master,
        spark__ui__enabled="false",
        spark__sql__shuffle__partitions="2",
        spark__driver__memory="1g",
        spark__driver__extraJavaOptions=f"{_QUICK} -Djava.io.tmpdir={scratch}",
        spark__executor__extraJavaOptions=_QUICK,
        spark__local__dir=scratch,
        spark__python__daemon__module=WARM_DAEMON,
        spark__task__maxFailures="20",
        spark__deploy__maxExecutorRetries="-1",
    )


def main() -> None:
    """Run the jobs of all folders that are named on standard input."""
    spark = session(sys.argv[1])
    spark.range(2).mapInArrow(lambda rows: rows, "id long").count()  # lets the daemon start, too
    for line in sys.stdin:
        place = JobPlace(Path(line.strip()))
        place.kills.note_driver()
        job = read((place.folder / JOB).read_text(encoding="utf-8"), *sys.argv[2:])
        try:
            job.run(spark, place)
        except Exception as failure:
            place.say(failed=str(failure), refused=isinstance(failure, PanesError))
        else:
            place.say(done=True)


if __name__ == "__main__":
    main()
