"""The key of a service in a thief's hands: good for its own subjects, and for none of the others' or of the server's."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bucket, Bus, BusError, DeniedError, connect
from fairlead_bus.connection.jetstream import Stored
from fairlead_bus.ownership.membership import Membership
from fairlead_bus.ownership.roster import Roster
from fairlead_bus.server.accounts import AccountLayout
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects
from fairlead_contracts.messages.members import MemberLease
from fairlead_contracts.topology import topology
from fairlead_testkit.nats_servers.guarded import GuardedServer, guarded_server
from fairlead_testkit.timing.awaiting import eventually

pytestmark = pytest.mark.integration

LAYOUT = AccountLayout(clusters=["c1", "c2"], groups={"team-a": ["team-a"]}, operators=["ann"])
WATCHER, SCORER, ADMITTER = "watcher.c1", "scorer", "admitter.c1"
AIMS: dict[str, set[str]] = {
    # What people say.
    "$KV.policy.document": set(),
    "$KV.policy.control._": set(),
    "$KV.policy.clearance.c1": set(),
    "$KV.policy.lever.c1": {ADMITTER},
    "$KV.policy.lever.c2": set(),
    # What clusters state.
    subjects.state("c1", "pool", "gpu"): {WATCHER},
    subjects.mark("c1"): {WATCHER},
    subjects.state("c2", "pool", "gpu"): set(),
    subjects.mark("c2"): set(),
    subjects.event("team-a", "c1", "job"): {WATCHER, ADMITTER},
    subjects.event("team-a", "c2", "job"): set(),
    # What is decided, and carried out.
    subjects.decision("gpu", 0): {SCORER},
    subjects.frontend("c1", "levels"): {ADMITTER},
    subjects.frontend("c1", "delete"): {ADMITTER},
    subjects.frontend("c2", "levels"): set(),
    # What tenants send and hear.
    subjects.submit("c1", "team-a"): {SCORER},
    subjects.answer("team-a", "s1"): {SCORER, ADMITTER},
    subjects.ask("queue"): set(),
    subjects.dead(subjects.submit("c1", "team-a")): {ADMITTER},
    subjects.dead(subjects.submit("any", "team-a")): {SCORER},
    subjects.dead(subjects.submit("c2", "team-a")): set(),
    # Who leads.
    "$KV.members.leader.watcher.c1": {WATCHER},
    "$KV.members.leader.watcher.c2": set(),
    "$KV.members.leader.admitter.c1": {ADMITTER},
    "$KV.members.leader.admitter.c2": set(),
    "$KV.members.member.scorer.x": {SCORER},
    # The server's own.
    "$JS.API.STREAM.PURGE.state": set(),
    "$JS.API.STREAM.DELETE.decision": set(),
    "$JS.API.STREAM.UPDATE.submit": set(),
    "$JS.API.STREAM.MSG.DELETE.KV_policy": set(),
    "$JS.API.CONSUMER.DELETE.submit.submit-c1": set(),
    "$JS.API.CONSUMER.MSG.NEXT.submit.submit-c2": set(),
    "$JS.ACK.submit.submit-c2.1.1.1.1.1": set(),
    "$JS.API.CONSUMER.CREATE.submit.mine.>": set(),
    "$SYS.REQ.SERVER.PING": set(),
}


@pytest.fixture(params=["plain", "operator"])
async def guarded(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[GuardedServer]:
    with guarded_server(tmp_path, LAYOUT.accounts, operator_mode=request.param == "operator") as found:
        async with connect(found.root, name="ops") as bus:
            await provision(bus, topology(["c1", "c2"]))
        yield found


async def is_let_through(bus: Bus, subject: str) -> bool:
    """Whether the server takes it from this user; what becomes of it then is another matter."""
    try:
        await bus.publish(subject, b"{}", timeout=1.0)
    except DeniedError:
        return False
    except BusError:
        return True
    return True


async def test_a_stolen_key_writes_what_its_service_may_and_nothing_else(guarded: GuardedServer) -> None:
    found: dict[str, set[str]] = {subject: set() for subject in AIMS}
    async with AsyncExitStack() as stack:
        for user in (WATCHER, SCORER, ADMITTER):
            bus = await stack.enter_async_context(connect(guarded.settings(user), name=user))
            for subject in AIMS:
                if await is_let_through(bus, subject):
                    found[subject].add(user)
    assert found == AIMS


async def test_within_the_services_account_a_thief_has_the_server_write_for_it(
    guarded: GuardedServer,
) -> None:
    """NATS checks where one publishes, and not where one has an answer sent: the server then writes it with rights of its own.

    SECURITY.md says so, and who closes it turns this round.
    """
    aim, document = "$KV.policy.document", b'{"pools": []}'
    async with (
        connect(guarded.settings(SCORER), name="thief") as thief,
        connect(guarded.root, name="ops") as ops,
    ):
        ack = await thief.publish(subjects.answer("team-a", "s1"), document)
        await thief.connection.send("$JS.API.DIRECT.GET.answer", b'{"seq": %d}' % ack.seq, reply=aim)

        async def written() -> Stored | None:
            return await ops.last("KV_policy", aim)

        stored = await eventually(written, what="the server has written it")
        assert stored.payload == document


_names = itertools.count()


async def have_stored_again(thief: Bus, ops: Bus, stream: str, filtered: str, count: int) -> None:
    """Pulls the oldest that a stream holds under a filter, and has the server send them to the stream itself.

    The server stores what a pull gives under the subject that it had, with the headers that it had.
    """
    name = f"again-{next(_names)}"
    config = {
        "name": name,
        "filter_subject": filtered,
        "ack_policy": "none",
        "mem_storage": True,
        "inactive_threshold": 60_000_000_000,
    }
    asked = {"stream_name": stream, "config": config}
    await thief.jetstream.call(f"CONSUMER.CREATE.{stream}.{name}.{filtered}", asked)
    batch = msgspec.json.encode({"batch": count, "expires": 30_000_000_000})
    aim = filtered.replace(">", "aim")
    await thief.connection.send(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}", batch, reply=aim)

    async def all_given() -> bool:
        given = msgspec.json.decode(await ops.jetstream.call(f"CONSUMER.INFO.{stream}.{name}"))
        return int(given["delivered"]["consumer_seq"]) >= count

    await eventually(all_given, what="the server has sent all of it")
    await ops.publish(filtered.replace(">", "behind-it"), b"")  # what the stream took before is stored by now


@pytest.mark.parametrize("user", [WATCHER, SCORER, ADMITTER])
async def test_no_old_word_of_an_operator_is_stored_again(guarded: GuardedServer, user: str) -> None:
    words = {
        subjects.control_key("gpu"): b"paused",
        subjects.leave_key("c1"): None,
        subjects.DOCUMENT_KEY: b"the policy of today",
    }
    async with (
        connect(guarded.settings(user), name="thief") as thief,
        connect(guarded.settings("operator.ann"), name="ann") as ann,
        connect(guarded.root, name="ops") as ops,
    ):
        bucket = Bucket(ann, "policy")
        await bucket.put(subjects.control_key("gpu"), b"active")
        await bucket.put(subjects.control_key("gpu"), b"paused")
        await bucket.put(subjects.leave_key("c1"), b"leave to steer")
        await bucket.delete(subjects.leave_key("c1"))
        first = await bucket.create(subjects.DOCUMENT_KEY, b"the policy of last week")
        await bucket.update(subjects.DOCUMENT_KEY, b"the policy of today", first)
        # Up to where pools are steered, there is leave, and last week's policy is in force.
        for count in (1, 3, 5):
            await have_stored_again(thief, ops, "KV_policy", "$KV.policy.>", count)
            found = {key: await bucket.get(key) for key in words}
            assert {key: entry and entry.value for key, entry in found.items()} == words, count


@pytest.mark.parametrize("user", [WATCHER, ADMITTER, "watchdog"])
async def test_nobody_keeps_the_lease_of_a_replica_that_is_gone(guarded: GuardedServer, user: str) -> None:
    lease = MemberLease(role="scorer", replica="r1", renewed=1)
    key = subjects.kv_subject("members", subjects.member_key("scorer", "r1"))
    async with (
        connect(guarded.settings(user), name="thief") as thief,
        connect(guarded.root, name="ops") as ops,
    ):
        async with connect(guarded.settings(SCORER), name="scorer") as scorer:
            roster = Roster(scorer, wake=asyncio.Event())
            member = Membership(scorer, roster, role="scorer", replica="r1", describe=lambda: lease)
            living = asyncio.create_task(member.run())
            await eventually(lambda: member.trusted)
        with suppress(BusError):
            await living  # its connection is gone: it cannot say that it leaves
        last = await ops.last("KV_members", key)
        assert last is not None
        await have_stored_again(thief, ops, "KV_members", "$KV.members.>", 1)
        after = await ops.last("KV_members", key)
    assert after is None or after.seq == last.seq
