"""`fairlead approve`: a class granted to one job, in the policy document, with who granted it and why.

A grant names the job's uid, which never comes back. So a grant of a job that is gone is of no use: each approval also
drops those of Kubernetes jobs (uids in the form of RFC 9562) that nobody knows any more or that have ended. Grants by any
other name are an operator's own and stay: the job that they name may be yet to come.
"""

import re
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

import msgspec

from fairlead_bus import Bus
from fairlead_cli.client.approval_dates import grant_history
from fairlead_cli.client.connection import ask, connected
from fairlead_cli.client.phrases import approval_in_words, counted, what_is_known
from fairlead_cli.errors import CommandError, InputError, NoPolicyError
from fairlead_cli.options import Format
from fairlead_cli.outcomes import ClassGranted
from fairlead_cli.policy.job_names import full_name
from fairlead_cli.policy.store import in_force, swap, unread
from fairlead_cli.printing import print_outcome, print_sentence
from fairlead_contracts.messages.questions import (
    EXPLAIN_REPLY,
    Approval,
    ExplainQuestion,
    ExplainReply,
    Explanation,
)
from fairlead_contracts.messages.state import Phase
from fairlead_contracts.policyfile.document import Grant, PolicyDocument
from fairlead_contracts.policyfile.validate import check_document

_ATTEMPTS = 5
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request of an operator to grant a class to a job."""

    job: str
    job_class: str | None = None
    """Class to grant; None grants what the job asked for, or else the highest class."""
    tenant: str | None = None
    by: str = ""
    why: str = ""


async def approve(nats: str | None, approval: ApprovalRequest, *, form: Format = "table") -> None:
    """Grant the class to the job and say so.

    Raises:
        CommandError: nobody knows the job, several have the name, or it has ended.
        InputError: no such class, or the policy does not know the tenant.
    """
    async with connected(nats) as bus:
        job = await _find(bus, approval.job, approval.tenant)
        gone: set[str] = set()
        asked: set[str] = set()
        had_it = False

        async def change(document: PolicyDocument) -> PolicyDocument:
            nonlocal had_it
            named = {one.job for one in document.grants if one.job is not None and _UUID.fullmatch(one.job)}
            for uid in named - asked - {job.uid}:
                asked.add(uid)
                if all(one.phase == Phase.ENDED for one in (await _asked(bus, uid, None)).found):
                    gone.add(uid)
            after = granted(without_grants(document, gone), job, approval)
            had_it = _grants_to(document, job.uid) == _grants_to(after, job.uid)
            return after

        rewritten = await _rewrite(bus, change, approval.by)
        [grant] = _grants_to(rewritten.policy, job.uid)
        since = (await grant_history(bus))({job.uid}) if had_it else None
    job_class = grant.classes[0]
    if had_it:
        standing = Approval(job_class=job_class, by=grant.by, why=grant.why, since=since)
        left = "" if rewritten.written else ". Nothing was changed"
        print_sentence(f"{full_name(job)} was approved already: {approval_in_words(standing)}{left}", form)
    else:
        print_sentence(
            f"{full_name(job)} is {job_class} from now on (policy revision {rewritten.revision})", form
        )
    if job.phase == Phase.RUNNING:
        print_sentence("It runs already: its class counts only if it has to wait again.", form)
    if gone:
        dropped = counted(len(gone), "grant of a job", "grants of jobs")
        print_sentence(f"dropped {dropped} that nobody knows any more", form)
    said = ClassGranted(
        job=full_name(job),
        uid=job.uid,
        job_class=job_class,
        revision=rewritten.revision,
        written=rewritten.written,
    )
    print_outcome(said, [said.job], form)


def _grants_to(document: PolicyDocument, uid: str) -> list[Grant]:
    return [grant for grant in document.grants if grant.job == uid]


async def withdraw(nats: str | None, approval: ApprovalRequest, *, form: Format = "table") -> None:
    """Take back what was granted to the job and say so.

    Raises:
        CommandError: nothing was granted to it.
    """
    async with connected(nats) as bus:
        found = (await _asked(bus, approval.job, approval.tenant)).found
        names = {approval.job, *(one.uid for one in found)}
        uid = approval.job

        async def change(document: PolicyDocument) -> PolicyDocument:
            nonlocal uid
            uid = _granted_to(document, names, approval.job)
            return without_grants(document, {uid})

        revision = (await _rewrite(bus, change, approval.by)).revision
    job = next((full_name(one) for one in found if one.uid == uid), approval.job)
    print_sentence(f"{job}: what was granted to it is taken back (policy revision {revision})", form)
    print_outcome(ClassGranted(job=job, uid=uid, job_class=None, revision=revision), [job], form)


def _granted_to(document: PolicyDocument, names: Collection[str], job: str) -> str:
    """The name, of these, that something was granted to."""
    found = sorted({grant.job for grant in document.grants if grant.job is not None and grant.job in names})
    if not found:
        raise CommandError(
            f"nothing was granted to {job} itself", hint="`fairlead policy show` lists grants."
        )
    if len(found) > 1:
        raise InputError(f"several jobs called {job!r} were granted something; say which:", problems=found)
    return found[0]


def granted(document: PolicyDocument, job: Explanation, approval: ApprovalRequest) -> PolicyDocument:
    """The document with the grant in the place of any other to this job.

    A tenant that is let in without being listed stays so: listing it would change what everybody is entitled to.

    Raises:
        InputError: no such class, or the tenant is none.
    """
    job_class = _class(document, job, approval.job_class)
    tenant = job.tenant or job.scope
    _check_let_in(document, tenant)
    # Without a new reason, the one that was given when the job got that class.
    given = (one.why for one in _grants_to(document, job.uid) if one.classes == [job_class])
    why = approval.why or next(given, "")
    grant = Grant(tenant=tenant, classes=[job_class], job=job.uid, by=approval.by, why=why)
    if _grants_to(document, job.uid) == [grant]:
        return document
    rest = without_grants(document, {job.uid})
    changed = msgspec.structs.replace(rest, grants=[*rest.grants, grant])
    if problems := check_document(changed):
        raise InputError("this cannot be granted:", problems=[str(problem) for problem in problems])
    return changed


def without_grants(document: PolicyDocument, jobs: Collection[str]) -> PolicyDocument:
    """The document without the grants to these single jobs."""
    return msgspec.structs.replace(
        document, grants=[grant for grant in document.grants if grant.job is None or grant.job not in jobs]
    )


def _class(document: PolicyDocument, job: Explanation, stated: str | None) -> str:
    higher, everybodys = document.classes[:-1], document.classes[-1]
    if not higher:
        raise InputError(f"the policy has one class, {everybodys}, and every job has it")
    asked = job.refused_class if job.refused_class in higher else None
    job_class = stated or asked or higher[0]
    if job_class == everybodys:
        raise InputError(
            f"--class {job_class}: every job may have it", hint=f"Classes to grant are {', '.join(higher)}."
        )
    if job_class not in higher:
        raise InputError(
            f"--class: {job_class!r} is not a class", hint=f"Classes to grant are {', '.join(higher)}."
        )
    return job_class


def _check_let_in(document: PolicyDocument, tenant: str) -> None:
    if document.unlisted_weight is None and all(known.name != tenant for known in document.tenants):
        raise InputError(
            f"tenant {tenant} is not in the policy, and the policy takes only tenants that it names",
            hint="Name it there first: `fairlead policy show`, then `fairlead policy apply FILE`.",
        )


async def _find(bus: Bus, job: str, tenant: str | None) -> Explanation:
    reply = await _asked(bus, job, tenant)
    if not reply.found:
        raise CommandError(f"nobody knows a job {job!r}", hint=what_is_known(job, reply.near or ()))
    return _only(reply.found, job)


async def _asked(bus: Bus, job: str, tenant: str | None) -> ExplainReply:
    question = ExplainQuestion(job=job, tenant=tenant)
    return await ask(bus, "explain", question, EXPLAIN_REPLY, tenant=tenant)


def _only(found: list[Explanation], job: str) -> Explanation:
    """The one job of that name that has not ended; the one that has, where there is only that."""
    alive = [one for one in found if one.phase != Phase.ENDED] or found
    if len(alive) > 1:
        lines = [f"{one.uid}  {full_name(one)} on {one.cluster}, {one.phase}" for one in alive]
        unique = len({full_name(one) for one in alive}) == len(alive)
        by = f"its name with the scope, as {full_name(alive[0])}, or by its uid" if unique else "its uid"
        raise InputError(f"several jobs are called {job!r}; say which by {by}:", problems=lines)
    if alive[0].phase == Phase.ENDED:
        raise CommandError(f"{full_name(alive[0])} has ended: a class would change nothing")
    return alive[0]


type _Change = Callable[[PolicyDocument], Awaitable[PolicyDocument]]


class _Rewritten(NamedTuple):
    """The policy afterwards, its revision, and whether that is a new one: an equal one is left as it stands."""

    policy: PolicyDocument
    revision: int
    written: bool


async def _rewrite(bus: Bus, change: _Change, by: str) -> _Rewritten:
    """Change the stored policy by compare-and-swap."""
    for _ in range(_ATTEMPTS):
        standing = await in_force(bus)
        if standing.why_not_last is not None:
            raise unread(standing)
        if standing.policy is None:
            raise NoPolicyError
        document = await change(standing.policy)
        if document == standing.policy:
            return _Rewritten(document, standing.revision, written=False)
        revision = await swap(bus, document, standing, by)
        if revision is not None:
            return _Rewritten(document, revision, written=True)
        # Somebody wrote in between: look again.
    raise CommandError("the policy is being written by somebody else; it was left as it is")
