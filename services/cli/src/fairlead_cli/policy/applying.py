"""A policy put in force in the place of another: never over what somebody else changed meanwhile.

A file that `fairlead policy show` printed names the revision that it was made from. Any other file is put over the
revision that is read here, which the person is shown. Where another one stands by the time of writing, nothing is
written: both sides' changes are kept apart for a person to join. Grants to single jobs are joined by job, and no
reason to refuse: somebody may be approving jobs all day long.
"""

from pathlib import Path

import msgspec

from fairlead_bus import Bus
from fairlead_cli.client.connection import connected
from fairlead_cli.console import say, warn
from fairlead_cli.errors import CommandError, InputError, OvertakenError
from fairlead_cli.options import Format
from fairlead_cli.outcomes import PolicyPut
from fairlead_cli.policy.approvals import (
    apart_from_approvals,
    changes_in_words,
    changes_of_approvals,
    with_approvals,
)
from fairlead_cli.policy.effects import remarks
from fairlead_cli.policy.files import PolicyFile, differences, read_file
from fairlead_cli.policy.job_names import NOBODY, JobNames, names_in
from fairlead_cli.policy.members import doubts_of, pools_known
from fairlead_cli.policy.older_formats import older_format_notes, policy_over
from fairlead_cli.policy.store import StoredPolicy, in_force, kept, swap, unread, writers_since
from fairlead_cli.printing import print_outcome, print_sentence
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.validate import check_document

_ATTEMPTS = 5
_MOST_LINES = 40
"""Lines of changes that are told; the rest is counted."""


class ApplyTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a person who puts a file in force."""

    onto: int | None = None
    """The revision that the file was made from; by default the file names it."""
    force: bool = False
    """Whether it goes over whatever is in force."""
    exact: bool = False
    """Whether grants to single jobs are those of the file alone."""
    by: str = ""
    """Person who puts it in force; the history tells."""


PLAIN = ApplyTerms()


async def put_in_force(
    nats: str | None, path: Path, terms: ApplyTerms = PLAIN, *, form: Format = "table"
) -> None:
    """Check a file and make it the policy; say what that changes.

    Raises:
        InputError: it does not validate, or approvals in force could not be kept.
        OvertakenError: another revision is in force than the one that it was made from.
    """
    file = read_file(path)
    remark_on(file.policy)
    async with connected(nats) as bus:
        for sentence in doubts_of(file, await pools_known(bus)):
            warn(sentence)
        applied = await apply_file(bus, file, terms)
    for note in applied.notes:
        print_sentence(note, form)
    done = "is in force" if applied.written else "was in force already"
    print_sentence(f"policy revision {applied.revision}: {path} {done}", form)
    if applied.written and file.revision is not None:
        say("To edit it further: `fairlead policy show` prints it with its new revision.")
    print_outcome(applied, [str(applied.revision)], form)


async def apply_file(bus: Bus, file: PolicyFile, terms: ApplyTerms = PLAIN) -> PolicyPut:
    """Make a file's policy the one in force by compare-and-swap.

    Raises:
        InputError: approvals in force could not be kept.
        OvertakenError: another revision is in force than the one that it was made from, or that was read first.
        UnreadPolicyError: the one written last does not validate, and nobody said to go over it.
        CommandError: by force, others kept writing.
    """
    made_from = await kept(bus, file.revision)
    onto = made_from if terms.onto is None else await kept(bus, terms.onto)
    for _ in range(_ATTEMPTS):
        standing = await in_force(bus)
        names = await names_in(bus, [file.policy, standing.policy])
        after = resulting(file, standing, made_from, exact=terms.exact, names=names)
        if after == standing.policy and standing.followed == standing.revision:
            return PolicyPut(revision=standing.revision, written=False, notes=[])
        onto = onto or standing
        if not terms.force:
            await _refuse_overtaken(bus, file, after, onto, standing)
        revision = await swap(bus, after, standing, terms.by)
        if revision is not None:
            return PolicyPut(revision=revision, written=True, notes=_told(file, standing, after, names))
    raise CommandError("the policy is being written by somebody else; it was left as it is")


def resulting(
    file: PolicyFile,
    standing: StoredPolicy,
    made_from: StoredPolicy | None,
    *,
    exact: bool,
    names: JobNames = NOBODY,
) -> PolicyDocument:
    """The policy that would be in force.

    Args:
        file: the policy to put in force.
        made_from: the policy that the file was made from, where it says so.
        exact: whether grants to single jobs are the file's alone.
        names: names of known jobs, for people.

    Raises:
        InputError: approvals in force could not be kept.
    """
    after = policy_over(file, standing.policy)
    if not exact:
        before = None if made_from is None else made_from.policy
        after = with_approvals(after, standing.policy, before, name=file.name, names=names)
    if problems := check_document(after):
        raise InputError(
            f"{file.name} cannot take the place of what is in force:",
            problems=[str(problem) for problem in problems],
        )
    return after


def overtaken(onto: StoredPolicy, standing: StoredPolicy) -> bool:
    """Whether more than grants to single jobs was changed since that revision."""
    if not standing.revision or onto.revision == standing.revision:
        return False
    before, now = apart_from_approvals(onto.policy), apart_from_approvals(standing.policy)
    return before is None or now is None or before != now


async def _refuse_overtaken(
    bus: Bus, file: PolicyFile, after: PolicyDocument, onto: StoredPolicy, standing: StoredPolicy
) -> None:
    if standing.why_not_last is not None:
        raise unread(standing)
    if standing.policy is None or not overtaken(onto, standing):
        return
    then: PolicyDocument | None = standing.policy
    now = after
    if onto.revision and onto.policy is None:
        known = f"Revision {onto.revision}, which it was made from, is not kept here. It would change:"
    else:
        *others, last = await writers_since(bus, onto.revision) or ["somebody"]
        writers = f"{', '.join(others)} and {last}" if others else last
        known = f"Since revision {onto.revision}, which it was to replace, {writers} changed:"
        then, now = apart_from_approvals(onto.policy), apart_from_approvals(standing.policy)
    lines = list(changes_in_words(then, now, await names_in(bus, [now, then])))
    raise OvertakenError(
        f"{file.name} was not put in force: revision {standing.revision} is. {known}",
        problems=first_lines(lines, most=_MOST_LINES),
        hint=f"Take over what shall stay, then say that you did: --onto {standing.revision}",
    )


def _told(file: PolicyFile, standing: StoredPolicy, after: PolicyDocument, names: JobNames) -> list[str]:
    """Lines on what the writing changed."""
    before = apart_from_approvals(standing.policy)
    changes = [] if before is None else list(differences(before, apart_from_approvals(after)))
    return [
        *older_format_notes(file, after, standing.revision, standing.policy),
        *([f"changed from revision {standing.revision}:"] if changes else []),
        *(f"  {line}" for line in first_lines(changes, most=_MOST_LINES)),
        *changes_of_approvals(file.policy, standing.policy, after, name=file.name, names=names),
    ]


def first_lines(lines: list[str], *, most: int) -> list[str]:
    """The first `most` lines, and one with the number of the others."""
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], f"and {more} lines more"]


def remark_on(document: PolicyDocument) -> None:
    """Say what of a policy does nothing, or takes more than the policy."""
    for sentence in remarks(document):
        warn(sentence)
