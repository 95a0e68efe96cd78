"""Every index equals a plain list, whatever comes: see `tests.index.histories`."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from panes.index.cost import candidates
from panes.index.kinds import KINDS, Kind
from tests.index.histories import HISTORIES, VALUES, IndexHistories, begin_small, histories


@pytest.mark.parametrize("data_type", VALUES, ids=str)
def test_all_indexes_equal_a_plain_list_in_any_history(
    data_type: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_small(monkeypatch)
    run_state_machine_as_test(histories(data_type=data_type), settings=HISTORIES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_equals_a_plain_list_in_long_histories(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_small(monkeypatch)
    longer = settings(HISTORIES, max_examples=25, stateful_step_count=20)
    run_state_machine_as_test(histories(kind), settings=longer)


def test_every_kind_is_among_those_that_histories_draw() -> None:
    assert {s.kind for s in IndexHistories.structures} == set(KINDS)
    assert len(candidates()) == len(set(candidates()))
