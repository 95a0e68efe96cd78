"""The page of all figures: published and measured side by side, from the records of a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lab.papers.catalog import FIGURES
from lab.papers.figure import Grid
from lab.papers.record import Record, read

_HEAD = """\
# The papers' experiments, run here

Every experiment below was published in one of the papers and is run here on other hardware and in
other code, so absolute numbers are not comparable; shapes are. Published numbers are those given in
the text and tables. `panes papers --all` runs all of them and writes this page, `panes papers NAME`
runs one and refreshes its section.
"""


def write_page(folder: Path) -> Path:
    """Write the page of a folder of records next to the folder, under the same name."""
    path = folder.with_name(f"{folder.name}.md")
    path.write_text(page(_records(folder), pictures=folder.name))
    return path


def _records(folder: Path) -> list[Record]:
    """The records of a folder: catalog order first, others by name."""
    order = {name: place for place, name in enumerate(FIGURES)}
    paths = sorted(folder.glob("*.json"), key=lambda p: (order.get(p.stem, len(order)), p.stem))
    return [read(path) for path in paths]


def page(records: Iterable[Record], *, pictures: str) -> str:
    """The whole page as Markdown; `pictures` is the folder of the drawings."""
    return "\n".join([_HEAD, *(section(record, pictures=pictures) for record in records)])


def section(record: Record, *, pictures: str) -> str:
    """One figure as Markdown."""
    measured = record.measured
    verdicts = [
        (claim.published, claim.measured, "yes" if claim.holds else "**differs**")
        for claim in measured.claims
    ]
    compared = Grid("", ("published", "measured here", "holds"), tuple(verdicts))
    parts = [
        f"## Figure {record.name}: {record.title}",
        f"*{record.source}*",
        f"**Published.** {record.published}",
        f"**Here.** {record.setup}",
        f"![Figure {record.name}, measured]({pictures}/{record.name}.png)",
        _table(compared),
        *(f"{grid.title}\n\n{_table(grid)}" for grid in measured.grids),
    ]
    if measured.remarks:
        parts.append("\n".join(f"- {remark}" for remark in measured.remarks))
    parts.append(
        f"`panes papers {record.name}`: {record.seconds:.0f} seconds on {record.cpus} cores, "
        f"Python {record.python}; [raw numbers]({pictures}/{record.name}.json)."
    )
    return "\n\n".join(parts) + "\n"


def _table(grid: Grid) -> str:
    rows = [grid.head, ("---",) * len(grid.head), *grid.rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
