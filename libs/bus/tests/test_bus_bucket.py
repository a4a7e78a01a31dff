import pytest

from fairlead_bus import Bucket, Bus, KeyExistsError, WrongRevisionError
from fairlead_contracts import subjects

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


@pytest.mark.parametrize("name", ["a.b c", "ü", "per%cent", "~", "_", "a=b"])
async def test_any_name_makes_a_key(bus: Bus, name: str) -> None:
    bucket = Bucket(bus, "routes")
    key = subjects.route_key(name, name)
    await bucket.create(key, b"x")
    found = await bucket.get(key)
    assert found is not None
    assert found.value == b"x"
