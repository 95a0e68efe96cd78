"""How fast due windows are found: the plain scan against the sliding tree and the timers.

All contenders are compiled, and all must name the same groups at every step before any is timed.
Run it with ``python -m lab.bench.due_windows [groups] [steps]``.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from lab.papers.plain_scan import PlainScan
from lab.papers.sliding_tree import SlidingTree, mean_tests
from panes.progress.optimise import optimise
from panes.progress.sliding_graph import SlidingGraph
from panes.progress.timers import Timers
from panes.windows.cut import Edges

Step = Callable[[int, int], Sequence[Edges] | np.ndarray]
Contender = Callable[[], Step]  # timers move with progress, so each run gets new ones


def any_phase(groups: int) -> list[Edges]:
    """Slides of 2 to 2,000 ticks, the paper's widest range (VII), at phases of their own."""
    dice = random.Random(1)
    slides = (dice.randint(2, 2_000) for _ in iter(int, 1))
    found: dict[Edges, None] = {}
    while len(found) < groups:
        slide = next(slides)
        found[Edges(slide, dice.randrange(slide))] = None
    return list(found)


def no_phase(groups: int) -> list[Edges]:
    """As many different slides, all from 0: the paper's case, ten times as wide."""
    return [Edges(s, 0) for s in random.Random(2).sample(range(2, 2 * groups + 2), groups)]


def round_slides(groups: int) -> list[Edges]:
    """Whole minutes at whole minutes of the day, on an axis of seconds."""
    dice = random.Random(3)
    found: dict[Edges, None] = {}
    while len(found) < groups:
        slide = 60 * dice.choice([5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1_440, 10_080])
        found[Edges(slide, 60 * dice.randrange(slide // 60))] = None
    return list(found)


def grown(families: list[Edges]) -> SlidingGraph:
    graph = SlidingGraph()
    for i, family in enumerate(families):
        graph.add(f"q{i}", family)
    return graph


def wound_up(families: list[Edges]) -> Timers:
    timers = Timers(at=0)
    for family in families:
        timers.add(family)
    return timers


def advancing(timers: Timers) -> Step:
    return lambda _, now: timers.advance(now)


def ringing(timers: Timers) -> Step:
    return lambda _, now: timers.ring(now)


def timed(step: Step, jumps: list[tuple[int, int]]) -> float:
    """Microseconds of this thread's own time a step: other work on the machine does not count."""
    begun = time.thread_time()
    for previous, now in jumps:
        step(previous, now)
    return (time.thread_time() - begun) / len(jumps) * 1e6


def agree(contenders: dict[str, Contender], jumps: list[tuple[int, int]]) -> float:
    """Check that all name the same groups; how many a step names on average."""
    steps = [contender() for contender in contenders.values()]
    due = 0
    for jump in jumps:
        first, *others = (sorted(step(*jump)) for step in steps)
        assert all(other == first for other in others)
        due += len(first)
    return due / len(jumps)


def compare(title: str, contenders: dict[str, Contender], jumps: list[tuple[int, int]]) -> None:
    """Time the contenders in turns; the first one is the rival."""
    runs: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(5):
        for name, contender in contenders.items():
            runs[name].append(timed(contender(), jumps))
    medians = {name: statistics.median(took) for name, took in runs.items()}
    rival = next(iter(medians.values()))
    told = [f"{name} {took:.1f} us ({rival / took:.1f} x)" for name, took in medians.items()]
    sys.stdout.write(f"    {title}: {', '.join(told)}\n")


def contenders(
    families: list[Edges], *, scan: PlainScan, tree: SlidingTree, helped: SlidingTree
) -> tuple[dict[str, Contender], dict[str, Contender]]:
    """Those that name what is due, and those that find it."""
    naming: dict[str, Contender] = {
        "scan": lambda: scan.due,
        "tree": lambda: tree.due,
        "with dummies": lambda: helped.due,
        "timers": lambda: advancing(wound_up(families)),
    }
    finding: dict[str, Contender] = {
        "scan": lambda: scan.find,
        "tree": lambda: tree.find,
        "with dummies": lambda: helped.find,
        "timers": lambda: ringing(wound_up(families)),
    }
    return naming, finding


def main(groups: int = 10_000, steps: int = 2_000) -> None:
    say = sys.stdout.write
    for workload in (any_phase, no_phase, round_slides):
        families = workload(groups)
        graph = grown(families)
        tree, tests = SlidingTree(graph), mean_tests(graph)
        dummies = optimise(graph)
        scan, helped = PlainScan(families), SlidingTree(graph)
        say(f"{workload.__name__}: {groups:,} groups, {float(tests):,.1f} tests a tick in the tree")
        say(f", {float(mean_tests(graph)):,.1f} with {len(dummies):,} dummies\n")
        naming, finding = contenders(families, scan=scan, tree=tree, helped=helped)
        for jump in (1, 7, 60):
            jumps = [(i * jump, (i + 1) * jump) for i in range(steps)]
            say(f"  jumps of {jump} ticks, {agree(naming, jumps[:200]):.1f} groups due\n")
            compare("find", finding, jumps)
            compare("find and name", naming, jumps)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
