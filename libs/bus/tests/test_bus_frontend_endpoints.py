"""A frontend on the bus obeys the newest leader it has heard, in batches, and only while it leads itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from fairlead_bus import Bus, ConnectionSettings, Rejected, RemoteError, connect
from fairlead_bus.frontend_endpoints import EpochFence, FrontendEndpoints
from fairlead_bus.ownership.leadership import Leadership
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import Message, to_packed
from fairlead_contracts.frontend import verbs
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.inputs.builders import (
    a_create,
    a_create_jobs,
    a_delete,
    a_delete_jobs,
    a_set_level,
    a_set_levels,
)
from fairlead_testkit.timing.in_hand import beside


@pytest.mark.parametrize(
    ("kept", "own", "asked", "obeyed"),
    [
        (0, 10, [5, 12, 12, 20], [5, 12, 12, 20]),
        (0, 10, [12, 5, 12, 11, 13], [12, 12, 13]),
        (8, 10, [7, 8, 9], [8, 9]),
        # Kept from before a lead of our own that is lower: the stream that both count by was made anew.
        (900, 3, [2, 4], [2, 4]),
        (8, 8, [7, 9], [7, 9]),
    ],
)
def test_only_the_newest_leader_is_obeyed(kept: int, own: int, asked: list[int], obeyed: list[int]) -> None:
    noted: list[int] = []
    fence = EpochFence(kept, noted.append)
    passed = []
    for epoch in asked:
        with contextlib.suppress(Rejected):
            fence.check(epoch, own)
            passed.append(epoch)
    assert passed == obeyed
    assert noted == sorted({epoch for epoch in obeyed if epoch > (kept if kept < own else 0)})


class ObedientFrontend:
    """A frontend that does all that it is asked for, but for levels below zero."""

    def __init__(self) -> None:
        self.created: list[str] = []
        self.levels: list[tuple[str, int | None]] = []

    async def create(self, jobs: Sequence[verbs.CreateJob]) -> Sequence[verbs.CreateReply]:
        self.created += [job.id for job in jobs]
        return [verbs.CreateReply(outcome=verbs.CreateOutcome.CREATED, queue="main") for _ in jobs]

    async def set_levels(self, levels: Sequence[verbs.SetLevel]) -> Sequence[verbs.LevelReply]:
        self.levels += [(one.id, one.level) for one in levels]
        return [
            verbs.LevelReply(verdict=verbs.VerbOutcome.REFUSED, reason="below zero")
            if one.level is not None and one.level < 0
            else verbs.LevelReply(verdict=verbs.VerbOutcome.DONE, rev=1)
            for one in levels
        ]

    async def delete(self, jobs: Sequence[verbs.DeleteJob]) -> Sequence[verbs.DeleteReply]:
        return [verbs.DeleteReply(verdict=verbs.VerbOutcome.GONE) for _ in jobs]


class EndpointsHarness:
    """A frontend on a server, and somebody who asks it."""

    def __init__(self, bus: Bus, leadership: Leadership) -> None:
        self.frontend = ObedientFrontend()
        self.bus = bus
        self.leadership = leadership
        self.fence = EpochFence(0, lambda _: None)
        self.endpoints = FrontendEndpoints(bus, "c1", self.frontend, leadership, self.fence)

    async def ask(self, verb: subjects.FrontendVerb, message: Message | bytes) -> bytes:
        payload = message if isinstance(message, bytes) else to_packed(message)
        return await self.bus.request(subjects.frontend("c1", verb), payload, timeout=10)

    async def rejects(self, verb: subjects.FrontendVerb, message: Message | bytes) -> int:
        with pytest.raises(RemoteError) as rejected:
            await self.ask(verb, message)
        return rejected.value.code


@asynccontextmanager
async def a_meeting(server: NatsServer) -> AsyncIterator[EndpointsHarness]:
    async with connect(ConnectionSettings(url=server.url), name="test") as bus:
        await provision(bus, topology.topology(["c1"]))
        leadership = Leadership(bus, role="watcher", cluster="c1", replica="one", wake=asyncio.Event())
        meeting = EndpointsHarness(bus, leadership)
        await meeting.endpoints.open()
        assert await meeting.rejects("levels", a_set_levels()) == verbs.UNAVAILABLE
        async with beside(leadership.run()):
            await eventually(lambda: leadership.epoch is not None, 20)
            yield meeting
            await meeting.endpoints.close()


@pytest.mark.integration
async def test_each_item_is_answered_by_itself_and_a_leader_of_the_past_is_told(
    nats_server: NatsServer,
) -> None:
    async with a_meeting(nats_server) as meeting:
        created = await meeting.ask("create", a_create_jobs(jobs=[a_create(id="a"), a_create(id="b")]))
        assert [reply.queue for reply in verbs.CREATE_REPLIES.decode(created).replies] == ["main", "main"]
        levels = [
            a_set_level(id="a", level=3),
            a_set_level(id="b", level=-1),
            a_set_level(id="c", level=None),
        ]
        written = await meeting.ask("levels", a_set_levels(epoch=7, levels=levels))
        assert [reply.verdict for reply in verbs.LEVEL_REPLIES.decode(written).replies] == [
            verbs.VerbOutcome.DONE,
            verbs.VerbOutcome.REFUSED,
            verbs.VerbOutcome.DONE,
        ]
        late: dict[subjects.FrontendVerb, Message] = {
            "create": a_create_jobs(epoch=6, jobs=[a_create(id="late")]),
            "levels": a_set_levels(epoch=6),
            "delete": a_delete_jobs(epoch=6),
        }
        for verb, request in late.items():
            assert await meeting.rejects(verb, request) == verbs.FENCED
        assert meeting.frontend.created == ["a", "b"]
        assert meeting.frontend.levels == [("a", 3), ("b", -1), ("c", None)]
        gone = await meeting.ask("delete", a_delete_jobs(epoch=8, jobs=[a_delete()]))
        assert verbs.DELETE_REPLIES.decode(gone).replies == [
            verbs.DeleteReply(verdict=verbs.VerbOutcome.GONE)
        ]


@pytest.mark.integration
async def test_what_is_no_request_or_too_much_is_rejected_as_a_whole(nats_server: NatsServer) -> None:
    async with a_meeting(nats_server) as meeting:
        many = a_set_levels(levels=[a_set_level()] * (verbs.MOST_IN_A_REQUEST + 1))
        for wrong in (b"\xc1", b"x" * (verbs.LARGEST_REQUEST + 1), many):
            assert await meeting.rejects("levels", wrong) == verbs.MALFORMED
        assert meeting.frontend.levels == []
