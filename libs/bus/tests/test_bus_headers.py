"""Headers that a server takes for orders, on what a tenant may publish, with the shipped accounts and streams."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from fairlead_bus import Bucket, Bus, BusError, connect
from fairlead_bus.server.accounts import AccountLayout
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects
from fairlead_contracts.topology import topology
from fairlead_testkit.nats_servers.guarded import GuardedServer, guarded_server

pytestmark = pytest.mark.integration

LAYOUT = AccountLayout(clusters=["c1"], groups={"team-a": ["team-a"], "team-b": ["team-b"]}, operators=[])
MINE, NEIGHBOUR = subjects.submit("c1", "team-a"), subjects.submit("c1", "team-b")
HOSTILE: dict[str, Mapping[str, str]] = {
    "takes the subject's other messages away": {"Nats-Rollup": "sub"},
    "takes all other messages away": {"Nats-Rollup": "all"},
    "expires at once": {"Nats-TTL": "1s"},
    "never expires": {"Nats-TTL": "never"},
    "expects another stream": {"Nats-Expected-Stream": "state"},
    "expects a sequence": {"Nats-Expected-Last-Sequence": "999"},
    "expects a sequence of a neighbour's subject": {
        "Nats-Expected-Last-Subject-Sequence": "1",
        "Nats-Expected-Last-Subject-Sequence-Subject": NEIGHBOUR,
    },
    "expects an id": {"Nats-Expected-Last-Msg-Id": "x"},
    "is published later, elsewhere": {
        "Nats-Schedule": "@at 2020-01-01T00:00:00Z",
        "Nats-Schedule-Target": NEIGHBOUR,
    },
    "is published again and again": {"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": NEIGHBOUR},
    "is a part of a batch": {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"},
    "counts": {"Nats-Incr": "+1"},
    "calls itself a delete": {"KV-Operation": "PURGE", "Fairlead-Op": "DEL", "Nats-Marker-Reason": "MaxAge"},
    "calls itself its owner's": {"Fairlead-Restated": "1", "Fairlead-Stamp": "9.9"},
    "has a trace of half a megabyte": {"traceparent": "0" * 500_000, "tracestate": "x"},
}


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[GuardedServer]:
    with guarded_server(tmp_path, LAYOUT.accounts) as server:
        async with connect(server.root, name="root") as root:
            await provision(root, topology(["c1"]))
        yield server


async def stored(root: Bus) -> list[tuple[str, bytes]]:
    """Messages that stand in the submit stream, with their subjects."""
    found, seq = [], 1
    while (one := await root.jetstream.next_of("submit", subjects.submit_filter("c1"), seq)) is not None:
        found.append((one.subject, one.payload))
        seq = one.seq + 1
    return found


async def test_no_header_of_a_tenant_moves_a_message_of_another_or_makes_one(guarded: GuardedServer) -> None:
    async with AsyncExitStack() as stack:
        root = await stack.enter_async_context(connect(guarded.root, name="root"))
        tenants = [
            await stack.enter_async_context(connect(guarded.settings(name), name=name))
            for name in ("tenant.team-a", "free.tenant.team-a")
        ]
        await root.publish(NEIGHBOUR, b"neighbour")
        await root.publish(MINE, b"mine")
        for tenant in tenants:
            for what, headers in HOSTILE.items():
                try:
                    await tenant.publish(MINE, what.encode(), headers=headers)
                except BusError:
                    continue
        await root.publish(NEIGHBOUR, b"neighbour's last")
        found = await stored(root)
        assert [one for one in found if one[0] == NEIGHBOUR] == [
            (NEIGHBOUR, b"neighbour"),
            (NEIGHBOUR, b"neighbour's last"),
        ]
        assert (MINE, b"mine") in found
        # What is stored is plain submissions of the sender's own, judged by their bodies like any other.
        assert {subject for subject, _ in found} == {MINE, NEIGHBOUR}
        config = await root.jetstream.call("STREAM.INFO.submit")
        for refused in (b'"allow_rollup_hdrs":true', b'"allow_msg_schedules":true', b'"allow_msg_ttl":true'):
            assert refused not in config


async def test_no_single_message_takes_the_history_of_the_policy_away(guarded: GuardedServer) -> None:
    async with connect(guarded.root, name="root") as root:
        bucket = Bucket(root, "policy")
        await bucket.put("document", b"1")
        for scope in ("sub", "all"):
            with pytest.raises(BusError):
                await root.publish(
                    subjects.kv_subject("policy", "document"), b"x", headers={"Nats-Rollup": scope}
                )
        assert [one.payload for one in await bucket.history("document")] == [b"1"]
