"""Both programs of every page of the cookbook run, and give the same answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.pages import DOCS, both, spark_blocks
from tests.support import assert_rows

PAGES = sorted(p for p in (DOCS / "cookbook").glob("*.md") if p.name != "README.md")
COMPARED = {
    "alerts": {"answers", "late"},
    "burn_rates": {f"answers/query={q}" for q in ("m5", "m30", "h1", "h6")} | {"fast"},
    "features": {"known", "spent"},
    "sessions": {"answers", "begun"},
    "top_three": {"top"},
}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_both_programs_of_a_page_answer_the_same(
    spark: SparkSession, page: Path, tmp_path: Path
) -> None:
    compared = set()
    for name, on_spark, in_process in both(spark, page, tmp_path):
        assert in_process.num_rows > 0, name
        assert_rows(on_spark, in_process)
        compared.add(name)
    assert compared == COMPARED.get(page.stem, {"answers"})


def test_every_page_has_a_program_for_spark_and_says_what_to_watch_out_for() -> None:
    for page in PAGES:
        text = page.read_text()
        assert spark_blocks(page), page.name
        for heading in ("## In one process", "## On Spark", "## Watch out"):
            assert text.count(f"\n{heading}\n") == 1, (page.name, heading)
