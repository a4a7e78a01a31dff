"""Levels on a real Kueue: it admits in the order that was written, and nothing of ours is left when we go."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import msgspec
import pytest

from fairlead_admitter.apply.level_applier import LevelApplier
from fairlead_admitter.decide.merged_order import Ranked
from fairlead_admitter.decide.outcome import PlanOutcome
from fairlead_admitter.decide.steering import SteeringPlan, steer, take_levels_away
from fairlead_admitter.errors import FrontendDownError, FrontendForbiddenError, FrontendRefusedError
from fairlead_admitter.frontends.kueue.calls import KueueCalls
from fairlead_admitter.frontends.kueue.levels import KueueLevels
from fairlead_admitter.frontends.kueue.sweep import KueueSweep
from fairlead_admitter.observe.expectations import Expectations, WriteConfirmation
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.frontend.marks import BASE_PRIORITY, NO_PRIORITY
from fairlead_contracts.messages.leave import LeverName
from fairlead_contracts.messages.state import JobState, subject_of
from fairlead_kube.client import KubeClient, connect
from fairlead_kube.kinds.workloads import MULTIKUEUE_ORIGIN, PRIORITY_BOOST
from fairlead_kube.settings import KubeSettings
from fairlead_policy.levels.bands import class_bands
from fairlead_policy.levels.class_bands import class_bands_of
from fairlead_testkit.inputs.builders import a_class, a_position, a_queue
from fairlead_testkit.kubelab import (
    ADMITTER,
    WATCHER,
    KubeLab,
    KubeObject,
    things,
)
from fairlead_testkit.kueue.admissions import AdmissionLog
from fairlead_testkit.kueue.namespace_fixture import effective_priority
from fairlead_testkit.kueue.one_gpu_queue import TENANT, OneGpuQueue
from fairlead_testkit.oracles.starting_order import starting_rank
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

type Client = Callable[..., KubeClient]

LEVERS: list[LeverName] = ["boost", "priority"]
URGENT = 2_000_000
BANDS = class_bands(["urgent", "normal"], {"urgent": URGENT}, width=1_000_000)


class LeveledQueue(OneGpuQueue):
    """The queue, and the facts that a watcher states of it."""

    def __init__(self, lab: KubeLab) -> None:
        super().__init__(lab)
        self.facts = ClusterFacts("c1")
        self.facts.classify(lambda job: "urgent" if job.id.startswith("u") else "normal")
        self.facts.apply(
            {
                "queue": a_queue(name=self.cluster_queue, frontend="kueue", bands_by_class=True),
                "class": a_class(value=URGENT),
            }
        )
        self._rev = 0

    def marks(self, name: str) -> tuple[str | None, str | None, int]:
        """The boost, the noted base, and the priority."""
        found = self.get(name)
        annotations = found["metadata"].get("annotations") or {}
        return (
            annotations.get(PRIORITY_BOOST),
            annotations.get(BASE_PRIORITY),
            found["spec"].get("priority", 0),
        )

    def look(self) -> None:
        """The facts become those of the API server, as a watcher would state them."""
        jobs = {}
        for found in self.lab.api.items(self.path):
            job = self._newer(found)
            jobs[subject_of(job)] = job
        self.facts.apply(jobs)

    def _newer(self, found: KubeObject) -> JobState:
        self._rev += 1
        return self.job_of(found, rev=self._rev)

    def known(self, name: str) -> JobState:
        return self._newer(self.get(name))

    def plan(self, wanted: Sequence[str], expectations: Expectations) -> SteeringPlan:
        jobs = {job.id: job for job in self.facts.queued_jobs()}
        ranked = [
            Ranked(rank, a_position(uid=jobs[name].uid), jobs[name]) for rank, name in enumerate(wanted)
        ]
        class_bands = class_bands_of(list(self.facts.queues.values()), BANDS, protect=False)
        return steer(ranked, self.facts, [self.cluster_queue], expectations, class_bands)

    async def admits(self) -> list[str]:
        """Names of the Workloads that Kueue admits, one after the other, until nothing waits."""
        order = []
        while True:
            await self.settled()
            if not (running := self.admitted()):
                break
            [name] = running
            order.append(name)
            self.finish(TENANT, name)
            if all(things.condition(one, "Finished") for one in self.workloads()):
                break
            await self.runs_other_than(name)
        return order

    async def runs_other_than(self, name: str) -> None:
        await eventually(lambda: list(self.admitted()) not in ([], [name]), 60, what="another runs")


@pytest.fixture
def fixture(kube_lab: KubeLab) -> Iterator[LeveledQueue]:
    with LeveledQueue(kube_lab) as found:
        yield found


@pytest.fixture
async def client(kube_lab: KubeLab) -> AsyncIterator[KubeClient]:
    settings = KubeSettings(kubeconfig=str(kube_lab.kubeconfig(ADMITTER)), write_qps=1000.0, write_burst=1000)
    async with connect(settings, user_agent="fairlead-test") as client:
        yield client


def levels(client: KubeClient, lever: LeverName = "boost") -> KueueLevels:
    return KueueLevels(KueueCalls(client), lambda: lever, outage=lambda: None)


async def carry_out(
    writer: KueueLevels, plan: SteeringPlan, expectations: Expectations, fixture: LeveledQueue
) -> PlanOutcome:
    application = LevelApplier(
        writer,
        expectations,
        fixture.facts.job,
        queues=lambda: fixture.facts.queues,
        in_flight=16,
        at_once=500,
        longest=60.0,
    )
    return await application.carry_out("p", plan.writes, lambda: True)


@pytest.mark.parametrize("lever", LEVERS)
async def test_kueue_admits_in_the_order_that_was_written(
    fixture: LeveledQueue, client: KubeClient, lever: LeverName
) -> None:
    names = [f"n{number}" for number in range(6)]
    fixture.add(*names)
    fixture.add("u0", "u1", priority=URGENT)
    fixture.add("taken", priority=URGENT)  # names the class, and was not granted it
    fixture.look()
    normal = ["n5", "n2", "taken", "n0", "n4", "n1", "n3"]
    expectations = Expectations()
    plan = fixture.plan(["u1", "u0", *normal], expectations)
    applied = await carry_out(levels(client, lever), plan, expectations, fixture)
    assert len(applied.landed) == len(plan.writes)
    assert (applied.failed, applied.gone) == (0, 0)
    fixture.look()
    assert fixture.plan(["u1", "u0", *normal], Expectations()).writes == []
    assert await fixture.admits() == ["blocker", "u1", "u0", *normal]


@pytest.mark.parametrize("lever", LEVERS)
async def test_a_level_that_is_the_base_leaves_no_mark(
    fixture: LeveledQueue, client: KubeClient, lever: LeverName
) -> None:
    fixture.add("a", priority=50)
    job = fixture.known("a")
    writer = levels(client, lever)
    assert await writer.set_level(job, 1050)
    boost, noted, priority = fixture.marks("a")
    assert (boost, noted, priority) == (("1000", None, 50) if lever == "boost" else (None, "50", 1050))
    assert fixture.known("a").base == 50
    assert await writer.set_level(fixture.known("a"), 50)
    assert fixture.marks("a") == (None, None, 50)


async def test_a_copy_of_multikueue_keeps_the_priority_of_its_original(
    fixture: LeveledQueue, client: KubeClient
) -> None:
    fixture.add("a")
    job = msgspec.structs.replace(fixture.known("a"), labels={MULTIKUEUE_ORIGIN: "manager"})
    with pytest.raises(FrontendRefusedError):
        await levels(client, "priority").set_level(job, 7)
    assert fixture.marks("a") == (None, None, 0)
    assert await levels(client, "priority").set_level(job, 0), "what a release before gave it is taken back"
    assert await levels(client).set_level(job, 7)
    assert fixture.marks("a") == ("7", None, 0)


async def test_another_workload_of_the_same_name_is_not_written_to(
    fixture: LeveledQueue, client: KubeClient
) -> None:
    fixture.add("a")
    job = fixture.known("a")
    fixture.lab.api.delete(f"{fixture.path}/a")
    await eventually(
        lambda: "a" not in [one["metadata"]["name"] for one in fixture.lab.api.items(fixture.path)], 60
    )
    writer = levels(client)
    assert await writer.set_level(job, 7) is None
    fixture.add("a")
    assert await writer.set_level(job, 7) is None
    assert fixture.marks("a") == (None, None, 0)


async def test_a_workload_that_was_admitted_meanwhile_waits_no_more(
    fixture: LeveledQueue, client: KubeClient
) -> None:
    fixture.add("a")
    job = fixture.known("a")
    fixture.finish(TENANT, "blocker")
    await eventually(lambda: list(fixture.admitted()) == ["a"], 60)
    writer = levels(client)
    assert await writer.set_level(job, 7) is None
    # As one that runs it can be lifted.
    assert await writer.set_level(fixture.known("a"), 9)
    fixture.finish(TENANT, "a")
    assert await writer.set_level(job, 7) is None


async def test_a_level_asked_for_twice_is_written_only_if_it_was_overwritten(
    fixture: LeveledQueue, client: KubeClient
) -> None:
    fixture.add("a")
    job, writer = fixture.known("a"), levels(client)
    first = await writer.set_level(job, 7)
    mark = fixture.lab.audit_mark()
    again = await writer.set_level(job, 7)
    assert again is not None
    assert first is not None
    assert (again.stood, again.mark) == (True, first.mark)
    asked = fixture.lab.audit_lines(verb="patch", user=ADMITTER, after=mark)
    assert [line for line in asked if line.namespace == fixture.scope] == []
    fixture.lab.api.patch(f"{fixture.path}/a", {"metadata": {"annotations": {PRIORITY_BOOST: "1"}}})
    repaired = await writer.set_level(job, 7)
    assert isinstance(repaired, WriteConfirmation)
    assert not repaired.stood
    assert fixture.marks("a") == ("7", None, 0)


async def test_the_other_lever_of_before_is_taken_back_on_the_way_and_lifts_nobody_above_its_level(
    fixture: LeveledQueue, client: KubeClient
) -> None:
    fixture.add("a", priority=50)
    now: list[LeverName] = ["priority"]
    writer = KueueLevels(KueueCalls(client), lambda: now[0], outage=lambda: None)
    with AdmissionLog(fixture) as log:
        assert await writer.set_level(fixture.known("a"), 1000)
        # By one that leads then.
        assert await levels(client, "boost").set_level(fixture.known("a"), 600)
        assert fixture.marks("a") == ("550", None, 50)
        assert await writer.set_level(fixture.known("a"), 700)
        assert fixture.marks("a")[0] is None
        now[0] = "boost"
        assert await writer.set_level(fixture.known("a"), 650)
        assert fixture.marks("a") == ("600", None, 50)

        def stood() -> list[int]:
            return [
                effective_priority(one.item) for one in log.glimpses if one.item["metadata"]["name"] == "a"
            ]

        await eventually(lambda: stood()[-1] == 650, 60)
        assert list(dict.fromkeys(stood())) == [50, 1000, 600, 700, 650]


@pytest.mark.parametrize("priority", [None, 0])
async def test_a_priority_that_was_absent_is_absent_again(
    fixture: LeveledQueue, client: KubeClient, priority: int | None
) -> None:
    fixture.add("a", "b", "c", priority=priority)

    def found(name: str) -> tuple[object, object]:
        workload = fixture.get(name)
        return workload["spec"].get("priority"), workload["metadata"].get("annotations") or {}

    before = {name: found(name) for name in "abc"}
    assert {had for had, _ in before.values()} == {priority}
    writer = levels(client, "priority")
    for name in "abc":
        for level in (700, 800):
            assert await writer.set_level(fixture.known(name), level)
    # By the same admitter, by another one that leads then, by one with the other lever, and by the sweep.
    assert await writer.set_level(fixture.known("a"), 0)
    assert await levels(client, "boost").set_level(fixture.known("b"), 5)
    assert await levels(client, "priority").set_level(fixture.known("b"), 0)
    sweep = KueueSweep(KueueCalls(client), lambda *_: fixture.cluster_queue, {fixture.cluster_queue})
    assert await sweep.sweep([fixture.cluster_queue], lambda: True) == 1
    assert {name: found(name) for name in "abc"} == before


async def test_a_boost_from_before_does_not_stand_for_a_priority(
    fixture: LeveledQueue, client: KubeClient
) -> None:
    fixture.add("a")
    now: list[LeverName] = ["boost"]
    writer = KueueLevels(KueueCalls(client), lambda: now[0], outage=lambda: None)
    job = fixture.known("a")
    assert await writer.set_level(job, 700)
    now[0] = "priority"
    landed = await writer.set_level(job, 700)
    assert landed is not None
    assert not landed.stood
    assert fixture.marks("a") == (None, NO_PRIORITY, 700)


async def test_a_priority_that_somebody_edited_is_what_the_boost_is_added_to(
    fixture: LeveledQueue, client: KubeClient
) -> None:
    fixture.add("a", priority=50)
    job = fixture.known("a")
    fixture.lab.api.patch(f"{fixture.path}/a", {"spec": {"priority": 80}})
    assert await levels(client).set_level(job, 1000)
    assert fixture.marks("a") == ("920", None, 80)


async def test_a_missing_right_is_named_as_one(kube_lab: KubeLab, fixture: LeveledQueue) -> None:
    fixture.add("a")
    settings = KubeSettings(kubeconfig=str(kube_lab.kubeconfig(WATCHER)))
    async with connect(settings, user_agent="fairlead-test") as client:
        with pytest.raises(FrontendForbiddenError, match="workloads"):
            await levels(client).set_level(fixture.known("a"), 7)
    with pytest.raises(FrontendForbiddenError, match="not cleared"):
        await KueueLevels(KueueCalls(client), lambda: None, outage=lambda: None).set_level(
            fixture.known("a"), 7
        )


@pytest.mark.parametrize("lever", LEVERS)
async def test_a_release_leaves_no_trace_on_anything(
    fixture: LeveledQueue, client: KubeClient, lever: LeverName
) -> None:
    names = ["a", "b", "c", "d"]
    fixture.add(*names)
    with LeveledQueue(fixture.lab) as other:
        other.add("a")
        await levels(client, lever).set_level(other.known("a"), 5)
        fixture.look()
        expectations, writer = Expectations(), levels(client, lever)
        await carry_out(writer, fixture.plan(names[::-1], expectations), expectations, fixture)
        for ends, starts in (("blocker", "d"), ("d", "c")):
            await fixture.settled()
            fixture.finish(TENANT, ends)
            await fixture.runs_other_than(ends)
            assert list(fixture.admitted()) == [starts]
        fixture.look()
        plan = take_levels_away(fixture.facts, [fixture.cluster_queue], Expectations())
        labelled = [name for name in names if fixture.marks(name) != (None, None, 0)]
        assert {write.job.id for write in plan.writes} == {*labelled} - {"c", "d"}
        await carry_out(writer, plan, Expectations(), fixture)
        entries = {(one.scope, "main"): one.cluster_queue for one in (fixture, other)}
        known = {fixture.cluster_queue, other.cluster_queue}
        sweep = KueueSweep(KueueCalls(client), lambda scope, entry: entries.get((scope, entry)), known)
        # Earlier tests left marks in queues that are gone: they would count below.
        await sweep.sweep([], lambda: True)
        assert await sweep.sweep([fixture.cluster_queue], lambda: True) == len({*labelled} & {"c", "d"})
        assert [fixture.marks(name) for name in names] == [(None, None, 0)] * 4
        assert await sweep.sweep([fixture.cluster_queue], lambda: True) == 0
        assert other.known("a").level == 5


async def test_while_kueue_restarts_writes_fail_as_ones_to_be_tried_again(
    kueue_lab: KubeLab, fixture: LeveledQueue
) -> None:
    lab = kueue_lab
    fixture.add("a")
    job = fixture.known("a")
    settings = KubeSettings(kubeconfig=str(lab.kubeconfig(ADMITTER)))
    async with connect(settings, user_agent="fairlead-test") as client:
        writer = levels(client)
        await asyncio.to_thread(lab.process("kueue").end)
        with pytest.raises(FrontendDownError):
            await writer.set_level(job, 7)
        await asyncio.to_thread(lab.restart_kueue)
        assert await writer.set_level(job, 7)
        assert fixture.marks("a") == ("7", None, 0)


async def test_writes_that_order_does_not_bind_go_side_by_side_and_the_order_is_right(
    fixture: LeveledQueue, client: KubeClient
) -> None:
    names = [f"n{number:02}" for number in range(40)]
    fixture.add(*names)
    fixture.look()
    wanted = list(names)
    random.Random(1).shuffle(wanted)
    expectations = Expectations()
    plan = fixture.plan(wanted, expectations)
    began = time.monotonic()
    applied = await carry_out(levels(client), plan, expectations, fixture)
    print(f"{len(applied.landed)} writes in {time.monotonic() - began:.2f} s")  # noqa: T201 # measured
    assert len(applied.landed) == len(plan.writes) > 20
    fixture.look()
    jobs = sorted(fixture.facts.queued_jobs(), key=starting_rank)
    assert [job.id for job in jobs] == wanted
