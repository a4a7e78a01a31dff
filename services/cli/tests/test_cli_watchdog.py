"""Strict queues are let go of and taken back at their times."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_bus.ownership.leadership import Leadership
from fairlead_cli.client.instance import RunningInstance, find_url, forget, remember, state_directory
from fairlead_cli.errors import InputError
from fairlead_cli.kueue.clusters import target
from fairlead_cli.kueue.flags import WatchdogFlags
from fairlead_cli.kueue.watchdog import watchdog_run
from fairlead_cli.kueue.watchdog.queues import LeadClock, QueueAction
from fairlead_cli.kueue.watchdog.watchdog_run import LeaderWatch, run_watchdog
from fairlead_testkit import eventually
from fairlead_testkit.kubelab import GPU, KubeLab, things
from fairlead_testkit.timing.in_hand import beside

WAIT, LOOSEN, TIGHTEN = QueueAction.WAIT, QueueAction.LOOSEN, QueueAction.TIGHTEN


@pytest.mark.parametrize(
    ("seen", "verdicts"),
    [
        pytest.param(
            [(None, 0), (None, 9), (None, 10)], [WAIT, WAIT, LOOSEN], id="nobody from the first look"
        ),
        pytest.param(
            [("a", 0), ("a", 4), ("a", 5)], [WAIT, WAIT, TIGHTEN], id="somebody from the first look"
        ),
        pytest.param([("a", 0), (None, 9), (None, 18), (None, 19)], [WAIT, WAIT, WAIT, LOOSEN], id="it died"),
        pytest.param([(None, 0), ("a", 9), (None, 10), (None, 19)], [WAIT] * 4, id="it came for a moment"),
        pytest.param(
            [("a", 0), ("b", 4), ("b", 8), ("b", 9)], [WAIT, WAIT, WAIT, TIGHTEN], id="another lead"
        ),
    ],
)
def test_what_lasts_counts(seen: list[tuple[str | None, float]], verdicts: list[QueueAction]) -> None:
    lead = LeadClock(after=10, back_after=5)
    assert [lead.see(leader, now) for leader, now in seen] == verdicts


@pytest.mark.kube
@pytest.mark.timeout(400)
async def test_a_queue_that_the_cluster_has_not_is_refused_unless_another_is_there(
    kube_lab: KubeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    kube_lab.api.apply(things.cluster_queue("gpus", {GPU: 4}, flavor="gpu"))
    where = target(kubeconfig=str(kube_lab.kubeconfig()), context=None, cluster="lab")
    with pytest.raises(InputError, match="cluster lab has no ClusterQueue nosuch"):
        await run_watchdog(where, ["nosuch"], WatchdogFlags(), None)
    with pytest.raises(InputError, match="cluster lab has no AdmissionCheck gangfit"):
        await run_watchdog(where, ["gpus"], WatchdogFlags(check=["gangfit"]), None)
    told = ""

    def is_watching() -> bool:
        nonlocal told
        told += capsys.readouterr().err
        return "cluster lab: watching gpus" in told and "once no admitter has led for 600 s" in told

    async with beside(run_watchdog(where, ["gpus", "nosuch"], WatchdogFlags(), None)):
        await eventually(is_watching, what="it watches the one that is there")
        assert "cluster lab has no ClusterQueue nosuch: the others are watched" in told


@pytest.mark.integration
async def test_a_cluster_that_nobody_leads_is_told_beside_those_that_are_led(nats: str, bus: Bus) -> None:
    leading = Leadership(bus, role="admitter", cluster="lab", replica="one", wake=asyncio.Event())
    watches = LeaderWatch("lap", nats), LeaderWatch("lab", nats)
    async with beside(*(one.run() for one in (leading, *watches))):
        await eventually(lambda: watches[0].elsewhere() == ["lab"], what="the other cluster is named")
        await eventually(lambda: watches[1].leader is not None, what="this one is led")
        assert watches[1].elsewhere() == []


async def test_that_nats_is_out_of_reach_is_said_once_however_often_it_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("NATS_URL", raising=False)
    monkeypatch.setattr(watchdog_run, "_RETRY_SECONDS", 0.01)
    tries = list[str]()

    def noting(stated: str | None, environment: Mapping[str, str]) -> str:
        tries.append("")
        return find_url(stated, environment)

    monkeypatch.setattr(watchdog_run, "find_url", noting)
    async with beside(LeaderWatch("lab", None).run()):
        await eventually(lambda: len(tries) > 3, what="it tries again")
    assert capsys.readouterr().err.count("NATS is out of reach: no running Fairlead is known") == 1


@pytest.mark.integration
async def test_an_instance_that_started_anew_at_another_address_is_found(
    nats: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(watchdog_run, "_RETRY_SECONDS", 0.05)
    state, asked = state_directory(os.environ), list[str]()

    def noting(settings: ConnectionSettings, *, name: str) -> object:
        asked.append(settings.url)
        return connect(settings, name=name)

    monkeypatch.setattr(watchdog_run, "connect", noting)
    first, second = nats, nats.replace("127.0.0.1", "localhost")
    assert first != second
    remember(state, RunningInstance(url=first, pid=os.getpid(), store="x"))
    watching = asyncio.create_task(LeaderWatch("lab", None).run())
    try:
        await eventually(lambda: asked == [first], what="it connects")
        remember(state, RunningInstance(url=second, pid=os.getpid(), store="x"))
        await eventually(lambda: asked == [first, second], what="it connects to the other")
        told = list[str]()

        def back() -> bool:
            told.append(capsys.readouterr().err)
            return "NATS is within reach again\n" in told[-1]

        await eventually(back, what="it says that it is connected again")
        assert "NATS is out of reach: no longer at" in "".join(told)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        forget(state, os.getpid())
