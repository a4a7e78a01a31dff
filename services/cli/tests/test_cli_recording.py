import json
from datetime import UTC, datetime, timedelta

import msgspec

from fairlead_cli.demo.feeding import body
from fairlead_cli.demo.recording import Recording
from fairlead_contracts.base.instants import from_datetime, to_datetime
from fairlead_contracts.messages.events import AnyEvent, JobEnded, JobQueued, JobStarted
from fairlead_contracts.messages.state import Outcome
from fairlead_contracts.messages.submissions import Refused, read_submission
from fairlead_sim.config import NodeGroup
from fairlead_sim.virtual import RunResult, VirtualRun, fifo
from fairlead_sim.workload import SimWorkload
from fairlead_testkit.inputs.builders import a_level_event, an_ended_event
from fairlead_testkit.inputs.equal_floods import equal_floods

NODES = NodeGroup(name="node", count=1, allocatable={"nvidia.com/gpu": 8, "cpu": 64, "memory": "512Gi"})
WORKLOAD = equal_floods({"a": 2.0, "b": 1.0}, jobs=20, run_seconds=2.0, nodes=NODES)
START = from_datetime(datetime(2026, 11, 21, tzinfo=UTC))


def replayed(workload: SimWorkload, result: RunResult) -> list[AnyEvent]:
    """The events that a cluster would have told of a run, not in order."""
    demands = {job.id: job.demand for job in workload.jobs}
    found: list[AnyEvent] = []
    for job in result.jobs:
        base = {
            "cluster": "sim",
            "tenant": job.tenant,
            "scope": job.tenant,
            "job": job.id,
            "uid": job.id,
            "submission": job.id,
            "demand": demands[job.id],
            "queue": "main",
            "waited_seconds": job.waited,
            "level": 0,
            "outcome": "succeeded",
            "ran_seconds": 2.0,
        }
        for kind, at in (("ended", job.ended), ("started", job.started), ("queued", job.submitted)):
            plain = base | {"kind": kind, "id": f"{job.id}-{kind}", "at": to_datetime(START + at)}
            found.append(msgspec.convert(plain, JobQueued | JobStarted | JobEnded))
    return found


def test_a_live_run_is_measured_as_the_virtual_one() -> None:
    virtual = VirtualRun(WORKLOAD, fifo).run()
    recording = Recording([job.id for job in WORKLOAD.jobs])
    for event in replayed(WORKLOAD, virtual):
        recording.take_event(event)
        recording.take_event(event)
    live = recording.result(WORKLOAD)
    assert recording.done
    assert recording.finished == 40
    assert live.shares == virtual.shares
    assert live.waits() == virtual.waits()
    assert live.makespan_seconds == virtual.makespan_seconds
    assert live.backlogged_seconds == virtual.backlogged_seconds > 0


def test_a_run_in_time_has_no_delays_and_jobs_that_came_late_are_late_by_so_much() -> None:
    events = replayed(WORKLOAD, VirtualRun(WORKLOAD, fifo).run())
    late = {job.id for job in WORKLOAD.jobs[10:]}
    for seconds, expected in ((0, 0.0), (3, 3.0)):
        recording = Recording([job.id for job in WORKLOAD.jobs])
        for event in events:
            shift = timedelta(seconds=seconds if getattr(event, "submission", "") in late else 0)
            recording.take_event(msgspec.structs.replace(event, at=event.at + shift))
        delays = recording.delays(WORKLOAD)
        assert len(delays) == 40
        assert (min(delays), max(delays)) == (0.0, expected)


def test_what_has_neither_ended_nor_been_refused_is_open() -> None:
    recording = Recording(["x", "y"])
    assert recording.open() == {"x", "y"}
    now = to_datetime(START)
    for job in ("x", "z"):
        recording.take_answer(
            Refused(id=job, tenant="a", cluster="sim", at=now, field="class", value="urgent", reason="no")
        )
    assert recording.open() == {"y"}
    assert not recording.done


def test_a_job_that_failed_has_ended_but_not_finished() -> None:
    recording = Recording(["x"])
    recording.take_event(an_ended_event(submission="x", outcome=Outcome.FAILED))
    assert recording.done
    assert recording.finished == 0


def test_levels_are_counted() -> None:
    recording = Recording(["x"])
    recording.take_event(a_level_event())
    assert recording.level_writes == 1


def test_a_job_is_published_as_a_person_would() -> None:
    job = WORKLOAD.jobs[0]
    payload = body(job)
    assert json.loads(payload)["demand"] == {"nvidia.com/gpu": "1", "cpu": "8"}
    read = read_submission(payload, tenant=job.tenant, fallback_id="x")
    assert (read.id, read.demand, read.run_seconds) == (job.id, job.demand, 2.0)
