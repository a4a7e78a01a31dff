"""The whole table of grants, each cell on a real server: what is allowed works, what is not is denied."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from fairlead_bus import (
    Asked,
    Bucket,
    Bus,
    ConnectionSettings,
    Delivery,
    DeniedError,
    Follower,
    Mirror,
    NobodyAnswersError,
    Publisher,
    connect,
)
from fairlead_bus.observer import BusTally
from fairlead_bus.ownership.leadership import Leadership
from fairlead_bus.ownership.membership import Membership
from fairlead_bus.ownership.owned_subject import OwnedSubject
from fairlead_bus.ownership.roster import Roster
from fairlead_bus.server.accounts import AccountLayout
from fairlead_bus.server.provision import provision
from fairlead_bus.work.worker import Worker
from fairlead_contracts import subjects
from fairlead_contracts.messages.members import MemberLease
from fairlead_contracts.messages.state import STATE, NodeState, encode_state
from fairlead_contracts.topology import answers_durable, submit_durable, topology
from fairlead_testkit import eventually
from fairlead_testkit.nats_servers.guarded import guarded_server

pytestmark = pytest.mark.integration

NODE = encode_state(NodeState(cluster="c1", epoch=1, rev=1, name="n", allocatable={"cpu": 1}))

type Operation = Callable[[Bus, BusTally], Awaitable[object]]

LAYOUT = AccountLayout(clusters=["c1", "c2"], groups={"team-a": ["team-a"]}, operators=["ann"])
ROLES = {
    "ops": "provisioner",
    "person": "operator.ann",
    "sim": "watcher.c1",
    "scorer": "scorer",
    "admitter": "admitter.c1",
    "submitter": "tenant.team-a",
    "checker": "checker.c1",
    "watchdog": "watchdog",
}
"""The users of the shipped accounts, by the names of the table."""


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
        await waiting
    finally:
        for each in (running, waiting):
            each.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)


def mirror(stream: str, filtered: str) -> Operation:
    async def operation(bus: Bus, tally: BusTally) -> None:
        del tally
        made = Mirror(bus, stream=stream, filter=filtered, codec=STATE, wake=asyncio.Event())
        await until(made.run(), made.wait_complete())

    return operation


def take(stream: str, durable: str, cause: str) -> Operation:
    async def operation(bus: Bus, tally: BusTally) -> None:
        async def handle(delivery: Delivery) -> None:
            assert delivery.subject == cause

        def over() -> bool:  # a pull that is denied is told to the error callback alone
            return tally.counts["worker.handled"] > 0 or denied(tally)

        worker = Worker(bus, stream=stream, durable=durable, handle=handle)
        await until(worker.run(), eventually(over, on=tally.heard))
        if not tally.counts["worker.handled"]:
            raise DeniedError(durable)

    return operation


async def claim(bus: Bus, tally: BusTally) -> None:
    del tally
    owned = OwnedSubject(bus, stream="decision", subject=subjects.decision("gpu", 0), owner=bus.name)
    await owned.claim(lambda: b"claim")
    await owned.publish(b"decision")


def lead(role: str, cluster: str) -> Operation:
    async def operation(bus: Bus, tally: BusTally) -> None:
        leadership = Leadership(bus, role=role, cluster=cluster, replica=bus.name, wake=asyncio.Event())
        await until(leadership.run(), eventually(lambda: tally.counts["leadership.gained"], on=tally.heard))

    return operation


async def join(bus: Bus, tally: BusTally) -> None:
    del tally
    roster = Roster(bus, wake=asyncio.Event())
    lease = MemberLease(role="scorer", replica="r1", renewed=1)
    member = Membership(bus, roster, role="scorer", replica="r1", describe=lambda: lease)
    await until(member.run(), eventually(lambda: member.trusted))


async def roll_call(bus: Bus, tally: BusTally) -> None:
    del tally
    roster = Roster(bus, wake=asyncio.Event())
    await until(roster.run(), eventually(lambda: roster.complete))


def follow(stream: str, filtered: str) -> Operation:
    async def operation(bus: Bus, tally: BusTally) -> None:
        del tally
        follower = Follower(bus, stream=stream, filter=filtered)

        async def read() -> None:
            async for _ in follower:
                pass

        await until(read(), follower.ready.wait())

    return operation


async def last_answer(bus: Bus, tally: BusTally) -> None:
    del tally
    await bus.last("answer", subjects.answer("team-a", "s1"))


async def last_event(bus: Bus, tally: BusTally) -> None:
    del tally
    await bus.last("event", subjects.event_filter())


def denied(tally: BusTally) -> bool:
    return any("permissions violation" in str(note["error"]) for note in tally.said("bus.error"))


def listen(subject: str) -> Operation:
    """A denied subscription is told to the error callback alone."""

    async def operation(bus: Bus, tally: BusTally) -> None:
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
    """A direct get, which grants can restrict by subject."""
    return call(f"DIRECT.GET.answer.{subjects.answer(tenant, 's1')}")


async def write_policy(bus: Bus, tally: BusTally) -> None:
    del tally
    await Bucket(bus, "policy").put("document", b"{}")


def find_lever(cluster: str) -> Operation:
    async def operation(bus: Bus, tally: BusTally) -> None:
        del tally
        await Bucket(bus, "policy").put(subjects.lever_key(cluster), b"{}")

    return operation


async def next_submission(bus: Bus, tally: BusTally) -> None:
    del tally
    await bus.jetstream.next_several("submit", SUBMIT_C1, 1, 1, most_bytes=1024)


async def read_policy(bus: Bus, tally: BusTally) -> None:
    del tally
    await Bucket(bus, "policy").get("document")


SUBMIT_C1, SUBMIT_ANY = subjects.submit("c1", "team-a"), subjects.submit("any", "team-a")
EVENT_C1 = subjects.event("team-a", "c1", "job")

TABLE: dict[str, tuple[Operation, str]] = {
    "state of its cluster": (publish(subjects.state("c1", "node", "n")), "ops sim"),
    "state of another": (publish(subjects.state("c2", "node", "n")), "ops"),
    "decide": (claim, "scorer"),
    "submit as team-a": (publish(SUBMIT_C1), "person scorer submitter"),
    "submit as team-b": (publish(subjects.submit("c1", "team-b")), "person scorer"),
    "event of its cluster": (publish(EVENT_C1), "sim admitter"),
    "event of another": (publish(subjects.event("team-a", "c2", "job")), ""),
    "answer": (publish(subjects.answer("team-a", "s1")), "scorer admitter"),
    "mirror its cluster": (mirror("state", subjects.state_filter("c1")), "ops person sim scorer admitter"),
    "mirror all state": (mirror("state", subjects.state_filter()), "person scorer"),
    "mirror decisions": (mirror("decision", subjects.decision_filter()), "person scorer admitter"),
    "read events": (follow("event", subjects.event_filter()), "person scorer"),
    "mirror policy": (mirror("KV_policy", "$KV.policy.>"), "person sim scorer admitter"),
    "look up the last event": (last_event, "person scorer"),
    "look up the last answer": (last_answer, "scorer admitter"),
    "read policy": (read_policy, "ops person sim scorer admitter"),
    "write policy": (write_policy, "person"),
    "what was found of c1's lever": (find_lever("c1"), "ops person admitter"),
    "what was found of c2's lever": (find_lever("c2"), "ops person"),
    "roll call": (roll_call, "person sim scorer admitter checker watchdog"),
    "join the scorers": (join, "scorer"),
    "lead the watchers of c1": (lead("watcher", "c1"), "sim"),
    "lead the watchers of c2": (lead("watcher", "c2"), ""),
    "lead the admitter of c1": (lead("admitter", "c1"), "admitter"),
    "lead the checkers of c1": (lead("checker", "c1"), "checker"),
    "lead the checkers of c2": (lead("checker", "c2"), ""),
    "take submissions of c1": (take("submit", submit_durable("c1"), SUBMIT_C1), "admitter"),
    "take submissions of any": (take("submit", submit_durable("any"), SUBMIT_ANY), "scorer"),
    "who waits to be taken in": (call("STREAM.INFO.submit"), "ops scorer admitter"),
    "read who waits behind a flood": (next_submission, "scorer admitter"),
    "take events of c1": (take("event", answers_durable("c1"), EVENT_C1), "admitter"),
    "dead letter of c1": (publish(subjects.dead(SUBMIT_C1)), "admitter"),
    "dead letter of any": (publish(subjects.dead(SUBMIT_ANY)), "scorer"),
    "route": (publish("$KV.routes.team-a.s1"), "scorer"),
    "ask about team-a": (ask(subjects.ask("queue", "team-a")), "person submitter"),
    "ask about all": (ask(subjects.ask("queue")), "person"),
    "ask a shard": (ask(f"{subjects.ROOT}.shard.gpu.0.queue"), "scorer"),
    "move a frontend": (ask(subjects.frontend("c1", "levels")), "admitter"),
    "move another frontend": (ask(subjects.frontend("c2", "levels")), ""),
    "hear questions": (listen(subjects.ask_filter("queue")), "scorer"),
    "hear a frontend's verbs": (listen(subjects.frontend("c1", "levels")), "sim"),
    "mirror dead letters": (mirror("dead", subjects.dead(">")), "person"),
    "hear team-b's answers": (listen(subjects.answer_filter("team-b")), "person"),
    "hear team-a's answers": (listen(subjects.answer_filter("team-a")), "person submitter"),
    "follow team-a's answers": (follow("answer", subjects.answer_filter("team-a")), ""),
    "follow team-b's answers": (follow("answer", subjects.answer_filter("team-b")), ""),
    "look up team-a's answer": (peek("team-a"), ""),
    "look up team-b's answer": (peek("team-b"), ""),
    "hear state pass by": (listen(subjects.state_filter()), ""),
    "hear submissions pass by": (listen("fairlead.v1.submit.>"), ""),
    "how full NATS is": (call("INFO"), "admitter"),
    "how many dead letters": (call("STREAM.INFO.dead"), "ops person admitter"),
    "purge": (call("STREAM.PURGE.answer", {"filter": "fairlead.v1.answer.none"}), ""),
    "purge submissions": (call("STREAM.PURGE.submit", {"filter": "fairlead.v1.submit.none"}), "ops"),
    "delete a durable of none of its clusters": (call("CONSUMER.DELETE.submit.submit-any"), ""),
    "list streams": (call("STREAM.NAMES"), ""),
    "create a stream": (call("STREAM.CREATE.mine", {"name": "mine", "subjects": ["mine"]}), ""),
    "change a stream's settings": (lambda bus, _: provision(bus, topology(["c1", "c2"])), "ops"),
    "delete a stream": (call("STREAM.DELETE.mine"), ""),
}


async def outcome(operation: Operation, settings: ConnectionSettings, role: str) -> str:
    tally = BusTally()
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

    for subject in ("ask.*.*", "shard.*.*.*", "frontend.*.*"):
        await bus.serve(f"{subjects.ROOT}.{subject}", handle)


@pytest.mark.timeout(300)
async def test_every_cell_of_the_table(tmp_path: Path) -> None:
    with guarded_server(tmp_path, LAYOUT.accounts) as guarded:
        async with AsyncExitStack() as stack:
            helper = await stack.enter_async_context(connect(guarded.root, name="helper"))
            await provision(helper, topology(["c1", "c2"]))
            await serve_all(helper)
            found: dict[str, str] = {}
            wanted: dict[str, str] = {}
            for name, (operation, allowed) in TABLE.items():
                for role, user in ROLES.items():
                    if name.startswith("take "):  # one message for each taker, so that none waits for nothing
                        for subject in (SUBMIT_C1, SUBMIT_ANY, EVENT_C1):
                            await helper.publish(subject, b"x")
                    cell = f"{name} / {role}"
                    found[cell] = await outcome(operation, guarded.settings(user), role)
                    wanted[cell] = "yes" if role in allowed.split() else "-"
            assert found == wanted


async def test_nobody_hears_the_inbox_of_another(tmp_path: Path) -> None:
    with guarded_server(tmp_path, LAYOUT.accounts) as guarded:
        keys = {user: guarded.settings(user).identity() for user in ROLES.values()}
        for user in ROLES.values():
            for other, key in keys.items():
                heard = await outcome(listen(f"_INBOX_{key}.>"), guarded.settings(user), user)
                assert heard == ("yes" if other == user else "-"), (user, other)


async def test_a_long_replay_works_under_the_grants(tmp_path: Path) -> None:
    with guarded_server(tmp_path, LAYOUT.accounts) as guarded:
        async with connect(guarded.root, name="ops") as bus:
            await provision(bus, topology(["c1"]))
            publisher = Publisher(bus)
            padded = NodeState(
                cluster="c1", epoch=1, rev=1, name="n", allocatable={"cpu": 1}, labels={"pad": "x" * 4000}
            )
            for number in range(4000):
                await publisher.put(subjects.state("c1", "node", f"n{number}"), encode_state(padded))
            await publisher.flush()
        tally = BusTally()
        async with connect(guarded.settings("scorer"), name="scorer", observer=tally) as bus:
            await mirror("state", subjects.state_filter())(bus, tally)
        # Flow control that is not answered is a violation first, and then silence; silence alone is a slow machine.
        assert tally.counts["bus.denied"] == 0
        assert not any("permission" in str(note["error"]).lower() for note in tally.said("bus.error"))


async def test_a_long_history_that_needs_flow_control_is_followed_under_the_grants(tmp_path: Path) -> None:
    with guarded_server(tmp_path, LAYOUT.accounts) as guarded:
        async with connect(guarded.root, name="ops") as bus:
            await provision(bus, topology(["c1"]))
            publisher = Publisher(bus)
            for _ in range(4000):
                await publisher.put(EVENT_C1, b"x" * 4000)
            await publisher.flush()
        tally = BusTally()
        async with connect(guarded.settings("scorer"), name="scorer", observer=tally) as bus:
            follower = Follower(bus, stream="event", filter=subjects.event_filter(), since=0)
            heard = 0
            async with asyncio.timeout(60):
                async for _ in follower:
                    heard += 1
                    if heard == 4000:
                        break
        assert tally.counts["bus.denied"] == 0
        assert not any("permission" in str(note["error"]).lower() for note in tally.said("bus.error"))
