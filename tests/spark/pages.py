"""Programs of the docs' pages, run as they stand: examples with ``>>>``, and blocks for Spark."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from panes.crash.place import write_batches

DOCS = Path(__file__).parents[2] / "docs"
_FOLDER = (
    r'(parquet\(f?|start\(|checkpointLocation", |\b(?:sink|checkpoint|answers|late)=)"([\w =/{}]+)"'
)


def spark_blocks(page: Path) -> list[str]:
    """The blocks of a page that are no doctests."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    return [b for b in blocks if ">>>" not in b]


def in_folder(block: str, folder: Path, *names: str) -> str:
    """A block whose files and folders of these names lie in a folder."""
    for name in names:
        block = re.sub(rf'(?<!\bname)([(=,] ?)"{name}"', rf'\1"{folder}/{name}"', block)
    return block


def run_examples(page: Path) -> dict[str, object]:
    """Run the examples of a page; returns what they leave, by name."""
    names: dict[str, object] = {}
    test = doctest.DocTestParser().get_doctest(page.read_text(), names, page.name, str(page), 0)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    told: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=flags).run(
        test, out=told.append, clear_globs=False
    )
    assert failed == 0, "".join(told)
    return test.globs


def both(spark: SparkSession, page: Path, folder: Path) -> Iterator[tuple[str, pa.Table, pa.Table]]:
    """Run a page's examples and its blocks for Spark over the same rows.

    Gives every table that both leave under one name: the name, that of Spark, that of the examples.
    A table that a block reads as a folder is a file there; a list of tables is a file for each, so
    that each is a micro-batch. A folder that a block writes is a table, ``query=x`` in it part of a
    mapping.
    """
    here = run_examples(page)
    program = "\n".join(spark_blocks(page))
    inputs = set(re.findall(r'(?<!write)\.parquet\("(\w+)"\)', program)) & set(here)
    for name in inputs:
        tables = here[name]
        write_batches(folder / name, tables if isinstance(tables, list) else [tables])
    there: dict[str, object] = {"__name__": "__main__"}  # functions go to workers by value
    program = re.sub(_FOLDER, rf'\1"{folder}/\2"', program)
    exec(compile(program, str(page), "exec"), there)
    for name, wanted in _tables({n: t for n, t in here.items() if n not in inputs}):
        found = there.get(name)
        if (folder / name).exists():
            read = spark.read.option("recursiveFileLookup", "true")
            found = read.parquet(str(folder / name)).toArrow()
        if isinstance(found, pa.Table):
            yield name, found, wanted


def _tables(names: Mapping[str, object]) -> Iterator[tuple[str, pa.Table]]:
    for name, value in names.items():
        if isinstance(value, Mapping):
            yield from _tables({f"{name}/query={k}": v for k, v in value.items()})
        elif isinstance(value, pa.Table):
            yield name, value
