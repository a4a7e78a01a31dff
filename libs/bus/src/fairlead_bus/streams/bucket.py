"""Keys and values, with revisions that hold."""

import itertools
from collections.abc import Callable, Mapping
from urllib.parse import quote, unquote

import msgspec

from fairlead_bus.connection.bus import Bus
from fairlead_bus.connection.jetstream import Stored
from fairlead_bus.errors import KeyExistsError, WrongLastSequenceError, WrongRevisionError
from fairlead_bus.streams.mirror import check_written, is_deletion
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.subjects import kv_subject

KV_DELETE: Mapping[str, str] = {"KV-Operation": "DEL"}
"""The header of a key's delete, as every KV client knows it."""
_BY = "Fairlead-By"
_ATTEMPTS = 8
"""Tries to write over what stands, while others write too."""


class BucketEntry(msgspec.Struct, frozen=True):
    """A value and the revision that an update must name."""

    value: bytes
    rev: int


class ReadableValue[T](msgspec.Struct, frozen=True, kw_only=True):
    """The newest value of a key that can be read."""

    value: T | None
    """The newest value that can be read; None where there is none: nothing was ever written, it was deleted, or
    nothing that is kept can be read."""
    rev: int = 0
    """Revision of that value; 0 where there is none."""
    last_rev: int = 0
    """Revision written last; 0 where nothing stands. Above `rev` where that cannot be read."""
    why_not_last: ContractError | None = None
    """The reason for which the revision written last cannot be read."""
    deleted: bool = False
    """Whether a delete stands, or stands right before what cannot be read."""


def writer_of(stored: Stored) -> str:
    """The writer of a value, as far as the writer said; else empty."""
    return unquote(stored.headers.get(_BY, ""))


def bucket_stream(bucket: str) -> str:
    """The stream under a bucket."""
    return f"KV_{bucket}"


class Bucket:
    """A KV bucket, in the layout that every NATS client knows.

    Traps of nats-py's own: `get` may be served by a replica that lags; an expired key looks alive; `create` fails on
    a key that has expired until its marker is gone; `update(last=None)` means "must not exist"; `keys(filters=)` is
    a substring test. To follow a bucket use a `Mirror` of its stream: watchers say "caught up" too early.
    """

    def __init__(self, bus: Bus, name: str) -> None:
        self._bus = bus
        self._name = name
        self._stream = bucket_stream(name)

    async def get(self, key: str) -> BucketEntry | None:
        """The value, from the stream's leader; None where there is none, it was deleted or has expired."""
        found = await self._bus.last(self._stream, self._subject(key))
        return None if found is None or is_deletion(found.headers) else BucketEntry(found.payload, found.seq)

    async def put(self, key: str, value: bytes) -> int:
        """Writes the value over whatever stands there; returns the revision.

        Raises:
            WrongRevisionError: others wrote it again and again meanwhile.
        """
        return await self._over_what_stands(key, value)

    async def create(self, key: str, value: bytes, *, by: str = "") -> int:
        """Writes where there is no value; returns the revision.

        Args:
            value: whole.
            by: name of the writer, for those who read the history.

        Raises:
            KeyExistsError: the key has a value.
        """
        found = await self._bus.last(self._stream, self._subject(key))
        if found is not None and not is_deletion(found.headers):
            raise KeyExistsError(400, 10071, f"the key {key} has a value")
        try:
            return await self._swap(key, value, found.seq if found else 0, by)
        except WrongLastSequenceError as error:
            raise KeyExistsError(error.code, error.err_code, f"the key {key} has a value") from error

    async def update(self, key: str, value: bytes, rev: int, *, by: str = "") -> int:
        """Writes if `rev` is the key's last revision; returns the new one.

        Args:
            value: whole.
            rev: revision that the value is written over.
            by: name of the writer, for those who read the history.

        Raises:
            WrongRevisionError: the key's last revision is another one.
        """
        try:
            return await self._swap(key, value, rev, by)
        except WrongLastSequenceError as error:
            raise WrongRevisionError(error.code, error.err_code, f"{key}: {error.description}") from error

    async def delete(self, key: str) -> None:
        """Leaves a delete marker; a key that does not exist is no error.

        Raises:
            WrongRevisionError: others wrote it again and again meanwhile.
        """
        await self._over_what_stands(key, b"", KV_DELETE)

    async def newest_readable[T](self, key: str, read: Callable[[bytes], T]) -> ReadableValue[T]:
        """The last value that `read` takes without a ContractError, as far back as a delete, or as the bucket keeps the key.

        All who read the same history find the same one, whenever they start.
        """
        found = await self._bus.last(self._stream, self._subject(key))
        if found is None or is_deletion(found.headers):
            return ReadableValue(value=None, deleted=found is not None)
        try:
            return ReadableValue(value=_read(found, read), rev=found.seq, last_rev=found.seq)
        except ContractError as error:
            self._bus.observer.count("bucket.unreadable")
            why = error
        for one in reversed(await self.history(key)):
            if one.seq >= found.seq:
                continue
            if is_deletion(one.headers):
                return ReadableValue(value=None, last_rev=found.seq, why_not_last=why, deleted=True)
            try:
                value = _read(one, read)
            except ContractError:
                continue
            return ReadableValue(value=value, rev=one.seq, last_rev=found.seq, why_not_last=why)
        return ReadableValue(value=None, last_rev=found.seq, why_not_last=why)

    async def history(self, key: str) -> list[Stored]:
        """The key's revisions, oldest first, deletes too; as many as the bucket keeps."""
        last = await self._bus.last(self._stream, self._subject(key))
        kept: list[Stored] = []
        seq = 1
        while last is not None and seq <= last.seq:
            found = await self._bus.jetstream.next_of(self._stream, self._subject(key), seq)
            if found is None:
                break
            kept.append(found)
            seq = found.seq + 1
        return kept

    async def _over_what_stands(
        self, key: str, value: bytes, headers: Mapping[str, str] | None = None
    ) -> int:
        """Writes over whatever stands there, and always names the revision that it was.

        Trap: whoever may read a stream by a pull consumer may have the server store what it gives once more, under the subject
        that it had: an operator's word of last week. The server refuses one that names the revision it was written over.
        """
        subject = self._subject(key)
        for attempt in itertools.count(1):
            found = await self._bus.last(self._stream, subject)
            expected = found.seq if found else 0
            try:
                return (await self._bus.publish(subject, value, headers=headers, expect_last=expected)).seq
            except WrongLastSequenceError as error:
                if attempt == _ATTEMPTS:
                    raise WrongRevisionError(
                        error.code, error.err_code, f"{key}: {error.description}"
                    ) from error
        raise AssertionError

    async def _swap(self, key: str, value: bytes, expected: int, by: str) -> int:
        # Percent-encoded: names may hold what a header may not.
        headers = {_BY: quote(by, safe=" @")} if by else None
        subject = self._subject(key)
        return (await self._bus.publish(subject, value, headers=headers, expect_last=expected)).seq

    def _subject(self, key: str) -> str:
        return kv_subject(self._name, key)


def _read[T](stored: Stored, read: Callable[[bytes], T]) -> T:
    check_written(stored.headers)
    return read(stored.payload)
