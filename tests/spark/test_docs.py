"""The Spark blocks of the docs and of the README run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import panes.spark
from panes.sample_streams import bids
from tests.spark.pages import DOCS, in_folder, spark_blocks


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with bids, in which the blocks run."""
    (tmp_path / "bids").mkdir()
    pq.write_table(bids(300, keys=3, hours=0.2), tmp_path / "bids" / "part.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_pages_code_runs(spark: SparkSession, folder: Path) -> None:
    blocks = spark_blocks(DOCS / "reference" / "spark.md")
    assert len(blocks) == 7
    names: dict[str, object] = {}
    places = ["bids", "highest", "state", "answers", "per minute", "second state"]
    places += ["late", "rejected", "pairs", "near"]
    for block in blocks:
        exec(in_folder(block, folder, *places), names)
    for place in ("highest", "answers", "per minute", "pairs", "near"):
        assert spark.read.parquet(str(folder / place)).count() > 0, place


def test_the_first_spark_job_runs_and_can_be_monitored(spark: SparkSession, folder: Path) -> None:
    blocks = spark_blocks(DOCS / "start" / "first_spark_job.md")
    blocks += spark_blocks(DOCS / "guides" / "monitoring.md")
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(
            in_folder(block, folder, "bids", "highest", "highest again", "state", "answers"), names
        )
    for place in ("highest", "highest again", "answers"):
        assert spark.read.parquet(str(folder / place)).count() > 0, place


@pytest.mark.slow
def test_the_first_register_runs(spark: SparkSession, folder: Path) -> None:
    [block] = spark_blocks(DOCS / "start" / "first_register.md")
    for name in ("bids", "state", "answers"):
        block = re.sub(rf'(parquet\(|(?:sink|checkpoint)=)"{name}"', rf'\1"{folder}/{name}"', block)
    exec(block, {})
    assert spark.read.parquet(str(folder / "answers/query=busy")).count() > 0


@pytest.mark.slow
def test_rows_are_asked_for_as_the_page_says(spark: SparkSession, folder: Path) -> None:
    [block] = spark_blocks(DOCS / "indexes.md")
    names: dict[str, object] = {}
    block = block.replace("reg.stop()", "found = cheapest.toArrow()\nreg.stop()")
    for place in ("bids", "rows-state", "rows-answers"):
        block = re.sub(
            rf'(parquet\(|(?:sink|checkpoint)=)"{place}"', rf'\1"{folder}/{place}"', block
        )
    exec(block, names)
    found = names["found"]
    assert isinstance(found, pa.Table)
    assert found["item"].to_pylist() == [2] * 10
    assert found["price"].to_pylist() == sorted(found["price"].to_pylist())


@pytest.mark.slow
def test_the_registers_code_runs(spark: SparkSession, folder: Path) -> None:
    blocks = spark_blocks(DOCS / "guides" / "many_queries.md")
    assert len(blocks) == 2
    (folder / "sales").symlink_to(folder / "bids")
    names: dict[str, DataFrame] = {}
    for block in blocks:
        for place in ("bids", "sales", "dear", "state", "answers", "joined-state", "joined"):
            block = re.sub(
                rf'(parquet\(|(?:sink|checkpoint)=)"{place}"', rf'\1"{folder}/{place}"', block
            )
        exec(block, names)
    assert names["now"].count() > 0
    for place in ("answers/query=busy", "dear", "joined/query=pairs", "joined/query=paid"):
        assert spark.read.parquet(str(folder / place)).count() > 0, place


def test_the_readmes_lines_give_the_same_before_and_after(spark: SparkSession) -> None:
    [block] = [b for b in spark_blocks(DOCS.parent / "README.md") if "group_by" in b]
    frame = spark.createDataFrame(bids(300, keys=3, hours=0.1))
    before, after = (
        eval(line, {"panes": panes, "df": frame, "F": F}) for line in block.splitlines()
    )
    assert after.schema == before.schema
    assert after.count() > 0
    assert sorted(after.collect()) == sorted(before.collect())
