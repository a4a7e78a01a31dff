"""The whole table of grants, each cell on a real server: what is allowed works, what is not is denied."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import nkeys  # type: ignore[import-untyped] # it ships no types
import pytest

from fairlead_bus import (
    Asked,
    Bucket,
    Bus,
    ConnectionSettings,
    Delivery,
    DeniedError,
    Follower,
    Leadership,
    Membership,
    Mirror,
    NobodyAnswersError,
    OwnedSubject,
    Publisher,
    Roster,
    Tally,
    Worker,
    connect,
    permissions,
    provision,
)
from fairlead_contracts import subjects
from fairlead_contracts.members import MemberLease
from fairlead_contracts.state import STATE, NodeState, encode_state
from fairlead_contracts.topology import answers_durable, submit_durable, topology
from fairlead_testkit import NatsServer, eventually

pytestmark = pytest.mark.integration

NODE = encode_state(NodeState(cluster="c1", epoch=1, rev=1, name="n", allocatable={"cpu": 1}))

type Operation = Callable[[Bus, Tally], Awaitable[object]]

ROLES = {
    "ops": permissions.ops(),
    "sim": permissions.watcher("c1", name="sim"),
    "scorer": permissions.scorer(),
    "admitter": permissions.admitter("c1"),
    "submitter": permissions.submitter("team-a", name="submitter"),
    "checker": permissions.checker("c1"),
    "watchdog": permissions.watchdog(),
}


def publish(subject: str) -> Operation:
    return lambda bus, _: bus.publish(subject, NODE)


def ask(subject: str) -> Operation:
    return lambda bus, _: bus.request(subject, b"")


def call(verb: str, body: object = None) -> Operation:
    return lambda bus, _: bus.jetstream.call(verb, body)


async def until(task: Awaitable[None], happened: Awaitable[object]) -> None:
    """Runs `task` until `happened`; whatever ends the task first is raised, alone."""
    running = asyncio.ensure_future(task)
    waiting = asyncio.ensure_future(happened)
    try:
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED, timeout=30)
        if running.done():
            try:
                await running
            except ExceptionGroup as group:
                raise group.exceptions[0] from group
        assert waiting.done()
    finally:
        for each in (running, waiting):
            each.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)


def mirror(stream: str, filtered: str) -> Operation:
    async def operation(bus: Bus, tally: Tally) -> None:
        del tally
        made = Mirror(bus, stream=stream, filter=filtered, codec=STATE, wake=asyncio.Event())
        await until(made.run(), made.wait_complete())

    return operation


def take(stream: str, durable: str, cause: str) -> Operation:
    async def operation(bus: Bus, tally: Tally) -> None:
        async def handle(delivery: Delivery) -> None:
            assert delivery.subject == cause

        worker = Worker(bus, stream=stream, durable=durable, handle=handle)
        await until(worker.run(), eventually(lambda: tally.counts["worker.handled"], on=tally.heard))

    return operation


async def claim(bus: Bus, tally: Tally) -> None:
    del tally
    owned = OwnedSubject(bus, stream="decision", subject=subjects.decision("gpu", 0), owner=bus.name)
    await owned.claim(lambda: b"claim")
    await owned.publish(b"decision")


def lead(role: str, cluster: str) -> Operation:
    async def operation(bus: Bus, tally: Tally) -> None:
        leadership = Leadership(bus, role=role, cluster=cluster, replica=bus.name, wake=asyncio.Event())
        await until(leadership.run(), eventually(lambda: tally.counts["leadership.gained"], on=tally.heard))

    return operation


async def join(bus: Bus, tally: Tally) -> None:
    del tally
    roster = Roster(bus, wake=asyncio.Event())
    lease = MemberLease(role="scorer", replica="r1", renewed=1)
    member = Membership(bus, roster, role="scorer", replica="r1", describe=lambda: lease)
    await until(member.run(), eventually(lambda: member.trusted))


async def roll_call(bus: Bus, tally: Tally) -> None:
    del tally
    roster = Roster(bus, wake=asyncio.Event())
    await until(roster.run(), roster.wait_complete())


def follow(stream: str, filtered: str) -> Operation:
    async def operation(bus: Bus, tally: Tally) -> None:
        del tally
        follower = Follower(bus, stream=stream, filter=filtered)

        async def read() -> None:
            async for _ in follower:
                pass

        await until(read(), follower.ready.wait())

    return operation


async def last_answer(bus: Bus, tally: Tally) -> None:
    del tally
    await bus.last("answer", subjects.answer("team-a", "s1"))


async def last_event(bus: Bus, tally: Tally) -> None:
    del tally
    await bus.last("event", subjects.event_filter())


def listen(subject: str) -> Operation:
    """A denied subscription is told to the error callback alone."""

    async def operation(bus: Bus, tally: Tally) -> None:
        async def heard(asked: Asked) -> None:
            del asked

        stop = await bus.subscribe_core(subject, heard)
        with contextlib.suppress(DeniedError, NobodyAnswersError):
            await bus.request("nobody.here", b"")  # its answer comes behind the verdict on the subscription
        await stop()
        if any("subscription" in str(note["error"]) for note in tally.said("bus.error")):
            raise DeniedError(subject)

    return operation


def peek(tenant: str) -> Operation:
    return lambda bus, _: bus.peek("answer", subjects.answer(tenant, "s1"))


async def write_policy(bus: Bus, tally: Tally) -> None:
    del tally
    await Bucket(bus, "policy").put("document", b"{}")


def find_lever(cluster: str) -> Operation:
    async def operation(bus: Bus, tally: Tally) -> None:
        del tally
        await Bucket(bus, "policy").put(subjects.lever_key(cluster), b"{}")

    return operation


async def read_policy(bus: Bus, tally: Tally) -> None:
    del tally
    await Bucket(bus, "policy").get("document")


SUBMIT_C1, SUBMIT_ANY = subjects.submit("c1", "team-a"), subjects.submit("any", "team-a")
EVENT_C1 = subjects.event("team-a", "c1", "job")

TABLE: dict[str, tuple[Operation, str]] = {
    "state of its cluster": (publish(subjects.state("c1", "node", "n")), "ops sim"),
    "state of another": (publish(subjects.state("c2", "node", "n")), "ops"),
    "decide": (claim, "ops scorer"),
    "submit as team-a": (publish(SUBMIT_C1), "ops scorer submitter"),
    "submit as team-b": (publish(subjects.submit("c1", "team-b")), "ops scorer"),
    "event of its cluster": (publish(EVENT_C1), "ops sim admitter"),
    "event of another": (publish(subjects.event("team-a", "c2", "job")), "ops"),
    "answer": (publish(subjects.answer("team-a", "s1")), "ops scorer admitter"),
    "mirror its cluster": (mirror("state", subjects.state_filter("c1")), "ops sim scorer admitter"),
    "mirror all state": (mirror("state", subjects.state_filter()), "ops scorer"),
    "mirror decisions": (mirror("decision", subjects.decision_filter()), "ops scorer admitter"),
    "read events": (follow("event", subjects.event_filter()), "ops scorer"),
    "mirror policy": (mirror("KV_policy", "$KV.policy.>"), "ops sim scorer admitter"),
    "look up the last event": (last_event, "ops scorer"),
    "look up the last answer": (last_answer, "ops admitter"),
    "read policy": (read_policy, "ops sim scorer admitter"),
    "write policy": (write_policy, "ops"),
    "what was found of c1's lever": (find_lever("c1"), "ops admitter"),
    "what was found of c2's lever": (find_lever("c2"), "ops"),
    "roll call": (roll_call, "ops sim scorer admitter checker watchdog"),
    "join the scorers": (join, "ops scorer"),
    "lead the watchers of c1": (lead("watcher", "c1"), "ops sim"),
    "lead the watchers of c2": (lead("watcher", "c2"), "ops"),
    "lead the admitter of c1": (lead("admitter", "c1"), "ops admitter"),
    "lead the checkers of c1": (lead("checker", "c1"), "ops checker"),
    "lead the checkers of c2": (lead("checker", "c2"), "ops"),
    "take submissions of c1": (take("submit", submit_durable("c1"), SUBMIT_C1), "ops admitter"),
    "take submissions of any": (take("submit", submit_durable("any"), SUBMIT_ANY), "ops scorer"),
    "take events of c1": (take("event", answers_durable("c1"), EVENT_C1), "ops admitter"),
    "dead letter of c1": (publish(subjects.dead(SUBMIT_C1)), "ops admitter"),
    "dead letter of any": (publish(subjects.dead(SUBMIT_ANY)), "ops scorer"),
    "route": (publish("$KV.routes.team-a.s1"), "ops scorer"),
    "ask about team-a": (ask(subjects.ask("queue", "team-a")), "ops submitter"),
    "ask about all": (ask(subjects.ask("queue")), "ops"),
    "ask a shard": (ask(f"{subjects.ROOT}.shard.gpu.0.queue"), "ops scorer"),
    "move the sim": (ask(subjects.sim("c1", "level")), "ops admitter"),
    "move another sim": (ask(subjects.sim("c2", "level")), "ops"),
    "hear questions": (listen(subjects.ask_filter("queue")), "ops scorer"),
    "hear the sim's orders": (listen(subjects.sim("c1", "level")), "ops sim"),
    "hear team-a's answers": (listen(subjects.answer_filter("team-a")), "ops submitter"),
    "follow team-a's answers": (follow("answer", subjects.answer_filter("team-a")), "ops submitter"),
    "follow team-b's answers": (follow("answer", subjects.answer_filter("team-b")), "ops"),
    "look up team-a's answer": (peek("team-a"), "ops submitter"),
    "look up team-b's answer": (peek("team-b"), "ops"),
    "hear the scorers' inbox": (listen("_INBOX_scorer.>"), "ops scorer"),
    "hear state pass by": (listen(subjects.state_filter()), "ops"),
    "hear submissions pass by": (listen("fairlead.v1.submit.>"), "ops"),
    "purge": (call("STREAM.PURGE.answer", {"filter": "fairlead.v1.answer.none"}), "ops"),
    "list streams": (call("STREAM.NAMES"), "ops"),
    "create a stream": (call("STREAM.CREATE.mine", {"name": "mine", "subjects": ["mine"]}), "ops"),
    "change a stream's settings": (lambda bus, _: provision(bus, topology(["c1", "c2"])), "ops"),
    "delete a stream": (call("STREAM.DELETE.mine"), "ops"),
}


@asynccontextmanager
async def guarded_server(directory: Path) -> AsyncIterator[dict[str, ConnectionSettings]]:
    """A server with the table's authorization; settings by role."""
    users = {}
    seeds = {}
    for number, (role, grants) in enumerate(ROLES.items()):
        pair = nkeys.from_seed(nkeys.encode_seed(bytes([number]) * 32, nkeys.PREFIX_BYTE_USER))
        users[pair.public_key.decode()] = grants
        seeds[role] = directory / f"{role}.nk"
        seeds[role].write_bytes(pair.seed)
    with NatsServer(directory / "nats", config=permissions.authorization(users)) as server:
        yield {role: ConnectionSettings(url=server.url, nkey_seed=str(seed)) for role, seed in seeds.items()}


async def outcome(operation: Operation, settings: ConnectionSettings, role: str) -> str:
    tally = Tally()
    async with connect(settings, name=role, observer=tally) as bus:
        try:
            async with asyncio.timeout(40):
                await operation(bus, tally)
        except DeniedError:
            return "-"
    return "yes"


async def serve_all(bus: Bus) -> None:
    async def handle(asked: Asked) -> bytes:
        return asked.payload

    for subject in ("ask.*.*", "shard.*.*.*", "sim.*.*"):
        await bus.serve(f"{subjects.ROOT}.{subject}", handle)


@pytest.mark.timeout(300)
async def test_every_cell_of_the_table(tmp_path: Path) -> None:
    async with guarded_server(tmp_path) as users, AsyncExitStack() as stack:
        helper = await stack.enter_async_context(connect(users["ops"], name="helper"))
        await provision(helper, topology(["c1", "c2"]))
        await serve_all(helper)
        found: dict[str, str] = {}
        wanted: dict[str, str] = {}
        for name, (operation, allowed) in TABLE.items():
            for role in ROLES:
                if name.startswith("take "):  # one message for each taker, so that none waits for nothing
                    for subject in (SUBMIT_C1, SUBMIT_ANY, EVENT_C1):
                        await helper.publish(subject, b"x")
                cell = f"{name} / {role}"
                found[cell] = await outcome(operation, users[role], role)
                wanted[cell] = "yes" if role in allowed.split() else "-"
        assert found == wanted


async def test_a_replay_that_needs_flow_control_works_under_the_grants(tmp_path: Path) -> None:
    async with guarded_server(tmp_path) as users:
        async with connect(users["ops"], name="ops") as bus:
            await provision(bus, topology(["c1"]))
            publisher = Publisher(bus)
            padded = NodeState(
                cluster="c1", epoch=1, rev=1, name="n", allocatable={"cpu": 1}, labels={"pad": "x" * 4000}
            )
            for number in range(4000):
                await publisher.put(subjects.state("c1", "node", f"n{number}"), encode_state(padded))
            await publisher.flush()
        tally = Tally()
        async with connect(users["scorer"], name="scorer", observer=tally) as bus:
            await mirror("state", subjects.state_filter())(bus, tally)
        # Flow control that is not answered is a violation first, and then silence; silence alone is a slow machine.
        assert tally.counts["bus.denied"] == 0
        assert not any("permission" in str(note["error"]).lower() for note in tally.said("bus.error"))
