"""The parts of indexes by themselves: worked examples of the paper, balance, and choice."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from lab.papers.index_runs import FORMS
from panes.index.basic_windows import BasicWindow, BasicWindows
from panes.index.cost import IndexLoad, candidates, index_cost
from panes.index.domain import Domain
from panes.index.form_group import GroupForm
from panes.index.h_index import HIndex
from panes.index.kinds import DOMAINS, Structure, structure
from panes.index.l_index import LIndex
from panes.index.operators import OPERATORS
from panes.index.row_ring import RowRing
from panes.index.scan import runs_of
from panes.index.t_index import TIndex
from panes.index.text_numbers import TextNumbers
from panes.planning.choose_index import choose_index

FIG_2 = [12, 14, 16, 17, 15, 4, 19, 17, 16, 23, 12, 19, 1, 12, 5, 23]
FIG_3 = ([12, 14, 16, 17], [19, 4, 15, 17])


def test_the_forms_of_figure_2() -> None:
    """On Indexing Sliding Windows, Fig. 2: one basic window, as AGGR, HASH and GROUP."""
    keys, counts = runs_of(np.array(FIG_2))
    assert keys.tolist() == [1, 4, 5, 12, 14, 15, 16, 17, 19, 23]
    assert counts.tolist() == [1, 1, 1, 3, 1, 1, 2, 2, 2, 2]
    groups = GroupForm(np.array([10, 20]))
    groups.add(np.array(FIG_2))
    assert groups.seal().tolist() == [3, 11, 2]
    assert groups.counts.tolist() == [0, 0, 0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", DOMAINS)
def test_the_indexes_of_figure_3(name: str, form: str) -> None:
    """Fig. 3: two basic windows of four rows; when a third comes, the first leaves."""
    schema = pa.schema([("v", pa.int64())])
    rows = RowRing(schema, np.int32 if form == "LIST" else np.int64)
    windows = BasicWindows()
    index = FORMS[form](rows, windows, DOMAINS[name]())  # type: ignore[index]
    for number, values in enumerate(FIG_3):
        first = rows.append([pa.array(values)], len(values))
        index.add(first, np.array(values), None)
        windows.append(BasicWindow(number, first, rows.end, index.seal()))
        rows.seal()
    keys, counts = index.present()
    assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == {
        4: 1, 12: 1, 14: 1, 15: 1, 16: 1, 17: 2, 19: 1,
    }  # fmt: skip
    for window in windows.pop_before(1):
        index.evict(window)
        rows.evict(window.end)
    assert index.present()[0].tolist() == [4, 15, 17, 19]
    assert len(index.domain) == 7, "values without rows wait for a purge"
    index.purge()
    assert len(index.domain) == 4


def depth(tree: TIndex) -> int:
    below = {-1: 0}

    def of(entry: int) -> int:
        if entry not in below:
            low, high = (of(int(child)) for child in tree._child[entry])
            assert abs(low - high) <= 1, "an AVL tree is balanced everywhere"
            below[entry] = 1 + max(low, high)
        return below[entry]

    return of(int(tree.state[3]))


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_the_tree_stays_balanced_whatever_the_order(order: str) -> None:
    keys = np.arange(1000)
    if order == "shuffled":
        keys = np.random.default_rng(1).permutation(keys)
    elif order == "descending":
        keys = keys[::-1].copy()
    tree = TIndex()
    for part in np.array_split(keys, 7):
        tree.enter(part)
        assert depth(tree) <= 1.45 * math.log2(len(tree) + 2)
    assert tree.keys[tree.walk()].tolist() == list(range(1000))
    tree.add(tree.find(np.arange(0, 1000, 3)))
    tree.purge()
    assert depth(tree) == math.ceil(math.log2(334 + 1))
    assert tree.keys[tree.walk()].tolist() == list(range(0, 1000, 3))


@pytest.mark.parametrize("make", [LIndex, TIndex, HIndex, lambda: HIndex(3)])
def test_domains_find_what_was_entered_and_give_numbers_out_again(make: type[Domain]) -> None:
    domain, known = make(), set()
    draw = np.random.default_rng(2)
    for _ in range(30):
        keys = draw.integers(-(1 << 62), 1 << 62, 40) // (1 << 57)
        entries = domain.enter(keys)
        domain.add(entries)
        known |= set(keys.tolist())
        assert (domain.keys[entries] == keys).all()
        assert domain.keys[domain.ordered()].tolist() == sorted(known)
        assert (domain.find(np.array(sorted(known))) > 0).all()
        assert domain.find_one(1 << 62) == -1
        gone = [k for k in sorted(known) if k % 3 == 0]
        for entry in domain.find(np.array(gone, dtype=np.int64)):
            domain.counts[entry] = 0
        domain.purge()
        known = set(domain.keys[domain.walk()].tolist())
        assert not any(k % 3 == 0 for k in known) or len(gone) * 8 <= len(known)
    assert domain.size <= 256, "numbers of purged entries are used again"


def test_text_keeps_its_numbers_until_it_is_forgotten() -> None:
    numbers = TextNumbers(pa.string())
    words = [f"word {n % 500}" for n in range(2000)]
    found = numbers.encode(pa.array(words))
    assert numbers.take(found).to_pylist() == words
    assert numbers.find(pa.array(["word 7", "nothing", None])).tolist() == [7, -1, -1]
    renamed = numbers.keep(np.arange(0, 500, 2))
    assert len(numbers) == 250
    assert numbers.take(renamed[found[:4:2]]).to_pylist() == ["word 0", "word 2"]


def load(questions: dict[str, float], *, rows: int = 1_000, values: int = 300) -> IndexLoad:
    return IndexLoad(windows=60, rows=rows, values=values, window_values=1_000, questions=questions)


def cheapest(asked: IndexLoad) -> str:
    return min(candidates(), key=lambda made: index_cost(made, asked).total).kind


def test_the_cheapest_index_follows_the_questions() -> None:
    assert cheapest(load({})) == "scan", "nobody asks: no index at all (the paper's crossover)"
    assert cheapest(load({"count": 100.0})) in ("hash", "tree")
    assert cheapest(load({"rows": 100.0})) == "db"
    assert cheapest(load({"values": 1.0})) in ("hash", "tree")


def test_forms_follow_repetition() -> None:
    """LIST where values rarely repeat in a basic window, AGGR or HASH where they do (6.4)."""

    def tree(form: str, values: int) -> float:
        made = structure("tree", form)  # type: ignore[arg-type]
        return index_cost(made, load({}, values=values)).total

    assert tree("list", 1_000) < min(tree("aggr", 1_000), tree("hash", 1_000))
    assert tree("list", 5) > min(tree("aggr", 5), tree("hash", 5))


def test_costs_are_ordered_as_in_the_paper() -> None:
    def keeping(kind: str) -> float:
        made = Structure(kind, "list", "list" if kind == "list" else "hash")  # type: ignore[arg-type]
        return index_cost(made, load({})).keeping

    assert keeping("db") < keeping("bw") < keeping("aux") < keeping("ring")
    assert keeping("list") > 10 * keeping("hash")


def test_a_kind_that_is_asked_for_gets_its_best_form() -> None:
    repeated = choose_index(np.arange(1_000) % 200, windows=60, kind="tree")
    assert (repeated.structure.kind, repeated.is_asked) == ("tree", True)
    assert repeated.structure.form != "list"
    assert choose_index(np.arange(1_000), windows=60, kind="tree").structure.form == "list"


def test_questions_are_classified_as_in_the_paper() -> None:
    """Section 3.2: a histogram answers an intersection, only rows answer what sorts them."""
    assert {name for name, one in OPERATORS.items() if one.by_rows} == {"rows", "between", "sorted"}
    assert {name for name, one in OPERATORS.items() if not one.in_order} == {
        "count", "semi_join", "rows",
    }  # fmt: skip
