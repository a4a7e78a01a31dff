"""The policy bucket: what is in force, what was, and writing over exactly what was read."""

import msgspec

from fairlead_bus import Bucket, Bus, Entry, KeyExistsError, WrongRevisionError, is_deletion, writer_of
from fairlead_cli.errors import UnreadPolicyError
from fairlead_contracts import subjects, topology
from fairlead_contracts.document import PolicyDocument, decode_document, encode_document
from fairlead_contracts.errors import DocumentError


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force, or was."""

    revision: int
    """0 where nothing is."""
    policy: PolicyDocument | None
    """None where nothing is, or this release does not read it."""


async def in_force(bus: Bus) -> Standing:
    """The policy that holds."""
    entry = await _entry(bus)
    return Standing(revision=0, policy=None) if entry is None else _decoded(entry.rev, entry.value)


async def stored_policy(bus: Bus) -> tuple[PolicyDocument, int] | None:
    """The policy that holds, with its revision, for whoever can do nothing without reading it.

    Raises:
        UnreadPolicyError: this release does not read it.
    """
    entry = await _entry(bus)
    if entry is None:
        return None
    try:
        return decode_document(entry.value), entry.rev
    except DocumentError as error:
        raise UnreadPolicyError(
            f"policy revision {entry.rev}, which is stored, does not validate:",
            problems=[str(problem) for problem in error.problems],
            hint="`fairlead policy apply FILE --force` goes over it; approvals in it are not kept.",
        ) from error


async def _entry(bus: Bus) -> Entry | None:
    return await Bucket(bus, topology.POLICY).get(subjects.DOCUMENT_KEY)


async def kept(bus: Bus, revision: int | None) -> Standing | None:
    """That revision, as far as it is named, kept and read."""
    if revision is None:
        return None
    for one in await Bucket(bus, topology.POLICY).history(subjects.DOCUMENT_KEY):
        if one.seq == revision and not is_deletion(one.headers):
            return _decoded(revision, one.payload)
    return Standing(revision=revision, policy=None)


def _decoded(revision: int, payload: bytes) -> Standing:
    try:
        return Standing(revision=revision, policy=decode_document(payload))
    except DocumentError:
        return Standing(revision=revision, policy=None)


async def writers_since(bus: Bus, revision: int) -> list[str]:
    """Who wrote a policy after that revision, each once, the first first; of some nobody may know."""
    history = await Bucket(bus, topology.POLICY).history(subjects.DOCUMENT_KEY)
    return list(dict.fromkeys(name for one in history if one.seq > revision and (name := writer_of(one))))


async def swap(bus: Bus, after: PolicyDocument, standing: Standing, by: str) -> int | None:
    """Write over exactly this revision; None where somebody was faster."""
    bucket, payload = Bucket(bus, topology.POLICY), encode_document(after)
    try:
        if not standing.revision:
            return await bucket.create(subjects.DOCUMENT_KEY, payload, by=by)
        return await bucket.update(subjects.DOCUMENT_KEY, payload, standing.revision, by=by)
    except (KeyExistsError, WrongRevisionError):
        return None
