"""Ports that nobody else is told: who asked for them listens a moment later."""

import pytest

from fairlead_testkit.processes.free_ports import free_ports


def test_a_port_is_told_once_and_workers_of_a_run_are_told_different_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: dict[str, list[int]] = {}
    for worker in ("gw0", "gw5"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        told[worker] = [port for _ in range(40) for port in free_ports(4)]
        assert len(set(told[worker])) == 160
    assert max(told["gw0"]) < min(told["gw5"])
