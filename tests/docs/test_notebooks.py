"""The notebooks of `examples/`: they run, give what is stored in them, and store nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))
LARGEST = 30_000  # bytes


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_gives_what_is_stored_in_it(path: Path, tmp_path: Path) -> None:
    import nbformat

    from docs_site.run_notebooks import run, shown

    assert shown(run(path, tmp_path)) == shown(nbformat.read(path, as_version=4))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_stores_outputs_and_no_traces_of_a_run(path: Path) -> None:
    assert len(path.read_bytes()) < LARGEST
    code = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        assert set(cell["metadata"]) <= {"tags"}
        assert all(output.get("name") != "stderr" for output in cell["outputs"])
    assert "/tmp" not in path.read_text()


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 2
