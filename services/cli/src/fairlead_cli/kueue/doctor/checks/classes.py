"""Classes: whether the cluster's priorities leave each class of the policy room for levels."""

from collections.abc import Iterator, Mapping, Sequence

from fairlead_cli.client.phrases import listed
from fairlead_cli.findings import Finding, error, info, warning
from fairlead_cli.kueue.doctor.survey import Survey, check
from fairlead_kube.kinds.workloads import POD_PRIORITY_CLASS, PriorityClass
from fairlead_policy.levels.bands import ROOM, class_bands, narrow_bands

_NEEDS = ("workloadpriorityclasses",)


def _values(survey: Survey) -> dict[str, int]:
    return {found.metadata.name: found.value for found in survey.workload_classes}


@check("bands", "narrow-band", fine="the classes are wide enough apart for levels", needs=_NEEDS)
def _spacing(survey: Survey) -> Iterator[Finding]:
    document = survey.policy
    width = document.bands.width
    spaced = _spaced(document.classes, _values(survey), width)
    for pair in narrow_bands(document.classes, _values(survey), width=width):
        yield error(
            f"WorkloadPriorityClass/{pair.upper}",
            f"{pair.upper} is {pair.upper_floor} and {pair.lower} is {pair.lower_floor}: room for "
            f"{max(pair.room, 0)} levels, {ROOM} are needed",
            why=f"levels of {pair.lower} would reach into {pair.upper}, or could not be told apart",
            mend=f"kubectl patch workloadpriorityclass {pair.upper} --type merge "
            f"-p '{{\"value\":{spaced[pair.upper]}}}'",
        )


def _spaced(classes: Sequence[str], values: Mapping[str, int], width: int) -> dict[str, int]:
    """Values wide enough apart, from the last class up; what has room stays."""
    found: dict[str, int] = {}
    below: int | None = None
    for name in reversed(classes):
        least = 0 if below is None else below + width + 1
        value = values.get(name, least)
        narrow = below is not None and value - below - 1 < ROOM
        below = found[name] = least if narrow else value
    return found


@check(
    "classes",
    "class-unlisted",
    fine="every priority class in use is a class of the policy",
    needs=(*_NEEDS, "priorityclasses"),
)
def _known(survey: Survey) -> Iterator[Finding]:
    everybodys = survey.policy.classes[-1]
    floor = class_bands(survey.policy.classes, _values(survey), width=survey.policy.bands.width)[
        everybodys
    ].default
    used = {
        reference.name
        for workload in survey.workloads
        if (reference := workload.spec.class_ref) is not None and reference.kind == POD_PRIORITY_CLASS
    }
    for kind, found in [
        *(("WorkloadPriorityClass", one) for one in survey.workload_classes),
        *(("PriorityClass", one) for one in survey.pod_classes if one.metadata.name in used),
    ]:
        if found.metadata.name not in survey.policy.classes:
            yield _unlisted(kind, found, everybodys, floor)


def _unlisted(kind: str, found: PriorityClass, everybodys: str, floor: int) -> Finding:
    mend = (
        f"name it among `classes` of the policy, where its rank is, and grant it:\n"
        f"grants:\n  - {{tenant: TENANT, classes: [{found.metadata.name}]}}"
    )
    if kind == "PriorityClass":
        mend = "use a WorkloadPriorityClass (label kueue.x-k8s.io/priority-class) that the policy names"
    lowers = found.value > floor
    say = warning if lowers else info
    return say(
        f"{kind}/{found.metadata.name}",
        f"it is {found.value}, and the policy has no such class",
        why=f"its jobs are of class {everybodys}"
        + (f": Fairlead lowers them to {floor}, whatever they stood at" if lowers else ""),
        mend=mend,
    )


@check(
    "grants",
    "class-ungranted",
    fine="every priority class above the last class is granted to somebody",
    needs=_NEEDS,
)
def _granted(survey: Survey) -> Iterator[Finding]:
    granted = {name for grant in survey.policy.grants for name in grant.classes}
    names = [
        found.metadata.name
        for found in survey.workload_classes
        if found.metadata.name in survey.policy.classes[:-1] and found.metadata.name not in granted
    ]
    if names:
        yield info(
            f"WorkloadPriorityClass/{names[0]}",
            f"{listed(names)}: granted to nobody",
            why=f"a class is granted, not taken: jobs that name it are of class {survey.policy.classes[-1]}",
            mend=f"grants:\n  - {{tenant: TENANT, classes: [{names[0]}], by: NAME, why: REASON}}\n"
            f"# or for one job: fairlead approve JOB --class {names[0]}",
        )
