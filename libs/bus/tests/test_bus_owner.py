import asyncio
import os
import signal
import sys

import pytest

from fairlead_bus import Bus, LostOwnershipError, PublishUncertainError
from fairlead_bus.ownership.owned_subject import OwnedSubject
from fairlead_contracts import subjects
from fairlead_testkit import NatsServer

pytestmark = pytest.mark.integration

SHARD = subjects.decision("gpu", 3)


def an_owner(bus: Bus, name: str = "scorer-1") -> OwnedSubject:
    return OwnedSubject(bus, stream="decision", subject=SHARD, owner=name)


async def standing(bus: Bus) -> bytes:
    found = await bus.last("decision", SHARD)
    assert found is not None
    return found.payload


async def test_the_epoch_is_the_claims_sequence_and_each_publish_follows(bus: Bus) -> None:
    owner = an_owner(bus)
    epoch = await owner.claim(lambda: b"claim")
    assert (owner.epoch, epoch) == (1, 1)
    assert [await owner.publish(b"a"), await owner.publish(b"b")] == [2, 3]
    assert await standing(bus) == b"b"


async def test_a_claim_ends_the_old_epoch_before_the_new_owner_has_published(bus: Bus) -> None:
    old, new = an_owner(bus, "old"), an_owner(bus, "new")
    await old.claim(lambda: b"old claim")
    await old.publish(b"old")
    assert await new.claim(lambda: b"new claim") == 3
    with pytest.raises(LostOwnershipError):
        await old.publish(b"stale")
    assert old.epoch is None
    assert await standing(bus) == b"new claim"
    with pytest.raises(LostOwnershipError):
        await old.publish(b"stale")
    assert await new.publish(b"new") == 4


async def test_of_two_claims_at_once_one_holds(bus: Bus) -> None:
    """The one who looks while the other's claim is under way loses; whoever looks behind it takes over what it claimed."""
    one, two = an_owner(bus, "one"), an_owner(bus, "two")
    claimed = await asyncio.gather(
        one.claim(lambda: b"one"), two.claim(lambda: b"two"), return_exceptions=True
    )
    assert {type(outcome) for outcome in claimed} <= {LostOwnershipError, int}
    published = await asyncio.gather(one.publish(b"one"), two.publish(b"two"), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in published) == ["LostOwnershipError", "int"]
    assert await standing(bus) == (b"one" if isinstance(published[0], int) else b"two")


async def test_a_lost_ack_is_read_back(
    nats_server: NatsServer, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is stored and its ack is lost: the owner finds its own Msg-Id and goes on."""
    owner = an_owner(bus)
    await owner.claim(lambda: b"claim")
    publish, lost = bus.publish, asyncio.Event()

    async def losing(*args: object, **kwargs: object) -> object:
        ack = await publish(*args, **kwargs)  # type: ignore[arg-type] # only handed through
        if lost.is_set():
            return ack
        lost.set()
        raise PublishUncertainError("the ack was lost")

    monkeypatch.setattr(bus, "publish", losing)
    assert await owner.publish(b"a") == 2
    assert await owner.publish(b"b") == 3
    del nats_server


async def test_a_publish_that_was_never_settled_is_found_by_the_next(
    nats_server: NatsServer, bus: Bus
) -> None:
    """The server takes the message, its ack and the reading back are lost with the connection; later it goes on."""
    owner = an_owner(bus)
    await owner.claim(lambda: b"claim")
    ours = f"scorer-1.{owner.epoch}.77"
    await bus.publish(SHARD, b"landed late", msg_id=ours, expect_last=1)
    assert await owner.publish(b"next") == 3
    assert await standing(bus) == b"next"
    await asyncio.to_thread(nats_server.restart)
    await bus.connection.until_connected()
    assert await owner.publish(b"after the crash") == 4


async def test_a_foreign_write_or_a_purge_ends_the_ownership(bus: Bus) -> None:
    owner = an_owner(bus)
    await owner.claim(lambda: b"claim")
    await bus.jetstream.call("STREAM.PURGE.decision", {"filter": SHARD})
    with pytest.raises(LostOwnershipError):
        await owner.publish(b"x")


PAUSED_OWNER = """
import asyncio, sys
from fairlead_bus import ConnectionSettings, LostOwnershipError, connect
from fairlead_bus.ownership.owned_subject import OwnedSubject
async def main():
    async with connect(ConnectionSettings(url=sys.argv[1]), name="ops") as bus:
        owner = OwnedSubject(bus, stream="decision", subject=sys.argv[2], owner="old")
        await owner.claim(lambda: b"claim")
        await owner.publish(b"before")
        assert owner.epoch is not None          # the check
        print("checked", flush=True)            # paused here
        await asyncio.to_thread(sys.stdin.readline)
        try:
            await owner.publish(b"stale")       # the publish
            print("accepted", flush=True)
        except LostOwnershipError:
            print("refused", flush=True)
asyncio.run(main())
"""


async def test_an_owner_paused_between_its_check_and_its_publish_is_refused(
    nats_server: NatsServer, bus: Bus
) -> None:
    """The publish of a paused owner was accepted in five runs of five with a lease alone."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PAUSED_OWNER,
        nats_server.url,
        SHARD,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdin is not None
    try:
        async with asyncio.timeout(40):
            assert await child.stdout.readline() == b"checked\n"
            os.kill(child.pid, signal.SIGSTOP)
            new = an_owner(bus, "new")
            await new.claim(lambda: b"new claim")
            child.stdin.write(b"go\n")
            os.kill(child.pid, signal.SIGCONT)
            assert await child.stdout.readline() == b"refused\n"
            assert await standing(bus) == b"new claim"
            await child.wait()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def test_a_quiet_owner_finds_out_that_another_claimed(bus: Bus) -> None:
    owner = an_owner(bus)
    await owner.claim(lambda: b"claim")
    await owner.confirm()
    await owner.publish(b"a")
    await owner.confirm()
    passing = an_owner(bus, "passing")
    await passing.claim(lambda: b"for a moment")
    with pytest.raises(LostOwnershipError):
        await owner.confirm()
    assert owner.epoch is None
    with pytest.raises(LostOwnershipError):
        await owner.confirm()
