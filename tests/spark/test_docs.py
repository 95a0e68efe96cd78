"""The Spark blocks of docs/reference/spark.md and of the README run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import panes.spark
from panes.bench.workloads import bids

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "spark.md"


def test_the_pages_code_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bids").mkdir()
    pq.write_table(bids(300, keys=3, hours=0.1), tmp_path / "bids" / "part.parquet")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 5
    names: dict[str, object] = {}
    places = ["bids", "highest", "state", "answers", "per minute", "second state"]
    places += ["late", "rejected"]
    for block in blocks:
        for place in places:
            block = re.sub(rf'([(=,] ?)"{place}"', rf'\1"{tmp_path}/{place}"', block)
        exec(block, names)
    for place in ("highest", "answers", "per minute"):
        assert spark.read.parquet(str(tmp_path / place)).count() > 0, place


def test_the_registers_code_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bids").mkdir()
    pq.write_table(bids(300, keys=3, hours=0.2), tmp_path / "bids" / "part.parquet")
    monkeypatch.chdir(tmp_path)
    page = (PAGE.parents[1] / "guides" / "many_queries.md").read_text()
    [block] = [b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if ">>>" not in b]
    for place in ("bids", "dear", "state", "answers"):
        block = re.sub(
            rf'(parquet\(|(?:sink|checkpoint)=)"{place}"', rf'\1"{tmp_path}/{place}"', block
        )
    names: dict[str, DataFrame] = {}
    exec(block, names)
    assert names["now"].count() > 0
    for place in ("answers/query=busy", "dear"):
        assert spark.read.parquet(str(tmp_path / place)).count() > 0, place


def test_the_readmes_line_runs(spark: SparkSession) -> None:
    readme = (PAGE.parents[2] / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    [line] = [b for b in blocks if ">>>" not in b]
    frame = spark.createDataFrame(bids(300, keys=3, hours=0.1))
    answers = eval(line, {"panes": panes, "df": frame, "F": F})
    assert answers.columns == ["window", "item", "max(price)"]
    assert answers.count() > 0
