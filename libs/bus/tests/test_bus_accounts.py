"""Tenants with accounts of their own: what crosses, and what a hostile one cannot aim at any more."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import (
    Asked,
    Bus,
    ConnectFailedError,
    DeniedError,
    JetStreamRefusedError,
    NobodyAnswersError,
    NoStreamError,
    UnavailableError,
    connect,
)
from fairlead_bus.server.accounts import AccountLayout
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.topology import topology
from fairlead_testkit import eventually
from fairlead_testkit.nats_servers.guarded import GuardedServer, guarded_server

pytestmark = pytest.mark.integration

LAYOUT = AccountLayout(
    clusters=["c1"],
    groups={"team-a": ["team-a"], "team-b": ["team-b"], "physics": ["lab.1", "lab-2"]},
    operators=["ann"],
)
AIMS = [
    "$KV.policy.document",
    "$KV.members.leader.admitter.c1",
    "$KV.routes.team-b.s1",
    subjects.state("c1", "pool", "gpu"),
    subjects.mark("c1"),
    subjects.decision("gpu", 0),
    subjects.event("team-b", "c1", "job"),
    subjects.answer("team-b", "s1"),
    subjects.answer("team-a", "s1"),
    subjects.submit("c1", "team-b"),
    subjects.frontend("c1", "levels"),
    "$JS.API.STREAM.PURGE.state",
    "$JS.FC.state.x",
]
FORBIDDEN = ["$JS.ACK.submit.submit-c1.1.1.1.1.1", "_R_.abc"]
"""NATS takes these from no client as a reply subject."""


class AccountsHarness:
    """A server with the shipped accounts, the topology on it, and whoever connects."""

    def __init__(self, guarded: GuardedServer, stack: AsyncExitStack) -> None:
        self._guarded = guarded
        self._stack = stack

    async def user(self, name: str) -> Bus:
        return await self._stack.enter_async_context(connect(self._guarded.settings(name), name=name))

    async def hearing(self, bus: Bus, subject: str) -> list[Asked]:
        found: list[Asked] = []

        async def heard(message: Asked) -> None:
            found.append(message)

        await bus.subscribe_core(subject, heard)
        await settled(bus)
        return found


@pytest.fixture(params=["plain", "operator"])
async def meeting(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[AccountsHarness]:
    with guarded_server(tmp_path, LAYOUT.accounts, operator_mode=request.param == "operator") as guarded:
        async with AsyncExitStack() as stack:
            made = AccountsHarness(guarded, stack)
            await provision(await made.user("provisioner"), topology(["c1"]))
            yield made


async def settled(bus: Bus) -> None:
    """Returns once the server knows of all that the connection subscribed to: what is answered next comes behind it."""
    with contextlib.suppress(DeniedError, NobodyAnswersError):
        await bus.request("$SYS.REQ.USER.INFO", b"")


async def echo(asked: Asked) -> bytes:
    return asked.subject.encode()


async def test_a_tenant_submits_asks_and_hears_from_its_own_account(meeting: AccountsHarness) -> None:
    root, tenant = await meeting.user("root"), await meeting.user("tenant.team-a")
    scorer, admitter = await meeting.user("scorer"), await meeting.user("admitter.c1")
    heard = await meeting.hearing(tenant, subjects.answer_filter("team-a"))

    first = await tenant.publish(subjects.submit("c1", "team-a"), b"{}", msg_id="1")
    again = await tenant.publish(subjects.submit("c1", "team-a"), b"{}", msg_id="1")
    assert (first.duplicate, again.duplicate) == (False, False)
    with pytest.raises(NoStreamError):
        await tenant.publish(subjects.submit("elsewhere", "team-a"), b"{}")

    question = subjects.ask("queue", "team-a")
    await scorer.serve(subjects.ask_filter("queue"), echo, queue="scorer")
    await settled(scorer)
    assert await tenant.request(question, b"") == question.encode()

    for whose in ("team-b", "team-a"):
        await admitter.publish(subjects.answer(whose, "s1"), whose.encode())
    await eventually(lambda: heard)
    assert [(one.subject, one.payload) for one in heard] == [(subjects.answer("team-a", "s1"), b"team-a")]
    stored = await root.last("submit", subjects.submit_filter("c1"))
    assert stored is not None
    assert stored.subject == subjects.submit("c1", "team-a")


@pytest.mark.parametrize("user", ["tenant.team-a", "free.tenant.team-a"])
async def test_neither_an_answer_nor_an_ack_can_be_aimed_out_of_the_account(
    meeting: AccountsHarness, user: str
) -> None:
    """The second user may do all in its account: what holds is the account, and not its users' grants."""
    root, scorer, hostile = await meeting.user("root"), await meeting.user("scorer"), await meeting.user(user)
    for kind in ("queue", "tenants"):
        await scorer.serve(subjects.ask_filter(kind), echo, queue="scorer")
    await settled(scorer)
    seen = await meeting.hearing(root, ">")
    aimed = [
        (bait, aim)
        for bait in (subjects.submit("c1", "team-a"), subjects.ask("queue", "team-a"))
        for aim in AIMS
    ]
    for bait, aim in [*aimed, *((bait, aim) for bait, _ in aimed for aim in FORBIDDEN)]:
        await hostile.connection.send(bait, b"{}", reply=aim)
    assert await hostile.request(
        subjects.ask("tenants", "team-a"), b""
    )  # everything before it has been handled
    await hostile.publish(subjects.submit("c1", "team-a"), b"the last")
    await eventually(lambda: any(one.payload == b"the last" for one in seen))
    baits = [one.subject for one in seen if one.payload == b"{}"]
    assert sorted(baits) == sorted(bait for bait, _ in aimed)
    assert not {one.subject for one in seen} & (set(AIMS) - {subjects.submit("c1", "team-a")})


@pytest.mark.parametrize(
    "subject",
    [aim for aim in AIMS + FORBIDDEN if aim != subjects.answer("team-a", "s1")]
    + [subjects.ask("queue", "team-b"), subjects.ask("queue"), subjects.submit("any", "team-b")],
)
async def test_what_a_tenant_publishes_elsewhere_arrives_nowhere(
    meeting: AccountsHarness, subject: str
) -> None:
    root, hostile, free = [
        await meeting.user(name) for name in ("root", "tenant.team-a", "free.tenant.team-a")
    ]
    seen = await meeting.hearing(root, subject)
    with pytest.raises(DeniedError):
        await hostile.publish(subject, b"x")
    await free.connection.send(subject, b"x")
    await free.publish(subjects.submit("c1", "team-a"), b"behind it")
    assert await root.last("submit", subjects.submit("c1", "team-a")) is not None
    assert seen == []


async def test_a_tenant_has_no_jetstream_and_hears_nothing_of_others(meeting: AccountsHarness) -> None:
    root, free = await meeting.user("root"), await meeting.user("free.tenant.team-a")
    heard, keys = await meeting.hearing(free, f"{subjects.ROOT}.>"), await meeting.hearing(free, "$KV.>")
    for verb in ("STREAM.NAMES", "STREAM.INFO.answer", "CONSUMER.CREATE.answer.mine.fairlead.v1.answer.>"):
        with pytest.raises((JetStreamRefusedError, UnavailableError), match="not enabled"):
            await free.jetstream.call(verb)
    told = [
        subjects.state("c1", "pool", "gpu"),
        "$KV.policy.document",
        subjects.event("team-a", "c1", "job"),
        subjects.answer("team-b", "s1"),
        subjects.submit("c1", "team-b"),
        subjects.answer("team-a", "last"),
    ]
    for subject in told:
        await root.publish(subject, b"x")
    await eventually(lambda: any(one.subject == told[-1] for one in heard))
    assert {one.subject for one in heard + keys} == {told[-1]}


async def test_tenants_of_a_group_have_an_account_in_common_and_subjects_of_their_own(
    meeting: AccountsHarness,
) -> None:
    one, two = await meeting.user("tenant.lab%2E1"), await meeting.user("tenant.lab-2")
    assert (await one.publish(subjects.submit("c1", "lab.1"), b"{}")).seq
    assert (await two.publish(subjects.submit("c1", "lab-2"), b"{}")).seq
    for bus, other in ((one, "lab-2"), (two, "lab.1"), (one, "team-a")):
        with pytest.raises(DeniedError):
            await bus.publish(subjects.submit("c1", other), b"{}")


async def test_who_has_no_key_is_not_let_in(meeting: AccountsHarness) -> None:
    """Trap of NATS: accounts without authentication would put strangers into a global account."""
    url = meeting._guarded.server.url
    address = url.removeprefix("nats://").split(":")
    reader, writer = await asyncio.open_connection(address[0], int(address[1]))
    await reader.readline()
    writer.write(b'CONNECT {"verbose":false}\r\nPING\r\n')
    assert b"Authorization Violation" in await reader.readline()
    writer.close()


@pytest.mark.parametrize(
    "layout",
    [
        AccountLayout(clusters=["c1", "c1"], groups={}, operators=[]),
        AccountLayout(clusters=[""], groups={}, operators=[]),
        AccountLayout(clusters=[], groups={"a": ["team-a"], "b": ["team-a"]}, operators=[]),
    ],
)
def test_a_name_that_is_none_or_is_there_twice_is_refused(layout: AccountLayout) -> None:
    with pytest.raises(FieldError):
        layout.check()


@pytest.mark.parametrize("mode", ["plain", "operator"])
async def test_a_tenant_that_opens_too_many_connections_is_turned_away_and_no_other_is(
    tmp_path: Path, mode: str
) -> None:
    narrow = msgspec.structs.replace(LAYOUT, tenant_connections=3)
    with guarded_server(tmp_path, narrow.accounts, operator_mode=mode == "operator") as guarded:
        async with AsyncExitStack() as stack:

            async def open_as(user: str) -> None:
                settings = msgspec.structs.replace(guarded.settings(user), connect_timeout_seconds=2)
                await stack.enter_async_context(connect(settings, name=user))

            for _ in range(3):
                await open_as("tenant.team-a")
            with pytest.raises(ConnectFailedError, match="connections exceeded"):
                await open_as("tenant.team-a")
            for _ in range(6):
                await open_as("tenant.lab-2")  # its account is of two tenants
            for user in ("tenant.team-b", "scorer", "scorer", "scorer", "scorer"):
                await open_as(user)
