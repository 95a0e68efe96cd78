"""All figures, by name, in the order of the papers. A new one is a file and a line here."""

from __future__ import annotations

from lab.papers import (
    fig_6_10,
    fig_6_11,
    fig_6_12,
    fig_6_15,
    fig_6_19,
    fig_7_5,
    fig_7_6,
    fig_7_7,
    fig_8_7,
    fig_8_8,
    fig_8_9,
    fig_8_10,
    fig_8_11,
    fig_index_7,
    fig_index_8,
    fig_index_9,
    fig_sharing_3_5,
    fig_sharing_4_6,
    fig_sharing_9_10,
    fig_slide_5_to_7,
    fig_slide_8_9,
    table_slide_1_2,
)
from lab.papers.figure import Figure
from panes.errors import OptionError

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        fig_6_10.FIGURE,
        fig_6_11.FIGURE,
        fig_6_12.FIGURE,
        fig_6_15.FIGURE,
        fig_6_19.FIGURE,
        fig_7_5.FIGURE,
        fig_7_6.FIGURE,
        fig_7_7.FIGURE,
        fig_8_7.FIGURE,
        fig_8_8.FIGURE,
        fig_8_9.FIGURE,
        fig_8_10.FIGURE,
        fig_8_11.FIGURE,
        fig_slide_5_to_7.FIGURE_5,
        fig_slide_5_to_7.FIGURE_6,
        fig_slide_5_to_7.FIGURE_7,
        fig_slide_8_9.FIGURE_8,
        fig_slide_8_9.FIGURE_9,
        table_slide_1_2.TABLE_1,
        table_slide_1_2.TABLE_2,
        fig_sharing_3_5.FIGURE_3,
        fig_sharing_4_6.FIGURE_4,
        fig_sharing_3_5.FIGURE_5,
        fig_sharing_4_6.FIGURE_6,
        fig_sharing_9_10.FIGURE_9,
        fig_sharing_9_10.FIGURE_10,
        fig_index_7.FIGURE_A,
        fig_index_7.FIGURE_B,
        fig_index_8.FIGURE_A,
        fig_index_8.FIGURE_B,
        fig_index_9.FIGURE_A,
        fig_index_9.FIGURE_B,
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
