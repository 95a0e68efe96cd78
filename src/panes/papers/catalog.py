"""All figures, by name, in the order of the papers. A new one is a file and a line here."""

from __future__ import annotations

from panes.errors import OptionError
from panes.papers import fig_8_7
from panes.papers.figure import Figure

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        fig_8_7.FIGURE,
    )
}  # fmt: skip


def named(name: str) -> Figure:
    """The figure of that name."""
    if name not in FIGURES:
        raise OptionError(
            f"no figure `{name}` is run here",
            hint=f"figures: {', '.join(FIGURES)}",
        )
    return FIGURES[name]
