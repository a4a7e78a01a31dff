"""The policy bucket: what is in force, what was, and writing over exactly what was read."""

import contextlib

import msgspec

from fairlead_bus import (
    Bucket,
    Bus,
    KeyExistsError,
    PayloadTooLargeError,
    WrongRevisionError,
    is_deletion,
    writer_of,
)
from fairlead_cli.console import warn
from fairlead_cli.errors import InputError, UnreadPolicyError
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.errors import ContractError, DocumentError
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
    for one in await Bucket(bus, topology.POLICY).history(subjects.DOCUMENT_KEY):
        if one.seq == revision and not is_deletion(one.headers):
            with contextlib.suppress(DocumentError):
                policy = decode_document(one.payload)
                return StoredPolicy(revision=revision, policy=policy, followed=revision)
    return StoredPolicy(revision=revision, policy=None)


async def writers_since(bus: Bus, revision: int) -> list[str]:
    """The writers of a policy after that revision, each once, the first first; of some nobody may know."""
    history = await Bucket(bus, topology.POLICY).history(subjects.DOCUMENT_KEY)
    return list(dict.fromkeys(name for one in history if one.seq > revision and (name := writer_of(one))))


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
