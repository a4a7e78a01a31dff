"""Jobs whose admission check always asks for another try, beside a real Kueue: others get the room that they give back."""

import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from fairlead_contracts.messages.events import JobStarted
from fairlead_testkit.chaos.audit import heard
from fairlead_testkit.fleets.kube_fleet import KUBE_CLUSTER, KubeFleet, all_placed, fair_policy
from fairlead_testkit.kubelab import ApiError, KubeLab, KubeObject, things
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
LUCKLESS, OTHERS = 3, 3
"""Jobs that never get through, of the tenant with the larger part; and jobs of the other tenant."""
ANSWER_SECONDS = 1.5
"""Seconds after which a job may start, above the whole seconds in which Kubernetes tells time."""
RETRY_SECONDS = 0.5
AGAIN = 1 / 3
"""Part of the tries, on a loaded machine, that give the room to the job that just gave it back. Without Fairlead's doing it is
nearly all."""


class Provisioning(threading.Thread):
    """Answers a check of the lab: of one tenant's jobs always that they are to be tried again, of all others that they may start."""

    def __init__(self, fixture: NamespaceFixture, luckless: str) -> None:
        super().__init__(daemon=True)
        self.check = fixture.named("nodes")
        self.tried: list[str] = []
        """The jobs that got quota, one after another."""
        self._fixture, self._luckless = fixture, fixture.namespaces[luckless]
        self._ended = threading.Event()
        api = fixture.lab.api
        spec = {"controllerName": "fairlead.test/nodes"}
        api.apply(
            {
                "apiVersion": things.KUEUE,
                "kind": "AdmissionCheck",
                "metadata": {"name": self.check},
                "spec": spec,
            }
        )
        active = things.stated_condition("Active", reason="Active", at=_now())
        api.patch(f"{_KUEUE}/admissionchecks/{self.check}/status", {"status": {"conditions": [active]}})

    def run(self) -> None:
        due = dict[str, float]()
        while not self._ended.wait(0.05):
            for name, item in self._fixture.admitted().items():
                checks = item["status"].get("admissionChecks", [])
                if [one["state"] for one in checks] != ["Pending"] or things.condition(item, "Evicted"):
                    continue
                seconds = RETRY_SECONDS if self._is_luckless(item) else ANSWER_SECONDS
                if time.monotonic() >= due.setdefault(name, time.monotonic() + seconds):
                    del due[name]
                    self._answer(item, checks[0])

    def _answer(self, item: KubeObject, check: KubeObject) -> None:
        namespace, name = item["metadata"]["namespace"], item["metadata"]["name"]
        said = {
            **check,
            "state": "Retry" if self._is_luckless(item) else "Ready",
            "message": "no nodes",
            "lastTransitionTime": _now(),
        }
        with contextlib.suppress(ApiError):  # Kueue wrote it meanwhile
            path = f"{_KUEUE}/namespaces/{namespace}/workloads/{name}/status"
            self._fixture.lab.api.patch(path, {"status": {"admissionChecks": [said]}})
            self.tried.append(name)

    def _is_luckless(self, item: KubeObject) -> bool:
        return bool(item["metadata"]["namespace"] == self._luckless)

    def end(self) -> None:
        self._ended.set()
        self.join()
        self._fixture.lab.api.delete(f"{_KUEUE}/admissionchecks/{self.check}")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextlib.contextmanager
def provisioning(fixture: NamespaceFixture, luckless: str) -> Iterator[Provisioning]:
    answering = Provisioning(fixture, luckless)
    answering.start()
    try:
        yield answering
    finally:
        answering.end()


async def test_jobs_that_are_put_back_for_ever_keep_nobody_else_waiting(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with (
        NamespaceFixture(kube_lab, ["keeper", "luckless", "others"]) as fixture,
        provisioning(fixture, "luckless") as nodes,
    ):
        checked = {"admissionChecks": [{"name": nodes.check}]}
        pool = fixture.queue("q", 1, admissionChecksStrategy=checked)
        fixture.job("keeper", "keeper", seconds=3600)
        kube_lab.until(fixture.admitted, what="the queue is full")
        for number in range(LUCKLESS):
            fixture.job("luckless", f"luckless-{number}", seconds=3600)
        for number in range(OTHERS):
            fixture.job("others", f"others-{number}", seconds=1)
        policy = fair_policy(fixture, {"keeper": 1, "luckless": 4, "others": 1}, pool)
        fleet = KubeFleet(tmp_path, kube_lab, policy=policy)
        async with fleet.running() as bus, heard(bus, KUBE_CLUSTER, JobStarted) as found:
            await all_placed(bus, fixture)
            kube_lab.api.delete(f"/apis/batch/v1/namespaces/{fixture.namespaces['keeper']}/jobs/keeper")
            others = fixture.namespaces["others"]
            await eventually(
                lambda: sum(one.scope == others for one in found) == OTHERS, 90, what="all others start"
            )
    again = sum(one == other for one, other in pairwise(nodes.tried))
    assert again <= AGAIN * len(nodes.tried), nodes.tried
    assert fixture.namespaces["luckless"] not in {one.scope for one in found}, "they never started"
    # The lab is shared: jobs of other tests wait for no check.
    waits = [one.waited_seconds for one in found if one.scope in fixture.namespaces.values()]
    assert min(waits) >= int(ANSWER_SECONDS), "a wait ends when the check lets it start"
