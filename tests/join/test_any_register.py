"""Registers over joins in which queries come, go, fail and come back; see the machines."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.join.register_machines import (
    SETTINGS,
    InOneProcess,
    JoinRegisterMachine,
    SharedShardsMachine,
)

InOneProcess.TestCase.settings = SETTINGS
SharedShardsMachine.TestCase.settings = settings(SETTINGS, max_examples=2)
TestRegister = InOneProcess.TestCase
TestOverShards = SharedShardsMachine.TestCase


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "histories"), [(InOneProcess, 200), (SharedShardsMachine, 60)])
def test_many_histories(machine: type[JoinRegisterMachine], histories: int) -> None:
    run_state_machine_as_test(machine, settings=settings(SETTINGS, max_examples=histories))
