"""`panes` as a user calls it: exit code, stdout and stderr apart; and a query to call it with.

`run` starts Python and waits for every import. `call` forks a process that has the command line
imported and has done nothing yet: the same entry point, a tenth of the time. `call_here` starts no
process at all, so the command finds the Spark session of the suite and uses it.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
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


def call_here(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    from panes.cli.main import main

    code, argv, handler = 0, sys.argv, signal.getsignal(signal.SIGINT)
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()) as stdout,
        contextlib.redirect_stderr(io.StringIO()) as stderr,
    ):
        sys.argv = ["panes", *arguments]
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            sys.argv = argv
            signal.signal(signal.SIGINT, handler)
    return subprocess.CompletedProcess(list(arguments), code, stdout.getvalue(), stderr.getvalue())


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
