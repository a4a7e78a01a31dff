"""Submissions on a real nats-server: each becomes one job or one clear refusal, and its sender hears all of it in order."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from fairlead_admitter.intake.answers import JobEventHandler
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.report.replies import ReplyPublisher
from fairlead_bus import Bucket, Bus, Delivery
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import SECOND, to_datetime
from fairlead_contracts.frontend.shipped import SLURM
from fairlead_contracts.messages.events import Event
from fairlead_contracts.messages.state import Outcome, Phase, encode_state, subject_of
from fairlead_contracts.messages.submissions import (
    DEAD_LETTER,
    MAX_PAYLOAD,
    Accepted,
    AnyAnswer,
    Ended,
    Refused,
    Started,
)
from fairlead_testkit import NatsServer, ServiceProcess, eventually
from fairlead_testkit.by_hand.bus_harness import sample
from fairlead_testkit.by_hand.fake_cluster import CLUSTER, DOCUMENT, FakeCluster, RunAdmitter
from fairlead_testkit.by_hand.people import put_policy, submit
from fairlead_testkit.inputs.builders import (
    NOW,
    a_body,
    a_grant,
    a_job,
    a_pool,
    a_queue,
    a_queued_event,
    a_started_event,
    an_ended_event,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


async def heard(answers: list[AnyAnswer], count: int) -> list[AnyAnswer]:
    await eventually(lambda: len(answers) >= count, what=f"{count} answers")
    return answers


class Standing(msgspec.Struct):
    """State of a durable, as the server says it."""

    num_pending: int
    num_ack_pending: int
    num_redelivered: int


async def durable_of(bus: Bus, name: str) -> Standing:
    stream = topology.SUBMIT if name.startswith("submit") else topology.EVENT
    info = await bus.jetstream.call(f"CONSUMER.INFO.{stream}.{name}")
    return msgspec.json.decode(info, type=Standing)


async def left(bus: Bus, durable: str = topology.submit_durable(CLUSTER)) -> tuple[int, int]:
    """Number of messages that the durable still has to give, and of those that were given and not acked."""
    facts = await durable_of(bus, durable)
    return facts.num_pending, facts.num_ack_pending


async def give_back_after(bus: Bus, seconds: float) -> None:
    """Has what a killed admitter had in hand come again after this time, instead of ten seconds."""
    plan = topology.topology([CLUSTER])
    durables = [msgspec.structs.replace(spec, ack_wait_seconds=seconds) for spec in plan.durables]
    await provision(bus, msgspec.structs.replace(plan, durables=durables))


async def all_acked(bus: Bus, durable: str = topology.submit_durable(CLUSTER)) -> None:
    async def none_left() -> bool:
        return await left(bus, durable) == (0, 0)

    await eventually(none_left, what=f"{durable} is empty")


async def test_a_submission_is_accepted_started_and_ended(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter() as admitter:
        await submit(bus, a_body(id="x", traceparent=None))
        await heard(answers, 1)
        job = cluster.jobs["team-a/x"]
        assert (job.submission, job.demand["cpu"]) == ("x", 4000)
        await cluster.start("team-a/x")
        await cluster.end("team-a/x")
        await heard(answers, 3)
        assert [type(answer) for answer in answers] == [Accepted, Started, Ended]
        accepted = answers[0]
        assert isinstance(accepted, Accepted)
        assert (accepted.id, accepted.tenant, accepted.queue, accepted.job_class) == (
            "x",
            "team-a",
            "main",
            "normal",
        )
        started = cluster.jobs["team-a/x"].started
        assert started is not None
        assert accepted.at <= to_datetime(started)
        assert accepted.warnings == []
        await all_acked(bus)
        await all_acked(bus, topology.answers_durable(CLUSTER))
        assert sample(admitter, "submissions_total", outcome="accepted") == 1


@pytest.mark.usefixtures("cluster")
async def test_what_of_a_body_counts_for_nothing_is_told_with_the_acceptance(
    bus: Bus, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter():
        await submit(bus, a_body(id="x", prioirty="urgent"))
        [accepted] = await heard(answers, 1)
    assert isinstance(accepted, Accepted)
    assert accepted.warnings == [
        '"prioirty" is not a field of a job, so it counts for nothing; did you mean class?'
    ]


def body(**changes: object) -> bytes:
    return a_body(**({"id": "bad"} | changes))


HUGE = body(labels={"x": "y" * MAX_PAYLOAD})
BAD: dict[str, tuple[bytes, str, str, str]] = {
    "malformed JSON": (b'{"id": "bad", ', "body", "malformed", "seq-"),
    "not an object": (b"[1]", "body", "malformed", "seq-"),
    "another version": (body(v=9), "v", "version", "bad"),
    "an unknown tenant": (body(), "tenant", "tenant", "bad"),
    "another tenant in the body": (body(tenant="team-b"), "tenant", "field", "bad"),
    "an unknown resource": (body(demand={"unobtainium": 1}), "demand.unobtainium", "resource", "bad"),
    "a negative quantity": (body(demand={"cpu": -1}), "demand.cpu", "field", "bad"),
    "an overflowing quantity": (body(demand={"cpu": "9" * 30}), "demand.cpu", "field", "bad"),
    "NaN": (b'{"id": "bad", "demand": {"cpu": NaN}}', "body", "malformed", "seq-"),
    "NaN in words": (body(demand={"cpu": "NaN"}), "demand.cpu", "field", "bad"),
    "larger than the pool": (body(demand={"nvidia.com/gpu": 17}), "demand.nvidia.com/gpu", "size", "bad"),
    "an id with a blank": (body(id="b d"), "id", "field", "b d"),
    "an id in another script": (body(id="задача"), "id", "field", "задача"),
    "an id that ends with a dot": (body(id="bad."), "id", "field", "bad."),
    "an unknown queue": (body(queue="nowhere"), "queue", "queue", "bad"),
    "an unknown class": (body(**{"class": "vip"}), "class", "class", "bad"),
    "a class that is not granted": (body(**{"class": "urgent"}), "class", "class", "bad"),
    "no demand": (body(demand=None), "demand", "field", "bad"),
    "too large": (HUGE, "body", "size", "bad"),
}


async def test_a_refusal_of_a_queue_names_queues_that_are_taken_and_not_the_tenants_account(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter():
        for queue in ("team-a", "nowhere"):
            answers.clear()
            await submit(bus, a_body(id="x", queue=queue))
            [refused] = await heard(answers, 1)
            assert isinstance(refused, Refused)
            assert refused.reason == "the cluster has no such queue for tenant 'team-a', which can name: main"
        await submit(bus, a_body(id="x", queue="main"))
        await heard(answers, 2)
        assert isinstance(answers[1], Accepted)
    assert set(cluster.jobs) == {"team-a/x"}


async def test_nodes_that_are_down_refuse_nothing_where_the_frontend_judges_what_there_could_be(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    """A slurmctld that has just begun, or all of whose nodes are drained, states a pool of nothing, and takes jobs."""
    for state in (a_pool(rev=99, capacity={}), a_queue(rev=99, capabilities=SLURM)):
        await bus.publish(subject_of(state), encode_state(state))
    async with run_admitter():
        await submit(bus, a_body(id="x"))
        [answer] = await heard(answers, 1)
    assert isinstance(answer, Accepted)
    assert set(cluster.jobs) == {"team-a/x"}


async def test_the_trace_of_a_submission_goes_on_in_its_job(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with run_admitter():
        await submit(bus, a_body(id="in-body", traceparent=trace))
        await submit(bus, a_body(id="nonsense", traceparent="nonsense"))
        where = subjects.submit(CLUSTER, "team-a")
        await bus.publish(where, a_body(id="in-headers"), headers={"traceparent": trace})
        await heard(answers, 3)
    found = {uid: job.traceparent for uid, job in cluster.jobs.items()}
    assert found == {"team-a/in-body": trace, "team-a/in-headers": trace, "team-a/nonsense": None}


async def test_bad_input_is_answered_and_counted_and_harms_nobody(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter() as admitter:
        for number, (name, (payload, field, reason, id_)) in enumerate(BAD.items()):
            answers.clear()
            counted = sample(admitter, "submissions_refused_total", reason=reason)
            tenant = "team-x" if name == "an unknown tenant" else "team-a"
            await submit(bus, payload, tenant=tenant)
            await submit(bus, a_body(id=f"good-{number}"))
            await heard(answers, 2)
            refused = next(answer for answer in answers if isinstance(answer, Refused))
            assert refused.field == field, name
            assert refused.id.startswith(id_), name
            assert refused.tenant == tenant, name
            assert refused.reason, name
            assert len(refused.value) <= 200, name
            assert any(isinstance(answer, Accepted) for answer in answers), name
            assert sample(admitter, "submissions_refused_total", reason=reason) == counted + 1, name
        await all_acked(bus)
    assert set(cluster.jobs) == {f"team-a/good-{number}" for number in range(len(BAD))}


async def test_a_tenant_whose_dots_were_not_encoded_hears_of_it(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter():
        await bus.publish(f"fairlead.v1.submit.{CLUSTER}.team.a", a_body(id="x"))
        (answer,) = await heard(answers, 1)
        assert isinstance(answer, Refused)
        assert (answer.field, answer.tenant) == ("tenant", "team.a")
        assert cluster.jobs == {}


async def test_a_granted_class_is_accepted(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    document = msgspec.structs.replace(DOCUMENT, grants=[a_grant()])
    await put_policy(bus, document)
    async with run_admitter():
        await submit(bus, a_body(id="x", class_="urgent"))
        (answer,) = await heard(answers, 1)
        assert isinstance(answer, Accepted)
        assert answer.job_class == "urgent"
        assert cluster.jobs["team-a/x"].requested_class == "urgent"


async def test_without_an_id_the_msg_id_or_the_place_in_the_stream_is_the_name(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter():
        await submit(bus, a_body(id=None), msg_id="mine")
        seq = await submit(bus, a_body(id=None))
        await heard(answers, 2)
        assert {answer.id for answer in answers} == {"mine", f"seq-{seq}"}
        assert set(cluster.jobs) == {"team-a/mine", f"team-a/seq-{seq}"}


async def test_a_repeated_submission_is_one_job_and_hears_where_it_stands(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter() as admitter:
        await submit(bus, a_body(id="x"))
        await heard(answers, 1)
        await submit(bus, a_body(id="x"))
        await heard(answers, 2)
        await cluster.start("team-a/x")
        await heard(answers, 3)
        await submit(bus, a_body(id="x"))
        await heard(answers, 4)
        assert [type(answer) for answer in answers] == [Accepted, Accepted, Started, Started]
        assert [answer.repeated is True for answer in answers] == [False, True, False, True]
        assert list(cluster.jobs) == ["team-a/x"]
        await eventually(lambda: sample(admitter, "submissions_total", outcome="repeated") == 2)


async def test_a_reused_id_with_another_body_is_refused(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter() as admitter:
        await submit(bus, a_body(id="x"))
        await heard(answers, 1)
        await submit(bus, a_body(id="x", pods=2))
        refused = (await heard(answers, 2))[1]
        assert isinstance(refused, Refused)
        assert refused.field == "id"
        await eventually(lambda: sample(admitter, "submissions_refused_total", reason="conflict") == 1)
        await cluster.start("team-a/x")
        assert isinstance((await heard(answers, 3))[2], Started)
        assert cluster.jobs["team-a/x"].pods == 1


async def test_after_another_body_was_refused_the_first_one_sent_again_is_known_already(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter() as admitter:
        for at, pods in enumerate([1, 2, 1], start=1):
            await submit(bus, a_body(id="x", pods=pods))
            await heard(answers, at)
        assert [type(answer) for answer in answers] == [Accepted, Refused, Accepted]
        assert [answer.repeated is True for answer in answers] == [False, False, True]
        assert list(cluster.jobs) == ["team-a/x"]
        await eventually(lambda: sample(admitter, "submissions_total", outcome="repeated") == 1)


async def test_a_job_that_starts_before_its_acceptance_is_published_is_accepted_first(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter(frontend_timeout_seconds=30):
        cluster.hold_replies.clear()
        await submit(bus, a_body(id="x"))
        await eventually(lambda: "team-a/x" in cluster.jobs, on=cluster.changed)
        await cluster.start("team-a/x")

        async def the_start_is_being_handled() -> bool:
            return (await left(bus, topology.answers_durable(CLUSTER))) == (0, 1)

        await eventually(the_start_is_being_handled)
        assert answers == []
        cluster.hold_replies.set()
        await heard(answers, 2)
        assert [type(answer) for answer in answers] == [Accepted, Started]


async def test_a_frontend_that_is_down_costs_no_submission_an_attempt(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    await cluster.go_down()
    async with run_admitter(frontend_timeout_seconds=0.2) as admitter:
        for number in range(5):
            await submit(bus, a_body(id=f"x{number}"))
        await eventually(lambda: "5 submissions" in admitter.readiness.reasons().get("frontend", ""))
        await eventually(lambda: sample(admitter, "intake_oldest_seconds") > 1, 30)
        await cluster.come_up()
        await heard(answers, 5)
        await all_acked(bus)
        facts = await durable_of(bus, topology.submit_durable(CLUSTER))
        assert facts.num_redelivered == 0
        assert all(isinstance(answer, Accepted) for answer in answers)
        assert await bus.last(topology.DEAD, subjects.dead(">")) is None


async def test_a_tenant_whose_submissions_hang_keeps_no_other_waiting(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    cluster.deaf_to["team-a"] = asyncio.Event()
    many = 100  # far more than are taken in at once
    async with run_admitter(frontend_timeout_seconds=1, submissions_in_progress=8) as admitter:
        for number in range(many):
            await submit(bus, a_body(id=f"a{number}"))
        await eventually(lambda: len(cluster.creations) > 3)
        assert len(cluster.creations) <= 8 // 4 * 2
        for number in range(20):
            await submit(bus, a_body(id=f"b{number}", tenant="team-b"), tenant="team-b")
        await eventually(lambda: len(answers) == 20, 30, what="the other tenant's are accepted")
        assert {answer.tenant for answer in answers} == {"team-b"}
        assert "frontend" not in admitter.readiness.reasons()
        # A lead that was in doubt for a moment begins with no trouble, and runs into it again.
        await eventually(lambda: "team-a" in admitter.readiness.details().get("intake", ""))
        cluster.deaf_to.pop("team-a").set()
        await eventually(lambda: len(answers) == many + 20, 30, what="what was held is accepted, too")
        await all_acked(bus)
        assert all(isinstance(answer, Accepted) for answer in answers)
        assert (await durable_of(bus, topology.submit_durable(CLUSTER))).num_redelivered == 0
        assert "intake" not in admitter.readiness.details()


async def test_submissions_are_held_until_a_policy_is_known(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    await Bucket(bus, topology.POLICY).delete(subjects.DOCUMENT_KEY)
    async with run_admitter():
        await submit(bus, a_body(id="x"))

        async def held() -> bool:
            return await left(bus) == (0, 1)

        await eventually(held)
        assert answers == []
        await put_policy(bus, DOCUMENT)
        await heard(answers, 1)
        assert cluster.creations == ["team-a/x"]


@pytest.mark.usefixtures("policy")
async def test_what_cannot_be_read_over_policy_and_facts_refuses_no_job(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    """Garbage over policy and facts, as the answer to a question may be whose sender named such a subject for it."""
    garbage = b'{"stream":"submit","seq":7}'
    await bus.publish(subjects.kv_subject(topology.POLICY, subjects.DOCUMENT_KEY), garbage)
    async with run_admitter():
        await submit(bus, a_body(id="x"))
        await heard(answers, 1)
        for subject in (subject_of(a_queue()), subject_of(a_pool())):
            await bus.publish(subject, garbage)
        await submit(bus, a_body(id="y"))
        await heard(answers, 2)
        assert cluster.creations == ["team-a/x", "team-a/y"]
        assert all(isinstance(answer, Accepted) for answer in answers)


async def test_submissions_are_held_until_the_cluster_has_stated_itself(
    bus: Bus, policy: int, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    assert policy
    cluster = FakeCluster(bus)
    await cluster.come_up()
    async with run_admitter() as admitter:
        await submit(bus, a_body(id="x"))

        async def held() -> bool:
            return await left(bus) == (0, 1)

        await eventually(held)
        await eventually(lambda: "has not stated" in admitter.readiness.reasons().get("knowledge", ""))
        await cluster.declare()
        assert isinstance((await heard(answers, 1))[0], Accepted)
    await cluster.go_down()


async def test_a_killed_server_comes_back_and_nothing_is_lost(
    bus: Bus,
    cluster: FakeCluster,
    answers: list[AnyAnswer],
    run_admitter: RunAdmitter,
    nats_server: NatsServer,
) -> None:
    async with run_admitter() as admitter:
        await submit(bus, a_body(id="before"))
        await heard(answers, 1)
        before = bus.incarnation
        nats_server.restart()
        await eventually(lambda: bus.connected and bus.incarnation != before)
        await eventually(lambda: "knowledge" in admitter.readiness.reasons())
        await submit(bus, a_body(id="after"))
        await cluster.start("team-a/before")
        await cluster.declare()
        await heard(answers, 3)
        assert {type(answer) for answer in answers if answer.id == "before"} == {Accepted, Started}
        assert [type(answer) for answer in answers if answer.id == "after"] == [Accepted]
        await all_acked(bus)


async def test_an_event_that_cannot_be_read_is_put_aside_and_the_next_is_answered(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter():
        await submit(bus, a_body(id="x"))
        await heard(answers, 1)
        await bus.publish(subjects.event("team-a", CLUSTER, "x"), b"nonsense")
        await cluster.start("team-a/x")
        await heard(answers, 2)
        await all_acked(bus, topology.answers_durable(CLUSTER))
        assert await bus.last(topology.DEAD, subjects.dead(">")) is not None


async def test_a_tenant_too_long_to_be_answered_is_put_aside_at_once(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    assert cluster.jobs == {}
    async with run_admitter():
        # Tokens that were never encoded: short enough for the server, too long once they are.
        await bus.publish(f"{subjects.ROOT}.submit.{CLUSTER}.{'ü' * 400}", a_body())
        await submit(bus, a_body(id="x"))
        await heard(answers, 1)
        await all_acked(bus, topology.submit_durable(CLUSTER))
        stored = await bus.last(topology.DEAD, subjects.dead(">"))
    assert stored is not None
    letter = DEAD_LETTER.decode(stored.payload)
    assert letter.deliveries == 1
    assert "cannot be answered" in letter.reason


def event_of(event: Event) -> Delivery:
    subject = subjects.event(event.tenant, event.cluster, event.job)
    return Delivery(subject=subject, payload=to_json(event), headers={}, stream_seq=1, deliveries=2, at=NOW)


async def test_an_end_that_is_delivered_before_its_start_brings_what_comes_before_it(
    bus: Bus, policy: int, answers: list[AnyAnswer]
) -> None:
    assert policy
    facts = ClusterFacts(CLUSTER)
    job = a_job(submission="x", phase=Phase.ENDED, started=NOW + 5 * SECOND)
    facts.apply({"job": job})
    first, second = (
        JobEventHandler(
            ReplyPublisher(bus, CLUSTER, lambda _: None), facts, PolicyView(), evicted=lambda _: None
        )
        for _ in range(2)
    )
    for handler in (first, second):  # the other leader knows nothing of the first one's answers
        await handler.handle(event_of(an_ended_event(submission="x")))
        await handler.handle(event_of(a_started_event(submission="x")))
    await second.handle(event_of(a_started_event(submission=None)))
    await second.handle(event_of(a_queued_event(submission="x")))
    await heard(answers, 3)
    assert [type(answer) for answer in answers] == [Accepted, Started, Ended]
    started = answers[1]
    assert isinstance(started, Started)
    assert started.waited_seconds == 5.0


async def test_starts_and_ends_of_jobs_that_nobody_submitted_here_are_acked_unhandled(bus: Bus) -> None:
    handler = JobEventHandler(
        ReplyPublisher(bus, CLUSTER, lambda _: None),
        ClusterFacts(CLUSTER),
        PolicyView(),
        evicted=lambda _: None,
    )
    told = [a_started_event(submission="x"), an_ended_event(submission="x")]
    untold = [
        a_started_event(submission=None),
        an_ended_event(submission=None),
        a_queued_event(submission="x"),
    ]
    assert all(handler.concerns(event_of(event)) for event in told)
    assert not any(handler.concerns(event_of(event)) for event in untold)


async def test_a_job_that_ended_without_a_start_is_not_said_to_have_started(
    bus: Bus, policy: int, answers: list[AnyAnswer]
) -> None:
    assert policy
    handler = JobEventHandler(
        ReplyPublisher(bus, CLUSTER, lambda _: None),
        ClusterFacts(CLUSTER),
        PolicyView(),
        evicted=lambda _: None,
    )
    await handler.handle(event_of(an_ended_event(submission="x", outcome=Outcome.CANCELLED)))
    await heard(answers, 2)
    assert [type(answer) for answer in answers] == [Accepted, Ended]


async def test_the_next_leader_goes_on_where_the_last_one_stopped(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter():
        await submit(bus, a_body(id="x"))
        await heard(answers, 1)
    await cluster.start("team-a/x")
    await cluster.end("team-a/x")
    async with run_admitter():
        await heard(answers, 3)
        assert [type(answer) for answer in answers] == [Accepted, Started, Ended]


async def test_killed_in_the_middle_of_the_intake_each_submission_is_one_job(
    bus: Bus,
    cluster: FakeCluster,
    answers: list[AnyAnswer],
    nats_server: NatsServer,
    tmp_path: Path,
) -> None:
    await give_back_after(bus, 2.0)
    count = 40
    settings: dict[str, object] = {
        "cluster": CLUSTER,
        "nats_url": nats_server.url,
        "frontend_timeout_seconds": 30,
    }
    settings["stale_after_seconds"] = (
        120  # nobody decides here, and a busy machine looks seldom whether it is ready
    )
    with ServiceProcess("admitter", tmp_path, settings, name="first") as first:
        await first.ready()
        cluster.hold_replies.clear()
        for number in range(count):
            await submit(bus, a_body(id=f"x{number}"))
        # Jobs were made, and no reply has left: the admitter doesn't know.
        await eventually(lambda: len(cluster.jobs) >= count // 4, on=cluster.changed)
        first.kill()
    early = sorted(cluster.jobs)[:3]
    for uid in early:  # these start before anybody could say that they were accepted
        await cluster.start(uid)
    cluster.hold_replies.set()
    with ServiceProcess("admitter", tmp_path, settings, name="second") as second:
        await second.ready()
        await eventually(lambda: len({answer.id for answer in answers}) == count, 60)

        def started() -> set[str]:
            return {answer.id for answer in answers if isinstance(answer, Started)}

        await eventually(lambda: len(started()) == 3)
        await all_acked(bus)
        assert await second.stop() == 0
    assert len(cluster.jobs) == count
    by_id: dict[str, list[type]] = {}
    for answer in answers:
        by_id.setdefault(answer.id, []).append(type(answer))
    for number in range(count):
        # What was in hand for two seconds comes again, and its sender hears again where it stands.
        heard_of = list(dict.fromkeys(by_id[f"x{number}"]))
        assert heard_of == ([Accepted, Started] if f"team-a/x{number}" in early else [Accepted])
