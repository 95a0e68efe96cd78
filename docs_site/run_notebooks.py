"""`python -m docs_site.run_notebooks`: run the notebooks of `examples/` and store their outputs.

What is stored is what a reader sees, and nothing else: no times of execution, no progress on
stderr. Cells with the tag `timed` give other outputs in every run.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from docs_site.places import ROOT

LONGEST = 600  # seconds for one cell
Notebook = Any  # nbformat's


def run(path: Path, folder: Path) -> Notebook:
    """A notebook with fresh outputs; it works in the folder."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=LONGEST,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    for cell in notebook.cells:
        _clean(cell)
    return notebook


def _clean(cell: Any) -> None:
    cell.metadata.pop("execution", None)
    if cell.cell_type == "code":
        cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]


def shown(notebook: Notebook) -> list[list[str]]:
    """What each cell of code printed or gave; of a timed one, only without its numbers."""
    return [_texts(cell) for cell in notebook.cells if cell.cell_type == "code"]


def _texts(cell: Any) -> list[str]:
    texts = [
        output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]
        for output in cell.outputs
    ]
    is_timed = "timed" in cell.metadata.get("tags", [])
    return [re.sub(r"[\d.,]+", "#", text) for text in texts] if is_timed else texts


if __name__ == "__main__":
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(run(path, Path(folder)), path)
