"""The events between two statements of a job, also where nobody watched in between."""

from collections.abc import Iterable

import msgspec
import pytest

from fairlead_bus.facts.event_diff import EventDiff, LastEviction
from fairlead_bus.facts.statement_publisher import StateChange
from fairlead_contracts import subjects
from fairlead_contracts.base.instants import SECOND, Micros, to_datetime
from fairlead_contracts.messages.events import (
    EVENT,
    AnyEvent,
    Event,
    JobEnded,
    JobEvicted,
    JobQueued,
    JobStarted,
    Run,
)
from fairlead_contracts.messages.state import JobState, Outcome, Phase, State, TenantState
from fairlead_kube.reflector import Key
from fairlead_testkit.inputs import builders
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.workload_facts import End, WorkloadFacts

T0 = 1_800_000_000 * SECOND
T1, T2, T3, T4 = (T0 + 60 * SECOND * n for n in (1, 2, 3, 4))
NOW = T0 + 3600 * SECOND
KEY = Key("team-a", "one")


JOB = builders.a_job(
    "one", epoch=0, rev=0, uid="u1", queue="cq", demand={"gpu": 1}, submitted=T0, level=5,
    requested_class="urgent", submission="s-1", traceparent="00-t",
)  # fmt: skip


def a_job(phase: Phase = Phase.WAITING, **changes: object) -> JobState:
    return msgspec.structs.replace(JOB, phase=phase, **changes)


def running(at: Micros = T1, uid: str = "u1") -> JobState:
    return a_job(Phase.RUNNING, started=at, uid=uid)


def checked() -> JobState:
    """With quota, and its checks are open."""
    return a_job(Phase.RUNNING, started=T1, unchecked="admission check nodes is Pending")


def over(
    at: Micros = T3, started: Micros | None = T1, outcome: Outcome = Outcome.SUCCEEDED, uid: str = "u1"
) -> JobState:
    return a_job(Phase.ENDED, started=started, ended=at, outcome=outcome, uid=uid)


class EventDiffScene:
    def __init__(self) -> None:
        self.view = ClusterView("c1", ended_stay=600 * SECOND)
        self.counted: list[Event] = []
        self.chronicle = EventDiff(self.view, lambda: NOW, self.counted.append)

    def told(self, before: State | None, after: State | None) -> list[AnyEvent]:
        outgoing = list(self.chronicle.between(StateChange("subject", before, after)))
        events = [EVENT.decode(one.payload) for one in outgoing]
        assert [one.msg_id for one in outgoing] == [event.id for event in events]
        assert {one.subject for one in outgoing} <= {subjects.event("team-a", "c1", "one")}
        assert events == self.counted[len(self.counted) - len(events) :]
        return events


@pytest.fixture
def scene() -> EventDiffScene:
    return EventDiffScene()


def kinds(events: Iterable[AnyEvent]) -> list[str]:
    names = {JobQueued: "queued", JobStarted: "started", JobEvicted: "evicted", JobEnded: "ended"}
    return [names[type(event)] for event in events]


def test_each_step_of_a_life_is_told_once(scene: EventDiffScene) -> None:
    [queued] = scene.told(None, a_job())
    assert queued == JobQueued(
        id="u1-queued",
        at=to_datetime(T0),
        cluster="c1",
        tenant="team-a",
        scope="team-a",
        job="one",
        uid="u1",
        submission="s-1",
        traceparent="00-t",
        queue="cq",
        demand={"gpu": 1},
        requested_class="urgent",
    )
    [started] = scene.told(a_job(), running())
    assert isinstance(started, JobStarted)
    assert (started.id, started.at, started.waited_seconds, started.level) == (
        f"u1-started-{T1}",
        to_datetime(T1),
        60.0,
        5,
    )
    [ended] = scene.told(running(), over(outcome=Outcome.FAILED))
    assert isinstance(ended, JobEnded)
    assert (ended.id, ended.at, ended.outcome, ended.ran_seconds) == (
        "u1-ended",
        to_datetime(T3),
        Outcome.FAILED,
        120.0,
    )
    assert scene.told(over(), None) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, running(), ["queued", "started"]),
        (None, over(), ["queued", "started", "ended"]),
        (None, over(started=None), ["queued", "ended"]),
        (a_job(), over(), ["started", "ended"]),
        (a_job(Phase.HELD), a_job(), []),
        (running(), running(T2), ["evicted", "started"]),
        (running(), over(started=T2), ["evicted", "started", "ended"]),
        (running(), over(started=None), ["ended"]),
        (running(), a_job(), ["evicted"]),
        (running(), a_job(Phase.HELD), ["evicted"]),
        (a_job(), checked(), []),
        (checked(), running(), ["started"]),
        (checked(), a_job(), ["evicted"]),
        (checked(), over(), ["started", "ended"]),
        (checked(), None, ["ended"]),
        (over(), running(), []),
        (running(), running(), []),
        (running(), None, ["ended"]),
        (a_job(), None, ["ended"]),
        (running(), a_job(uid="u2"), ["ended", "queued"]),
        (over(), running(uid="u2"), ["queued", "started"]),
        (None, None, []),
    ],
)
def test_what_happened_unwatched_is_told_in_order(
    scene: EventDiffScene, before: JobState | None, after: JobState | None, expected: list[str]
) -> None:
    assert kinds(scene.told(before, after)) == expected


def test_a_start_is_when_its_checks_let_it_start_and_the_wait_is_until_then(scene: EventDiffScene) -> None:
    admitted = msgspec.structs.replace(running(), admitted=T3)
    [started] = scene.told(checked(), admitted)
    assert isinstance(started, JobStarted)
    assert (started.at, started.waited_seconds) == (to_datetime(T3), 180.0)
    [ended] = scene.told(admitted, msgspec.structs.replace(over(T4), admitted=T3))
    assert isinstance(ended, JobEnded)
    assert ended.ran_seconds == 60.0
    assert ended.run is not None
    assert ended.run.started == T1, "its quota was its tenant's use from then on"
    scene.view.workload(KEY, End(uid="u1", at=T4, outcome=Outcome.FAILED, started=T1, admitted=T3))
    started, ended = scene.told(checked(), None)
    assert isinstance(started, JobStarted)
    assert isinstance(ended, JobEnded)
    assert (started.waited_seconds, ended.ran_seconds) == (180.0, 60.0)


def test_who_was_only_tried_never_ran(scene: EventDiffScene) -> None:
    scene.view.workload(KEY, known(eviction=LastEviction(reason="AdmissionCheck", at=T3)))
    [evicted] = scene.told(checked(), a_job())
    assert isinstance(evicted, JobEvicted)
    assert (evicted.reason, evicted.ran_seconds) == ("AdmissionCheck", 0.0)
    [ended] = scene.told(checked(), None)
    assert isinstance(ended, JobEnded)
    assert ended.ran_seconds == 0.0


def test_told_again_it_has_the_same_ids(scene: EventDiffScene) -> None:
    first = scene.told(running(), over(started=T2))
    again = scene.told(msgspec.structs.replace(running(), epoch=7, rev=9), over(started=T2))
    assert [event.id for event in first] == [event.id for event in again]
    assert len({event.id for event in first}) == 3


def known(**fields: object) -> WorkloadFacts:
    return WorkloadFacts(
        namespace="team-a",
        name="one",
        uid="u1",
        created=T0,
        queue_time=T0,
        local_queue="main",
        **fields,  # type: ignore[arg-type] # fields of the facts
    )


def test_an_eviction_has_kueues_reason_and_time(scene: EventDiffScene) -> None:
    scene.view.workload(KEY, known(eviction=LastEviction(reason="Preempted", at=T3)))
    [evicted] = scene.told(running(), a_job())
    assert isinstance(evicted, JobEvicted)
    assert (evicted.id, evicted.at, evicted.reason, evicted.ran_seconds) == (
        f"u1-evicted-{T1}",
        to_datetime(T3),
        "Preempted",
        120.0,
    )


def test_what_is_over_is_told_with_what_it_used_and_whose_it_was(scene: EventDiffScene) -> None:
    """The job may be forgotten by the time that somebody asks what its tenant used."""
    scene.view.workload(KEY, known(eviction=LastEviction(reason="Preempted", at=T3)))
    job = msgspec.structs.replace(running(), labels={"team": "a"}, annotations={"x": "y"}, local_queue="lq")
    [evicted] = scene.told(job, a_job())
    assert isinstance(evicted, JobEvicted)
    assert evicted.run == Run(
        queue="cq",
        started=T1,
        ended=T3,
        demand={"gpu": 1},
        local_queue="lq",
        labels={"team": "a"},
        annotations={"x": "y"},
    )
    [ended] = scene.told(running(), over())
    assert isinstance(ended, JobEnded)
    assert ended.run == Run(queue="cq", started=T1, ended=T3, demand={"gpu": 1})
    [cancelled] = scene.told(a_job(), over(started=None, outcome=Outcome.CANCELLED))
    assert isinstance(cancelled, JobEnded)
    assert cancelled.run is None, "it never ran"


def test_an_eviction_that_nobody_saw_has_the_time_of_the_next_start(scene: EventDiffScene) -> None:
    scene.view.workload(KEY, known())
    evicted, _ = scene.told(running(), running(T2))
    assert isinstance(evicted, JobEvicted)
    assert (evicted.at, evicted.reason, evicted.ran_seconds) == (to_datetime(T2), "Evicted", 60.0)


def test_what_is_deleted_was_cancelled(scene: EventDiffScene) -> None:
    [ended] = scene.told(running(), None)
    assert isinstance(ended, JobEnded)
    assert (ended.outcome, ended.at) == (Outcome.CANCELLED, to_datetime(NOW))


def test_an_end_long_ago_is_told_as_it_was(scene: EventDiffScene) -> None:
    scene.view.workload(KEY, End(uid="u1", at=T4, outcome=Outcome.FAILED, started=T3))
    assert kinds(scene.told(running(), None)) == ["started", "ended"]
    [ended] = scene.told(running(T3), None)
    assert isinstance(ended, JobEnded)
    assert (ended.outcome, ended.at, ended.ran_seconds) == (Outcome.FAILED, to_datetime(T4), 60.0)


def test_the_end_of_a_namesake_is_not_its_own(scene: EventDiffScene) -> None:
    scene.view.workload(KEY, End(uid="u2", at=T4, outcome=Outcome.FAILED, started=T3))
    [ended] = scene.told(running(), None)
    assert isinstance(ended, JobEnded)
    assert ended.outcome is Outcome.CANCELLED


def test_nothing_else_has_a_story(scene: EventDiffScene) -> None:
    tenant = TenantState(cluster="c1", epoch=0, rev=0, name="main", scope="a", queue="q")
    assert scene.told(None, tenant) == scene.told(tenant, None) == []
