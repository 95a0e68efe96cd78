"""Panels as SVG inside a page, so that colours follow the page, light or dark.

Colours, fonts and line widths are classes of `site.css`; here are only places. Every point carries
its numbers as a title, which a browser shows under the pointer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from textwrap import wrap

from docs_site.scale import Scale, scale_for, short
from lab.papers.figure import Panel

WIDTH, HEIGHT = 440, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 428, 30, 252
LETTER, ROW = 6.3, 16  # of the legend
TITLE_LETTER = 7.6
COLOURS, DASHES = 7, 4
Looks = Mapping[str, tuple[int, int]]


def figure(panels: list[Panel], alt: str) -> str:
    """All panels of a figure in one line of HTML, as a block of Markdown must be."""
    drawn = "".join(panel_svg(panel) for panel in panels)
    return f'<figure class="panels" role="group" aria-label="{escape(alt)}">{drawn}</figure>'


def panel_svg(panel: Panel) -> str:
    """One pair of axes with its series, and the legend below."""
    legend, rows = _legend(panel)
    title, above = _title(panel.title)
    height = HEIGHT + rows * ROW + above
    parts = [*title, *_draw(panel), *legend]
    name = escape(panel.title or f"{panel.y} by {panel.x}")
    return (
        f'<svg class="panel" viewBox="0 {-above} {WIDTH} {height}" role="img" aria-label="{name}">'
        f"{''.join(parts)}</svg>"
    )


def _title(text: str) -> tuple[list[str], int]:
    """The lines of a title, the last in its place and others above; and how much room those need.

    >>> lines, above = _title("individual: slabs; a group by the promise that completes it")
    >>> len(lines), above
    (2, 16)
    """
    lines = wrap(text, int((WIDTH - LEFT) / TITLE_LETTER))
    above = ROW * max(0, len(lines) - 1)
    drawn = [
        f'<text class="title" x="{LEFT}" y="{16 - above + ROW * n}">{escape(line)}</text>'
        for n, line in enumerate(lines)
    ]
    return drawn, above


def _draw(panel: Panel) -> Iterator[str]:
    xs = [x for points in _everything(panel).values() for x, _ in points]
    ys = [y for points in _everything(panel).values() for _, y in points]
    y_scale = scale_for(ys, BOTTOM, TOP, panel.y_scale, zero=panel.kind != "labels")
    yield from _y_axis(panel, y_scale)
    if panel.kind == "bars":
        yield from _bars(panel, list(dict.fromkeys(xs)), y_scale)
        return
    x_scale = scale_for(xs, LEFT, RIGHT, panel.x_scale, zero=False)
    if panel.kind == "labels":
        yield from _x_axis(panel, {x: short(x) for x in x_scale.ticks()}, x_scale)
        yield from _labels(panel, x_scale, y_scale)
        return
    few = sorted(set(xs))
    marks = few if panel.x_scale == "log" and len(few) <= 9 else x_scale.ticks()
    yield from _x_axis(panel, {x: short(x) for x in marks}, x_scale)
    yield from _lines(panel, x_scale, y_scale)


def _everything(panel: Panel) -> dict[str, tuple[tuple[float, float], ...]]:
    return {**panel.series, **panel.outlines}


def _y_axis(panel: Panel, scale: Scale) -> Iterator[str]:
    for tick in scale.ticks():
        y = f"{scale(tick):.1f}"
        yield f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}"/>'
        yield _tick(short(tick), LEFT - 6, scale(tick) + 4, "end")
    middle = (TOP + BOTTOM) / 2
    yield (
        f'<text class="tick" transform="translate(13 {middle}) rotate(-90)" '
        f'text-anchor="middle">{escape(panel.y)}</text>'
    )


def _x_axis(panel: Panel, ticks: Mapping[float, str], scale: Scale) -> Iterator[str]:
    yield f'<line class="foot" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>'
    taken = float("-inf")
    for tick, text in ticks.items():
        x = scale(tick)
        half = len(text) * LETTER / 2
        if x - half < taken:
            continue
        taken = x + half + 4
        yield _tick(text, x, BOTTOM + 16, "middle")
    yield _tick(panel.x, (LEFT + RIGHT) / 2, BOTTOM + 36, "middle")


def _tick(text: str, x: float, y: float, anchor: str = "start", looks: str = "tick") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{looks}" {place}>{escape(text)}</text>'


def _lines(panel: Panel, x: Scale, y: Scale) -> Iterator[str]:
    looks = _looks(panel)
    for name, points in panel.series.items():
        colour, dash = looks[name]
        places = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        yield f'<polyline class="line s{colour} d{dash}" points="{places}"/>'
        for a, b in points:
            said = escape(f"{name}: {short(a)}, {short(b)}")
            yield (
                f'<circle class="dot s{colour}" cx="{x(a):.1f}" cy="{y(b):.1f}" r="3">'
                f"<title>{said}</title></circle>"
            )


def _bars(panel: Panel, xs: list[float], y: Scale) -> Iterator[str]:
    """Side by side at evenly spaced places: x is a label, not a length."""
    x = Scale(-0.5, len(xs) - 0.5, LEFT, RIGHT)
    yield from _x_axis(panel, {float(n): short(value) for n, value in enumerate(xs)}, x)
    width = 0.8 / len(panel.series)
    for number, (name, points) in enumerate(panel.series.items()):
        for a, b in points:
            left = x(xs.index(a) - 0.4 + number * width)
            top, foot = y(b), y(max(y.low, 0.0) if y.kind == "linear" else y.low)
            yield (
                f'<rect class="bar s{number % COLOURS}" x="{left:.1f}" y="{min(top, foot):.1f}" '
                f'width="{(x(width) - x(0)) * 0.92:.1f}" height="{abs(foot - top):.1f}">'
                f"<title>{escape(f'{name}: {short(a)}, {short(b)}')}</title></rect>"
            )


def _labels(panel: Panel, x: Scale, y: Scale) -> Iterator[str]:
    """Names at points, and lines around them: the first kind solid, others dotted and named."""
    kinds = list(dict.fromkeys(name.split(", ")[0] for name in panel.outlines))
    for name, points in panel.outlines.items():
        kind, _, variant = name.partition(", ")
        places = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        dash = 0 if kind == kinds[0] else 2
        yield f'<polyline class="line outline d{dash}" points="{places}"/>'
        if dash:
            a, b = points[len(points) // 2]
            fits = x(a) + 3 + len(variant) * LETTER <= WIDTH
            yield _tick(variant, x(a) + (3 if fits else -3), y(b) - 3, "start" if fits else "end")
    for name, points in panel.series.items():
        for a, b in points:
            yield f'<circle class="name" cx="{x(a):.1f}" cy="{y(b):.1f}" r="9"/>'
            yield _tick(name, x(a), y(b) + 4, "middle", "called")


def _looks(panel: Panel) -> Looks:
    """A colour for each kind and a dash for each variant; series are named ``kind, variant``."""
    variants: dict[str, list[str]] = {}
    for name in panel.series:
        variants.setdefault(name.split(", ")[0], []).append(name)
    return {
        name: (kind % COLOURS, variant % DASHES)
        for kind, names in enumerate(variants.values())
        for variant, name in enumerate(names)
    }


def _legend(panel: Panel) -> tuple[list[str], int]:
    """The names of the series, as many in a row as fit; and how many rows."""
    if len(panel.series) < 2 or panel.kind == "labels":
        return [], 0
    looks = _looks(panel) if panel.kind == "lines" else {}
    parts: list[str] = []
    x, row = float(LEFT), 0
    for number, name in enumerate(panel.series):
        colour, dash = looks.get(name, (number % COLOURS, 0))
        width = 30 + len(name) * LETTER
        if x > LEFT and x + width > WIDTH:
            x, row = float(LEFT), row + 1
        y = HEIGHT + 6 + row * ROW
        looks_like = f'class="line s{colour} d{dash}"'
        parts.append(f'<line {looks_like} x1="{x}" x2="{x + 18}" y1="{y}" y2="{y}"/>')
        parts.append(_tick(name, x + 23, y + 4))
        x += width + 8
    return parts, row + 1
