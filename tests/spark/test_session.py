"""The session builder: our defaults, a JVM, and hands off a session that is already there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import panes
import panes.spark
from panes.spark.session import DEFAULTS_WHERE_LOCAL, provide_java

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


def test_a_session_has_our_defaults(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert "RocksDB" in (spark.conf.get("spark.sql.streaming.stateStore.providerClass") or "")


def test_a_session_that_is_there_is_left_alone(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    try:
        assert panes.spark.session(spark__sql__shuffle__partitions="9") is spark
        assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
        assert panes.spark.advice(spark)["spark.sql.shuffle.partitions"][0] == "7"
        assert MANAGER not in panes.spark.advice(spark), "it has what we would set"
        spark.conf.set(MANAGER, "another")
        assert panes.spark.advice(spark)[MANAGER] == ("another", DEFAULTS_WHERE_LOCAL[MANAGER])
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        spark.conf.set(MANAGER, DEFAULTS_WHERE_LOCAL[MANAGER])


def fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return folder


def test_a_java_home_that_is_too_old_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "1.8.0_392")))
    with pytest.raises(panes.PanesError, match=r"Java 17 or newer, and JAVA_HOME=.* has Java 8"):
        provide_java()


@pytest.mark.slow
def test_without_java_the_one_from_pypi_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real process: no JAVA_HOME, no java on the PATH, and Spark still answers."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    code = (
        "import panes.spark as p; s = p.session(master='local[1]', spark__ui__enabled='false');"
        "print('rows', s.range(5).count(), s.conf.get('spark.sql.session.timeZone')); s.stop()"
    )
    for tool in ("sh", "bash", "dirname", "uname", "ps", "cat", "rm", "expr", "sed", "basename"):
        found = subprocess.run(["which", tool], capture_output=True, text=True, check=False).stdout
        if found.strip():
            (tmp_path / tool).symlink_to(found.strip())
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "rows 5 UTC" in done.stdout, done.stderr[-2000:]


def test_advice_knows_which_python_the_workers_are(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "PYSPARK_PYTHON" not in panes.spark.advice(spark), "it is this one"
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert panes.spark.advice(spark)["PYSPARK_PYTHON"] == (None, sys.executable)
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/another/python")
    assert panes.spark.advice(spark)["PYSPARK_PYTHON"] == ("/opt/another/python", sys.executable)
