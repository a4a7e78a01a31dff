"""A whole admitter on a real Kueue: drift repaired, fights ended, what runs protected, and a release without a trace."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import msgspec
import pytest

from fairlead_admitter.observe.expectations import FIGHT_ROUNDS
from fairlead_bus import Bus
from fairlead_contracts.base.codec import to_packed
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.leave import LeverName
from fairlead_contracts.messages.state import JobState, QueueState, subject_of
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_kube.kinds.workloads import PRIORITY_BOOST
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_testkit import eventually
from fairlead_testkit.by_hand.bus_harness import sample
from fairlead_testkit.by_hand.fake_cluster import DOCUMENT, POOL, FakeCluster, FakeScorer, RunAdmitter
from fairlead_testkit.by_hand.people import give_leave, put_policy, say
from fairlead_testkit.fleets.kube_fleet import level_patches
from fairlead_testkit.inputs.builders import a_queue
from fairlead_testkit.kubelab import (
    ADMITTER,
    ApiError,
    KubeLab,
    KubeObject,
)
from fairlead_testkit.kueue.one_gpu_queue import OneGpuQueue
from fairlead_testkit.oracles.starting_order import in_starting_order
from fairlead_testkit.timing.in_hand import beside

pytestmark = [pytest.mark.kube, pytest.mark.integration, pytest.mark.timeout(300)]


BASE_PRIORITY = "fairlead.dev/base-priority"
LEVERS: list[LeverName] = ["boost", "priority"]
TOP = 1_000_000
"""Top of the band of the last class, where the cluster names no classes."""


class Watched(OneGpuQueue):
    """The queue, stated on NATS as the queue `main` of the hand-played cluster.

    Args:
        lab: runs already.
        cluster: hears of its Workloads.
        shared: another one, whose ClusterQueue this namespace shares.
    """

    def __init__(self, lab: KubeLab, cluster: FakeCluster, shared: "Watched | None" = None) -> None:
        super().__init__(lab, shared)
        self.cluster = cluster
        self._seen: dict[str, str] = {}

    def patch(self, name: str, boost: str) -> None:
        """Another writer."""
        self.annotate(name, PRIORITY_BOOST, boost)

    def annotate(self, name: str, key: str, value: str) -> None:
        """Another writer, of any annotation."""
        self.lab.api.patch(f"{self.path}/{name}", {"metadata": {"annotations": {key: value}}})

    def uid(self, name: str) -> str:
        found: str = self.get(name)["metadata"]["uid"]
        return found

    def level(self, name: str) -> int:
        return self._job(self.get(name)).level

    def stated(self, name: str) -> int:
        """The level that NATS says it has."""
        return self.cluster.jobs[self.uid(name)].level

    def order(self) -> list[str]:
        return [job.id for job in in_starting_order(map(self._job, self.lab.api.items(self.path)))]

    def marked(self) -> list[str]:
        marks = {PRIORITY_BOOST, BASE_PRIORITY}
        return [
            found["metadata"]["name"]
            for found in self.lab.api.items(self.path)
            if marks & (found["metadata"].get("annotations") or {}).keys() or found["spec"].get("priority")
        ]

    def levelled(self) -> list[str]:
        """The names of the Workloads whose level is not their base."""
        jobs = map(self._job, self.lab.api.items(self.path))
        return [job.id for job in jobs if job.level != job.base]

    def writes(self, after: int) -> list[str]:
        """The names of the Workloads that the admitter wrote to, once a write."""
        return [line.name for line in level_patches(self, after)]

    async def watch(self) -> None:
        """States what changed, as a watcher would."""
        while True:
            for found in await asyncio.to_thread(self.lab.api.items, self.path):
                meta = found["metadata"]
                if self._seen.get(meta["uid"]) != meta["resourceVersion"]:
                    self._seen[meta["uid"]] = meta["resourceVersion"]
                    await self.cluster.state(self._job(found))
            await asyncio.sleep(0.02)

    def _job(self, found: KubeObject) -> JobState:
        return self.job_of(found, queue="main")


@pytest.fixture
async def watched(kube_lab: KubeLab, cluster: FakeCluster, bus: Bus) -> AsyncIterator[Watched]:
    async with watching(kube_lab, cluster, bus) as watched:
        yield watched


@asynccontextmanager
async def watching(
    lab: KubeLab, cluster: FakeCluster, bus: Bus, shared: Watched | None = None
) -> AsyncIterator[Watched]:
    with Watched(lab, cluster, shared) as watched:
        await state_queue(bus, a_queue(frontend="kueue", bands_by_class=True))
        async with beside(watched.watch()):
            yield watched


async def state_queue(bus: Bus, queue: QueueState) -> None:
    await bus.publish(subject_of(queue), to_packed(msgspec.structs.replace(queue, rev=10**9)))


@asynccontextmanager
async def admitter_on(
    lab: KubeLab, run_admitter: RunAdmitter, **settings: object
) -> AsyncIterator[Lifecycle]:
    kubeconfig = str(lab.kubeconfig(ADMITTER))
    async with run_admitter(frontend="kueue", kubeconfig=kubeconfig, **settings) as admitter:
        yield admitter


async def decide(scorer: FakeScorer, watched: Watched, wanted: list[str]) -> None:
    uids = [watched.uid(name) for name in wanted]
    await eventually(lambda: set(uids) <= watched.cluster.jobs.keys(), 60, what="the jobs are stated")
    await scorer.decide(watched.cluster, uids)


async def passes(admitter: Lifecycle, count: int = 3) -> None:
    """Wait for as many passes."""
    before = sample(admitter, "pass_seconds_count", pool=POOL)
    await eventually(lambda: sample(admitter, "pass_seconds_count", pool=POOL) > before + count, 60)


async def follows(watched: Watched, wanted: list[str]) -> None:
    await eventually(lambda: watched.order() == wanted, timeout=60.0, what=f"the order {wanted}")


@pytest.mark.parametrize("lever", LEVERS)
async def test_levels_follow_a_decision_and_a_release_leaves_no_trace(
    watched: Watched, bus: Bus, scorer: FakeScorer, run_admitter: RunAdmitter, lever: LeverName
) -> None:
    watched.add("a", "b", "c")
    wanted = watched.order()[::-1]
    # Whoever may write to its Workload shall get no priority by our note when we go, nor by one that says what ours does.
    watched.annotate("a", BASE_PRIORITY, "2000000000")
    watched.annotate("b", BASE_PRIORITY, "none")
    mark = watched.lab.audit_mark()
    async with admitter_on(watched.lab, run_admitter) as admitter:
        await decide(scorer, watched, wanted)
        await eventually(lambda: "not cleared" in admitter.readiness.details().get("withheld", ""), 60)
        assert watched.writes(mark) == []
        await give_leave(bus, lever)
        await follows(watched, wanted)
        await passes(admitter)
        assert sorted(watched.writes(mark)) == sorted(watched.levelled()) != []
        # More where the lead was lost on the way and taken again: then each level is asked for again, and not written.
        assert sample(admitter, "levels_written_total", pool=POOL, kind="raised") >= len(watched.levelled())
        assert sample(admitter, "drift_seen_total") == 0
        await say(bus, Mode.RELEASED)
        await eventually(lambda: watched.marked() == [], timeout=60.0)
        assert watched.order() == wanted[::-1]


async def test_another_writer_is_corrected_and_a_fight_is_ended_with_an_alarm(
    watched: Watched, bus: Bus, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    await give_leave(bus, "boost")
    watched.add("a", "b", "c")
    order = watched.order()
    wanted = [order[2], order[0], order[1]]
    async with admitter_on(watched.lab, run_admitter) as admitter:
        await decide(scorer, watched, wanted)
        corrected = await fought(watched, admitter, wanted)
        assert corrected >= FIGHT_ROUNDS
        assert sample(admitter, "drift_seen_total") > FIGHT_ROUNDS
        assert sample(admitter, "fights_total") == 1
        watched.patch(wanted[0], "-700")
        await eventually(lambda: watched.stated(wanted[0]) == -700, 60)
        await passes(admitter)
        assert watched.level(wanted[0]) == -700


async def fought(watched: Watched, admitter: Lifecycle, wanted: list[str]) -> int:
    """Overwrite the first one's level until it is left alone; gives how often it was corrected.

    An admitter that loses the lead for a moment counts anew: so there are more rounds than a fight has, if need be.
    """
    for corrected in range(10 * FIGHT_ROUNDS):
        await eventually(
            lambda: sample(admitter, "left_alone") == 1 or watched.order() == wanted, 60, what="a correction"
        )
        if sample(admitter, "left_alone") == 1:
            return corrected
        # What nobody saw standing is not seen to be overwritten: it is noticed much later.
        level = watched.level(wanted[0])
        await eventually(lambda level=level: watched.stated(wanted[0]) == level, 60)  # type: ignore[misc] # binds the loop's value
        await passes(admitter, 0)
        watched.patch(wanted[0], str(-5 - corrected))
    raise AssertionError("nobody gave in")


async def test_what_was_admitted_is_lifted_to_the_top_where_queues_preempt(
    watched: Watched, bus: Bus, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    await give_leave(bus, "boost")
    preemption = {"withinClusterQueue": "LowerPriority"}
    await state_queue(bus, a_queue(frontend="kueue", bands_by_class=True, rev=2, preemption=preemption))
    document: PolicyDocument = msgspec.structs.replace(DOCUMENT, preemption="protect")
    scorer.policy = await put_policy(bus, document)
    watched.add("a", "b")
    wanted = watched.order()[::-1]
    mark = watched.lab.audit_mark()
    async with admitter_on(watched.lab, run_admitter) as admitter:
        await decide(scorer, watched, wanted)
        await follows(watched, wanted)
        await eventually(lambda: watched.level("blocker") == TOP, 60)
        assert all(watched.level(name) < TOP for name in wanted)
        await eventually(
            lambda: sample(admitter, "levels_written_total", pool=POOL, kind="protected") >= 1, 60
        )
        assert watched.writes(mark).count("blocker") == 1


def a_webhook_that_is_away(namespace: str) -> KubeObject:
    """A webhook of somebody else, in the way of every change of a Workload of the namespace; nobody listens at its port."""
    rule = {
        "apiGroups": ["kueue.x-k8s.io"],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["workloads"],
        "scope": "Namespaced",
    }
    hook = {
        "name": "away.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/away"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [hook],
    }


async def test_a_webhook_that_fails_for_one_namespace_keeps_no_other_from_its_order(
    watched: Watched, bus: Bus, scorer: FakeScorer, run_admitter: RunAdmitter
) -> None:
    await give_leave(bus, "boost")
    async with (
        watching(watched.lab, watched.cluster, bus, shared=watched) as bad,
        admitter_on(watched.lab, run_admitter) as admitter,
    ):
        hook = a_webhook_that_is_away(bad.scope)
        watched.lab.api.apply(hook)
        bad.add("x", "y", "z")
        watched.add("a", "b", "c")
        good = watched.order()

        async def decide_on(wanted: list[str]) -> list[str]:
            """The jobs of the bad namespace first."""
            uids = [*(bad.uid(name) for name in ("z", "y", "x")), *(watched.uid(name) for name in wanted)]
            await eventually(lambda: set(uids) <= watched.cluster.jobs.keys(), 60, what="the jobs are stated")
            await scorer.decide(watched.cluster, uids)
            return uids

        # The API server needs a moment for a webhook to be in the way.
        await eventually(lambda: not patches(bad, "x"), 60, what="the webhook is in the way")
        for wanted in (good[::-1], [good[1], good[0], good[2]], [good[2], good[0], good[1]]):
            await decide_on(wanted)
            await follows(watched, wanted)
        await eventually(lambda: bad.scope in admitter.readiness.details().get("resting", ""), 60)
        await eventually(lambda: "levels" not in admitter.readiness.reasons(), 60)
        await eventually(lambda: sample(admitter, "resting") >= 2, 60)
        watched.lab.api.delete(
            f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{bad.scope}"
        )
        # What rests is tried again by itself.
        await eventually(lambda: bad.order() == ["z", "y", "x"], timeout=60.0)
        await eventually(lambda: min(map(bad.level, "xyz")) > max(map(watched.level, "abc")), timeout=60.0)
        await eventually(lambda: "resting" not in admitter.readiness.details(), 60)


def patches(watched: Watched, name: str) -> bool:
    """Whether a change of the Workload is taken."""
    try:
        watched.lab.api.patch(f"{watched.path}/{name}", {"metadata": {"labels": {"seen": uuid4().hex[:8]}}})
    except ApiError:
        return False
    return True


async def test_a_kueue_restarted_without_its_gate_is_noticed_and_no_boost_is_written_until_it_is_back(
    kueue_lab: KubeLab,
    cluster: FakeCluster,
    bus: Bus,
    scorer: FakeScorer,
    run_admitter: RunAdmitter,
) -> None:
    lab = kueue_lab
    await give_leave(bus, "boost")
    async with (
        watching(lab, cluster, bus) as watched,
        admitter_on(lab, run_admitter, lever_probe_seconds=1) as admitter,
    ):
        watched.add("a", "b", "c")
        first, second, third = watched.order()
        await decide(scorer, watched, [third, second, first])
        await follows(watched, [third, second, first])

        def answered(found: str) -> float:
            return sample(admitter, "lever_probes_total", found=found)

        # Its webhook is away for seconds: that alone withholds nothing.
        before = answered("boost")
        await asyncio.to_thread(lab.restart_kueue)
        await eventually(lambda: answered("boost") > before + 1, timeout=60.0)
        assert answered("priority") == 0
        assert "withheld" not in admitter.readiness.details()

        await asyncio.to_thread(lab.restart_kueue, gates={"PriorityBoost": False})
        await eventually(
            lambda: "no longer reads boosts" in admitter.readiness.details().get("withheld", ""), timeout=60.0
        )
        await eventually(
            lambda: "the cluster obeys priority" in admitter.readiness.details().get("lever", ""), 60
        )
        await eventually(lambda: sample(admitter, "lever_ineffective") == 1, 60)
        written = levels_written(admitter)
        await decide(scorer, watched, [second, third, first])
        more = answered("priority") + 2
        await eventually(lambda: answered("priority") >= more, timeout=60.0)
        assert levels_written(admitter) == written

        await asyncio.to_thread(lab.restart_kueue, gates={"PriorityBoost": True})
        await follows(watched, [second, third, first])
        await eventually(lambda: sample(admitter, "lever_ineffective") == 0, 60)


async def test_a_leave_given_anew_for_the_lever_that_is_obeyed_ends_the_withholding(
    kueue_lab: KubeLab,
    cluster: FakeCluster,
    bus: Bus,
    scorer: FakeScorer,
    run_admitter: RunAdmitter,
) -> None:
    await asyncio.to_thread(kueue_lab.restart_kueue, gates={"PriorityBoost": False})
    await give_leave(bus, "boost")
    async with watching(kueue_lab, cluster, bus) as watched, admitter_on(kueue_lab, run_admitter) as admitter:
        watched.add("a", "b")
        wanted = watched.order()[::-1]
        # Asked at once, and not for the first time after minutes.
        await eventually(lambda: sample(admitter, "lever_ineffective") == 1, timeout=60.0)
        await decide(scorer, watched, wanted)
        await give_leave(bus, "priority")
        await follows(watched, wanted)
        await eventually(lambda: "withheld" not in admitter.readiness.details(), 60)


def levels_written(admitter: Lifecycle) -> float:
    return sum(
        found.value
        for metric in admitter.metrics.registry.collect()
        for found in metric.samples
        if found.name == "fairlead_admitter_levels_written_total"
    )
