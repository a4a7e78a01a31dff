"""Reading the policy bucket: the newest document that validates, with its revision, and the operators' words."""

import asyncio

import msgspec

from fairlead_bus import Bus, Mirror, RetryableBusError, Stored
from fairlead_contracts import subjects
from fairlead_contracts.document import PolicyDocument, decode_document
from fairlead_contracts.errors import DocumentError
from fairlead_contracts.topology import POLICY
from fairlead_policy import OperatorWords
from fairlead_scorer.record import Record

_STREAM = f"KV_{POLICY}"
_ALL = subjects.kv_subject(POLICY, ">")
_SUBJECT = subjects.kv_subject(POLICY, subjects.DOCUMENT_KEY)
_AGAIN_SECONDS = 0.2


class _Unread:
    """Leaves the document unread: a bad one shall be refused with all its problems, and not count as deleted."""

    def decode(self, payload: bytes) -> bytes:
        """The document as it is stored."""
        return payload


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A document that validates."""

    document: PolicyDocument
    revision: int


class PolicyReader:
    """Keeps the newest valid policy.

    Args:
        bus: the connection.
        wake: set when there is another policy.
        record: hears of documents that do not validate.
    """

    def __init__(self, bus: Bus, wake: asyncio.Event, record: Record) -> None:
        self._bus = bus
        self._wake = wake
        self._record = record
        self._stirred = asyncio.Event()
        self._mirror = Mirror(bus, stream=_STREAM, filter=_ALL, codec=_Unread(), wake=self._stirred)
        self.current: Policy | None = None
        self.words = OperatorWords()
        """Nothing is scored by them: people are told why levels are withheld."""

    def why_not_ready(self) -> str | None:
        """Why nothing can be scored yet."""
        return None if self.current is not None else "the policy bucket holds no valid document yet"

    async def run(self) -> None:
        """Follows the document until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._mirror.run())
            while True:
                await self._stirred.wait()
                self._stirred.clear()
                changed = self._mirror.take().changed
                for subject, payload in changed.items():
                    self.words.hear(subject, payload)
                if _SUBJECT in changed:
                    await self._read()

    async def _read(self) -> None:
        """The mirror says that something changed; the leader says what, and at which revision."""
        stored = await self._last()
        if stored is None or not stored.payload:
            self.current = None  # deleted: nobody may have anything until there is a policy again
        elif self.current is None or stored.seq != self.current.revision:
            try:
                self.current = Policy(document=decode_document(stored.payload), revision=stored.seq)
            except DocumentError as error:
                self._record.refused_policy(stored.seq, str(error))
        self._wake.set()

    async def _last(self) -> Stored | None:
        while True:
            try:
                return await self._bus.last(_STREAM, _SUBJECT)
            except RetryableBusError:
                await asyncio.sleep(_AGAIN_SECONDS)
