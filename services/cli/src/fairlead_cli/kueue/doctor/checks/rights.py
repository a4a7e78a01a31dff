"""RBAC: may our services do what they have to?"""

from collections.abc import Iterator

from fairlead_cli.client.phrases import listed
from fairlead_cli.findings import Finding, error, fine, info, warning
from fairlead_cli.kueue.doctor.rights import CHECKER, IMPERSONATE, SUBMITTER
from fairlead_cli.kueue.doctor.survey import NeededRight, Survey, check


def _fine_for_you(topic: str, what: str) -> Finding:
    """The word on rights that are the user's own: whoever runs the doctor may be an administrator."""
    told = f"{what}; whether the services' accounts may: `fairlead doctor --service-accounts NAMESPACE`"
    return fine(topic, told)


@check("rights", "rights-missing", fine="watcher and admitter may do all that they have to")
def _rights(survey: Survey) -> Iterator[Finding]:
    missing: dict[tuple[str, str], list[NeededRight]] = {}
    for right in survey.rights:
        if not right.allowed and right.verb != IMPERSONATE and right.service != CHECKER:
            missing.setdefault((right.service, right.account), []).append(right)
    if not missing and any(right.account == survey.user for right in survey.rights):
        yield _fine_for_you("rights", "you may do all that watcher and admitter have to")
    for (service, account), rights in sorted(missing.items()):
        yield error(
            account,
            _not_allowed(survey, service, rights, most=8),
            why="the watcher would know nothing of them"
            if service == "watcher"
            else "levels could not be written",
            mend=_granting(survey, "rbac", rights),
        )


@check(
    "submissions",
    "submit-rights-missing",
    fine=f"the admitter may act as {SUBMITTER} in every namespace with a LocalQueue",
    needs=("localqueues",),
)
def _submitters(survey: Survey) -> Iterator[Finding]:
    asked = [right for right in survey.rights if right.verb == IMPERSONATE]
    shut = [right for right in asked if not right.allowed]
    if not shut:
        if any(right.account == survey.user for right in asked):
            yield _fine_for_you(
                "submissions", f"you may act as {SUBMITTER} in every namespace with a LocalQueue"
            )
        return
    yield info(
        shut[0].account,
        f"{'you' if shut[0].account == survey.user else 'the admitter'} may not act as service account {SUBMITTER} "
        f"of {listed(right.namespace for right in shut)}",
        why="submissions from NATS for these namespaces would be refused; jobs that come another way are still steered",
        mend="\n".join(
            f"kubectl apply -n {right.namespace} -k deploy/kustomize/tenant" for right in shut[:_SHOWN]
        ),
    )


@check(
    "gang fit",
    "checker-rights-missing",
    fine="the checker for gang fit, where there is one, may do all that it has to",
    needs=("admissionchecks",),
)
def _checker(survey: Survey) -> Iterator[Finding]:
    missing = [right for right in survey.rights if right.service == CHECKER and not right.allowed]
    if not missing:
        return
    yield warning(
        missing[0].account,
        _not_allowed(survey, CHECKER, missing, most=len(missing)),
        why=f"jobs of queues that name {listed(survey.gang_checks)} would get quota and no answer: they wait with it until "
        "a watchdog lets them through unchecked",
        mend=_granting(survey, "gang-fit", missing),
    )


def _not_allowed(survey: Survey, service: str, missing: list[NeededRight], *, most: int) -> str:
    """The rights that are missing, and whose: the user's own say nothing of the accounts that the services may have."""
    what = listed(map(_words, missing), most=most)
    if missing[0].account == survey.user:
        return f"you may not do what the {service} has to: {what}"
    return f"the {service} may not {what}"


def _granting(survey: Survey, part: str, missing: list[NeededRight]) -> str:
    applied = f"kubectl apply -k deploy/kustomize/{part}"
    if missing[0].account == survey.user:
        applied += (
            "   # gives it to the services' accounts, not to you; to look at theirs:\n"
            "fairlead doctor --service-accounts fairlead"
        )
    return "\n".join((applied, *map(_asking, missing[:_SHOWN])))


def _words(right: NeededRight) -> str:
    of = f"the {right.subresource} of " if right.subresource else ""
    return f"{right.verb} {of}{right.resource}" + (f" in {right.namespace}" if right.namespace else "")


def _asking(right: NeededRight) -> str:
    where = f"-n {right.namespace}" if right.namespace else "-A"
    part = f" --subresource={right.subresource}" if right.subresource else ""
    return f"kubectl auth can-i {right.verb} {right.resource}{part} {where} --as {right.account}"


_SHOWN = 8
