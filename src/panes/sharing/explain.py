"""A register as text: what the queries share, where panes begin, and how much is stored for it.

The same queries give the same text; of the stream it only says how many classes of filters rows
have fallen into so far. With `details` it also names pieces and what each way to cut would cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from panes.aggregates.aggregate import Piece
from panes.axis import Axis, format_duration
from panes.planning.shared_cut import CutOption, panes_in
from panes.sharing.keep import Keep
from panes.sharing.needs import filters_of
from panes.sharing.shape import Shape
from panes.sharing.shared_store import SharedStore
from panes.windows.cut import panes_per_window

_LABEL = 11
_FEW = 3


def explain_stores(
    stream: str,
    stores: Sequence[SharedStore],
    prepared: Sequence[str] = (),
    *,
    waiting: int = 0,
    details: bool = False,
) -> str:
    """All stores of a register, one after the other, and what prepared questions need.

    So many queries are `waiting` for the columns of the stream.
    """
    queries = sum(len(shape) for store in stores for shape in store.shapes)
    counted = f"{_many(queries, 'query', 'queries')} in {_many(len(stores), 'store', 'stores')}"
    lines = [_line("register", f"`{stream}`, read once: {counted}")]
    if waiting:
        count = _many(waiting, "query waits", "queries wait")
        lines += [_line("", f"{count} for the first batch, which tells the columns")]
    for store in stores:
        lines += _store_lines(store, details=details)
    lines += [""] if prepared else []
    lines += [_line("" if i else "prepared", text) for i, text in enumerate(prepared)]
    return "\n".join(lines) + "\n"


def explain_finished(stream: str, queries: int) -> str:
    """A register whose stream has ended, with so many queries."""
    count = _many(queries, "query", "queries")
    return (
        _line("register", f"`{stream}` has ended: {count}, and nothing is stored any more") + "\n"
    )


def explain_keep(keep: Keep, axis: Axis | None) -> str:
    """Which rows are kept for questions."""
    is_time = axis is not None and axis.kind == "time"
    size = format_duration(keep.size) if is_time else str(keep.size)
    return f"rows of the last {size}: {', '.join(keep.columns.names) or 'no column'}"


def _store_lines(store: SharedStore, *, details: bool) -> Iterator[str]:
    shapes = store.shapes
    keys = ", ".join(tree.sql(dialect="spark") for tree in store.keys) or "nothing"
    names = [m.name for shape in shapes for m in shape.members]
    yield ""
    yield _line("store", f"GROUP BY {keys}: {_named(names)}")
    planned = _many(len(shapes), "plan", "plans")
    yield _line("", f"{planned}: queries that differ only in their windows share one")
    yield from _cut_lines(store) if details else _pane_lines(store)
    label = "filters"
    for number in store.rows.filters:
        users = [m.name for s in shapes if number in filters_of(s) for m in s.members]
        yield _line(label, f"{store.rows.text(number)}: {_named(users)}")
        label = ""
    label = "pieces"
    for piece in store.panes.pieces if details else ():
        yield _line(label, f"{'+'.join(piece.monoid.names)} for {_users(piece, shapes)}")
        label = ""
    for values in store.panes.values:
        users = [m.name for s in shapes if values in s.value_sets for m in s.members]
        columns = ", ".join(store.rows.text(c) for c in values.columns)
        yield _line("multiset" if details else "values", f"of {columns}: {_named(users)}")
    yield from _saving_lines(store, details=details)


def _pane_lines(store: SharedStore) -> Iterator[str]:
    shared = store.chosen_cut()
    families = shared.cut.families
    begins = f"a pane begins every {_length(store, families[0].slide)}"
    if len(families) > 1:
        begins = "a pane begins wherever a window of some query starts or ends"
    yield _line("panes", begins)
    older = shared.older
    if older is not None:
        every = _length(store, older.cut.families[0].slide)
        reach = _length(store, older.reach)
        yield _line("", f"panes more than {reach} old are merged into one every {every}")


def _cut_lines(store: SharedStore) -> Iterator[str]:
    shared = store.chosen_cut()
    families = shared.cut.families
    if len(families) == 1:
        yield _line("cut", f"a pane begins every {_length(store, families[0].slide)}")
    else:
        yield _line("cut", f"panes begin at the edges of {len(families)} families")
    yield _line("", f"{shared.way}: {shared.why}")
    for option in shared.options:
        yield _line("", _option(option))
    if shared.older is not None:
        every = _length(store, shared.older.cut.families[0].slide)
        reach = _length(store, shared.older.reach)
        yield _line("", f"panes further back than {reach} are folded to one every {every}")


def _option(option: CutOption) -> str:
    families = _many(option.families, "family", "families")
    return f"{option.way:<7}{option.panes:>10,.0f} panes, {families}: cost {option.cost:,.0f}"


def _saving_lines(store: SharedStore, *, details: bool) -> Iterator[str]:
    """Against every query with panes and pieces of its own."""
    members = [(shape, m) for shape in store.shapes for m in shape.members]
    longest = max(m.spec.size for _, m in members)
    shared = store.chosen_cut()
    panes = min(option.panes for option in shared.options) or panes_in(shared.cut, longest)
    alone = [panes_per_window(m.spec) or 1 for _, m in members]
    needed = [len(shape.plan.pieces) + len(shape.plan.value_sets) for shape, _ in members]
    stored = len(store.panes.pieces) + len(store.panes.values)
    classes = max(1, len(store.panes.classes))
    partials = sum(a * n for a, n in zip(alone, needed, strict=True))
    yield _line("stores", f"panes     {panes:>12,.0f} instead of {sum(alone):,}")
    if details:
        yield _line("", f"pieces    {stored:>12,} instead of {sum(needed):,}")
    saved = f"{panes * stored * classes:>12,.0f} instead of {partials:,} for each key"
    yield _line("", f"partials  {saved}, for {_many(classes, 'set', 'sets')} of filters")


def _users(piece: Piece, shapes: Sequence[Shape]) -> str:
    names = [m.name for s in shapes if piece in {w.piece for w in s.pieces} for m in s.members]
    return _named(names) if names else "telling whether a window holds a row"


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_FEW])
    return shown if len(names) <= _FEW else f"{shown} and {len(names) - _FEW:,} more"


def _many(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _length(store: SharedStore, ticks: int) -> str:
    is_time = store.shapes[0].plan.axis.kind == "time"
    return format_duration(ticks) if is_time else str(ticks)


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}".rstrip()
