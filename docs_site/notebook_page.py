"""A notebook as a page: text as it is, code as code, outputs below it. Nothing is run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Cell = Mapping[str, Any]


def notebook_page(path: Path) -> str:
    """All cells in order, and a line that says where the notebook is."""
    cells = json.loads(path.read_text())["cells"]
    where = f"*The notebook is `examples/{path.name}` in the repository; tests run it.*\n"
    return "\n".join([*(part for cell in cells for part in _parts(cell)), where])


def _parts(cell: Cell) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source + "\n"
        return
    yield f"```python\n{source}\n```\n"
    for output in cell["outputs"]:
        yield _output(output)


def _output(output: Mapping[str, Any]) -> str:
    """What a cell printed or gave: a picture or table as it is, anything else as text."""
    if output["output_type"] == "stream":
        return _text("".join(output["text"]))
    data = output["data"]
    for rich in ("image/svg+xml", "text/html"):
        if rich in data:
            lines = (line.strip() for line in "".join(data[rich]).splitlines())
            return f'<div class="output">{"".join(lines)}</div>\n'
    return _text("".join(data["text/plain"]))


def _text(text: str) -> str:
    return f"```{{.text .output}}\n{text.rstrip()}\n```\n"
