"""Objections to queued jobs: judged from facts, said once, again when they changed."""

import msgspec
import pytest

from fairlead_admitter.errors import FrontendDownError, FrontendForbiddenError, FrontendRefusedError
from fairlead_admitter.frontends.kueue.events import KueueObjections, event_name, objection_to_boost
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.report.event_recorder import (
    PAUSE_SECONDS,
    PER_LOOK,
    RAN_LATELY_SECONDS,
    REPEAT_SECONDS,
    SETTLE_SECONDS,
    EventRecorder,
)
from fairlead_admitter.report.objections import Objection, Reason, objections_to
from fairlead_admitter.report.withheld_levels import WithheldLevels
from fairlead_contracts.base.instants import Micros, from_seconds
from fairlead_contracts.messages.leave import LeverName
from fairlead_contracts.messages.state import ClassState, Fault, JobState, Phase
from fairlead_contracts.policyfile.document import Grant
from fairlead_kube.kinds.core import ObjectReference
from fairlead_policy.levels.withholding import LevelFate, Withholding
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_runtime.metrics import Metrics
from fairlead_testkit.inputs.builders import NOW, a_document, a_grant, a_job, a_pool, a_queue, a_tenant_state

RULES = Rulebook(a_document(), 1)


def facts_with(*jobs: JobState) -> ClusterFacts:
    facts = ClusterFacts("c1")
    facts.apply({"queue": a_queue(), "pool": a_pool(), "tenant": a_tenant_state()})
    facts.apply({job.uid: job for job in jobs})
    return facts


def objections(job: JobState, facts: ClusterFacts, rules: Rulebook) -> list[Objection]:
    return objections_to(job, facts, rules, KueueObjections.reason_of)


def reasons(job: JobState, facts: ClusterFacts | None = None, rules: Rulebook = RULES) -> list[Reason]:
    return [objection.reason for objection in objections(job, facts or facts_with(job), rules)]


def test_nothing_speaks_against_a_plain_job() -> None:
    assert reasons(a_job()) == []
    assert reasons(a_job(requested_class="normal")) == []


def test_a_class_that_is_not_granted_is_told_with_what_to_do() -> None:
    job = a_job(requested_class="urgent")
    (objection,) = objections(job, facts_with(job), RULES)
    assert (objection.reason, objection.value) == (Reason.CLASS_NOT_GRANTED, "urgent")
    assert "'team-a'" in objection.note
    assert "fairlead approve team-a/job-1 --class urgent" in objection.note
    granted = Rulebook(a_document(grants=[a_grant()]), 2)
    assert reasons(job, rules=granted) == []


@pytest.mark.parametrize(
    ("mode", "grants", "stated", "word"),
    [
        ("strict", [], -5, "classes are strict"),
        ("strict", [a_grant(priority_override=True)], 7, "classes are strict"),
        ("additive", [], -5, "not granted to tenant 'team-a'"),
        ("multiplicative", [], 7, "grants: [{tenant: team-a, priority_override: true}]"),
        ("additive", [a_grant(priority_override=True)], -5, "lie between"),
        ("additive", [a_grant(priority_override=True)], 7, None),
    ],
)
def test_a_priority_override_that_does_not_count_is_told_with_the_reason(
    mode: str, grants: list[Grant], stated: int, word: str | None
) -> None:
    job = a_job(priority_override=stated)
    found = objections(job, facts_with(job), Rulebook(a_document(class_mode=mode, grants=grants), 2))
    if word is None:
        assert found == []
        return
    (objection,) = found
    assert (objection.reason, objection.value) == (Reason.OVERRIDE_NOT_GRANTED, str(stated))
    assert word in objection.note


def test_a_class_of_the_cluster_alone_asks_for_nothing() -> None:
    job = a_job(requested_class="batch-low")
    facts = facts_with(job)
    assert reasons(job, facts) == [Reason.CLASS_NOT_GRANTED]
    facts.apply({"class": ClassState(cluster="c1", epoch=1, rev=1, name="batch-low", value=100)})
    assert reasons(job, facts) == []


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("Job metadata.annotations[wdrf.x-k8s.io/urgent]", Reason.BAD_ANNOTATION),
        ("spec.queueName", Reason.NO_SUCH_QUEUE),
        ("spec.podSets cpu", Reason.LARGER_THAN_QUOTA),
        ("metadata", Reason.UNREADABLE),
    ],
)
def test_faults_that_the_watcher_found_are_told(field: str, reason: Reason) -> None:
    fault = Fault(field=field, value="yes", remedy="write something else")
    job = a_job(faults=[fault])
    (objection,) = objections(job, facts_with(job), RULES)
    assert objection.reason is reason
    assert objection.note == f'{field}: found "yes"; write something else'


def test_a_queue_that_is_not_known_is_told_once() -> None:
    job = a_job(queue="", local_queue="nowhere")
    (objection,) = objections(job, facts_with(job), RULES)
    assert (objection.reason, objection.value) == (Reason.NO_SUCH_QUEUE, "nowhere")
    assert "team-a" in objection.remedy
    fault = Fault(field="spec.queueName", value="nowhere", remedy="name another")
    assert reasons(msgspec.structs.replace(job, faults=[fault])) == [Reason.NO_SUCH_QUEUE]


def test_a_job_larger_than_all_quotas_is_told() -> None:
    job = a_job(demand={"nvidia.com/gpu": 17_000, "example.com/none": 1000})
    found = objections(job, facts_with(job), RULES)
    assert [(one.reason, one.field) for one in found] == [
        (Reason.LARGER_THAN_QUOTA, "demand.example.com/none"),
        (Reason.LARGER_THAN_QUOTA, "demand.nvidia.com/gpu"),
    ]


class FakeEventSink:
    """Hears objections; may be out of order."""

    reason_of = staticmethod(KueueObjections.reason_of)

    def __init__(self) -> None:
        self.lever: LeverName = "boost"
        self.heard: list[tuple[str, Objection]] = []
        self.trouble: Exception | None = None
        self.forbidden: set[str] = set()
        """Scopes in which nothing may be said."""
        self.refusals = 0

    def objection_to_level(self, level: int, lift: int) -> Objection:
        return objection_to_boost(level, lift, lever=self.lever)

    async def object_to(self, job: JobState, objection: Objection) -> None:
        if job.scope in self.forbidden:
            self.refusals += 1
            raise FrontendForbiddenError(job.scope)
        if self.trouble is not None:
            raise self.trouble
        self.heard.append((job.id, objection))


class TimedRecorder:
    """An objector at an hour that the test says."""

    def __init__(self, *jobs: JobState) -> None:
        self.now = 0.0
        self.leads = True
        self.rules: Rulebook | None = RULES
        self.facts = facts_with(*jobs)
        self.foreign: dict[str, JobState] = {}
        self.steered = {"main"}
        self.listener = FakeEventSink()
        self.metrics = Metrics("admitter")
        self.recorder = EventRecorder(
            self.listener,
            self.facts,
            rulebook=lambda: self.rules,
            leads=lambda: self.leads,
            foreign=lambda: self.foreign,
            steered=lambda: self.steered,
            metrics=self.metrics,
            clock=lambda: self.now,
            wall=lambda: NOW,
        )

    async def look(self, after: float = SETTLE_SECONDS) -> list[str]:
        """Looks now and after a while; the ids of the jobs of which something was said."""
        before = len(self.listener.heard)
        await self.recorder.look()
        self.now += after
        await self.recorder.look()
        return [job for job, _ in self.listener.heard[before:]]

    def sample(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"fairlead_admitter_{name}", labels) or 0.0


ASKS = a_job(requested_class="urgent")


async def test_an_objection_is_said_once_as_long_as_it_stands() -> None:
    stage = TimedRecorder(ASKS)
    assert await stage.look() == ["job-1"]
    assert await stage.look() == []
    stage.facts.apply({ASKS.uid: msgspec.structs.replace(ASKS, rev=2, level=5)})
    assert await stage.look() == []
    assert stage.sample("objections_total", reason="ClassNotGranted") == 1
    assert await stage.look(REPEAT_SECONDS) == ["job-1"]


@pytest.mark.parametrize(
    ("lever", "field", "value"),
    [
        ("boost", "metadata.annotations[kueue.x-k8s.io/priority-boost]", "480"),
        ("priority", "spec.priority with metadata.annotations[kueue.x-k8s.io/priority-boost]", "500"),
    ],
)
async def test_a_level_that_somebody_else_wrote_is_told_also_after_it_was_written_over(
    lever: LeverName, field: str, value: str
) -> None:
    plain = a_job(base=20)
    queue = a_queue(bands_by_class=True)
    stage = TimedRecorder(plain, a_job("untouched"), a_job("edited", base=7))
    stage.facts.apply({"queue": queue})
    stage.listener.lever = lever
    found = (
        a_job(base=20, level=500),
        a_job("gone", level=7),
        a_job("untouched"),
        a_job("edited", base=7, level=7),
    )
    stage.foreign = {job.uid: job for job in found}
    assert await stage.look() == ["job-1"]
    assert await stage.look() == []
    [(_, objection)] = stage.listener.heard
    assert (objection.reason, objection.field, objection.value) == (Reason.FOREIGN_BOOST, field, value)


async def test_a_priority_that_kueue_gave_is_nobodys_boost_after_its_class_got_another_value() -> None:
    stage = TimedRecorder(a_job(base=77))
    stage.facts.apply({"queue": a_queue(bands_by_class=True)})
    stage.foreign = {a_job().uid: a_job(base=10_000_000, level=10_000_000)}
    assert await stage.look() == []


def test_a_priority_that_its_class_does_not_give_is_told_as_one() -> None:
    fault = Fault(field="spec.priority", value="500", remedy="set it to 5")
    assert reasons(a_job(faults=[fault])) == [Reason.FOREIGN_PRIORITY]


async def test_where_no_order_is_written_a_level_of_somebody_else_is_nobodys_fault() -> None:
    fault = Fault(field="spec.priority", value="500", remedy="set it to 5")
    stage = TimedRecorder(a_job(base=20), a_job("set", faults=[fault]), ASKS)
    stage.foreign = {a_job().uid: a_job(base=20, level=500)}
    stage.steered = set()
    assert await stage.look() == ["job-1"]
    assert [one.reason for _, one in stage.listener.heard] == [Reason.CLASS_NOT_GRANTED]
    stage.steered = {"main"}
    await stage.look()
    assert {one.reason for _, one in stage.listener.heard[1:]} == {
        Reason.FOREIGN_BOOST,
        Reason.FOREIGN_PRIORITY,
    }


def test_levels_are_withheld_until_they_are_written_again() -> None:
    record = WithheldLevels(Metrics("admitter"), "c1")
    assert not record.withholds("gpu")
    record.withheld("gpu", Withholding(why="paused", fate=LevelFate.STAND), standing=1)
    assert record.withholds("gpu")
    record.lifted("gpu")
    assert not record.withholds("gpu")


async def test_another_cause_or_another_value_is_said_too() -> None:
    stage = TimedRecorder(ASKS)
    await stage.look()
    stage.facts.apply({ASKS.uid: msgspec.structs.replace(ASKS, rev=2, requested_class="approved")})
    assert await stage.look() == ["job-1"]
    fault = Fault(field="metadata.annotations[wdrf.x-k8s.io/x]", value="2", remedy="write true")
    changed = msgspec.structs.replace(ASKS, rev=3, requested_class="approved", faults=[fault])
    stage.facts.apply({ASKS.uid: changed})
    assert await stage.look() == ["job-1"]
    assert [one.reason for _, one in stage.listener.heard] == [
        Reason.CLASS_NOT_GRANTED,
        Reason.CLASS_NOT_GRANTED,
        Reason.BAD_ANNOTATION,
    ]


async def test_what_does_not_last_was_no_objection() -> None:
    stage = TimedRecorder(a_job(queue="late"))
    await stage.recorder.look()
    stage.facts.apply({"late": a_queue(name="late")})
    assert await stage.look() == []


async def test_a_change_of_policy_judges_all_jobs_anew() -> None:
    stage = TimedRecorder(ASKS, a_job("job-2", requested_class="urgent"))
    stage.rules = Rulebook(a_document(grants=[a_grant()]), 2)
    assert await stage.look() == []
    stage.rules = RULES
    assert sorted(await stage.look()) == ["job-1", "job-2"]


@pytest.mark.parametrize(
    ("phase", "started"), [(Phase.RUNNING, NOW - 2 * from_seconds(RAN_LATELY_SECONDS)), (Phase.ENDED, NOW)]
)
async def test_nothing_is_said_of_jobs_that_ended_or_have_run_for_long(phase: Phase, started: Micros) -> None:
    stage = TimedRecorder(a_job(requested_class="urgent", phase=phase, started=started))
    assert await stage.look() == []


async def test_a_job_that_started_at_once_is_told_what_it_asked_for_in_vain() -> None:
    fault = Fault(field="metadata.annotations[wdrf.x-k8s.io/x]", value="2", remedy="write true")
    ran = a_job(
        "ran", requested_class="urgent", phase=Phase.RUNNING, started=NOW, queue="gone", faults=[fault]
    )
    stage = TimedRecorder(ran)
    assert await stage.look() == ["ran", "ran"]
    assert {one.reason for _, one in stage.listener.heard} == {
        Reason.CLASS_NOT_GRANTED,
        Reason.BAD_ANNOTATION,
    }
    assert await stage.look() == []


async def test_what_was_said_of_a_job_that_waited_is_not_said_again_when_it_runs() -> None:
    stage = TimedRecorder(ASKS)
    assert await stage.look() == ["job-1"]
    stage.facts.apply({ASKS.uid: msgspec.structs.replace(ASKS, rev=2, phase=Phase.RUNNING, started=NOW)})
    assert await stage.look() == []


async def test_only_a_leader_who_knows_speaks() -> None:
    stage = TimedRecorder(ASKS)
    stage.leads = False
    assert await stage.look() == []
    stage.leads, stage.rules = True, None
    assert await stage.look() == []
    stage.rules = RULES
    assert await stage.look() == ["job-1"]


async def test_a_wave_of_objections_is_said_at_a_pace_and_none_is_lost() -> None:
    jobs = [a_job(f"job-{number}", requested_class="urgent") for number in range(2 * PER_LOOK + 1)]
    stage = TimedRecorder(*jobs)
    assert len(await stage.look()) == PER_LOOK
    assert stage.sample("objections_unsaid") == 2 * PER_LOOK + 1
    await stage.look(1)
    assert len({job for job, _ in stage.listener.heard}) == len(jobs)


async def test_a_frontend_that_is_down_is_left_alone_for_a_while() -> None:
    stage = TimedRecorder(ASKS)
    stage.listener.trouble = FrontendDownError("no answer")
    assert await stage.look() == []
    stage.listener.trouble = None
    assert await stage.look(1) == []
    assert await stage.look(PAUSE_SECONDS) == ["job-1"]
    assert stage.sample("objections_failed_total") == 1


async def test_one_that_cannot_be_said_is_not_in_the_way_of_others() -> None:
    stage = TimedRecorder(ASKS)
    stage.listener.trouble = FrontendRefusedError("no such namespace")
    assert await stage.look() == []
    stage.listener.trouble = None
    stage.facts.apply({"b": a_job("job-2", requested_class="urgent")})
    assert await stage.look() == ["job-2"]


def test_an_event_has_one_name_for_its_object_and_cause() -> None:
    job = ObjectReference(api_version="batch/v1", kind="Job", name="train", namespace="a", uid="u1")
    objection = Objection(reason=Reason.CLASS_NOT_GRANTED, field="class", value="urgent", remedy="ask")
    name = event_name(job, objection)
    assert name == event_name(job, msgspec.structs.replace(objection, remedy="ask in other words"))
    others = [
        event_name(msgspec.structs.replace(job, uid="u2"), objection),
        event_name(job, msgspec.structs.replace(objection, value="approved")),
        event_name(job, msgspec.structs.replace(objection, reason=Reason.UNREADABLE)),
    ]
    assert len({name, *others}) == 4


async def test_a_namespace_in_which_nothing_may_be_said_silences_no_other() -> None:
    ending = [a_job(f"e{number}", scope="ending", requested_class="urgent") for number in range(PER_LOOK)]
    stage = TimedRecorder(*ending, ASKS)
    stage.listener.forbidden = {"ending"}
    assert await stage.look() == []
    assert await stage.look(1.0) == ["job-1"]
    assert stage.listener.refusals == 1
    stage.now += PAUSE_SECONDS
    await stage.recorder.look()
    assert stage.listener.refusals == 2
    stage.now += PAUSE_SECONDS
    await stage.recorder.look()
    assert stage.listener.refusals == 2  # the longer it lasts, the rarer it is asked for
    stage.listener.forbidden = set()
    stage.now += PAUSE_SECONDS
    await stage.recorder.look()
    assert len(stage.listener.heard) == 1 + PER_LOOK
