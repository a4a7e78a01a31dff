"""Configurations of the two older controllers put in force: they say how jobs are compared, and nothing of who has what."""

from collections.abc import Iterator

import msgspec

from fairlead_cli.client.phrases import counted
from fairlead_cli.policy.approvals import apart_from_approvals
from fairlead_cli.policy.files import PolicyFile
from fairlead_contracts.policyfile.document import Grant, PolicyDocument


def policy_over(file: PolicyFile, standing: PolicyDocument | None) -> PolicyDocument:
    """The policy that a file comes to: a file of an older format changes the keys that it states of the policy in force."""
    rest = apart_from_approvals(standing)
    if file.says is None or rest is None:
        return file.policy
    changed = msgspec.structs.replace(rest, **{key: getattr(file.policy, key) for key in file.says})
    return msgspec.structs.replace(changed, grants=list(_with_classes(changed)))


def _with_classes(document: PolicyDocument) -> Iterator[Grant]:
    """The grants without classes that there are not any more."""
    for grant in document.grants:
        classes = [job_class for job_class in grant.classes if job_class in document.classes]
        if classes or grant.priority_override:
            yield msgspec.structs.replace(grant, classes=classes)


def older_format_notes(
    file: PolicyFile, after: PolicyDocument, revision: int | None, before: PolicyDocument | None = None
) -> Iterator[str]:
    """Lines that a person should know of a file of an older format; none for any other.

    Args:
        file: the one to put in force.
        after: the policy that it comes to.
        revision: the one in force now; 0 where none is, None where that is not known.
        before: the policy of that revision.
    """
    if file.says is None:
        return
    kept = {
        None: "Put in force, it keeps those of the policy before it, and all else that it does not state",
        0: "There is no policy that has any: all tenants have weight 1",
    }.get(revision, f"Those of revision {revision} stay, and all else that it does not state")
    yield (
        f"{file.name} is a configuration of the {file.controller} controller: it says nothing of pools, tenants "
        f"and grants. {kept}."
    )
    if revision is None:
        yield "A job gets a class only if that policy grants it: the controller took every job at its word."
        return
    for job_class in after.classes[:-1]:
        holders = _holders(after, job_class)
        nobody = "nobody, so no job has it. To grant it: write `grants`, or `fairlead approve JOB`"
        yield f"{job_class}: granted to {holders or nobody}"
    if before is not None:
        yield from _gone(before, after)


def _gone(before: PolicyDocument, after: PolicyDocument) -> Iterator[str]:
    for job_class in before.classes[:-1]:
        holders = _holders(before, job_class)
        if holders and job_class not in after.classes:
            yield f"{job_class}: no class any more; what was granted to {holders} goes (`revert` brings it back)"


def _holders(document: PolicyDocument, job_class: str) -> str:
    granted = [one for one in document.grants if job_class in one.classes]
    jobs = sum(one.job is not None for one in granted)
    tenants = dict.fromkeys(one.tenant for one in granted if one.job is None)
    return ", ".join([*tenants, *([counted(jobs, "job")] if jobs else [])])
