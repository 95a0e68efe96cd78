"""`panes` as a user calls it, in a process of its own; and a query to call it with.

`run` starts Python and waits for every import. `call` forks a process that has the command line
imported and has done nothing yet: the same entry point, a tenth of the time.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PANES = [sys.executable, "-c", "from panes.cli.main import main; main()"]
QUERY = (
    "SELECT item, max(price) AS high, count(*) AS n\n"
    "FROM bids [RANGE 10 minutes SLIDE 1 minute WATTR ts]\n"
    "WHERE price > 20 GROUP BY item\n"
)

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["panes.cli.main", "pytest"])


def run(*arguments: str, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PANES, *arguments], cwd=folder, input=stdin, capture_output=True, text=True, check=False
    )


def call(*arguments: str, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as scratch:
        streams = [Path(scratch, name) for name in ("stdin", "stdout", "stderr")]
        streams[0].write_text(stdin)
        process = _FORKS.Process(target=_main, args=(arguments, folder, streams))
        process.start()
        process.join()
        assert process.exitcode is not None
        stdout, stderr = (path.read_text() for path in streams[1:])
    return subprocess.CompletedProcess(list(arguments), process.exitcode, stdout, stderr)


def _main(arguments: tuple[str, ...], folder: Path, streams: list[Path]) -> None:
    from panes.cli.main import main

    for number, (path, how) in enumerate(zip(streams, "rww", strict=True)):
        with path.open(how) as stream:
            os.dup2(stream.fileno(), number)
    os.chdir(folder)
    sys.argv = ["panes", *arguments]
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, how, closefd=False) for number, how in enumerate("rww")
    )
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
