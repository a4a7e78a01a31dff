"""The loop: what it writes of what stands, and what it remembers meanwhile."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from fairlead_checker.check_entries import Entry
from fairlead_checker.checker import Checker
from fairlead_checker.facts import CheckedWorkload, checked, pod_use
from fairlead_checker.free_capacity import FreeCapacity
from fairlead_checker.instruments import CheckerInstruments, CheckTraces
from fairlead_checker.settings import CheckerSettings
from fairlead_checker.steps import RESET
from fairlead_contracts.base.instants import SECOND, Micros, to_datetime, to_seconds
from fairlead_contracts.messages.job_traces import Span, new_trace
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.objects import instant
from fairlead_kube.kinds.observed import observed_node
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.kinds.queues import ResourceFlavor
from fairlead_kube.kinds.workloads import AdmissionCheck, Workload
from fairlead_kube.reflector import Key
from fairlead_policy.fit.observed import ready_node
from fairlead_runtime.metrics import Metrics
from fairlead_runtime.spans import Spans
from fairlead_testkit.kubelab import KubeObject

GPU = "nvidia.com/gpu"
START: Micros = instant("2026-11-22T12:00:00Z")
HOLD = 60 * SECOND


def text(at: Micros) -> str:
    return f"{to_datetime(at):%Y-%m-%dT%H:%M:%SZ}"


class CheckedCluster:
    """A cluster, changed as Kueue and the scheduler would change it, and the answers written to it."""

    def __init__(self, *nodes: str) -> None:
        self.free_capacity = FreeCapacity()
        for name in nodes:
            has: KubeObject = {"cpu": "64", "pods": "110", GPU: "4"}
            built: KubeObject = {
                "metadata": {"name": name},
                "status": {"allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]},
            }
            self.free_capacity.set_node(name, ready_node(observed_node(msgspec.convert(built, Node))))
        self.flavors: Mapping[str, ResourceFlavor] = {}
        self.checks = frozenset({"gang-fit"})
        self.now = START
        self.leads = True
        self.refuses = False
        self.on_write: Callable[[], None] = lambda: None
        self.written: list[tuple[str, str]] = []
        """Workloads, each with the state written of it, or `let in`."""
        self._found: dict[str, KubeObject] = {}
        self.told: list[Span] = []
        self.spans = Spans("checker", "one", lambda *_: None).send_to(self.take, 1.0)
        self._version = 0
        self.checker = Checker(
            self,
            self,
            CheckerSettings(hold_seconds=to_seconds(HOLD)),
            CheckerInstruments(Metrics("checker")),
            traces=CheckTraces(self.spans, "here"),
            why_not=lambda: None if self.leads else "it does not lead",
            clock=lambda: self.now,
            wake=asyncio.Event(),
        )

    # --- what is asked of it

    @property
    def workloads(self) -> list[CheckedWorkload]:
        found = (checked(msgspec.convert(one, Workload)) for one in self._found.values())
        return [one for one in found if one is not None]

    def unclaimed(self) -> list[AdmissionCheck]:
        return []

    def refresh(self) -> None:
        pass

    def take(self, span: Span) -> bool:
        self.told.append(span)
        return True

    async def state(self, workload: CheckedWorkload, entries: Sequence[Entry]) -> bool:
        self.written.append((workload.name, str(entries[0]["state"])))
        self.on_write()
        return not self.refuses

    async def end_wait(self, workload: CheckedWorkload) -> bool:
        self.written.append((workload.name, "let in"))
        return True

    async def activate(self, name: str, now: Micros) -> None:
        raise AssertionError(name, now)

    # --- what happens

    async def passed(self) -> list[tuple[str, str]]:
        """One pass; gives what was written in it."""
        self.written.clear()
        await self.checker._pass()
        return list(self.written)

    def gang(
        self,
        name: str,
        pods: int = 2,
        *,
        state: str = "Pending",
        message: str = "",
        quota: bool = True,
        evicted: bool = False,
        requeue_at: Micros | None = None,
        level: int = 0,
    ) -> None:
        """A gang of pods of a node each stands so now."""
        self._version += 1
        container = {"name": "main", "resources": {"requests": {GPU: "4"}}}
        conditions = [
            {"type": "QuotaReserved", "status": str(quota), "lastTransitionTime": text(START)},
            {"type": "Evicted", "status": str(evicted), "reason": "AdmissionCheck"},
        ]
        entry = {"name": "gang-fit", "state": state, "message": message, "lastTransitionTime": text(self.now)}
        self._found[name] = {
            "metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": str(self._version)},
            "spec": {
                "priority": level,
                "podSets": [
                    {"name": "main", "count": pods, "template": {"spec": {"containers": [container]}}}
                ],
            },
            "status": {
                "conditions": conditions,
                "admissionChecks": [entry],
                "requeueState": {"requeueAt": None if requeue_at is None else text(requeue_at)},
            },
        }

    def gone(self, name: str) -> None:
        del self._found[name]

    def pods(self, of: str, nodes: Iterable[str]) -> None:
        """Puts the pods of a Workload on these nodes."""
        for node in nodes:
            built: KubeObject = {
                "metadata": {"annotations": {"kueue.x-k8s.io/workload": of}},
                "spec": {"nodeName": node, "containers": [{"resources": {"requests": {GPU: "4"}}}]},
            }
            self.free_capacity.set_pod(Key("a", f"{of}-{node}"), pod_use(msgspec.convert(built, Pod)))

    def end_pods(self, of: str, nodes: Iterable[str]) -> None:
        for node in nodes:
            self.free_capacity.set_pod(Key("a", f"{of}-{node}"), None)


async def test_of_two_gangs_of_one_moment_the_first_of_the_order_gets_the_nodes() -> None:
    here = CheckedCluster("n1", "n2", "n3")
    here.gang("later")
    here.gang("first", level=5)
    assert await here.passed() == [("first", "Ready"), ("later", "Retry")]


async def test_a_pass_is_decided_by_what_stood_before_its_first_write() -> None:
    here = CheckedCluster("n1", "n2")
    here.gang("out", 3)
    assert await here.passed() == [("out", "Retry")]
    here.gang("out", 3, message=f"{RESET}. Previously: Retry", evicted=True)
    here.gang("in")
    here.on_write = lambda: here.free_capacity.set_node("n1", None)
    assert await here.passed() == [("out", "Retry"), ("in", "Ready")]


async def test_nothing_is_said_twice_of_one_state() -> None:
    here = CheckedCluster("n1", "n2")
    here.gang("one")
    here.gang("two")
    await here.passed()
    assert await here.passed() == []


async def test_room_is_kept_until_the_pods_are_on_nodes() -> None:
    here = CheckedCluster("n1", "n2", "n3", "n4")
    here.gang("one")
    await here.passed()
    here.gang("one", state="Ready")
    here.gang("two", pods=3)
    assert await here.passed() == [("two", "Retry")]
    here.pods("one", ["n1", "n2"])
    here.gang("three", pods=2)
    assert await here.passed() == [("three", "Ready")]


async def test_room_is_not_kept_for_ever() -> None:
    here = CheckedCluster("n1", "n2")
    here.gang("one")
    await here.passed()
    here.gang("one", state="Ready")
    here.now += HOLD
    here.gang("two")
    assert await here.passed() == [("two", "Ready")]


async def test_a_new_leader_keeps_room_for_what_the_last_one_let_through() -> None:
    here = CheckedCluster("n1", "n2")
    here.gang("one", state="Ready")
    here.gang("two")
    assert await here.passed() == [("two", "Retry")]


async def test_pods_that_were_seen_and_ended_are_not_waited_for() -> None:
    here = CheckedCluster("n1", "n2")
    here.gang("one")
    await here.passed()
    here.gang("one", state="Ready")
    here.pods("one", ["n1", "n2"])
    await here.passed()
    here.end_pods("one", ["n1", "n2"])
    here.gang("two")
    assert await here.passed() == [("two", "Ready")]


async def test_kueues_older_copy_over_our_word_is_answered_as_before() -> None:
    here = CheckedCluster("n1", "n2")
    here.gang("one")
    await here.passed()
    here.gang("two")
    await here.passed()
    here.pods("one", ["n1"])
    here.gang("one", message="an older copy")
    assert ("one", "Ready") in await here.passed(), "although its own pods are in its way"


async def test_a_refused_write_is_made_again() -> None:
    here = CheckedCluster("n1", "n2")
    here.gang("one")
    here.refuses = True
    assert await here.passed() == [("one", "Ready")]
    here.refuses = False
    assert await here.passed() == [("one", "Ready")]


async def test_a_gang_without_room_goes_its_way_and_comes_back_as_soon_as_it_fits() -> None:
    here = CheckedCluster("n1", "n2")
    here.pods("stranger", ["n1"])
    here.gang("one")
    assert await here.passed() == [("one", "Retry")]
    here.gang("one", message=f"{RESET}. Previously: Retry", evicted=True)
    assert await here.passed() == [("one", "Retry")]
    later = here.now + 15 * SECOND
    here.gang("one", state="Retry", quota=False, evicted=True, requeue_at=later)
    assert await here.passed() == [("one", "Pending")]
    here.gang("one", quota=False, evicted=True, requeue_at=later)
    assert await here.passed() == []
    here.end_pods("stranger", ["n1"])
    assert await here.passed() == [("one", "let in")]
    here.gang("one", quota=False)
    assert await here.passed() == []
    here.gang("one")
    assert await here.passed() == [("one", "Ready")]


async def test_who_does_not_lead_says_nothing_and_forgets() -> None:
    here = CheckedCluster("n1", "n2")
    here.gang("one")
    here.leads = False
    running = asyncio.create_task(here.checker.run())
    await asyncio.sleep(0)
    here.checker._wake.set()
    for _ in range(10):
        await asyncio.sleep(0)
    running.cancel()
    assert here.written == []


async def test_who_answers_from_now_on_says_so_and_for_whom() -> None:
    here = CheckedCluster("n1", "n2")
    here.gang("one")
    here.gang("two", level=5)
    for leads in (True, True, False, True):
        here.leads = leads
        here.checker._may_answer()
    first, second = here.told
    assert {first.name, second.name} == {"take over"}
    assert first.links == tuple(new_trace("job", uid) for uid in ("two", "one"))
    assert first.context.trace_id != second.context.trace_id
