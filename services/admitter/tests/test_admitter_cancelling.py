"""Cancellations on a real nats-server: a job is taken back by its own tenant alone, and never runs on unnoticed."""

import asyncio
import contextlib
from pathlib import Path

import msgspec
import pytest

from fairlead_admitter.intake.admission import SubmissionCheck
from fairlead_admitter.intake.cancelling import Canceller, CancelVerdict, is_over, verdict
from fairlead_admitter.intake.creation import CreatedJob, JobOrder, Removal, RetryingCreator
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.report.replies import MOST_IN_ORDER, ReplyPublisher, Sender, SubmissionRefusal
from fairlead_bus import Asked, Bus, Delivery, NotYetError, UnavailableError
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import HOUR, MINUTE, Micros
from fairlead_contracts.messages.state import JobState, Outcome, Phase, subject_of
from fairlead_contracts.messages.submissions import (
    ANSWER,
    Accepted,
    AnyAnswer,
    Cancellation,
    Cancelling,
    Ended,
    Refused,
    Started,
    says_cancelled,
)
from fairlead_runtime.clock import wall_clock
from fairlead_testkit import NatsServer, ServiceProcess, eventually
from fairlead_testkit.by_hand.bus_harness import sample
from fairlead_testkit.by_hand.fake_cluster import CLUSTER, FakeCluster, RunAdmitter
from fairlead_testkit.by_hand.people import cancel, submit
from fairlead_testkit.inputs.builders import NOW, a_body, a_cancellation, a_job
from fairlead_testkit.inputs.examples import example

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


ACCEPTED, STARTED = example(Accepted), example(Started)
CANCELLING, REFUSED = example(Cancelling), example(Refused)
CANCELLED, SUCCEEDED = (
    msgspec.structs.replace(example(Ended), outcome=one) for one in (Outcome.CANCELLED, Outcome.SUCCEEDED)
)
RUNS = a_job(phase=Phase.RUNNING)
WAS_CANCELLED, HAS_SUCCEEDED = (
    a_job(phase=Phase.ENDED, outcome=one) for one in (Outcome.CANCELLED, Outcome.SUCCEEDED)
)


@pytest.mark.parametrize(
    ("removal", "stated", "answer", "expected"),
    [
        (Removal.DONE, RUNS, STARTED, CancelVerdict.CANCELLING),
        (Removal.DONE, None, None, CancelVerdict.CANCELLING),
        (
            Removal.DONE,
            RUNS,
            CANCELLED,
            CancelVerdict.CANCELLING,
        ),  # what came back all the same is taken away again
        (Removal.FOREIGN, None, None, CancelVerdict.FOREIGN),
        (Removal.LATER, RUNS, STARTED, CancelVerdict.LATER),
        (Removal.GONE, RUNS, STARTED, CancelVerdict.UNSETTLED),
        (Removal.GONE, RUNS, CANCELLING, CancelVerdict.CANCELLING),  # its end is not stated yet
        (Removal.GONE, RUNS, CANCELLED, CancelVerdict.CANCELLED),
        (Removal.GONE, None, CANCELLED, CancelVerdict.CANCELLED),
        (Removal.GONE, None, SUCCEEDED, CancelVerdict.ENDED),
        (Removal.GONE, HAS_SUCCEEDED, STARTED, CancelVerdict.ENDED),
        (Removal.GONE, WAS_CANCELLED, CANCELLING, CancelVerdict.CANCELLING),
        (Removal.GONE, WAS_CANCELLED, ACCEPTED, CancelVerdict.CANCELLING),  # who was to say so died
        (Removal.GONE, None, ACCEPTED, CancelVerdict.CANCELLING),
        (Removal.GONE, None, None, CancelVerdict.UNKNOWN),
    ],
)
def test_a_verdict_goes_by_the_frontend_then_by_what_was_told_then_by_what_is_stated(
    removal: Removal, stated: JobState | None, answer: AnyAnswer | None, expected: CancelVerdict
) -> None:
    assert verdict(removal, stated, answer) is expected


@pytest.mark.parametrize(
    ("stated", "answer", "waits", "expected"),
    [
        (RUNS, None, False, False),
        (RUNS, SUCCEEDED, False, False),  # it was queued again
        (HAS_SUCCEEDED, STARTED, False, True),
        (None, SUCCEEDED, False, True),  # stated no more; its object stands in Kubernetes still
        (None, None, False, True),  # nor is its end remembered
        (None, None, True, False),  # a dead admitter may have made it
        (None, ACCEPTED, False, False),  # not stated yet
        (None, CANCELLED, False, False),  # whoever made it again all the same meant no good
    ],
)
def test_what_nobody_speaks_of_any_more_ended_long_ago(
    stated: JobState | None, answer: AnyAnswer | None, *, waits: bool, expected: bool
) -> None:
    assert is_over(stated, answer, waits=waits) is expected


async def until(answers: list[AnyAnswer], job: str, *kinds: type[AnyAnswer]) -> list[AnyAnswer]:
    """The answers about one job, once these kinds were heard."""

    def heard() -> list[AnyAnswer]:
        return [answer for answer in answers if answer.id == job]

    await eventually(lambda: [type(one) for one in heard()] == list(kinds), what=f"{job} hears {kinds}")
    return heard()


class NamesLetGo:
    """A frontend that lets the names of cancelled jobs go, and has none any more."""

    keeps_names = False

    def __init__(self, before: Micros) -> None:
        self._before = before
        self.asked = 0

    def begin_anew(self) -> None:
        """Forgets nothing."""

    async def create(self, order: JobOrder) -> CreatedJob:
        raise AssertionError(f"nobody submits {order} here")

    async def cancel(self, wanted: Cancellation, before: Micros) -> Removal:
        assert (wanted.id, before) == ("X", self._before)
        self.asked += 1
        return Removal.GONE


def unexpected(scope: str, why: str, *, new: bool) -> None:
    """Hears of troubles where there are none."""
    raise AssertionError(f"{scope}: {why} ({new})")


async def settled(bus: Bus) -> None:
    """Return once nothing is left in the intake's stream."""
    info = f"CONSUMER.INFO.{topology.SUBMIT}.{topology.submit_durable(CLUSTER)}"

    async def none_left() -> bool:
        found = msgspec.json.decode(await bus.jetstream.call(info))
        return (found["num_pending"], found["num_ack_pending"]) == (0, 0)

    await eventually(none_left, 60, what="all is settled")


async def test_a_job_that_waits_or_runs_is_taken_back_and_stays_so(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    async with run_admitter() as admitter:
        steps: dict[str, list[type[AnyAnswer]]] = {"waits": [Accepted], "runs": [Accepted, Started]}
        for job, before in steps.items():
            await submit(bus, a_body(id=job))
            await until(answers, job, Accepted)
            if Started in before:
                await cluster.start(f"team-a/{job}")
            await until(answers, job, *before)
            await cancel(bus, job)
            heard = [*before, Cancelling, Ended]
            *_, ended = await until(answers, job, *heard)
            assert isinstance(ended, Ended)
            assert (ended.outcome, ended.repeated) == (Outcome.CANCELLED, msgspec.UNSET)
            # Neither another cancellation nor another copy changes anything: both are answered with the last word.
            await cancel(bus, job)
            await until(answers, job, *heard, Ended)
            await submit(bus, a_body(id=job))
            *_, again, copy = await until(answers, job, *heard, Ended, Ended)
            assert again == copy == msgspec.structs.replace(ended, repeated=True)
            assert cluster.jobs[f"team-a/{job}"].phase is Phase.ENDED
        # More than once where a cancellation comes before the admitter has looked at what was stated.
        assert set(cluster.deletions) == {"team-a/waits", "team-a/runs"}
        await settled(bus)
        assert sample(admitter, "submissions_total", outcome="cancelled") == 4


async def test_what_is_not_the_tenants_to_cancel_is_refused(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    await cluster.put("by-hand")
    async with run_admitter() as admitter:
        for job in ("anothers", "over"):
            await submit(bus, a_body(id=job))
            await until(answers, job, Accepted)
        await cluster.start("team-a/over")
        await cluster.end("team-a/over")
        await until(answers, "over", Accepted, Started, Ended)
        await cancel(bus, "anothers", tenant="team-b")
        for job in ("unheard-of", "by-hand", "over"):
            await cancel(bus, job)
        await submit(bus, b'{"id": "with-demand", "cancel": true, "demand": {"cpu": 1}}')
        await submit(bus, b'{"id": "odd", "cancel": 1}')
        await submit(bus, b'{"cancel": true}', msg_id="nameless")

        def refused() -> list[Refused]:
            return [one for one in answers if isinstance(one, Refused)]

        await eventually(lambda: len(refused()) == 7, what="seven refusals")
        reasons = {(one.tenant, one.id): (one.field, one.reason.partition(":")[0]) for one in refused()}
        assert reasons == {
            ("team-b", "anothers"): ("id", "is not known"),
            ("team-a", "unheard-of"): ("id", "is not known"),
            ("team-a", "by-hand"): ("id", "names a job that was not submitted on NATS under this id"),
            ("team-a", "over"): ("id", "names a job that has ended"),
            ("team-a", "with-demand"): ("demand", "says something of a new job"),
            ("team-a", "odd"): ("cancel", "must be true or false"),
            ("team-a", "nameless"): ("id", "is missing"),
        }
        phases = {name: job.phase for name, job in cluster.jobs.items()}
        assert phases == {
            "team-a/by-hand": Phase.WAITING,
            "team-a/anothers": Phase.WAITING,
            "team-a/over": Phase.ENDED,
        }
        assert sample(admitter, "submissions_refused_total", reason="cancel") == 4


async def test_what_another_cluster_said_of_the_id_counts_for_nothing(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    for job, said in (("x", ACCEPTED), ("y", CANCELLED)):
        elsewhere = msgspec.structs.replace(said, id=job, tenant="team-a", cluster="elsewhere")
        await bus.publish(subjects.answer("team-a", job), to_json(elsewhere))
    async with run_admitter():
        await cancel(bus, "x")
        *_, refused = await until(answers, "x", Accepted, Refused)
        assert isinstance(refused, Refused)
        assert refused.reason.startswith("is not known")
        await submit(bus, a_body(id="y"))
        await until(answers, "y", Ended, Accepted)
    assert cluster.creations == ["team-a/y"]


async def give_back_after(bus: Bus, seconds: float) -> None:
    """Has what a killed admitter had in hand come again after this time, instead of ten seconds."""
    plan = topology.topology([CLUSTER])
    durables = [msgspec.structs.replace(spec, ack_wait_seconds=seconds) for spec in plan.durables]
    await provision(bus, msgspec.structs.replace(plan, durables=durables))


async def take_in_hand(bus: Bus) -> None:
    """Takes the next submission from the intake's durable, as an admitter does that dies over it."""
    taken = asyncio.Event()

    async def take(_: Asked) -> None:
        taken.set()

    stop = await bus.subscribe_core("taken", take)
    durable = topology.submit_durable(CLUSTER)
    await bus.connection.send(
        f"$JS.API.CONSUMER.MSG.NEXT.{topology.SUBMIT}.{durable}", b'{"batch": 1}', reply="taken"
    )
    async with asyncio.timeout(10):
        await taken.wait()
    await stop()


async def test_a_cancellation_waits_for_its_submission_that_a_dead_admitter_had_in_hand(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    await give_back_after(bus, 2.0)
    await submit(bus, a_body(id="x"))
    await take_in_hand(bus)
    await cancel(bus, "x")
    async with run_admitter():
        await eventually(lambda: cluster.deletions, 30, what="the frontend was asked to cancel")
        assert not cluster.jobs, "the cancellation comes first"
        await settled(bus)
        await until(answers, "x", Accepted, Cancelling, Ended)
    assert cluster.jobs["team-a/x"].outcome is Outcome.CANCELLED


async def test_cancelled_in_the_same_moment_no_job_goes_on(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    names = [f"x{number}" for number in range(100)]
    async with run_admitter():
        for name in names:
            await asyncio.gather(submit(bus, a_body(id=name)), cancel(bus, name))
        await settled(bus)
        await eventually(lambda: len({one.id for one in answers if isinstance(one, Ended)}) == len(names), 60)
    assert {job.phase for job in cluster.jobs.values()} == {Phase.ENDED}
    assert len(cluster.jobs) == len(names)


async def test_a_copy_that_a_dead_admitter_had_in_hand_is_answered(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    await give_back_after(bus, 2.0)
    async with run_admitter() as admitter:
        await submit(bus, a_body(id="x"))
        await until(answers, "x", Accepted)
        await eventually(lambda: sample(admitter, "submissions_total", outcome="accepted") == 1)
    await submit(bus, a_body(id="x"), msg_id="copy")
    await take_in_hand(bus)
    await cancel(bus, "x")
    async with run_admitter():
        *_, copy = await until(answers, "x", Accepted, Cancelling, Ended, Ended)
        await settled(bus)
    assert copy == msgspec.structs.replace(answers[2], repeated=True)
    assert len(cluster.jobs) == 1


async def test_what_was_answered_and_never_acked_is_not_answered_again(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], nats_server: NatsServer, tmp_path: Path
) -> None:
    await give_back_after(bus, 2.0)
    given = {"cluster": CLUSTER, "nats_url": nats_server.url, "frontend_timeout_seconds": 30}
    cluster.hold_replies.clear()
    with ServiceProcess("admitter", tmp_path, given, name="first") as first:
        await submit(bus, a_body(id="x"))
        await eventually(lambda: cluster.creations, 30, what="the job is made")
        first.kill()
    accepted = msgspec.structs.replace(
        ACCEPTED, id="x", tenant="team-a", cluster=CLUSTER, repeated=msgspec.UNSET
    )
    submission = await bus.last(topology.SUBMIT, subjects.submit(CLUSTER, "team-a"))
    assert submission is not None
    told = f"accepted-{CLUSTER}-{submission.seq}"
    await bus.publish(subjects.answer("team-a", "x"), to_json(accepted), msg_id=told)
    cluster.hold_replies.set()
    with ServiceProcess("admitter", tmp_path, given, name="second"):
        await eventually(lambda: len(cluster.creations) == 2, 30, what="it is asked for again")
        await settled(bus)
        await submit(bus, a_body(id="y"))
        await until(answers, "y", Accepted)
    assert [answer for answer in answers if answer.id == "x"] == [accepted]


async def test_messages_of_an_id_keep_their_order_while_the_frontend_is_away(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    names = [f"x{number}" for number in range(20)]
    async with run_admitter():
        await cluster.go_down()
        for name in names:
            for body in (a_body(id=name), a_cancellation(name), a_body(id=name, pods=2)):
                await submit(bus, body)
        await asyncio.sleep(2.0)  # each is tried now and then
        await cluster.come_up()
        await settled(bus)
    for name in names:
        kinds = [type(one) for one in answers if one.id == name and not isinstance(one, Ended)]
        assert kinds == [Accepted, Cancelling, Refused], name
    assert {job.phase for job in cluster.jobs.values()} == {Phase.ENDED}


async def test_a_cancellation_leaves_the_job_of_a_later_submission_alone(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    """What it was sent for was refused; it comes late, as a dead admitter had it in hand."""
    await give_back_after(bus, 2.0)
    async with run_admitter():
        await submit(bus, a_body(id="x", queue="nowhere"))
        await until(answers, "x", Refused)
    await cancel(bus, "x")
    await take_in_hand(bus)
    await submit(bus, a_body(id="x"))
    async with run_admitter():
        *_, refused = await until(answers, "x", Refused, Accepted, Refused)
        assert isinstance(refused, Refused)
        told = "names a job that was submitted again after this cancellation"
        assert (refused.field, refused.reason) == ("id", told)
        assert cluster.jobs["team-a/x"].phase is Phase.WAITING
        await cancel(bus, "x")
        await until(answers, "x", Refused, Accepted, Refused, Cancelling, Ended)


async def test_the_stream_is_read_only_for_an_id_of_which_nobody_speaks(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    reads: list[Asked] = []

    async def note(asked: Asked) -> None:
        reads.append(asked)

    stop = await bus.subscribe_core(f"$JS.API.DIRECT.GET.{topology.SUBMIT}", note)
    async with run_admitter():
        await submit(bus, a_body(id="x"))
        await until(answers, "x", Accepted)
        await cancel(bus, "x")
        await until(answers, "x", Accepted, Cancelling, Ended)
        await cancel(bus, "x")
        await until(answers, "x", Accepted, Cancelling, Ended, Ended)
        assert not reads
        await cancel(bus, "unheard-of")
        await until(answers, "unheard-of", Refused)
    assert len(reads) == 1
    assert set(cluster.deletions) == {"team-a/x"}
    await stop()


async def test_the_last_word_on_a_job_stands_behind_refusals_and_other_clusters_answers(
    bus: Bus, policy: int
) -> None:
    assert policy
    sender = Sender("team-a", "x")

    async def said(*kinds: AnyAnswer, by: str = CLUSTER) -> None:
        for kind in kinds:
            word = msgspec.structs.replace(kind, id="x", tenant="team-a", cluster=by)
            await bus.publish(subjects.answer(*sender), to_json(word))

    async def standing() -> AnyAnswer | None:
        return await ReplyPublisher(bus, CLUSTER, lambda _: None).standing(sender)

    reads: list[Asked] = []

    async def note(asked: Asked) -> None:
        reads.append(asked)

    await said(REFUSED)
    await said(ACCEPTED, by="elsewhere")
    assert await standing() is None
    await said(ACCEPTED, CANCELLED, REFUSED)
    await said(ACCEPTED, REFUSED, by="elsewhere")
    found = await standing()
    assert isinstance(found, Ended)
    assert says_cancelled(found)
    replies = ReplyPublisher(bus, CLUSTER, lambda _: None)
    assert await replies.standing(sender) == found
    stop = await bus.subscribe_core(f"$JS.API.STREAM.MSG.GET.{topology.ANSWER}", note)
    assert await replies.standing(sender) == found
    await stop()
    assert len(reads) == 1, "what was read once is not looked for again"


X = Sender("team-a", "x")


async def tried(
    replies: ReplyPublisher, seq: int, *, sender: Sender = X, finds: type[Exception] | None = None
) -> bool:
    """Whether the message has its turn, and finds nothing for which it is tried again."""
    with contextlib.suppress(NotYetError, UnavailableError):
        async with replies.turn(sender, seq):
            if finds is not None:
                raise finds("not now", **({"seconds": 1.0} if finds is NotYetError else {}))
            return True
    return False


async def test_only_messages_of_the_sender_wait_for_one_that_is_tried_again(bus: Bus, policy: int) -> None:
    assert policy
    replies = ReplyPublisher(bus, CLUSTER, lambda _: None)
    assert not await tried(replies, 0, finds=UnavailableError), "an event's answer"
    assert not await tried(replies, 7, finds=NotYetError)
    assert not await tried(replies, 8)
    assert not await tried(replies, 9)
    assert await tried(replies, 6)
    assert await tried(replies, 9, sender=Sender("team-a", "y"))
    assert [
        await tried(replies, 7),
        await tried(replies, 9),
        await tried(replies, 8),
        await tried(replies, 9),
    ] == [True, False, True, True]
    assert not await tried(replies, 10, finds=NotYetError)
    replies.begin_anew()
    assert await tried(replies, 11), "another replica led meanwhile"


async def test_a_sender_with_many_messages_that_wait_does_not_keep_all_in_order(
    bus: Bus, policy: int
) -> None:
    assert policy
    replies = ReplyPublisher(bus, CLUSTER, lambda _: None)
    kept = range(1, MOST_IN_ORDER + 1)
    assert not any([await tried(replies, seq, finds=NotYetError) for seq in kept])
    assert not await tried(replies, 90, finds=NotYetError)
    assert [await tried(replies, seq) for seq in (90, 91)] == [True, True]
    assert [await tried(replies, seq) for seq in (2, 1, 3, 2)] == [False, True, False, True]


async def test_a_message_that_never_comes_again_keeps_nobody_waiting_for_ever(
    bus: Bus, policy: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where it was given back to the stream, and an operator took it out there."""
    assert policy
    replies = ReplyPublisher(bus, CLUSTER, lambda _: None)
    assert not await tried(replies, 1, finds=NotYetError)
    assert not await tried(replies, 2)
    monkeypatch.setattr("fairlead_admitter.report.replies.GONE_SECONDS", 0.0)
    await asyncio.sleep(0.01)
    assert await tried(replies, 3)


async def cancel_gone(
    bus: Bus, at: Micros = NOW, seq: int = 2, stated: JobState | None = None
) -> tuple[object, int]:
    """Carries out a cancellation of a job that is gone; returns the outcome, and how often its frontend was asked."""
    facts, replies = ClusterFacts(CLUSTER), ReplyPublisher(bus, CLUSTER, lambda _: None)
    if stated is not None:
        facts.apply({subject_of(stated): stated})
    frontend = NamesLetGo(at)
    creator = RetryingCreator(frontend, share=1, troubled=unexpected)
    canceller = Canceller(bus, facts, SubmissionCheck(facts, PolicyView()), creator, replies)
    again = Delivery(
        subject=subjects.submit(CLUSTER, "team-a"),
        payload=b"",
        headers={},
        stream_seq=seq,
        deliveries=2,
        at=at,
    )
    return await canceller.carry_out(again, Cancellation("team-a", "X")), frontend.asked


async def test_who_was_accepted_hears_of_an_end_that_nobody_stated(
    bus: Bus, policy: int, answers: list[AnyAnswer]
) -> None:
    """Another admitter had Kubernetes delete the job before the watcher saw it, and died before it said so."""
    assert policy
    accepted = msgspec.structs.replace(ACCEPTED, id="X", tenant="team-a", cluster=CLUSTER, job="x")
    await bus.publish(subjects.answer("team-a", "X"), to_json(accepted))
    assert await cancel_gone(bus) == (None, 1)
    *_, ended = await until(answers, "X", Accepted, Cancelling, Ended)
    assert isinstance(ended, Ended)
    assert (ended.job, ended.outcome) == ("x", Outcome.CANCELLED)


async def test_no_end_is_made_up_for_a_job_that_started(
    bus: Bus, policy: int, answers: list[AnyAnswer]
) -> None:
    """It was stated, so an event tells how it ended, though none was heard yet and its statement is gone."""
    assert policy
    for said in (ACCEPTED, STARTED):
        word = msgspec.structs.replace(said, id="X", tenant="team-a", cluster=CLUSTER)
        await bus.publish(subjects.answer("team-a", "X"), to_json(word))
    assert await cancel_gone(bus) == (None, 1)
    assert await cancel_gone(bus, seq=3) == (None, 1)  # taken back twice
    last = await bus.last(topology.ANSWER, subjects.answer("team-a", "X"))
    assert last is not None
    assert isinstance(ANSWER.decode(last.payload), Cancelling)
    await until(answers, "X", Accepted, Started, Cancelling, Cancelling)


async def test_a_job_whose_end_was_told_just_now_is_not_taken_away_before_its_statement_says_so_too(
    bus: Bus, policy: int
) -> None:
    assert policy
    runs = msgspec.structs.replace(RUNS, cluster=CLUSTER, scope="team-a", submission="X")
    for said in (ACCEPTED, STARTED, SUCCEEDED):
        word = msgspec.structs.replace(said, id="X", tenant="team-a", cluster=CLUSTER)
        await bus.publish(subjects.answer("team-a", "X"), to_json(word))
    with pytest.raises(NotYetError, match="is not stated yet"):
        await cancel_gone(bus, wall_clock(), stated=runs)
    ended = msgspec.structs.replace(HAS_SUCCEEDED, cluster=CLUSTER, scope="team-a", submission="X")
    refused, asked = await cancel_gone(bus, wall_clock(), stated=ended)
    assert (isinstance(refused, SubmissionRefusal), asked) == (True, 0)
    _, asked = await cancel_gone(bus, wall_clock() - MINUTE, stated=runs)
    assert asked == 1, "it was queued again since"


async def test_a_cancellation_that_waits_for_long_looks_again_within_half_a_minute(
    bus: Bus, policy: int
) -> None:
    """Its job, once it is there, runs until then."""
    assert policy
    await submit(bus, a_body(id="X"))
    with pytest.raises(NotYetError) as caught:
        await cancel_gone(bus, wall_clock() - HOUR)
    assert caught.value.seconds == 30.0


async def test_killed_between_deletion_and_answer_the_next_admitter_says_so(
    bus: Bus, cluster: FakeCluster, answers: list[AnyAnswer], nats_server: NatsServer, tmp_path: Path
) -> None:
    await give_back_after(bus, 2.0)
    given = {"cluster": CLUSTER, "nats_url": nats_server.url, "frontend_timeout_seconds": 30}
    given["stale_after_seconds"] = 120  # nobody decides here
    with ServiceProcess("admitter", tmp_path, given, name="first") as first:
        await first.ready()
        await submit(bus, a_body(id="x"))
        await until(answers, "x", Accepted)
        cluster.hold_replies.clear()
        await cancel(bus, "x")
        event = subjects.event("team-a", CLUSTER, "x")
        await eventually(lambda: bus.last(topology.EVENT, event), what="its end is an event")
        assert [type(answer) for answer in answers] == [Accepted]
        first.kill()
    cluster.hold_replies.set()
    with ServiceProcess("admitter", tmp_path, given, name="second") as second:
        await second.ready()
        await settled(bus)
        await eventually(lambda: any(isinstance(one, Ended) for one in answers), 30, what="its end is told")
        assert await second.stop() == 0
    assert [answer for answer in answers if isinstance(answer, Refused)] == []
    ended = [answer for answer in answers if isinstance(answer, Ended)]
    assert {answer.outcome for answer in ended} == {Outcome.CANCELLED}
