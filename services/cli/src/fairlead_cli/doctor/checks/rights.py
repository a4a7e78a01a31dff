"""RBAC: may watcher and admitter do what they have to?"""

from collections.abc import Iterator

from fairlead_cli.doctor.findings import Check, Finding, error, listed
from fairlead_cli.doctor.survey import Right, Survey


def _rights(survey: Survey) -> Iterator[Finding]:
    missing: dict[tuple[str, str], list[Right]] = {}
    for right in survey.rights:
        if not right.allowed:
            missing.setdefault((right.service, right.account), []).append(right)
    for (service, account), rights in sorted(missing.items()):
        yield error(
            "rights-missing",
            account,
            f"the {service} may not {listed(map(_words, rights), most=8)}",
            why="the watcher would know nothing of them"
            if service == "watcher"
            else "levels could not be written",
            mend="kubectl apply -k deploy/kustomize/rbac\n" + "\n".join(map(_asking, rights[:8])),
        )


def _words(right: Right) -> str:
    return f"{right.verb} {right.resource}" + (f" in {right.namespace}" if right.namespace else "")


def _asking(right: Right) -> str:
    where = f"-n {right.namespace}" if right.namespace else "-A"
    return f"kubectl auth can-i {right.verb} {right.resource} {where} --as {right.account}"


CHECKS = (
    Check(
        topic="rights",
        names=("rights-missing",),
        look=_rights,
        fine="watcher and admitter may do all that they have to",
    ),
)
