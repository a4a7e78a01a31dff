"""The policy bucket: what is in force, what was, and writing over exactly what was read."""

from datetime import datetime

import msgspec

from fairlead_bus import (
    Bucket,
    Bus,
    KeyExistsError,
    PayloadTooLargeError,
    Stored,
    WrongRevisionError,
    is_deletion,
    writer_of,
)
from fairlead_cli.console import warn
from fairlead_cli.errors import InputError, UnreadPolicyError
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.errors import ContractError, DocumentError
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.read import decode_document, encode_document


class StoredPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The policy as it stands in the bucket, or stood."""

    revision: int
    """Revision written last, so a write goes over exactly this one; 0 where nothing stands."""
    policy: PolicyDocument | None
    """Policy that services go by; None where there is nothing that validates."""
    followed: int = 0
    """The revision of `policy`: below `revision` where that one does not validate."""
    why_not_last: ContractError | None = None
    """Error of what was written last, where that does not validate."""

    def problems(self) -> list[str]:
        """The faults of what was written last, a line each."""
        why = self.why_not_last
        if isinstance(why, DocumentError):
            return [str(problem) for problem in why.problems]
        return [] if why is None else [str(why)]

    def in_words(self) -> str:
        """A sentence on what was written last and does not validate."""
        instead = (
            f"services go by revision {self.followed}" if self.followed else "no revision that does is kept"
        )
        return f"policy revision {self.revision}, written last, does not validate; {instead}"


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """A state of the policy that was in force."""

    revision: int
    since: datetime
    by: str
    """Person who put it in force; empty where that was not said."""
    policy: PolicyDocument | None
    """The policy; None where it does not validate."""
    problem: str = ""
    """Reason for which it does not validate, if so."""


async def revisions(bus: Bus) -> list[Revision]:
    """The revisions that the bucket keeps, the first one first."""
    stored = await Bucket(bus, topology.POLICY).history(subjects.DOCUMENT_KEY)
    return [_revision(one) for one in stored if not is_deletion(one.headers)]


def _revision(stored: Stored) -> Revision:
    policy, problem = None, ""
    try:
        policy = decode_document(stored.payload)
    except DocumentError as error:
        problem = str(error)
    since, by = to_datetime(stored.at), writer_of(stored)
    return Revision(revision=stored.seq, since=since, by=by, policy=policy, problem=problem)


async def in_force(bus: Bus) -> StoredPolicy:
    """The policy that holds, as services find it: where the last revision does not validate, the last one that does."""
    found = await Bucket(bus, topology.POLICY).newest_readable(subjects.DOCUMENT_KEY, decode_document)
    return StoredPolicy(
        revision=found.last_rev, policy=found.value, followed=found.rev, why_not_last=found.why_not_last
    )


async def stored_policy(bus: Bus) -> tuple[PolicyDocument, int] | None:
    """The policy that holds, with its revision, for whoever can do nothing without reading it.

    A last revision that does not validate is warned of.

    Raises:
        UnreadPolicyError: nothing that is kept validates.
    """
    standing = await in_force(bus)
    if standing.policy is None:
        if standing.why_not_last is not None:
            raise unread(standing)
        return None
    if standing.why_not_last is not None:
        warn(f"{standing.in_words()}:")
        for problem in standing.problems():
            warn(f"  {problem}")
    return standing.policy, standing.followed


def unread(standing: StoredPolicy) -> UnreadPolicyError:
    """The error for whoever must not write over what was written last, or cannot go on without it."""
    kept_too = "" if standing.followed else "; approvals in it are not kept"
    return UnreadPolicyError(
        f"{standing.in_words()}:",
        problems=standing.problems(),
        hint=f"Another release may have written it. `fairlead policy apply FILE --force` goes over it{kept_too}.",
    )


async def kept(bus: Bus, revision: int | None) -> StoredPolicy | None:
    """The policy of that revision, as far as it is named, kept and read."""
    if revision is None:
        return None
    found = (one.policy for one in await revisions(bus) if one.revision == revision)
    return StoredPolicy(revision=revision, policy=next(found, None))


async def writers_since(bus: Bus, revision: int) -> list[str]:
    """The writers of a policy after that revision, each once, the first first; of some nobody may know."""
    known = await revisions(bus)
    return list(dict.fromkeys(one.by for one in known if one.revision > revision and one.by))


async def swap(bus: Bus, after: PolicyDocument, standing: StoredPolicy, by: str) -> int | None:
    """Write over exactly this revision; None where somebody was faster.

    Raises:
        InputError: it is larger than NATS takes.
    """
    bucket, payload = Bucket(bus, topology.POLICY), encode_document(after)
    try:
        if not standing.revision:
            return await bucket.create(subjects.DOCUMENT_KEY, payload, by=by)
        return await bucket.update(subjects.DOCUMENT_KEY, payload, standing.revision, by=by)
    except (KeyExistsError, WrongRevisionError):
        return None
    except PayloadTooLargeError as error:
        raise InputError(
            f"the policy has {error.size:,} bytes as it is stored, and this NATS server takes {error.limit:,}",
            hint="List fewer tenants: unlisted_weight lets in those that are alike. Or raise the server's max_payload.",
        ) from error
