import asyncio
import json

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from fairlead_bus import (
    Bus,
    BusError,
    JetStreamNotFoundError,
    JetStreamRefusedError,
    NoStreamError,
    Publisher,
    PublishFailedError,
    PublishUncertainError,
    RetryableBusError,
)
from fairlead_bus.connection.jetstream import read_ack
from fairlead_bus.errors import FatalBusError, WrongLastSequenceError
from fairlead_contracts import subjects
from fairlead_testkit import NatsServer, eventually

pytestmark = pytest.mark.integration

NODE = subjects.state("c1", "node", "n1")


async def test_a_compare_and_swap_looks_at_this_subject_alone(bus: Bus) -> None:
    first = await bus.publish(NODE, b"1", expect_last=0)
    await bus.publish(subjects.state("c1", "node", "n2"), b"other")
    with pytest.raises(WrongLastSequenceError):
        await bus.publish(NODE, b"2", expect_last=first.seq + 1)
    assert (await bus.publish(NODE, b"2", expect_last=first.seq)).seq == first.seq + 2


async def test_a_repeat_of_a_swap_is_refused_and_not_called_a_duplicate(bus: Bus) -> None:
    """The sequence is checked before the Msg-Id: whoever lost an ack must read back."""
    ack = await bus.publish(NODE, b"1", expect_last=0, msg_id="m1")
    with pytest.raises(WrongLastSequenceError):
        await bus.publish(NODE, b"1", expect_last=0, msg_id="m1")
    found = await bus.last("state", NODE)
    assert found is not None
    assert (found.seq, found.headers["Nats-Msg-Id"]) == (ack.seq, "m1")


async def test_a_reused_msg_id_is_acked_and_not_stored(bus: Bus) -> None:
    await bus.publish(NODE, b"1", msg_id="m1")
    assert (await bus.publish(NODE, b"2", msg_id="m1")).duplicate
    found = await bus.last("state", NODE)
    assert found is not None
    assert found.payload == b"1"


async def test_no_stream_takes_an_unknown_cluster(bus: Bus) -> None:
    with pytest.raises(NoStreamError):
        await bus.publish(subjects.submit("c9", "team-a"), b"{}")


async def test_a_delete_is_a_tombstone_that_stays_an_hour(bus: Bus) -> None:
    await bus.publish(NODE, b"1")
    await bus.delete(NODE)
    found = await bus.last("state", NODE)
    assert found is not None
    assert (found.payload, found.headers) == (b"", {"Fairlead-Op": "DEL", "Nats-TTL": "3600"})
    await bus.publish(NODE, b"2")  # a later value is not under the tombstone's TTL
    found = await bus.last("state", NODE)
    assert found is not None
    assert "Nats-TTL" not in found.headers


async def test_a_ttl_below_a_second_is_a_second(bus: Bus) -> None:
    await bus.publish(NODE, b"1", ttl_seconds=0.2)

    async def gone() -> bool:
        return await bus.last("state", NODE) is None

    found = await bus.last("state", NODE)
    assert found is None or found.headers["Nats-TTL"] == "1"  # a slow machine finds it gone already
    await eventually(gone)


async def test_a_ttl_where_the_stream_has_none_is_refused(bus: Bus) -> None:
    with pytest.raises(JetStreamRefusedError):
        await bus.publish(subjects.decision("gpu", 0), b"1", ttl_seconds=5)


@pytest.mark.parametrize("name", ["a.b c", "*", ">", "ü/é", "$JS", "_", "per%cent", "~=:"])
async def test_any_name_makes_a_subject_and_comes_back(bus: Bus, name: str) -> None:
    subject = subjects.state("c1", "job", name, scope=name)
    await bus.publish(subject, name.encode())
    found = await bus.last("state", subject)
    assert found is not None
    assert (found.subject, found.payload) == (subject, name.encode())
    assert subjects.parse_state(found.subject) == ("c1", "job", name, name)


async def test_a_stream_that_is_missing_is_not_taken_for_an_empty_one(bus: Bus) -> None:
    assert await bus.last("state", NODE) is None
    with pytest.raises(JetStreamNotFoundError):
        await bus.last("nothing", NODE)


async def test_pipelined_publishes_keep_their_sequence(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_bus.streams.publisher.WINDOW", 16)
    publisher = Publisher(bus)
    acks = [await publisher.put(subjects.state("c1", "node", f"n{i}"), b"x") for i in range(200)]
    await publisher.flush()
    assert [ack.result().seq for ack in acks] == list(range(1, 201))


async def test_a_refused_publish_surfaces_in_the_flush_and_in_its_future(bus: Bus) -> None:
    publisher = Publisher(bus)
    good = await publisher.put(NODE, b"x")
    nowhere = await publisher.put("fairlead.v1.nowhere", b"x")
    refused = await publisher.put(subjects.decision("gpu", 0), b"x", ttl_seconds=5)
    with pytest.raises(PublishFailedError) as failed:
        await publisher.flush()
    assert [subject for subject, _ in failed.value.errors] == [
        "fairlead.v1.nowhere",
        subjects.decision("gpu", 0),
    ]
    assert good.result().seq == 1
    assert isinstance(nowhere.exception(), NoStreamError)
    assert isinstance(refused.exception(), JetStreamRefusedError)
    await publisher.flush()  # told once


async def test_unacked_publishes_are_uncertain_when_the_server_dies(
    nats_server: NatsServer, bus: Bus
) -> None:
    publisher = Publisher(bus)
    nats_server.pause()
    pending = [await publisher.put(NODE, b"x") for _ in range(5)]
    nats_server.kill()
    with pytest.raises(PublishFailedError):
        await asyncio.wait_for(publisher.flush(), 40)
    assert all(isinstance(ack.exception(), PublishUncertainError) for ack in pending)


async def test_a_silent_server_does_not_park_a_flush_for_ever(
    nats_server: NatsServer, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_bus.streams.publisher.ACK_SECONDS", 0.1)
    publisher = Publisher(bus)
    with nats_server.paused():
        await publisher.put(NODE, b"x")
        with pytest.raises(PublishFailedError):
            await asyncio.wait_for(publisher.flush(), 40)


def refusal(code: int, err_code: int) -> BusError:
    """The exception that an error in place of an ack becomes."""
    answer = {"error": {"code": code, "err_code": err_code, "description": "no"}, "stream": "submit"}
    message = Msg(_client=Client(), subject="_INBOX.x", reply="", data=json.dumps(answer).encode())
    with pytest.raises(BusError) as found:
        read_ack(message, 1)
    return found.value


@pytest.mark.parametrize(
    ("code", "err_code"),
    [
        (400, 10005),  # no suitable peers for placement
        (408, 0),  # request timeout
        (409, 10158),  # duplicate message id is in process
        (429, 10167),  # too many requests
        (500, 10009),  # JetStream cluster can not handle request
        (500, 10012),  # a consumer could not be created
        (500, 10118),  # stream is offline
        (500, 10119),  # consumer is offline
        (503, 10008),  # JetStream system temporarily unavailable
        (503, 10077),  # maximum bytes exceeded
        (503, 10163),  # expected last sequence per subject temporarily unavailable
    ],
)
def test_what_a_cluster_answers_while_leaders_change_is_a_reason_to_try_again(
    code: int, err_code: int
) -> None:
    assert isinstance(refusal(code, err_code), RetryableBusError)


@pytest.mark.parametrize(
    ("code", "err_code"),
    [
        (400, 10003),  # bad request
        (400, 10060),  # expected stream does not match
        (400, 10071),  # wrong last sequence
        (400, 10164),  # the same, while another is being stored
        (404, 10059),  # stream not found
        (500, 10052),  # the configuration of a stream is wrong
        (500, 10074),  # replicas > 1 not supported in non-clustered mode
    ],
)
def test_what_stays_as_it_is_however_often_one_asks_is_fatal(code: int, err_code: int) -> None:
    assert isinstance(refusal(code, err_code), FatalBusError)
