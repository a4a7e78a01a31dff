"""Questions to several scorers at once: exact ranks, entitlements, explanations, silent shards, clear refusals."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import RemoteError
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.frontend.cards import CardState
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.leave import Leave
from fairlead_contracts.messages.questions import (
    EXPLAIN_REPLY,
    PROBLEM,
    QUEUE_REPLY,
    TENANTS_REPLY,
    Approval,
    ExplainQuestion,
    ExplainReply,
    Explanation,
    PoolQueue,
    Problem,
    QueueQuestion,
    QueueReply,
    Shortfall,
    Steering,
    TenantsQuestion,
    TenantsReply,
)
from fairlead_contracts.messages.state import Fault, JobShape, JobState, Outcome, Phase
from fairlead_contracts.policyfile.document import Grant, Tenant
from fairlead_scorer import ScorerSettings, main
from fairlead_scorer.decide.shard_assignment import assign
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.by_hand.bus_harness import BusHarness
from fairlead_testkit.by_hand.people import say
from fairlead_testkit.inputs.builders import NOON, NOW, a_document, a_job, a_mark, a_node, a_pool, a_queue

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
MINUTE = 60_000_000


@pytest.fixture
async def harness(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[BusHarness]:
    """Two scorers; team-a weighs 3 and runs 4 GPUs, team-b weighs 1 and runs nothing."""
    async with BusHarness.open(nats_server, tmp_path) as opened, AsyncExitStack() as scorers:
        await opened.policy(a_document())
        await opened.state(
            a_pool(),
            a_queue(),
            a_job("runs", gpu=4, phase=Phase.RUNNING, started=NOW),
            *(a_job(f"a{number}", submitted=NOW + number) for number in range(5)),
            *(a_job(f"b{number}", scope="team-b", gpu=2, submitted=NOW + number) for number in range(3)),
        )
        await opened.mark()
        for name in ("s1", "s2"):
            await scorers.enter_async_context(opened.serving(main, ScorerSettings, name, answer_seconds=1.0))
        await opened.owned_by("s1", "s2")
        await opened.settled()
        yield opened


async def test_a_tenant_that_asks_too_fast_is_refused_unread_and_its_neighbour_is_not(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with BusHarness.open(nats_server, tmp_path) as harness:
        await harness.policy(a_document())
        await harness.state(a_pool(), a_queue())
        await harness.mark()
        async with harness.serving(main, ScorerSettings, "s1", tenant_asks_per_second=0.2):
            await harness.owned_by("s1")
            for _ in range(2):
                await ask_queue(harness, tenant="team-a")
            with pytest.raises(
                RemoteError, match=r"team-a asks more than the 0\.2 questions a second"
            ) as refused:
                await harness.bus.request(
                    subjects.ask("explain", "team-a"), b"no question at all", timeout=30
                )
            assert refused.value.code == 429
            await ask_queue(harness, tenant="team-b")
            for _ in range(3):
                await ask_queue(harness)  # an operator's


async def test_a_tenant_whose_questions_take_long_is_told_to_wait_and_its_neighbour_is_not(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with BusHarness.open(nats_server, tmp_path) as harness:
        await harness.policy(a_document())
        await harness.state(a_pool(), a_queue(), *(a_job(f"a{number}") for number in range(300)))
        await harness.mark()

        async def ask_on() -> None:
            while True:
                await asyncio.gather(*(ask_queue(harness, tenant="team-a") for _ in range(8)))

        async with harness.serving(main, ScorerSettings, "s1", tenant_asks_per_second=10_000):
            await harness.owned_by("s1")
            with pytest.raises(
                RemoteError, match=r"what team-a asks takes a scorer too much time; ask again in \d+ s"
            ):
                await ask_on()
            await ask_queue(harness, tenant="team-b")
            await ask_queue(harness)  # an operator's


async def ask_queue(
    harness: BusHarness, question: QueueQuestion | None = None, tenant: str | None = None
) -> QueueReply:
    payload = to_json(question or QueueQuestion())
    return QUEUE_REPLY.decode(await harness.bus.request(subjects.ask("queue", tenant), payload, timeout=30))


async def asked_at_once(harness: BusHarness, times: int) -> QueueReply:
    """The first answer of several. Until the server notices that a scorer was killed, it gives questions to it; whoever
    waited for that one and asked again, as commands do, would ask after the lease."""
    asking = [asyncio.create_task(ask_queue(harness)) for _ in range(times)]
    done, late = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    for task in late:
        task.cancel()
    return done.pop().result()


async def ask_tenants(harness: BusHarness, tenant: str | None = None) -> TenantsReply:
    subject = subjects.ask("tenants", tenant)
    return TENANTS_REPLY.decode(await harness.bus.request(subject, to_json(TenantsQuestion()), timeout=30))


async def near(harness: BusHarness, job: str, tenant: str | None = None) -> list[str] | msgspec.UnsetType:
    question = to_json(ExplainQuestion(job=job))
    return EXPLAIN_REPLY.decode(
        await harness.bus.request(subjects.ask("explain", tenant), question, timeout=30)
    ).near


async def explain(harness: BusHarness, job: str, tenant: str | None = None) -> list[Explanation]:
    subject = subjects.ask("explain", tenant)
    reply: ExplainReply = EXPLAIN_REPLY.decode(
        await harness.bus.request(subject, to_json(ExplainQuestion(job=job)), timeout=30)
    )
    return reply.found


async def refused(harness: BusHarness, subject: str, payload: bytes) -> Problem:
    with pytest.raises(RemoteError) as caught:
        await harness.bus.request(subject, payload, timeout=30)
    assert caught.value.code == 400
    return PROBLEM.decode(caught.value.payload)


# Shares: team-a runs 4 of 16 GPUs at weight 3, so its tags are (4 + n) / 48; team-b's are 2n / 16.
ORDER = ["b0", "a0", "a1", "b1", "a2", "a3", "a4", "b2"]


async def test_the_queue_is_the_exact_merge_of_all_shards(harness: BusHarness) -> None:
    [pool] = (await ask_queue(harness)).pools
    assert [line.position.id for line in pool.positions] == ORDER
    assert [line.rank for line in pool.positions] == list(range(8))
    assert (pool.pool, pool.waiting, pool.silent_shards) == ("c1/gpu", 8, [])


async def test_a_limit_cuts_the_beginning_and_still_counts_all(harness: BusHarness) -> None:
    [pool] = (await ask_queue(harness, QueueQuestion(limit=3))).pools
    assert [line.position.id for line in pool.positions] == ORDER[:3]
    assert pool.waiting == 8


async def test_the_first_of_a_queue_are_exact_though_each_shard_tells_only_its_part(
    harness: BusHarness,
) -> None:
    """Three of four first positions are team-a's: more than it tells when it is asked first."""
    await harness.state(
        *(a_job(f"c{number:02}", submitted=NOW + 100 + number) for number in range(80)),
        *(a_job(f"d{number:02}", scope="team-b", submitted=NOW + 100 + number) for number in range(80)),
    )
    await harness.settled()
    [whole] = (await ask_queue(harness, QueueQuestion(limit=0))).pools
    assert len(whole.positions) == 168
    for limit in (9, 20, 150):
        [pool] = (await ask_queue(harness, QueueQuestion(limit=limit))).pools
        assert [one.position.id for one in pool.positions] == [
            one.position.id for one in whole.positions[:limit]
        ]
        assert [position.why for position in pool.positions] == [
            position.why for position in whole.positions[:limit]
        ]
        assert (pool.waiting, pool.more) == (168, 168 - limit)


async def test_what_an_answer_leaves_out_is_counted_of_the_tenant_where_one_is_asked_for(
    harness: BusHarness,
) -> None:
    [cut] = (await ask_queue(harness, QueueQuestion(limit=3))).pools
    [whole] = (await ask_queue(harness, QueueQuestion(limit=0))).pools
    [own] = (await ask_queue(harness, QueueQuestion(tenant="team-a", limit=2))).pools
    assert [(one.waiting, len(one.positions), one.more) for one in (cut, whole, own)] == [
        (8, 3, 5),
        (8, 8, 0),
        (8, 2, 3),
    ]
    assert (whole.most, own.most) == (2000, 200)
    below = [msgspec.structs.replace(tenant, parent="org") for tenant in a_document().tenants]
    await harness.policy(a_document(tenants=[Tenant(name="org"), *below]))

    async def own_in_a_tree() -> PoolQueue | None:
        [found] = (await ask_queue(harness, QueueQuestion(tenant="team-a", limit=2))).pools
        return found if found.positions and all(one.position.top for one in found.positions) else None

    own = await eventually(own_in_a_tree, what="both scorers follow the tree")
    assert (len(own.positions), own.more, own.most) == (2, 3, 200)


async def test_a_tenant_that_nobody_knows_is_refused(harness: BusHarness) -> None:
    payload = to_json(QueueQuestion(tenant="nope"))
    for subject, question in ((subjects.ask("queue"), payload), (subjects.ask("tenants", "nope"), b"{}")):
        problem = await refused(harness, subject, question)
        assert (problem.field, problem.value) == ("tenant", '"nope"')
        assert problem.reason == "is not in the policy, and has no job and no queue"
    problem = await refused(
        harness, subjects.ask("explain"), to_json(ExplainQuestion(job="a2", tenant="nope"))
    )
    assert (problem.field, problem.value) == ("tenant", '"nope"')
    # One without a job, whom the policy names, is one for whom nobody waits.
    await harness.policy(a_document(tenants=[*a_document().tenants, Tenant(name="team-new")]))

    async def known() -> bool:
        try:
            [pool] = (await ask_queue(harness, QueueQuestion(tenant="team-new"))).pools
        except RemoteError:
            return False
        return pool.positions == []

    await eventually(known)


async def test_who_granted_a_class_to_one_job_is_told_with_its_position(harness: BusHarness) -> None:
    grant = Grant(tenant="team-a", classes=["urgent"], job="a4", by="ann", why="demo")
    await harness.policy(a_document(grants=[grant]))
    approval = Approval(job_class="urgent", by="ann", why="demo")

    async def told() -> bool:
        [pool] = (await ask_queue(harness)).pools
        return [line.approved for line in pool.positions] == [approval, *[None] * 7]

    await eventually(told)
    [found] = await explain(harness, "a4")
    assert found.approved == approval
    [found] = await explain(harness, "a3")
    assert found.approved is None


async def test_each_position_says_by_what_the_one_above_goes_first(harness: BusHarness) -> None:
    grant = Grant(tenant="team-b", classes=["urgent"], job="b2", by="ann")
    await harness.policy(a_document(grants=[grant]))

    async def first() -> bool:
        [pool] = (await ask_queue(harness)).pools
        return bool(pool.positions) and pool.positions[0].position.id == "b2"

    await eventually(first)
    [pool] = (await ask_queue(harness)).pools
    told = {line.position.id: line.why for line in pool.positions}
    ids = list(told)
    assert not told["b2"], "nothing goes before the first"
    assert told[ids[1]] == "class urgent goes before normal"
    tenants = [line.position.tenant for line in pool.positions]
    for at in range(2, len(ids)):
        same = tenants[at] == tenants[at - 1]
        # All of one tenant were submitted one after another, in microseconds that count where shares are alike.
        parts = (
            ("their tenant serves it first",) if same else ("its tenant comes to ", "it has waited longer")
        )
        assert told[ids[at]].startswith(parts), told
    # Of one tenant's jobs alone the neighbours are not shown: nothing is told of them.
    [own] = (await ask_queue(harness, QueueQuestion(tenant="team-a"))).pools
    assert not any(line.why for line in own.positions)


@pytest.mark.parametrize("by_subject", [True, False])
async def test_one_tenants_positions_keep_their_rank_in_the_pool(
    harness: BusHarness, by_subject: bool
) -> None:
    question = QueueQuestion() if by_subject else QueueQuestion(tenant="team-b")
    [pool] = (await ask_queue(harness, question, "team-b" if by_subject else None)).pools
    assert [(line.rank, line.position.id) for line in pool.positions] == [(0, "b0"), (3, "b1"), (7, "b2")]


async def test_tenants_are_shown_with_their_entitlement(harness: BusHarness) -> None:
    [pool] = (await ask_tenants(harness)).pools
    assert [(line.standing.tenant, line.standing.entitled, line.part_now) for line in pool.tenants] == [
        ("team-a", 0.75, 0.75),
        ("team-b", 0.25, 0.25),
    ]
    assert pool.tenants[0].tag == pytest.approx(1 / 3)
    assert pool.tenants[0].standing.share == 0.25
    [pool] = (await ask_tenants(harness, "team-b")).pools
    assert [(line.standing.tenant, line.part_now) for line in pool.tenants] == [("team-b", 0.25)]


async def test_a_waiting_job_is_explained_by_what_its_position_is_made_of(harness: BusHarness) -> None:
    [found] = await explain(harness, "a2")
    assert (found.phase, found.pool, found.tenant, found.rank, found.waiting) == (
        "waiting",
        "c1/gpu",
        "team-a",
        4,
        8,
    )
    assert [(line.tenant, line.jobs) for line in found.ahead] == [("team-a", 2), ("team-b", 2)]
    assert found.position is not None
    # 6 of 16 GPUs, over three quarters.
    assert (found.position.use, found.position.tag) == (6000, 0.5)
    text = " ".join(found.reasons)
    assert "number 5 of 8" in text
    assert "2 of its own tenant, 2 of team-b" in text
    assert "weight 3" in text
    assert "which is 0.5 times the 75.0 %" in text


UNCHECKED = "admission check gang-fit is Pending: Not all of its pods have room on the nodes now."
FAULT = Fault(field="spec.queueName", value="x", remedy="name another")


async def test_jobs_are_explained_in_every_phase(harness: BusHarness) -> None:
    await harness.state(
        a_job("held", phase=Phase.HELD, held_by="it is deactivated (spec.active)", faults=[FAULT]),
        a_job("mute", phase=Phase.HELD),
        a_job("over", phase=Phase.ENDED, started=NOW, ended=NOW + MINUTE, outcome=Outcome.FAILED),
        a_job("lost", queue="nowhere"),
        a_job("stray", queue="typo", phase=Phase.HELD, held_by="no LocalQueue 'typo' in namespace team-a."),
        a_job("checked", phase=Phase.RUNNING, started=NOW, unchecked=UNCHECKED, open_checks=["gang-fit"]),
    )

    async def reasons(job: str) -> str:
        found = await eventually(lambda: explain(harness, job), what=f"{job} is known")
        return " ".join(found[0].reasons)

    assert "Held: it is deactivated (spec.active)." in await reasons("held")
    assert "spec.queueName: name another." in await reasons("held")
    assert "does not say why" in await reasons("mute")
    assert "in namespace team-a. Until that changes, it has no position" in await reasons("stray")
    assert "failed after it ran for 1 min" in await reasons("over")
    assert "counts as its tenant's use" in await reasons("runs")
    assert "in no order" in await reasons("lost")
    assert await explain(harness, "never-heard-of") == []
    assert await near(harness, "never-heard-of") is msgspec.UNSET
    assert await near(harness, "b") == ["team-b/b2", "team-b/b1", "team-b/b0"]
    assert await near(harness, "team-b/b") == ["team-b/b2", "team-b/b1", "team-b/b0"]
    assert await near(harness, "b", tenant="team-a") is msgspec.UNSET
    checked = await reasons("checked")
    assert f"no pods yet: {UNCHECKED}" in checked
    assert "Nobody answers its check gang-fit now: no checker leads for cluster c1. An operator" in checked
    assert [one.unchecked or "" for [one] in [await explain(harness, "checked")]] == [UNCHECKED]
    told = await ask_queue(harness)
    [pool] = told.pools
    assert (told.nowhere, [one.job for one in told.nowhere_first or []]) == (1, ["team-a/stray"])
    assert pool.unranked == 3
    assert {one.job.partition("/")[2]: one.why for one in pool.unranked_first} == {
        "held": "it is deactivated (spec.active)",
        "mute": "its frontend does not say why",
        "checked": f"has its quota; {UNCHECKED}",
    }
    others = await ask_queue(harness, tenant="team-b")
    [alone] = others.pools
    assert (alone.unranked, alone.unranked_first, others.nowhere) == (0, [], msgspec.UNSET)


async def test_who_asks_for_more_than_the_first_is_named_the_jobs_without_a_position_too(
    harness: BusHarness,
) -> None:
    held = [f"held-{number:02}" for number in range(60)]
    lost = [f"lost-{number}" for number in range(4)]
    await harness.state(
        *(a_job(name, phase=Phase.HELD, submitted=NOW + at) for at, name in enumerate(held)),
        *(a_job(name, queue="typo", phase=Phase.HELD) for name in lost),
    )

    async def named(limit: int) -> tuple[int, int]:
        told = await ask_queue(harness, QueueQuestion(limit=limit))
        [pool] = told.pools
        assert [one.job for one in pool.unranked_first] == [
            f"team-a/{name}" for name in held[: len(pool.unranked_first)]
        ]
        return len(pool.unranked_first), len(told.nowhere_first or [])

    async def all_are_known() -> bool:
        return await named(0) == (60, 4)

    await eventually(all_are_known)
    assert [await named(limit) for limit in (1, 50, 51)] == [(1, 1), (3, 3), (51, 4)]


async def test_a_class_that_was_refused_and_a_demand_above_the_pool_are_said(harness: BusHarness) -> None:
    await harness.state(a_job("big", gpu=20, requested_class="urgent"), a_job("odd", requested_class="urgnt"))
    [found] = await eventually(lambda: explain(harness, "team-a/big"), what="the job is known")
    text = " ".join(found.reasons)
    assert found.refused_class == "urgent"
    assert (
        "asked for class urgent, which is not granted to team-a. An operator grants it to this job by `fairlead approve team-a/big --class urgent`"
        in text
    )
    assert "20 nvidia.com/gpu, more than the 16 that the pool has" in text
    [found] = await eventually(lambda: explain(harness, "team-a/odd"), what="the job is known")
    text = " ".join(found.reasons)
    assert "asked for class urgnt, which the policy does not have: its classes are urgent, " in text
    assert "not granted" not in text, "nobody can grant it"


async def test_a_job_that_no_node_could_hold_is_told_so(harness: BusHarness) -> None:
    await harness.state(
        a_node(name="n1"),
        a_node(name="n2"),
        a_job("wide", gpu=9),
        a_job("fits", gpu=8),
        a_job("gang", gpu=18, pods=2),
    )
    await eventually(lambda: explain(harness, "gang"), what="the jobs are known")
    [wide], [fits], [gang] = [await explain(harness, name) for name in ("wide", "fits", "gang")]
    [why] = wide.never
    assert why.startswith("The nodes of cluster c1 cannot hold it, even if nothing else ran. ")
    assert why.endswith("a pod asks for 9 nvidia.com/gpu, more than any node has, even empty (8).")
    assert fits.never == []
    assert "a pod asks for 9 nvidia.com/gpu" in gang.never[0]
    # Where a frontend does not look at nodes, such a job starts all the same: they are no reason.
    await harness.state(a_queue(by_quota_alone=True))
    await eventually(lambda: _fits_again(harness, "wide"), what="nodes are no reason here")
    await harness.state(a_queue())
    for name in ("n1", "n2"):
        await harness.delete(a_node(name=name))
    await eventually(lambda: _fits_again(harness, "wide"), what="nothing is said where no nodes are stated")


GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"


def asking(name: str, mebibytes: int) -> JobState:
    """A job whose one pod asks for a vGPU with so much memory."""
    ask = {GPU: 1000, MEMORY: 1000 * mebibytes}
    shape = JobShape(name="main", pods=1, demand=ask, card_asks=[ask])
    return a_job(name, demand=ask, shapes=[shape])


async def state_cards_and_who_asks_for_them(harness: BusHarness) -> None:
    """Two cards of 24 GiB, half of each held; and four jobs."""
    cards = [
        CardState(uuid=f"GPU-{held}", count=10, memory=24576, cores=100, used_count=1, used_memory=held)
        for held in (12000, 12576)
    ]
    await harness.state(
        a_pool(capacity=a_pool().capacity | {MEMORY: 10**9}),
        a_node(name="n1", cards=cards),
        a_node(name="n2", allocatable={"cpu": 64_000}),
        asking("huge", 32_000),
        asking("crowded", 20_480),
        asking("small", 8000),
        a_job("broke", demand={"cpu": 120_000}, pods=2),
    )
    await eventually(lambda: explain(harness, "broke"), what="the jobs are known")
    await harness.settled()


async def test_cards_that_are_full_or_too_small_are_told_apart_from_a_pool_that_is_full(
    harness: BusHarness,
) -> None:
    await state_cards_and_who_asks_for_them(harness)
    huge, crowded, small, broke = [
        (await explain(harness, name))[0] for name in ("huge", "crowded", "small", "broke")
    ]
    why = (
        "main: a vGPU asks for 32000 MiB of card memory, more than any card has (24576 MiB). "
        "All 2 cards are short of memory."
    )
    nowhere = "The nodes of cluster c1 cannot hold it, even if nothing else ran."
    assert huge.never == [f"{nowhere} {why}"]
    why = (
        "main: 24576 MiB of card memory free in all, but no card has 20480 MiB; the most on one is 12576 MiB. "
        "All 2 cards are short of memory."
    )
    not_now = "The cards of cluster c1 have no room for it now, as HAMi gave them away."
    assert crowded.no_room == [f"{not_now} {why}"]
    short = Shortfall(
        answer="no-room", term="card-memory", wanted=20480, most=12576, total=24576, unit="MiB", who="main"
    )
    assert crowded.shortfalls == [short]
    assert broke.no_quota == [
        "Pool c1/gpu has too little quota left: the job asks for 120 cpu, 112 are left."
    ]
    assert [(one.answer, one.term, one.most, one.who) for one in broke.shortfalls] == [
        ("no-quota", "cpu", 112_000, "c1/gpu")
    ]
    assert (small.never, small.no_quota, small.no_room, small.shortfalls) == ([], [], [], [])
    assert (huge.no_quota, huge.no_room, crowded.never, crowded.no_quota) == ([], [], [], [])


async def _fits_again(harness: BusHarness, job: str) -> bool:
    [found] = await explain(harness, job)
    return not found.never


async def test_a_tenants_subject_explains_its_own_jobs_alone(harness: BusHarness) -> None:
    assert len(await explain(harness, "a2", "team-a")) == 1
    assert await explain(harness, "a2", "team-b") == []


async def test_invalid_questions_are_refused_with_field_and_reason(harness: BusHarness) -> None:
    queue = subjects.ask("queue")
    assert "version 9" in (await refused(harness, queue, b'{"v": 9}')).reason
    unknown = await refused(harness, queue, to_json(QueueQuestion(pool="c9/gpu")))
    assert (unknown.field, unknown.value) == ("pool", '"c9/gpu"')
    assert "c1/gpu" in unknown.reason
    other = await refused(harness, subjects.ask("queue", "team-a"), to_json(QueueQuestion(tenant="team-b")))
    assert other.field == "tenant"
    assert (await refused(harness, subjects.ask("explain"), b'{"job": ""}')).field == "job"
    # Nobody else is harmed.
    assert (await ask_queue(harness)).pools[0].waiting == 8


async def test_shards_whose_owner_is_silent_are_named(harness: BusHarness) -> None:
    with harness.process("scorer", "doomed") as doomed:
        await harness.owned_by("s1", "s2", "doomed")

        items = {number: f"c1/gpu/{number}" for number in range(harness.document.shards)}
        given = assign(list(items.values()), ("s1", "s2", "doomed"))
        wanted = {number: given[item] for number, item in items.items()}

        def at_rest() -> bool:
            decided = {decision.shard: decision.owner for decision in harness.shards()}
            return harness.owners() == wanted == decided

        # All have some before each has its own: what changes hands when its owner dies is not looked at here.
        await eventually(at_rest, 60, on=harness.changed, what="each has its own, and has decided")
        silent = sorted(shard for shard, owner in harness.owners().items() if owner == "doomed")
        doomed.kill()
        # Its lease still stands: nobody has taken its shards over yet.
        [pool] = (await asked_at_once(harness, 6)).pools
        assert pool.silent_shards == silent
        assert pool.waiting == sum(
            len(heads.positions)
            for decision in harness.shards()
            if decision.owner != "doomed"
            for heads in decision.queue_heads
        )


async def test_the_reason_why_an_order_stands_still_is_said(harness: BusHarness) -> None:
    await harness.state(a_mark(incarnation="an earlier server"))

    async def said() -> bool:
        asked = [one for pool in (await ask_queue(harness)).pools for one in pool.steering]
        asked += [one.steering for one in await explain(harness, "a2") if one.steering]
        return len(asked) > 1 and all("c1 has not confirmed its state" in one.withheld for one in asked)

    await eventually(said)


async def test_people_hear_where_levels_are_written_and_why_not(harness: BusHarness) -> None:
    await harness.state(
        a_pool(name="kue", enforcement="tie-break", enforcement_why="own quotas"),
        a_queue(name="kq", pool="kue", frontend="kueue", preemption={"withinClusterQueue": "LowerPriority"}),
        a_job("wl", queue="kq", base=7, level=9, owner="Job/train", said="no quota", uid="u-1"),
    )

    async def steering() -> Steering | None:
        found = [pool for pool in (await ask_queue(harness)).pools if pool.pool == "c1/kue"]
        return found[0].steering[0] if found and found[0].steering else None

    async def withheld(why: str) -> bool:
        one = await steering()
        return one is not None and why in one.withheld

    await eventually(lambda: withheld("not cleared"))
    found = await steering()
    assert found is not None
    assert (found.frontend, found.enforcement, found.enforcement_why) == ("kueue", "tie-break", "own quotas")
    leave = to_json(Leave(cluster="c1", lever="boost", at=NOON))
    await harness.bus.publish(subjects.kv_subject(topology.POLICY, subjects.leave_key("c1")), leave)
    await eventually(lambda: withheld("kq has withinClusterQueue LowerPriority"))
    unsafe = await steering()
    assert unsafe is not None
    assert (found.levels_left, unsafe.levels_left) == (0, 1)
    await say(harness.bus, Mode.PAUSED, "c1/kue")
    await eventually(lambda: withheld("paused"))
    for name in ("wl", "train", "team-a/train", "Job/train"):
        [job] = await explain(harness, name)
        assert (job.id, job.owner, job.base, job.level, job.said) == ("wl", "Job/train", 7, 9, "no quota")
        assert job.steering is not None
        assert "paused" in job.steering.withheld
    [pool] = [pool for pool in (await ask_tenants(harness)).pools if pool.pool == "c1/kue"]
    assert [one.cluster for one in pool.steering] == ["c1"]
    [line] = [pool.positions[0] for pool in (await ask_queue(harness)).pools if pool.pool == "c1/kue"]
    assert (line.owner, line.name) == ("Job/train", "train")
    [plain] = [pool.steering for pool in (await ask_queue(harness)).pools if pool.pool == "c1/gpu"]
    assert [(one.enforcement, one.withheld[:16]) for one in plain] == [("exact", "no admitter lead")]
