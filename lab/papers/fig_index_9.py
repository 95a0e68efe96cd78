"""*On Indexing Sliding Windows*, Figure 9: attribute-valued indexes, deleting and sorting."""

from __future__ import annotations

from collections.abc import Iterator

from lab.papers.fig_index_7 import MORE, SETUP, Costs, grid_of, panels_of
from lab.papers.figure import Claim, Figure, Grid, Measured, Panel
from lab.papers.index_runs import (
    BASIC_WINDOWS,
    ROWS,
    VALUES,
    Make,
    links,
    measure,
    power_law,
    require_right,
    uniform,
)
from panes.index.index import Index
from panes.index.row_links import RowLinks

COMPARED: dict[str, Make] = {kind: links(kind) for kind in ("AUX", "BW", "DB")}
FAR = tuple(kind for kind in COMPARED if kind != "AUX")


def sorted_others(index: Index) -> object:
    """The second column of all rows, in the order of the first."""
    assert isinstance(index, RowLinks)
    order = index.domain.walk()
    found, _ = index.rows_by_key(index.domain.keys[order[index.domain.counts[order] > 0]])
    return index.rows.raw(1, found)


def _run_a() -> Measured:
    require_right({**COMPARED, "RING": links("RING")})
    costs: Costs = {}
    for kind, draw in (("uniform", uniform), ("power law", power_law)):
        for values in VALUES:
            drawn = draw(2 * ROWS, values, seed=values)
            for windows in BASIC_WINDOWS:
                costs[kind, values, windows] = {
                    name: measure(make, drawn, windows, rounds=2)["out"]
                    for name, make in COMPARED.items()
                }
    drawn = uniform(2 * ROWS, VALUES[0], seed=VALUES[0])
    ring = measure(links("RING"), drawn, 100, rounds=1, slides=10)
    aux = measure(links("AUX"), drawn, 100, rounds=1, slides=10)
    far = uniform(2 * MORE * ROWS, VALUES[1], seed=5)
    more = {n: measure(links(n, "H"), far, 100, rounds=1, slides=3)["out"] for n in FAR}
    claims = (*claims_9a(costs), claim_ring(ring, aux))
    return Measured(panels_of(costs), claims, (grid_of(costs, more),), REMARKS)


def claims_9a(costs: Costs) -> Iterator[Claim]:
    """What 6.3 says of deletion."""
    ordered = [of["DB"] < of["BW"] < of["AUX"] for of in costs.values()]
    gaps = [(of["BW"] / of["DB"], of["AUX"] / of["BW"]) for of in costs.values()]
    yield Claim(
        "deletion is fastest in DB, followed by BW and AUX",
        f"at {sum(ordered)} of {len(ordered)} points; BW / DB {min(g for g, _ in gaps):.1f} to "
        f"{max(g for g, _ in gaps):.0f}, AUX / BW {min(g for _, g in gaps):.1f} to "
        f"{max(g for _, g in gaps):.0f}",
        all(ordered),
    )
    few, many = costs["uniform", VALUES[0], 50], costs["uniform", VALUES[1], 50]
    yield Claim(
        "the fewer values, the greater the differences",
        f"AUX / DB at 50 basic windows: {few['AUX'] / few['DB']:.0f} with {VALUES[0]:,} values, "
        f"{many['AUX'] / many['DB']:.0f} with {VALUES[1]:,}",
        few["AUX"] / few["DB"] > many["AUX"] / many["DB"],
    )
    falls = [costs["uniform", VALUES[0], w]["BW"] for w in BASIC_WINDOWS]
    yield Claim(
        "BW is faster the fewer basic windows there are",
        "BW at 50, 100 and 500: " + ", ".join(f"{f:,.1f} ns" for f in falls),
        falls[0] < falls[1] < falls[2],
    )
    db = [costs["uniform", VALUES[0], w]["DB"] for w in BASIC_WINDOWS]
    yield Claim(
        "DB is fastest with 50 basic windows",
        "DB at 50, 100 and 500: " + ", ".join(f"{f:,.1f} ns" for f in db),
        min(db) == db[0],
    )
    law = costs["power law", VALUES[0], 100]
    flat = costs["uniform", VALUES[0], 100]
    yield Claim(
        "under a power law, BW and DB gain more on AUX",
        f"AUX / BW {law['AUX'] / law['BW']:.0f}, AUX / DB {law['AUX'] / law['DB']:.0f}; uniform "
        f"{flat['AUX'] / flat['BW']:.0f} and {flat['AUX'] / flat['DB']:.0f}",
        law["AUX"] / law["DB"] > flat["AUX"] / flat["DB"],
    )


def claim_ring(ring: dict[str, float], aux: dict[str, float]) -> Claim:
    """What 6.3 says of the plain ring."""
    return Claim(
        "the plain ring is at least an order of magnitude worse than the improved ones",
        f"RING {ring['in'] + ring['out']:,.0f} ns a row, AUX {aux['in'] + aux['out']:,.0f} "
        f"({VALUES[0]:,} values, 100 basic windows); DB see the table",
        ring["in"] + ring["out"] > 10 * (aux["in"] + aux["out"]),
    )


def _run_b() -> Measured:
    require_right(COMPARED)
    keeping: Costs = {}
    asking: Costs = {}
    drawn = uniform(2 * ROWS, VALUES[0], seed=VALUES[0])
    for windows in BASIC_WINDOWS:
        found = {n: measure(m, drawn, windows, ask=sorted_others, rounds=2)
                 for n, m in COMPARED.items()}  # fmt: skip
        keeping["uniform", VALUES[0], windows] = {n: f["in"] + f["out"] for n, f in found.items()}
        asking["uniform", VALUES[0], windows] = {n: sum(f.values()) for n, f in found.items()}
    far = uniform(2 * MORE * ROWS, VALUES[0], seed=5)
    more = measure(links("DB", "H"), far, 100, ask=sorted_others, rounds=1, slides=2)
    rows = [
        (f"{ROWS:,}", str(w), *(f"{keeping['uniform', VALUES[0], w][n]:,.0f}" for n in COMPARED),
         *(f"{asking['uniform', VALUES[0], w][n]:,.0f}" for n in COMPARED))
        for w in BASIC_WINDOWS
    ]  # fmt: skip
    beyond = ("", "", f"{more['in'] + more['out']:,.0f}", "", "", f"{sum(more.values()):,.0f}")
    rows.append((f"{MORE * ROWS:,}", "100", *beyond))
    head = ("rows", "basic windows", *(f"{n}, kept" for n in COMPARED),
            *(f"{n}, with answers" for n in COMPARED))  # fmt: skip
    grid = Grid("Nanoseconds per row.", head, tuple(rows))
    panels = (_panel(keeping, "index maintenance"), _panel(asking, "with a sorted answer each"))
    return Measured(panels, tuple(claims_9b(keeping, asking)), (grid,), REMARKS_B)


def _panel(costs: Costs, title: str) -> Panel:
    series = {
        n: tuple((float(w), costs["uniform", VALUES[0], w][n]) for w in BASIC_WINDOWS)
        for n in COMPARED
    }
    return Panel("basic windows", "nanoseconds per row", series, title, x_scale="log",
                 y_scale="log")  # fmt: skip


def claims_9b(keeping: Costs, asking: Costs) -> Iterator[Claim]:
    """What 6.3 says of sorting."""
    ordered = [of["DB"] < of["BW"] < of["AUX"] for of in keeping.values()]
    yield Claim(
        "DB is the cheapest to keep, then BW, then AUX",
        f"at {sum(ordered)} of {len(ordered)} points",
        all(ordered),
    )
    total = [of["BW"] / of["DB"] for of in asking.values()]
    yield Claim(
        "with answers, DB is faster than BW by a small margin",
        f"BW / DB {min(total):.2f} to {max(total):.2f} (bar: 1 to 2)",
        min(total) > 1 and max(total) < 2,
    )
    few, many = (asking["uniform", VALUES[0], w]["DB"] for w in (50, 500))
    yield Claim(
        "the cost rises dramatically with the basic windows, since answers become frequent",
        f"DB {few:,.0f} ns a row at 50 basic windows, {many:,.0f} at 500 (bar: 5 times)",
        many > 5 * few,
    )


REMARKS = (
    "A basic window remembers its values and the youngest row of each here, so BW and DB look at "
    "none of its rows when it leaves; AUX goes round the ring for each.",
    "With 500 basic windows one has 200 rows and hardly a value twice, so BW follows as many rings "
    "as AUX does. DB's cost there is mostly that of the call, which 200 rows share.",
    "RING goes round a ring twice for each row, AUX once, and both search the L-INDEX for it, "
    "which here costs as much as the ring: so they are less than an order of magnitude apart.",
    "At 100 times the rows AUX is left out: every row that leaves would follow a thousand others. "
    "There, values are found by hash, not in an L-INDEX.",
)
REMARKS_B = ("At 100 times the rows only DB is run, over a hash table, and for two slides.",)
FIGURE_A = Figure(
    name="index-9a",
    title="deleting from AUX, BW and DB",
    source="On Indexing Sliding Windows over On-line Data Streams, 6.3, Figure 9 (a)",
    published=(
        "Deletion is fastest in DB, followed by BW and AUX, the more so the fewer values there "
        "are. BW is better with fewer basic windows, DB is fastest with 50. The plain ring was at "
        "least an order of magnitude worse. A power law favours BW and DB further."
    ),
    setup=SETUP + " Only what leaving rows cost; an L-INDEX finds the values.",
    run=_run_a,
)
FIGURE_B = Figure(
    name="index-9b",
    title="sorting the window after every basic window, with AUX, BW and DB",
    source="On Indexing Sliding Windows over On-line Data Streams, 6.3, Figure 9 (b)",
    published=(
        "1,000 values; a query sorts the window by the first column and gives the second. In "
        "total DB is faster than BW by a small margin. The cost rises dramatically with many "
        "basic windows, since the query runs more often."
    ),
    setup=SETUP + " 1,000 values; the second column of all rows after every basic window.",
    run=_run_b,
)
