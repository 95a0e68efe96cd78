"""Asking on demand: what prepared questions cost while rows come, and save when they are asked.

Answers are compared with NumPy over the rows before anything is timed; times are those of the
processor, the least of some rounds. Run it with
``python -m lab.bench.ask [rows] [largest size] [rounds]``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

import panes
from lab.papers.ordered_sharing import OrderedSharing
from panes.stores.nested.nested_windows import NestedWindows, StaircaseSharing

BATCH = 10_000
WIDTH = 10
AXIS = "SELECT count(*) AS n FROM bids [TUMBLING 1000000 WATTR at]"
HIGH = "SELECT max(price) AS high FROM bids [ROWS {}]"
KEPT_SUM = "SELECT sum(price) AS total FROM bids [ROWS {}]"
SUM = "SELECT sum(price) AS total FROM bids [RANGE {} WATTR at]"
say = sys.stdout.write


def bids(rows: int) -> pa.Table:
    """Rows up to 50 places out of order, and a price that wanders."""
    dice = np.random.default_rng(1)
    at = np.arange(rows) + dice.integers(0, 50, rows)
    price = 1_000 + np.cumsum(dice.integers(-3, 4, rows)) + dice.integers(0, 100, rows)
    return pa.table({"at": at, "price": price})


def sizes_up_to(largest: int, count: int) -> list[int]:
    return np.unique(np.linspace(largest / count, largest, count).astype(np.int64)).tolist()


def opened(table: pa.Table, keep: int, texts: dict[str, int | None]) -> panes.Register:
    reg = panes.register("bids", schema=table.schema, keep_rows=keep)
    reg.add("axis", AXIS)
    for text, within in texts.items():
        reg.prepare(text, within=within)
    return reg


def pushed(reg: panes.Register, table: pa.Table) -> float:
    """Nanoseconds a row."""
    begun = time.process_time()
    for first in range(0, len(table), BATCH):
        reg.push(table.slice(first, BATCH))
    return (time.process_time() - begun) / len(table) * 1e9


def open_and_push(table: pa.Table, texts: dict[str, int | None]) -> float:
    return pushed(opened(table, 0, texts), table)


def asked(reg: panes.Register, texts: dict[str, int | None], most: int) -> float:
    """Microseconds a question."""
    some = list(texts.items())[:: max(1, len(texts) // most)]
    begun = time.process_time()
    for text, within in some:
        reg.ask(text, within=within)
    return (time.process_time() - begun) / len(some) * 1e6


def check(reg: panes.Register, table: pa.Table, sizes: list[int], form: str) -> None:
    at, price = table["at"].to_numpy(), table["price"].to_numpy()
    for size in sizes[:: max(1, len(sizes) // 50)]:
        if form == HIGH:
            assert reg.ask(HIGH.format(size))["high"].to_pylist() == [price[-size:].max()]
            continue
        (answer,) = reg.ask(SUM.format(size), within=WIDTH).to_pylist()
        truth = price[at > at.max() - size].sum()
        assert answer["low_total"] <= truth <= answer["high_total"]


def best(rounds: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(rounds))


def by_register(table: pa.Table, largest: int, rounds: int) -> None:
    """Prepared against kept rows: rows that come, and questions that are asked of them."""
    alone = best(rounds, lambda: pushed(opened(table, 0, {}), table))
    kept = opened(table, largest, {})
    with_rows = best(rounds, lambda: pushed(opened(table, largest, {}), table))
    pushed(kept, table)
    say(f"one query alone: {alone:.1f} ns a row; with {largest:,} rows kept: {with_rows:.1f}\n")
    ways = (("staircase, max", HIGH, None, HIGH), ("TimeGram, sum", SUM, WIDTH, KEPT_SUM))
    for name, form, within, of_kept in ways:
        rescan = best(rounds, partial(asked, kept, {of_kept.format(largest): None}, 1))
        say(f"{of_kept.format(largest)}, asked of the kept rows: {rescan:,.0f} us\n")
        for count in (1, 100, 10_000):
            sizes = sizes_up_to(largest, count)
            texts = {form.format(size): within for size in sizes}
            reg = opened(table, 0, texts)
            pushed(reg, table)
            check(reg, table, sizes, form)
            cost = best(rounds, partial(open_and_push, table, texts))
            latency = best(rounds, partial(asked, reg, texts, 1_000))
            held = reg.state["prepared_bytes"] / 1_000
            say(
                f"{name}, {count:>6,} sizes: push {cost - alone:+.1f} ns a row "
                f"({cost / alone:.2f} x), ask {latency:.1f} us ({rescan / latency:,.0f} x faster), "
                f"{held:,.1f} kB held\n"
            )


def by_store(table: pa.Table, largest: int, rounds: int) -> None:
    """The report's tree against the staircase: a lookup of all sizes after every batch."""
    price = table["price"].to_numpy()

    def run(store: NestedWindows, sizes: list[int]) -> float:
        begun = time.process_time()
        for first in range(0, len(price), BATCH):
            store.add_rows(price[first : first + BATCH])
            store.ask_each(sizes)
        return (time.process_time() - begun) / len(price) * 1e9

    def run_tree(sizes: list[int]) -> float:
        return run(OrderedSharing("max", max_size=largest, sizes=sizes), sizes)

    def run_stairs(sizes: list[int]) -> float:
        return run(StaircaseSharing("max", max_size=largest), sizes)

    for count in (1, 100, 10_000):
        sizes = sizes_up_to(largest, count)
        tree = OrderedSharing("max", max_size=largest, sizes=sizes)
        stairs = StaircaseSharing("max", max_size=largest)
        run(tree, sizes), run(stairs, sizes)
        assert tree.ask_each(sizes).equals(stairs.ask_each(sizes))
        trees = best(rounds, partial(run_tree, sizes))
        steps = best(rounds, partial(run_stairs, sizes))
        say(
            f"rows and lookups, {count:>6,} sizes: OrderedSharing {trees:.1f} ns a row, staircase "
            f"{steps:.1f} ({trees / steps:.1f} x); {tree.recalculations} times through the rows\n"
        )


def main(rows: int = 1_000_000, largest: int = 100_000, rounds: int = 5) -> None:
    table = bids(rows)
    by_register(table, largest, rounds)
    by_store(table, largest, rounds)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
