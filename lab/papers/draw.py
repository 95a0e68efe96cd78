"""Draw what was measured, as PNG. The only place that knows matplotlib, and only when it draws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lab.papers.figure import Measured, Panel
from panes.errors import PanesError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 5.6, 4.2
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444")
_DASHES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def draw(measured: Measured, title: str, path: Path) -> Path:
    """Draw all panels, three in a row. Series named ``kind, variant`` share their kind's colour."""
    try:
        from matplotlib.figure import Figure as Canvas
    except ModuleNotFoundError:
        raise PanesError(
            "drawing a figure needs matplotlib, which is not installed",
            hint='pip install "panes[papers]"',
        ) from None
    count = len(measured.panels)
    across = 2 if count == 4 else min(count, 3)
    down = -(-count // across)
    size = max(_WIDTH * across, 6.4), _HEIGHT * down
    canvas = Canvas(figsize=size, dpi=130, layout="constrained")
    canvas.suptitle(title, fontsize=11)
    for place, panel in enumerate(measured.panels, start=1):
        _draw_panel(canvas.add_subplot(down, across, place), panel)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, metadata={"Software": None})
    return path


def _draw_panel(axes: Axes, panel: Panel) -> None:
    {"lines": _draw_lines, "bars": _draw_bars, "labels": _draw_labels}[panel.kind](axes, panel)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.set_title(panel.title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    if panel.y_scale == "log":
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if len(panel.series) > 1 and panel.kind != "labels":
        axes.legend(frameon=False, fontsize=8, ncols=1 + len(panel.series) // 7)


def _draw_lines(axes: Axes, panel: Panel) -> None:
    looks = _looks(panel)
    for name, points in panel.series.items():
        kind, variant = looks[name]
        x, y = zip(*points, strict=True)
        axes.plot(
            x, y, label=name, color=_COLOURS[kind % len(_COLOURS)], linewidth=1.6, markersize=4.5,
            linestyle=_DASHES[variant % len(_DASHES)], marker=_MARKERS[kind % len(_MARKERS)],
        )  # fmt: skip
    if panel.x_scale == "log":
        ticks = sorted({x for points in panel.series.values() for x, _ in points})
        axes.set_xscale("log")
        if len(ticks) <= 12:
            axes.set_xticks(ticks, [_short(x) for x in ticks])
            axes.set_xticks([], minor=True)


def _draw_bars(axes: Axes, panel: Panel) -> None:
    """Bars side by side, as many as series, at evenly spaced places: x is a label, not a length."""
    places = {x: i for i, x in enumerate(dict.fromkeys(_every_x(panel)))}
    width = 0.8 / len(panel.series)
    for number, (name, points) in enumerate(panel.series.items()):
        left = np.array([places[x] for x, _ in points]) + (number + 0.5) * width - 0.4
        colour = _COLOURS[number % len(_COLOURS)]
        axes.bar(left, [y for _, y in points], width * 0.92, label=name, color=colour)
    axes.set_xticks(list(places.values()), [_short(x) for x in places])


def _draw_labels(axes: Axes, panel: Panel) -> None:
    """Names at points, and lines around them."""
    kinds = list(dict.fromkeys(name.split(", ")[0] for name in panel.outlines))
    for name, points in panel.outlines.items():
        kind, variant = name.split(", ", 1)
        is_first = kind == kinds[0]
        x, y = zip(*points, strict=True)
        axes.plot(x, y, color=_COLOURS[-1], linewidth=1.2, linestyle="-" if is_first else ":")
        if not is_first:
            at = points[len(points) // 2]
            axes.annotate(variant, at, (3, 2), textcoords="offset points", fontsize=7.5)
    shades = np.linspace(0.0, 1.0, max(len(panel.series), 2))
    for shade, (name, points) in zip(shades.tolist(), panel.series.items(), strict=False):
        for at in points:
            axes.plot(
                *at, marker="o", markersize=13, color=(1 - 0.55 * shade, 0.93 - 0.35 * shade, 1)
            )
            axes.annotate(name, at, ha="center", va="center", fontsize=8)
    axes.set_aspect("equal")


def _every_x(panel: Panel) -> list[float]:
    return [x for points in panel.series.values() for x, _ in points]


def _looks(panel: Panel) -> dict[str, tuple[int, int]]:
    """A colour for each kind and a dash for each variant of it."""
    variants: dict[str, list[str]] = {}
    for name in panel.series:
        variants.setdefault(name.split(", ")[0], []).append(name)
    return {
        name: (kind, variant)
        for kind, names in enumerate(variants.values())
        for variant, name in enumerate(names)
    }


def _short(x: float) -> str:
    """A number as an axis shows it.

    >>> [_short(x) for x in (0.5, 12, 66_000, 2_500_000)]
    ['0.5', '12', '66K', '2.5M']
    """
    if abs(x) >= 1e6:
        return f"{x / 1e6:.3g}M"
    return f"{x / 1e3:.3g}K" if abs(x) >= 1e4 else f"{x:g}"
