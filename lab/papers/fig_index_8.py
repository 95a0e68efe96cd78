"""*On Indexing Sliding Windows*, Figure 8: set-valued questions after every basic window."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lab.papers.fig_index_7 import MORE, SETUP, Costs, grid_of, panels_of
from lab.papers.figure import Claim, Figure, Measured
from lab.papers.index_runs import (
    BASIC_WINDOWS,
    ROWS,
    VALUES,
    Integers,
    Make,
    Rolled,
    group_index,
    measure,
    no_index,
    power_law,
    require_right,
    set_index,
    uniform,
)
from panes.errors import WrongAnswerError
from panes.index.domain import Domain
from panes.index.g_index import GIndex
from panes.index.index import DomainIndex, Index
from panes.index.scan import Scan

Histogram = tuple[Integers, Integers]
HISTOGRAMS: dict[str, Make] = {f"{d} over LIST": set_index(d, "LIST") for d in "LTH"}
HISTOGRAMS |= {"L over AGGR": set_index("L", "AGGR"), "T over AGGR": set_index("T", "AGGR")}
SORTED, MERGED = "no index: rows sorted", "no index: AGGR merged"
INTERSECTIONS: dict[str, Make] = {
    "G with 10 groups": group_index(10),
    "G with 50 groups": group_index(50),
    "T over LIST": set_index("T", "LIST"),
    "H over LIST": set_index("H", "LIST"),
}


def walked(index: Index) -> Histogram:
    """Values in order and their counts, read off the structure, as the paper does it."""
    assert isinstance(index, DomainIndex)
    return read_off(index.domain)


def read_off(domain: Domain) -> Histogram:
    """Values in order and their counts, read off a domain's own structure."""
    order = domain.walk()
    counts = domain.counts[order]
    return domain.keys[order][counts > 0], counts[counts > 0].astype(np.int64)


def sorted_rows(index: Index) -> Histogram:
    """All rows of the window sorted."""
    assert isinstance(index, Scan)
    return index.present()


def merged(index: Index) -> Histogram:
    """The sorted lists of all basic windows merged; the index itself is not used."""
    assert isinstance(index, DomainIndex)
    kept = [w.summary for w in index.windows if w.summary is not None]
    keys = np.concatenate([index.domain.keys[s.entries] for s in kept])
    counts = np.concatenate([s.counts for s in kept])
    order = np.argsort(keys, kind="stable")  # which merges runs that ascend
    begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
    return keys[order][begins], np.add.reduceat(counts[order], begins, dtype=np.int64)


def ranges(index: Index) -> Integers:
    """The groups that have rows."""
    assert isinstance(index, GIndex)
    return np.flatnonzero(index.groups()[2])


def asked(makes: dict[str, tuple[Make, Callable[[Index], object]]], draw: str) -> Costs:
    """Rows in and out and an answer after every basic window, in nanoseconds per row."""
    costs: Costs = {}
    for values in VALUES:
        drawn = (uniform if draw == "uniform" else power_law)(2 * ROWS, values, seed=values)
        for windows in BASIC_WINDOWS:
            found = {}
            for name, (make, ask) in makes.items():
                # Without an index a few answers tell the cost of all.
                slides = 20 if name == SORTED else None
                took = measure(make, drawn, windows, ask=ask, rounds=2, slides=slides)
                kept = 0.0 if name == MERGED else took["in"] + took["out"]
                found[name] = kept + took["ask"]
            costs[draw, values, windows] = found
    return costs


def _run_a() -> Measured:
    require_right(HISTOGRAMS)
    _require_same_histograms()
    makes: dict[str, tuple[Make, Callable[[Index], object]]]
    makes = {name: (make, walked) for name, make in HISTOGRAMS.items()}
    makes[SORTED] = (no_index, sorted_rows)
    makes[MERGED] = (set_index("T", "AGGR"), merged)
    costs = asked(makes, "uniform") | asked(makes, "power law")
    drawn = uniform(2 * MORE * ROWS, VALUES[1], seed=5)
    more = {
        name: sum(measure(makes[name][0], drawn, 100, ask=makes[name][1], rounds=1, slides=5)
                  .values())
        for name in ("T over LIST", "H over LIST", SORTED)
    }  # fmt: skip
    return Measured(panels_of(costs), tuple(claims_8a(costs)), (grid_of(costs, more),), REMARKS_A)


def _require_same_histograms() -> None:
    """What is read off, sorted and merged is the same."""
    values = power_law(600, 40, seed=1)
    for make, ask in ((set_index("L", "AGGR"), walked), (set_index("H", "LIST"), walked),
                      (set_index("T", "AGGR"), merged), (no_index, sorted_rows)):  # fmt: skip
        rolled = Rolled(make, 10)
        rolled.begin(values[:20])
        for number, part in enumerate(np.array_split(values, 30)):
            rolled.slide(part)
            window = values[max(number - 9, 0) * 20 : (number + 1) * 20]
            want = np.unique(window, return_counts=True)
            for got, right in zip(ask(rolled.index), want, strict=True):
                if got.tolist() != right.tolist():
                    raise WrongAnswerError(f"a histogram by {ask.__name__} is wrong")


def claims_8a(costs: Costs) -> Iterator[Claim]:
    """What 6.2 says of the windowed histogram."""
    worse = [of[SORTED] / max(of[f"{d} over LIST"] for d in "TH") for of in costs.values()]
    yield Claim(
        "sorting the window is several orders of magnitude worse than any index",
        f"{min(worse):.1f} to {max(worse):.0f} times the slower of T and H (bar: 100)",
        min(worse) > 100,
    )
    places = [sorted(of, key=lambda n: of[n]).index("T over LIST") for of in
              ({n: v for n, v in c.items() if "LIST" in n} for c in costs.values())]  # fmt: skip
    behind = [of["H over LIST"] / of["T over LIST"] for of in costs.values()]
    yield Claim(
        "T is the overall winner, closely followed by H",
        f"T is first at {places.count(0)} of {len(places)} points over LIST; H / T from "
        f"{min(behind):.2f} to {max(behind):.2f}",
        places.count(0) > len(places) / 2,
    )
    slowest = [of["L over LIST"] / max(of["T over LIST"], of["H over LIST"])
               for of in costs.values()]  # fmt: skip
    yield Claim(
        "L is the slowest, because of what it costs to keep",
        f"{min(slowest):.1f} to {max(slowest):.0f} times the slower of T and H",
        min(slowest) > 1,
    )
    special = costs["uniform", VALUES[1], 50]
    yield Claim(
        "merging AGGR without an index beats L over AGGR at 50 basic windows and 10,000 values, "
        "by 30 %, and nowhere beats T or H",
        f"{special[MERGED]:,.0f} ns a row against {special['L over AGGR']:,.0f} for L over AGGR, "
        f"{special['T over LIST']:,.0f} for T",
        special["T over LIST"] < special[MERGED] < special["L over AGGR"],
    )


def _run_b() -> Measured:
    costs: Costs = {}
    for kind, draw in (("uniform", uniform), ("power law", power_law)):
        for values in VALUES:
            for windows in BASIC_WINDOWS:
                found = {}
                for name, make in INTERSECTIONS.items():
                    found[name] = _intersected(
                        make, draw(2 * ROWS, values, seed=1), draw(2 * ROWS, values, seed=2),
                        windows, is_grouped=name.startswith("G"),
                    )  # fmt: skip
                costs[kind, values, windows] = found
    cases = tuple(INTERSECTIONS.items())
    one, other = (uniform(2 * MORE * ROWS, VALUES[1], seed=s) for s in (1, 2))
    more = {
        name: _intersected(make, one, other, 100, is_grouped=name.startswith("G"), slides=5)
        for name, make in cases
    }
    return Measured(panels_of(costs), tuple(claims_8b(costs)), (grid_of(costs, more),), REMARKS_B)


def _intersected(
    make: Make,
    one: Integers,
    other: Integers,
    windows: int,
    *,
    is_grouped: bool,
    slides: int | None = None,
) -> float:
    """Two windows side by side and their intersection after every basic window."""
    parts = [np.array_split(values, 2 * windows) for values in (one, other)]
    pair = [Rolled(make, windows), Rolled(make, windows)]
    for rolled in pair:
        rolled.begin(parts[0][0])  # the same groups in both
    for here, there in zip(*(p[:windows] for p in parts), strict=True):
        pair[0].slide(here)
        pair[1].slide(there)
    for rolled in pair:
        rolled.seconds = {"in": 0.0, "out": 0.0, "ask": 0.0}
    ask = ranges if is_grouped else _present
    rows = 0
    for here, there in list(zip(*(p[windows:] for p in parts), strict=True))[:slides]:
        pair[0].slide(here, ask)
        pair[1].slide(there, lambda index: np.intersect1d(
            ask(pair[0].index), ask(index), assume_unique=True))  # fmt: skip
        rows += len(here) + len(there)
    return sum(sum(rolled.seconds.values()) for rolled in pair) / rows * 1e9


def _present(index: Index) -> Integers:
    return index.present()[0]


def claims_8b(costs: Costs) -> Iterator[Claim]:
    """What 6.2 says of the windowed intersection."""
    for name in ("G with 10 groups", "G with 50 groups"):
        ratios = [min(of["T over LIST"], of["H over LIST"]) / of[name] for of in costs.values()]
        yield Claim(
            f"{name} answers, by ranges, at a dramatic reduction of cost",
            f"the faster of T and H takes {min(ratios):.1f} to {max(ratios):.0f} times as long "
            "(bar: 2)",
            min(ratios) > 2,
        )


REMARKS_A = (
    "Sorting costs far less here than an index that is kept through objects and pointers in Java "
    "did, so that the distance between no index and an index is smaller; it is still the "
    "difference between all rows and all values, and grows with the basic windows.",
    "L over AGGR is kept by merging sorted lists, one pass for each basic window, which is what "
    "merging without an index does as well, for all basic windows: so L over AGGR is not beaten.",
    "With 500 basic windows, 200 rows in each, reading 1,000 values in order outweighs what "
    "comes and goes, and L, which needs only follow its list, is no slower than the others.",
)
REMARKS_B = (
    "Two indexes stand side by side here, one for each window, instead of one index with two "
    "counts; groups are the same in both.",
    "Groups make the answer small, but rows still come one by one: with 1,000 values the answer is "
    "a small part of the cost, and with 200 rows in a basic window the calls are most of it.",
)
FIGURE_A = Figure(
    name="index-8a",
    title="a histogram after every basic window",
    source="On Indexing Sliding Windows over On-line Data Streams, 6.2, Figure 8 (a)",
    published=(
        "T is the overall winner, closely followed by H; L is the slowest, because it is expensive "
        "to keep. Without an index, sorting the window is several orders of magnitude worse; "
        "merging AGGR is faster, but beats only L over AGGR, in one case, by 30 %."
    ),
    setup=SETUP + " After every basic window values in order and their counts are read off the "
    "structure itself (sorted for H). Without an index, 20 slides are timed.",
    run=_run_a,
)
FIGURE_B = Figure(
    name="index-8b",
    title="an intersection after every basic window",
    source="On Indexing Sliding Windows over On-line Data Streams, 6.2, Figure 8 (b)",
    published=(
        "G over GROUP gives an approximate intersection, ranges of values that occur in both "
        "windows, at a dramatic reduction of cost against the fastest T and H."
    ),
    setup=SETUP + " Nanoseconds per row of both windows; one round.",
    run=_run_b,
)
