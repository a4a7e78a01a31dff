"""The service as a process on a real nats-server: verbs, statements, events, restarts and repairs."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bus, BusError, ConnectionSettings, Follower, Mirror, Rejected, RemoteError, connect
from fairlead_bus.facts.announcer import Statements
from fairlead_bus.facts.mirrors import state_mirror
from fairlead_bus.facts.statement_publisher import OutgoingEvent
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import Message, to_packed
from fairlead_contracts.base.instants import HOUR, SECOND
from fairlead_contracts.frontend.verbs import (
    CREATE_REPLIES,
    DELETE_REPLIES,
    FENCED,
    LEVEL_REPLIES,
    CreateJob,
    CreateJobs,
    CreateOutcome,
    CreateReply,
    DeleteJob,
    DeleteJobs,
    DeleteReply,
    LevelReply,
    SetLevel,
    SetLevels,
    VerbOutcome,
)
from fairlead_contracts.messages.events import EVENT, AnyEvent, JobEnded, JobQueued, JobStarted
from fairlead_contracts.messages.state import (
    JobState,
    Outcome,
    Phase,
    PoolState,
    State,
    SyncMark,
    encode_state,
)
from fairlead_contracts.subjects import FrontendVerb
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.metrics import Metrics
from fairlead_sim.cluster import SimCluster
from fairlead_sim.config import NodeGroup, render_config
from fairlead_sim.errors import ClusterStoreError
from fairlead_sim.instruments import SimInstruments
from fairlead_sim.service import SimService
from fairlead_sim.store import ClusterStore
from fairlead_sim.workload import one_pool
from fairlead_testkit import NatsServer, ServiceProcess, eventually
from fairlead_testkit.timing.in_hand import beside

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

CLUSTER = "sim"
CARDS = 8
NODES = NodeGroup(name="node", count=1, allocatable={"nvidia.com/gpu": CARDS, "cpu": 64})


class Rig:
    """One simulated cluster, and somebody who watches what it says."""

    def __init__(self, bus: Bus, process: ServiceProcess, mirror: Mirror[State]) -> None:
        self.bus = bus
        self.process = process
        self.mirror = mirror
        self.events: dict[str, AnyEvent] = {}
        self.copies = 0

    async def ask(self, verb: FrontendVerb, message: Message, *, within: float = 30.0) -> bytes:
        """Asks until there is an answer: all verbs are idempotent.

        `within` in seconds: who asks again has the answer of a second time.
        """
        async with asyncio.timeout(90):
            while True:
                try:
                    return await self.bus.request(
                        subjects.frontend(CLUSTER, verb), to_packed(message), timeout=within
                    )
                except RemoteError as error:
                    if error.code != 503:
                        raise
                except BusError:
                    pass
                await asyncio.sleep(0.02)

    async def create(self, request: CreateJob, *, within: float = 30.0) -> CreateReply:
        asked = CreateJobs(epoch=1, jobs=[request])
        [reply] = CREATE_REPLIES.decode(await self.ask("create", asked, within=within)).replies
        return reply

    async def set_level(self, level: SetLevel) -> LevelReply:
        asked = SetLevels(epoch=1, levels=[level])
        [reply] = LEVEL_REPLIES.decode(await self.ask("levels", asked)).replies
        return reply

    async def delete(self, id_: str) -> DeleteReply:
        asked = DeleteJobs(epoch=1, jobs=[DeleteJob(scope="a", id=id_)])
        [reply] = DELETE_REPLIES.decode(await self.ask("delete", asked)).replies
        return reply

    def job(self, id_: str) -> JobState | None:
        found = self.mirror.values.get(subjects.state(CLUSTER, "job", id_, scope="a"))
        return found if isinstance(found, JobState) else None

    def mark(self) -> SyncMark | None:
        found = self.mirror.values.get(subjects.mark(CLUSTER))
        return found if isinstance(found, SyncMark) else None

    async def seen(self, id_: str, phase: Phase) -> JobState:
        def reached() -> JobState | None:
            job = self.job(id_)
            return job if job is not None and job.phase is phase else None

        return await eventually(reached, 40, what=f"{id_} is {phase}")

    async def listen(self, follower: Follower) -> None:
        async for delivery in follower:
            event = EVENT.decode(delivery.payload)
            self.events[event.id] = event
            self.copies += 1


def a_request(id_: str, *, cards: int = 1, seconds: float = 60.0) -> CreateJob:
    return CreateJob(
        scope="a",
        id=id_,
        digest="d",
        queue=None,
        demand={"nvidia.com/gpu": cards * 1000},
        pods=1,
        requested_class=None,
        submission=f"of {id_}",
        submitted=1_800_000_000 * SECOND,
        run=round(seconds * SECOND),
    )


@asynccontextmanager
async def a_rig(server: NatsServer, folder: Path) -> AsyncIterator[Rig]:
    (folder / "cluster.yaml").write_text(render_config(one_pool(NODES, {"a": 1.0}, strategy="strict")))
    process = a_process(server, folder)
    async with connect(ConnectionSettings(url=server.url), name="test") as bus:
        await provision(bus, topology.topology([CLUSTER]))
        mirror = state_mirror(bus, CLUSTER)
        rig = Rig(bus, process, mirror)
        follower = Follower(bus, stream=topology.EVENT, filter=subjects.event_filter(CLUSTER))
        async with beside(mirror.run(), rig.listen(follower)):
            await follower.ready.wait()
            with process:
                await process.ready()
                yield rig


def a_process(server: NatsServer, folder: Path, name: str = "sim") -> ServiceProcess:
    return ServiceProcess(
        "sim",
        folder,
        {
            "nats_url": server.url,
            "store": folder / "sim.sqlite",
            "cluster_file": folder / "cluster.yaml",
            "cluster": CLUSTER,
        },
        name=name,
    )


@pytest.fixture
async def rig(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Rig]:
    async with a_rig(nats_server, tmp_path) as opened:
        yield opened


@pytest.fixture
def unstarted(tmp_path: Path) -> Iterator[SimService]:
    store = ClusterStore(tmp_path / "sim.sqlite", CLUSTER)
    cluster = SimCluster(CLUSTER, one_pool(NODES, {"a": 1.0}, strategy="strict"), uid_prefix="test")
    yield SimService(
        cluster, store, SimInstruments(Metrics("sim")), clock=wall_clock, happened=lambda _: None
    )
    store.close()


def deaf(statements: Statements, outgoing: list[OutgoingEvent]) -> None:
    del statements, outgoing


async def test_a_file_that_cannot_be_written_ends_the_service_and_leaves_nobody_waiting(
    unstarted: SimService, tmp_path: Path
) -> None:
    with sqlite3.connect(tmp_path / "sim.sqlite") as other:
        other.execute("DROP TABLE outbox")
    running = asyncio.ensure_future(unstarted.run(deaf))
    asked = [a_request("one")]
    with pytest.raises(Rejected) as refused:
        await unstarted.create(asked)
    assert refused.value.code == 503
    with pytest.raises(ClusterStoreError):
        await running
    with pytest.raises(Rejected):
        await unstarted.create(asked)
    other.close()


async def test_a_clock_that_is_set_back_makes_nobody_run_in_circles(tmp_path: Path) -> None:
    store = ClusterStore(tmp_path / "sim.sqlite", CLUSTER)
    cluster = SimCluster(CLUSTER, one_pool(NODES, {"a": 1.0}, strategy="strict"), uid_prefix="test")
    times = iter([HOUR] * 3)  # at the start, and until the job runs: then an hour earlier for good
    looks = 0
    circles = asyncio.Event()

    def clock() -> int:
        nonlocal looks
        looks += 1
        if looks > 60:
            circles.set()
        return next(times, 0)

    service = SimService(cluster, store, SimInstruments(Metrics("sim")), clock=clock, happened=lambda _: None)
    running = asyncio.ensure_future(service.run(deaf))
    await service.create([a_request("short", seconds=0.002)])
    assert cluster.count(Phase.RUNNING) == 1
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await circles.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    store.close()


async def test_verbs_statements_and_events(rig: Rig) -> None:
    request = a_request("big", cards=CARDS, seconds=0.5)
    assert (await rig.create(request)).outcome is CreateOutcome.CREATED
    assert await rig.create(request) == CreateReply(outcome=CreateOutcome.EXISTS, queue="main")
    other = msgspec.structs.replace(request, digest="other")
    assert (await rig.create(other)).outcome is CreateOutcome.CONFLICT
    stranger = msgspec.structs.replace(a_request("x"), scope="stranger")
    assert (await rig.create(stranger)).outcome is CreateOutcome.NO_QUEUE

    big = await rig.seen("big", Phase.ENDED)
    assert (big.outcome, big.submission) == (Outcome.SUCCEEDED, "of big")

    for id_ in ("keeper", "one", "two"):
        await rig.create(a_request(id_, cards=CARDS, seconds=600))
    two = await rig.seen("two", Phase.WAITING)
    write = SetLevel(scope="a", id="two", uid=two.uid, level=7)
    rev = (await rig.set_level(write)).rev
    assert rev is not None
    assert rev > two.rev
    # Only now is there a place: however slow all this was, it was taken by nobody.
    assert (await rig.delete("keeper")).verdict is VerbOutcome.DONE
    assert (await rig.seen("two", Phase.RUNNING)).level == 7  # before "one", which came earlier
    assert (await rig.set_level(write)).verdict is VerbOutcome.GONE  # it waits no more
    for id_ in ("one", "two"):
        assert (await rig.delete(id_)).verdict is VerbOutcome.DONE
        assert (await rig.seen(id_, Phase.ENDED)).outcome is Outcome.CANCELLED

    await eventually(lambda: len(rig.events) == 11, what="all events")
    assert [type(event) for event in rig.events.values() if event.job == "big"] == [
        JobQueued,
        JobStarted,
        JobEnded,
    ]
    pool = rig.mirror.values[subjects.state(CLUSTER, "pool", "gpu")]
    assert isinstance(pool, PoolState)
    assert pool.capacity == {"nvidia.com/gpu": CARDS * 1000, "cpu": 64_000}


async def test_what_cannot_be_kept_is_refused_by_itself_and_harms_nobody(unstarted: SimService) -> None:
    wrong = [
        a_request(""),
        a_request("x" * 2000),
        msgspec.structs.replace(a_request("x"), demand={"cpu": -1}),
        msgspec.structs.replace(a_request("x"), demand={"cpu": 2**62}),
        msgspec.structs.replace(a_request("x"), run=-1),
    ]
    running = asyncio.ensure_future(unstarted.run(deaf))
    replies = await unstarted.create([*wrong, a_request("right")])
    assert [reply.outcome for reply in replies] == [CreateOutcome.REFUSED] * 5 + [CreateOutcome.CREATED]
    assert all(reply.reason for reply in replies[:5])
    levels = [SetLevel(scope="a", id="right", uid="another", level=level) for level in (2**31, 7)]
    verdicts = [reply.verdict for reply in await unstarted.set_levels(levels)]
    assert verdicts == [VerbOutcome.REFUSED, VerbOutcome.GONE]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_leader_of_the_past_is_obeyed_no_more_not_even_after_a_restart(rig: Rig) -> None:
    await rig.create(a_request("keeper", cards=CARDS))
    await rig.create(a_request("one", cards=CARDS))
    one = await rig.seen("one", Phase.WAITING)
    later = await rig.ask("levels", SetLevels(epoch=2, levels=[]))
    assert LEVEL_REPLIES.decode(later).replies == []
    for _ in range(2):
        with pytest.raises(RemoteError, match="epoch 1 is over: a leader of epoch 2") as refused:
            await rig.set_level(SetLevel(scope="a", id="one", uid=one.uid, level=7))
        assert refused.value.code == FENCED
        rig.process.kill()
        rig.process.start()
        await rig.process.ready()
    again = SetLevels(epoch=2, levels=[SetLevel(scope="a", id="one", uid=one.uid, level=3)])
    assert LEVEL_REPLIES.decode(await rig.ask("levels", again)).replies[0].verdict is VerbOutcome.DONE

    def stands_at(level: int) -> bool:
        job = rig.job("one")
        return job is not None and job.level == level

    for level, stands in ((9, 9), (None, 0)):
        write = SetLevel(scope="a", id="one", uid=one.uid, level=level)
        await rig.ask("levels", SetLevels(epoch=3, levels=[write]))
        await eventually(partial(stands_at, stands))


async def test_killed_under_load_it_loses_nothing_and_starts_nothing_twice(rig: Rig) -> None:
    requests = [a_request(f"job-{number:03d}", seconds=0.2) for number in range(160)]
    first_starts: dict[str, int] = {}

    def remember() -> int:
        for state in rig.mirror.values.values():
            if isinstance(state, JobState) and state.started is not None:
                assert first_starts.setdefault(state.uid, state.started) == state.started
        return len(first_starts)

    async with asyncio.TaskGroup() as tasks:
        for request in requests:
            tasks.create_task(rig.create(request, within=1.0))  # what was asked of a killed one is lost
        for already in (10, 60):
            await eventually(lambda already=already: remember() >= already, 60)  # type: ignore[misc] # bound now
            rig.process.kill()
            rig.process.start()
    await rig.process.ready(60)
    for request in requests:  # a late redelivery of everything
        assert (await rig.create(request)).outcome is CreateOutcome.EXISTS

    def all_ended() -> bool:
        remember()
        jobs = [state for state in rig.mirror.values.values() if isinstance(state, JobState)]
        return len(jobs) == len(requests) and all(job.phase is Phase.ENDED for job in jobs)

    await eventually(all_ended, 60, what="all jobs ended")
    await eventually(lambda: len(rig.events) == 3 * len(requests), 60, what="three events a job")
    starts = [event for event in rig.events.values() if isinstance(event, JobStarted)]
    assert len({event.uid for event in starts}) == len(starts) == len(requests)
    assert len(first_starts) == len(requests)


async def test_a_running_job_ends_when_it_should_although_nobody_was_there(rig: Rig) -> None:
    run = 3 * SECOND  # so long that it is seen running
    await rig.create(a_request("one", seconds=run / SECOND))
    started = (await rig.seen("one", Phase.RUNNING)).started
    assert started is not None
    rig.process.kill()
    await eventually(lambda: wall_clock() > started + run)
    rig.process.start()
    ended = await rig.seen("one", Phase.ENDED)
    assert (ended.started, ended.ended) == (started, started + run)


async def test_what_it_does_not_know_is_buried_and_what_differs_is_put_right(rig: Rig) -> None:
    await rig.create(a_request("real"))
    real = await rig.seen("real", Phase.RUNNING)
    before = rig.mark()
    assert before is not None
    rig.process.kill()
    ghost = msgspec.structs.replace(real, id="ghost", uid="ghost")
    await rig.bus.publish(subjects.state(CLUSTER, "job", "ghost", scope="a"), encode_state(ghost))
    await rig.bus.delete(subjects.state(CLUSTER, "job", "real", scope="a"))
    await eventually(lambda: rig.job("ghost") is not None and rig.job("real") is None)
    rig.process.start()
    await rig.process.ready()
    await eventually(lambda: rig.job("ghost") is None and rig.job("real") is not None)
    after = await eventually(
        lambda: mark if (mark := rig.mark()) is not None and mark.epoch > before.epoch else None
    )
    assert after.rev > before.rev


async def test_a_new_server_gets_a_new_mark_after_the_state_is_whole(
    rig: Rig, nats_server: NatsServer
) -> None:
    await rig.create(a_request("one"))
    await rig.seen("one", Phase.RUNNING)
    before = rig.mark()
    assert before is not None
    nats_server.restart()

    def marked_anew() -> bool:
        mark = rig.mark()
        return rig.mirror.complete and mark is not None and mark.incarnation != before.incarnation

    await eventually(marked_anew, 60, what="a mark of the new server")
    assert (mark := rig.mark()) is not None
    assert mark.incarnation == rig.bus.incarnation
    assert rig.job("one") is not None
    await rig.create(a_request("two"))
    await rig.seen("two", Phase.RUNNING)


async def test_paused_past_its_lease_it_leads_again_under_a_higher_epoch(rig: Rig) -> None:
    before = await eventually(rig.mark)
    key = subjects.kv_subject(topology.MEMBERS, subjects.leader_key("watcher", CLUSTER))

    async def expired() -> bool:
        found = await rig.bus.last(f"KV_{topology.MEMBERS}", key)
        return found is None or not found.payload

    rig.process.pause()
    await eventually(expired, 40, what="the lease expires")
    rig.process.resume()
    await eventually(lambda: (mark := rig.mark()) is not None and mark.epoch > before.epoch, 40)
    assert (await rig.create(a_request("one"))).outcome is CreateOutcome.CREATED


async def test_a_second_process_on_the_same_file_says_so_and_ends(
    rig: Rig, nats_server: NatsServer, tmp_path: Path
) -> None:
    second = a_process(nats_server, tmp_path, name="second")
    with second:
        assert await second.ended() == 1
    assert "another process uses" in second.log
    assert "Traceback" not in second.log
    assert (await rig.create(a_request("one"))).outcome is CreateOutcome.CREATED
    assert await rig.process.stop() == 0


async def test_several_are_made_at_once_and_one_that_is_no_job_harms_no_other(unstarted: SimService) -> None:
    running = asyncio.ensure_future(unstarted.run(deaf))
    other_body = msgspec.structs.replace(a_request("one"), digest="other")
    wrong = msgspec.structs.replace(a_request("wrong"), demand={"nvidia.com/gpu": -1})
    jobs = [a_request("one"), wrong, a_request("two"), a_request("one"), other_body]
    replies = await unstarted.create(jobs)
    assert [reply.outcome for reply in replies] == [
        CreateOutcome.CREATED,
        CreateOutcome.REFUSED,
        CreateOutcome.CREATED,
        CreateOutcome.EXISTS,
        CreateOutcome.CONFLICT,
    ]
    assert replies[1].reason == "out of range: nvidia.com/gpu"
    running.cancel()
    await asyncio.wait([running])
