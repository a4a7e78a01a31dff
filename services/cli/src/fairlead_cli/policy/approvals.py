"""Grants to single jobs where one policy takes the place of another.

`fairlead approve` writes them into the policy in force, from where a file that somebody keeps does not have them. So
they are merged by job: what was approved stays, and what was withdrawn meanwhile does not come back.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

import msgspec

from fairlead_cli.errors import InputError
from fairlead_cli.policy.files import differences
from fairlead_cli.policy.job_names import NOBODY, JobNames
from fairlead_contracts.policyfile.document import Grant, PolicyDocument

_MOST_LINES = 8
"""Grants that are listed of each kind of note; the rest is counted."""

type Approvals = Mapping[str, Sequence[Grant]]
"""Grants to single jobs, by the job."""


def approvals_of(document: PolicyDocument | None) -> Approvals:
    """The document's grants to single jobs."""
    found: dict[str, list[Grant]] = {}
    for grant in [] if document is None else document.grants:
        if grant.job is not None:
            found.setdefault(grant.job, []).append(grant)
    return found


@overload
def apart_from_approvals(document: PolicyDocument) -> PolicyDocument: ...
@overload
def apart_from_approvals(document: PolicyDocument | None) -> PolicyDocument | None: ...
def apart_from_approvals(document: PolicyDocument | None) -> PolicyDocument | None:
    """The document without grants to single jobs."""
    if document is None:
        return None
    return msgspec.structs.replace(document, grants=[one for one in document.grants if one.job is None])


def with_approvals(
    stated: PolicyDocument,
    standing: PolicyDocument | None,
    made_from: PolicyDocument | None,
    *,
    name: str,
    names: JobNames = NOBODY,
) -> PolicyDocument:
    """A policy that is to take the place of the standing one, with the grants to single jobs that shall hold then.

    A job's grants are the stated ones, where there are any; else those that stand. Where the file has what it was made
    with, nobody meant to change it: what stands now counts, be it that nothing does.

    Args:
        stated: the policy to come.
        standing: the one in force.
        made_from: the one that `stated` was made from, where that is known.
        name: the file's, for people.
        names: names of known jobs, by uid.

    Raises:
        InputError: a grant that stands cannot be kept: the policy to come has not the class, or not the tenant.
    """
    ours, theirs, before = approvals_of(stated), approvals_of(standing), approvals_of(made_from)
    holding = {
        job: theirs.get(job, ())
        if job not in ours or (made_from is not None and ours[job] == before.get(job))
        else ours[job]
        for job in [*ours, *theirs]
    }
    same = {job for job in ours if holding[job] == ours[job]}
    grants = [one for one in stated.grants if one.job is None or one.job in same]
    carried = [one for job, granted in holding.items() if job not in same for one in granted]
    _refuse_unfit(stated, carried, name, names)
    return msgspec.structs.replace(stated, grants=[*grants, *carried])


def changes_of_approvals(
    stated: PolicyDocument,
    standing: PolicyDocument | None,
    after: PolicyDocument,
    *,
    name: str,
    names: JobNames = NOBODY,
) -> Iterator[str]:
    """Lines on what becomes of grants to single jobs: of those that stand, and of the file's."""
    ours, theirs, then = approvals_of(stated), approvals_of(standing), approvals_of(after)
    jobs = [*theirs, *(job for job in ours if job not in theirs)]
    kept = [job for job in jobs if then.get(job) == theirs.get(job) != ours.get(job) and job in then]
    gone = [job for job in jobs if job not in theirs and job not in then]
    yield from _listed(f"these approvals stay, which {name} lacks or has otherwise:", kept, theirs, names)
    yield from _listed(
        f"these approvals of {name} were taken back since, and stay taken back:", gone, ours, names
    )
    yield from _listed("approvals taken back:", [job for job in theirs if job not in then], theirs, names)
    changed = [job for job in theirs if job in then and then[job] != theirs[job]]
    yield from _listed("approvals changed:", changed, then, names)
    yield from _listed("approvals granted:", [job for job in then if job not in theirs], then, names)


def changes_in_words(
    before: PolicyDocument | None, after: PolicyDocument, names: JobNames = NOBODY
) -> Iterator[str]:
    """The differences: grants to single jobs as sentences, with who and why; all else key by key."""
    old, new = (
        [grant for granted in approvals_of(document).values() for grant in granted]
        for document in (before, after)
    )
    yield from (f"- {grant_in_words(grant, names)}" for grant in old if grant not in new)
    yield from (f"+ {grant_in_words(grant, names)}" for grant in new if grant not in old)
    yield from differences(apart_from_approvals(before), apart_from_approvals(after))


def _refuse_unfit(stated: PolicyDocument, carried: Sequence[Grant], name: str, names: JobNames) -> None:
    named = {tenant.name for tenant in stated.tenants}
    problems = []
    for grant in carried:
        unknown = [job_class for job_class in grant.classes if job_class not in stated.classes]
        if unknown:
            problems.append(f"{grant_in_words(grant, names)}: {name} has no class {', '.join(unknown)}")
        elif grant.tenant not in named and stated.unlisted_weight is None:
            problems.append(f"{grant_in_words(grant, names)}: {name} has no tenant {grant.tenant}")
    if problems:
        raise InputError(
            "nothing was changed: approvals are in force that could not be kept:",
            problems=problems,
            hint="Take them back with `fairlead approve JOB --withdraw`, or all of them with --exact.",
        )


def _listed(headline: str, jobs: Sequence[str], grants: Approvals, names: JobNames) -> Iterator[str]:
    if not jobs:
        return
    yield headline
    yield from (f"  {grant_in_words(grant, names)}" for job in jobs[:_MOST_LINES] for grant in grants[job])
    if len(jobs) > _MOST_LINES:
        yield f"  and {len(jobs) - _MOST_LINES} more"


def grant_in_words(grant: Grant, names: JobNames = NOBODY) -> str:
    """A grant in words: what was granted to whom, by whom and why.

    Args:
        names: names that people have for known jobs, by uid.
    """
    given = f", by {grant.by}" if grant.by else ""
    why = f": {grant.why}" if grant.why else ""
    classes = " and ".join(grant.classes) or "a priority of its own"
    return f"{classes} for job {names.get(grant.job or '', grant.job)} of {grant.tenant}{given}{why}"
