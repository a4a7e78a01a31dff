"""Reading the policy bucket: the newest document that validates, with its revision, and the operators' words."""

import asyncio
from typing import Protocol

import msgspec

from fairlead_bus import Bucket, Bus, ReadableValue, RetryableBusError
from fairlead_bus.facts.mirrors import policy_mirror
from fairlead_contracts import subjects
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.read import decode_document
from fairlead_contracts.topology import POLICY
from fairlead_policy.levels.operators import OperatorWords

_SUBJECT = subjects.kv_subject(POLICY, subjects.DOCUMENT_KEY)
_AGAIN_SECONDS = 0.2


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A document that validates."""

    document: PolicyDocument
    revision: int


class PolicyObserver(Protocol):
    """Hears of documents that do not validate."""

    def refused_policy(self, revision: int, why: str, *, instead: int) -> None:
        """Hears of a revision that does not validate; `instead` is the last one kept that does, 0 where none is."""


class PolicyReader:
    """Keeps the newest valid policy, found in the bucket's history where the last revision does not validate.

    Args:
        bus: the connection.
        wake: set when there is another policy.
        record: hears of documents that do not validate.
    """

    def __init__(self, bus: Bus, wake: asyncio.Event, record: PolicyObserver) -> None:
        self._bucket = Bucket(bus, POLICY)
        self._wake = wake
        self._record = record
        self._stirred = asyncio.Event()
        self._mirror = policy_mirror(bus, self._stirred)
        self.current: Policy | None = None
        self.words = OperatorWords()
        """Operators' words. Nothing is scored by them: people are told why levels are withheld."""

    def why_not_ready(self) -> str | None:
        """The reason for which nothing can be scored yet; None where it can."""
        if self.current is not None:
            return None
        if not self._mirror.complete:
            return f"it still reads the policy from NATS{self._mirror.setback}"
        return "no valid policy is stored; `fairlead policy apply FILE` puts one in force"

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
        """Reads the document: the mirror says that it changed, the stream's leader what it is, and its revision."""
        found = await self._newest()
        if found.why_not_last is not None:
            self._record.refused_policy(found.last_rev, str(found.why_not_last), instead=found.rev)
        if found.value is not None:
            if self.current is None or self.current.revision != found.rev:
                self.current = Policy(document=found.value, revision=found.rev)
        elif found.deleted or not found.last_rev:
            self.current = None  # deleted: nobody may have anything until there is a policy again
        self._wake.set()

    async def _newest(self) -> ReadableValue[PolicyDocument]:
        while True:
            try:
                return await self._bucket.newest_readable(subjects.DOCUMENT_KEY, decode_document)
            except RetryableBusError:
                await asyncio.sleep(_AGAIN_SECONDS)
