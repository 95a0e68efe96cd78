"""Pages say what the code does: the README's commands run, the tables match the catalog.

Python blocks of README and docs are doctests and run as such.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import panes
from panes.aggregates.aggregate import Argument
from panes.aggregates.calls import Call
from panes.aggregates.catalog import CATALOG, build
from panes.sample_streams import bids
from tests.cli.call import call, call_here
from tests.spark.pages import run_examples

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "aggregates.md").read_text()


def console_commands(page: str = "README.md") -> list[list[str]]:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line[2:]) for line in lines if line.startswith("$ ")]


@pytest.mark.slow
def test_the_readmes_commands_run(spark: SparkSession, tmp_path: Path) -> None:
    """Those on Spark with whole paths, as its JVM works in a folder of its own."""
    (tmp_path / "folder").mkdir()
    for place in (tmp_path, tmp_path / "folder"):
        pq.write_table(bids(500, keys=3, hours=0.2), place / "bids.parquet")
    (tmp_path / "busy.sql").write_text(
        "SELECT item, count(*) AS n FROM bids [RANGE 5 minutes SLIDE 1 minute WATTR ts] "
        "GROUP BY item"
    )
    (tmp_path / "queries").mkdir()
    shutil.copy(tmp_path / "busy.sql", tmp_path / "queries")
    commands = console_commands()
    assert len(commands) == 5
    for command in commands:
        assert command[0] == "panes"
        quick = ["--no-spark"] if command[1] == "verify" else []
        words = [*command[1:], *quick]
        if "spark" in words:
            words = [
                re.sub(r"^(bids=)?(folder|state|busy)$", rf"\1{tmp_path}/\2", w) for w in words
            ]
        done = (call_here if "spark" in words else call)(*words, folder=tmp_path)
        assert done.returncode == 0, done.stderr


def test_the_backfill_goes_on_from_the_command_line(tmp_path: Path) -> None:
    """Parquet, then CSV with the day first: the answers that one process gives of both."""
    page = "docs/cookbook/backfill.md"
    said = run_examples(ROOT / page)
    stored, live, text, answers = (said[n] for n in ("stored", "live", "text", "answers"))
    assert isinstance(stored, pa.Table)
    assert isinstance(live, pa.Table)
    assert isinstance(answers, pa.Table)
    pq.write_table(stored, tmp_path / "stored.parquet")
    pacsv.write_csv(
        pa.table({"ts": pc.strftime(live["ts"], format="%d/%m/%Y %H:%M")}), tmp_path / "live.csv"
    )
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "busy.sql").write_text(str(text))
    [both] = re.findall(r"```sql\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    (tmp_path / "both.sql").write_text(both)
    for command in console_commands(page):
        done = call(*command[1:], folder=tmp_path)
        assert done.returncode == 0, done.stderr
    runs = [tmp_path / "answers" / "busy" / f"{run:06}.parquet" for run in (1, 2)]
    counts = answers["n"].to_pylist()
    saved = pa.concat_tables([pq.read_table(run) for run in runs])["n"].to_pylist()
    assert saved == counts[: len(saved)]
    assert len(saved) == 8  # up to 01:20; the others are open
    assert pacsv.read_csv(tmp_path / "both.csv")["n"].to_pylist() == counts


def rows_of_the_page() -> dict[str, tuple[str, str]]:
    """Name -> (kind, differential or error), as the tables say."""
    said: dict[str, tuple[str, str]] = {}
    kind = ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            kind = line[3:].split(",")[0].lower()
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("| `"):
            for name in re.findall(r"`(\w+)`", cells[0]):
                said[name] = (kind, cells[-1])
    return said


_WHOLE = (
    "bit_and", "bit_or", "bit_xor", "count_min_sketch", "bitmap_construct_agg", "hll_sketch_agg",
    "tuple_sketch_agg_integer",
)  # fmt: skip
_BYTES = (
    "bitmap_or_agg", "bitmap_and_agg", "hll_union_agg", "theta_union_agg", "theta_intersection_agg",
    "tuple_union_agg_double", "tuple_union_agg_integer", "tuple_intersection_agg_double",
    "tuple_intersection_agg_integer",
)  # fmt: skip
ARGUMENTS = {
    **dict.fromkeys(("approx_top_k", "listagg", "string_agg"), pa.string()),
    **dict.fromkeys(("bool_and", "every", "bool_or", "some", "any", "count_if"), pa.bool_()),
    **dict.fromkeys(_WHOLE, pa.int64()),
    **dict.fromkeys(_BYTES, pa.binary()),
    "collect_union": pa.list_(pa.int64()),
}
PARAMETERS = {"top_k": (2,), "histogram_numeric": (5,), "count_min_sketch": (0.1, 0.9, 1)}


@pytest.mark.parametrize("name", CATALOG)
def test_the_page_classifies_every_aggregate_as_the_catalog_does(name: str) -> None:
    entry = CATALOG[name]
    columns = abs(entry.columns)
    argument = Argument(0, ARGUMENTS.get(name, pa.float64()))
    aggregate = build(
        Call(name, (argument,) * columns, PARAMETERS.get(name, (0.5,) * entry.parameters))
    )
    kind, said = rows_of_the_page()[name]
    if kind in ("approximate", "sketches in bytes"):
        assert said == aggregate.error
        assert aggregate.kind == "bounded"
    else:
        assert (kind, said) == (aggregate.kind, aggregate.differential)


@pytest.mark.parametrize("name", CATALOG)
def test_the_page_marks_every_aggregate_that_takes_distinct(name: str) -> None:
    [line] = [
        x for x in PAGE.splitlines() if x.startswith("| `") and f"`{name}`" in x.split("|")[1]
    ]
    assert ("*d*" in line.split("|")[1]) == (CATALOG[name].over_distinct is not None)


def test_every_public_name_is_there_and_documented() -> None:
    for name in panes.__all__:
        thing = getattr(panes, name)
        assert name == "Late" or (thing.__doc__ or "").strip(), name


def test_the_map_has_every_room() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    table = contributing.split("## The map")[1].split("\n## ")[0]
    rooms = {p.parent.name for p in (ROOT / "src" / "panes").glob("*/__init__.py")}
    assert set(re.findall(r"`(\w+)/`", table)) == rooms
