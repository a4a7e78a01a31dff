import pytest

from fairlead_bus import Bucket, Bus, KeyExistsError, WrongRevisionError
from fairlead_bus.observer import BusTally
from fairlead_contracts import subjects
from fairlead_contracts.base.errors import MalformedError
from fairlead_testkit import eventually

pytestmark = pytest.mark.integration


async def test_keys_are_created_once_and_updated_by_revision(bus: Bus) -> None:
    bucket = Bucket(bus, "policy")
    assert await bucket.get(subjects.DOCUMENT_KEY) is None
    first = await bucket.create(subjects.DOCUMENT_KEY, b"1")
    with pytest.raises(KeyExistsError):
        await bucket.create(subjects.DOCUMENT_KEY, b"2")
    second = await bucket.update(subjects.DOCUMENT_KEY, b"2", first)
    with pytest.raises(WrongRevisionError):
        await bucket.update(subjects.DOCUMENT_KEY, b"3", first)
    found = await bucket.get(subjects.DOCUMENT_KEY)
    assert found is not None
    assert (found.value, found.rev) == (b"2", second)


async def test_a_deleted_key_is_absent_and_can_be_created_again(bus: Bus) -> None:
    bucket = Bucket(bus, "policy")
    await bucket.put("a", b"1")
    await bucket.delete("a")
    await bucket.delete("never-there")
    assert await bucket.get("a") is None
    await bucket.create("a", b"2")
    assert [kept.payload for kept in await bucket.history("a")] == [b"1", b"", b"2"]
    assert await bucket.history("b") == []


async def test_the_history_is_as_long_as_the_bucket_keeps_it(bus: Bus) -> None:
    bucket = Bucket(bus, "policy")
    for i in range(40):
        await bucket.put("a", str(i).encode())
        await bucket.put("b", b"between")
    assert [kept.payload for kept in await bucket.history("a")] == [str(i).encode() for i in range(8, 40)]


def a_number(payload: bytes) -> int:
    try:
        return int(payload)
    except ValueError as error:
        raise MalformedError("no number") from error


async def test_the_newest_value_that_can_be_read_is_found_as_far_back_as_the_key_is_kept(
    bus: Bus, tally: BusTally
) -> None:
    bucket = Bucket(bus, "policy")

    async def newest() -> tuple[int | None, int, int, bool]:
        found = await bucket.newest_readable("a", a_number)
        assert (found.why_not_last is None) is (found.rev == found.last_rev)
        return found.value, found.rev, found.last_rev, found.deleted

    assert await newest() == (None, 0, 0, False)
    await bucket.put("a", b"1")
    second = await bucket.put("a", b"2")
    await bucket.put("b", b"3")
    assert await newest() == (2, second, second, False)
    last = [await bucket.put("a", b"x") for _ in range(30)][-1]
    assert await newest() == (2, second, last, False)
    assert tally.counts["bucket.unreadable"] == 1
    await bucket.put("a", b"x")
    last = await bucket.put("a", b"x")
    assert await newest() == (None, 0, last, False)  # 32 are kept


@pytest.mark.parametrize("more", [{}, {"KV-Operation": "DEL"}], ids=["a value", "a delete"])
async def test_what_the_server_read_out_to_a_key_is_no_value_of_it(bus: Bus, more: dict[str, str]) -> None:
    bucket = Bucket(bus, "policy")
    own = await bucket.put("a", b"1")
    ack = await bus.publish(subjects.answer("team-a", "s1"), b"" if more else b"7", headers=more)
    await bus.connection.send("$JS.API.DIRECT.GET.answer", b'{"seq": %d}' % ack.seq, reply="$KV.policy.a")

    async def written() -> bool:
        found = await bus.last("KV_policy", "$KV.policy.a")
        return found is not None and found.seq > own

    await eventually(written)
    found = await bucket.newest_readable("a", a_number)
    assert (found.value, found.rev, found.last_rev, found.deleted) == (1, own, own + 1, False)
    assert (
        str(found.why_not_last)
        == "the server wrote it, for somebody who had a message of the stream answer read out to here"
    )


async def test_nothing_from_before_a_delete_is_taken_for_the_newest(bus: Bus) -> None:
    bucket = Bucket(bus, "policy")
    await bucket.put("a", b"1")
    await bucket.delete("a")
    found = await bucket.newest_readable("a", a_number)
    assert (found.value, found.last_rev, found.deleted) == (None, 0, True)
    last = await bucket.put("a", b"x")
    found = await bucket.newest_readable("a", a_number)
    assert (found.value, found.last_rev, found.deleted) == (None, last, True)


@pytest.mark.parametrize("name", ["a.b c", "ü", "per%cent", "~", "_", "a=b"])
async def test_any_name_makes_a_key(bus: Bus, name: str) -> None:
    bucket = Bucket(bus, "routes")
    key = subjects.route_key(name, name)
    await bucket.create(key, b"x")
    found = await bucket.get(key)
    assert found is not None
    assert found.value == b"x"
