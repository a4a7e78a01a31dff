"""Admissions of Kueue, in its order, as the API server tells them: by a watch of its own, not with Fairlead's eyes."""

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Self

from fairlead_testkit.kubelab import ApiUnreachableError, KubeLab, KubeObject, things
from fairlead_testkit.kueue.namespace_fixture import WORKLOADS, NamespaceFixture
from fairlead_testkit.kueue.placements import Glimpse

_TURN_SECONDS = 2
"""Seconds after which a watch is opened anew: the thread looks then whether the test is over."""


@dataclass(frozen=True)
class AdmissionStep:
    """A Workload's admission, eviction or end."""

    what: Literal["admitted", "evicted", "finished"]
    tenant: str
    name: str
    at: float
    """Monotonic seconds when the watch told it."""


class AdmissionLog:
    """Follows the Workloads of a fixture while the block lasts."""

    def __init__(self, fixture: NamespaceFixture) -> None:
        self.steps: list[AdmissionStep] = []
        self.glimpses: list[Glimpse] = []
        """Events that the watch told of the fixture's Workloads, all of them, what stood at the start first."""
        self._fixture = fixture
        self._mine = set(fixture.namespaces.values())
        self._stands: dict[str, str] = {}
        self._told = threading.Condition()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="admission log", daemon=True)
        self._since = ""

    def __enter__(self) -> Self:
        listed = self._fixture.lab.api.get(WORKLOADS)
        self._since = listed["metadata"]["resourceVersion"]
        for item in listed["items"]:
            self._stands[item["metadata"]["uid"]] = _stand(item)
            if item["metadata"]["namespace"] in self._mine:
                self.glimpses.append(Glimpse("ADDED", item, time.monotonic()))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)

    @property
    def admitted(self) -> list[str]:
        """Names in the order of their admission."""
        return [step.name for step in self.steps if step.what == "admitted"]

    def wait(self, admissions: int, seconds: float = 60.0) -> list[AdmissionStep]:
        """Return once there were so many admissions.

        Raises:
            TimeoutError: so many did not come in time.
        """
        with self._told:
            if not self._told.wait_for(lambda: len(self.admitted) >= admissions, seconds):
                raise TimeoutError(f"{len(self.admitted)} of {admissions} admissions: {self.admitted}")
        return self.steps

    # --- inside

    def _follow(self) -> None:
        while not self._over.is_set():
            try:
                for event in self._fixture.lab.api.watch(WORKLOADS, self._since, seconds=_TURN_SECONDS):
                    self._take(event)
            except ApiUnreachableError:
                time.sleep(0.1)  # the API server is away: the watch goes on where it was

    def _take(self, event: KubeObject) -> None:
        item = event["object"]
        if event["type"] == "ERROR":
            raise ApiUnreachableError(str(item))
        self._since = item["metadata"]["resourceVersion"]
        if event["type"] == "BOOKMARK" or item["metadata"]["namespace"] not in self._mine:
            return
        self.glimpses.append(Glimpse(event["type"], item, time.monotonic()))
        uid, now = item["metadata"]["uid"], _stand(item)
        before = self._stands.get(uid, "waiting")
        self._stands[uid] = now
        if now != before:
            self._tell(item, before, now)

    def _tell(self, item: KubeObject, before: str, now: str) -> None:
        told: list[Literal["admitted", "evicted", "finished"]] = []
        if before == "waiting" or now == "admitted":
            told.append("admitted")
        if now == "finished":
            told.append("finished")
        if now == "waiting":
            told = ["evicted"]
        with self._told:
            for what in told:
                name = item["metadata"]["name"]
                self.steps.append(AdmissionStep(what, self._fixture.tenant_of(item), name, time.monotonic()))
            self._told.notify_all()


@contextlib.contextmanager
def full_queue(
    lab: KubeLab, tenants: Iterable[str], gpus: int
) -> Iterator[tuple[NamespaceFixture, AdmissionLog, str]]:
    """A queue of so many GPUs, all of which the Workload `keeper` of a tenant of that name holds; gives its name, too."""
    with NamespaceFixture(lab, [*tenants, "keeper"]) as fixture, AdmissionLog(fixture) as log:
        queue = fixture.queue("shared", gpus)
        fixture.workload("keeper", "keeper", gpus)
        log.wait(1)
        yield fixture, log, queue


def _stand(item: KubeObject) -> str:
    if things.condition(item, "Finished"):
        return "finished"
    return "admitted" if things.condition(item, "QuotaReserved") else "waiting"
