"""`panes verify --crash`: a query as a stream on Spark that is killed again and again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import pyarrow as pa
import typer

from panes.cli.meter import meter
from panes.cli.show import say
from panes.crash.jobs import Job
from panes.crash.kills import CHANGE, POINTS, VICTIMS
from panes.crash.processes import require_processes
from panes.crash.sample import SampleJobs, sample
from panes.crash.trials import Cell, Tally, Torment, cells, drivers_for
from panes.errors import OptionError, PanesError

_LINE = "{:<10} {:<30} {:>6} {:>6} {:>6} {:>6} {:>6}"


def crash(text: str, streams: dict[str, pa.Table], kills: int, seed: int) -> None:
    """Kill a query so many times, spread over all cells, and print what became of its answers."""
    if kills < 1:
        raise OptionError(f"--crash takes a number of kills from 1 on, got {kills}")
    require_processes()
    tried = sample(text, streams)
    work = _spread(tried, kills)
    print(_LINE.format("killed", "when", "kills", "runs", "lost", "twice", "wrong"))
    total = Tally()
    with meter("kills", sum(count for _, _, count in work)) as bar:
        for victim in VICTIMS:
            mine = [(cell, job, count) for cell, job, count in work if cell.victim == victim]
            for cell, tally in _tallies(victim, mine, tried, seed):
                print(_line(cell, tally), flush=True)
                total = total + tally
                bar.advance(tally.kills)
    if tried.register is None:
        say(f"no change of queries was tried: {tried.refused}")
    found = total.verdict
    say(
        f"{total.kills} kills in {total.runs} runs: "
        f"{found.lost} lost, {found.twice} twice, {found.wrong} wrong"
    )
    if found or total.kills < kills:
        if total.kills < kills:
            say(f"only {total.kills} of {kills} kills came about")
        raise typer.Exit(1)


def _spread(tried: SampleJobs, kills: int) -> list[tuple[Cell, Job, int]]:
    """The kills in turns over all cells: those of the query, and the change in a register.

    Few kills are spread over the victims first, so that each kind of process dies.
    """
    found: list[tuple[Cell, Job]] = [(cell, tried.query) for cell in cells(tried.query)]
    if tried.register is not None:
        register = tried.register
        found += [(c, register) for c in cells(register) if c.point == CHANGE]
    by_victim = [[work for work in found if work[0].victim == victim] for victim in VICTIMS]
    in_turns = [work for turn in zip_longest(*by_victim) for work in turn if work is not None]
    each, rest = divmod(kills, len(in_turns))
    counted = [(cell, job, each + (i < rest)) for i, (cell, job) in enumerate(in_turns)]
    return [work for work in counted if work[2]]


def _tallies(
    victim: str, work: list[tuple[Cell, Job, int]], tried: SampleJobs, seed: int
) -> Iterator[tuple[Cell, Tally]]:
    """All cells of a victim, on one kind of Spark; first a run that nobody disturbs."""
    if not work:
        return
    with drivers_for(victim) as drivers:
        torments: dict[int, Torment] = {}
        for cell, job, count in work:
            torment = torments.get(id(job))
            if torment is None:
                torment = torments[id(job)] = Torment(job, tried.streams, seed=seed)
                if undisturbed := torment.calm(drivers):
                    raise PanesError(f"even without a kill the answers differ: {undisturbed}")
            yield cell, torment.tally(drivers, cell, count)


def _line(cell: Cell, tally: Tally) -> str:
    verdict = tally.verdict
    numbers = (tally.kills, tally.runs, verdict.lost, verdict.twice, verdict.wrong)
    return _LINE.format(cell.victim, POINTS[cell.point], *numbers)
