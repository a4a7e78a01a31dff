"""The lever: which field of a Workload Kueue obeys, and whether it answers at all."""

from collections.abc import Iterator

from fairlead_cli.findings import Finding, error, info
from fairlead_cli.kueue.doctor.rights import binding
from fairlead_cli.kueue.doctor.survey import Survey, check
from fairlead_contracts.messages import leave
from fairlead_kube.lever import Lever

_GATE = """apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
featureGates: {PriorityBoost: true}   # ConfigMap kueue-system/kueue-manager-config, then restart Kueue"""


def lever_of(survey: Survey) -> leave.LeverName | None:
    """The lever to write by: as the operator states, else as the probe found; None where nobody knows."""
    names: dict[Lever, leave.LeverName] = {Lever.BOOST: "boost", Lever.PRIORITY: "priority"}
    return names.get(survey.stated_lever or survey.probe.lever)


@check(
    "lever",
    "webhook-unreachable",
    "lever-unknown",
    "lever-refused",
    "lever-priority",
    fine="Kueue obeys the annotation kueue.x-k8s.io/priority-boost",
)
def _lever(survey: Survey) -> Iterator[Finding]:
    subject = f"Cluster/{survey.cluster}"
    stated, found = survey.stated_lever, survey.probe.lever
    if survey.outage:
        yield error(
            subject,
            f"Kueue's webhook does not answer: {survey.outage}",
            why="while it is away no Workload can be changed, and no level be written",
            mend="kubectl -n kueue-system get pods,endpointslices; kubectl -n kueue-system logs "
            "deploy/kueue-controller-manager",
            name="webhook-unreachable",
        )
    elif stated is None and found is Lever.UNKNOWN:
        yield error(
            subject,
            f"whether Kueue obeys boosts cannot be told: {survey.probe.evidence}",
            why="a boost that Kueue does not read changes nothing, and one that it does not check may be refused later",
            mend=(f"{binding(survey.user)}\n# or say it yourself:\n" if survey.probe.forbidden else "")
            + "fairlead doctor --lever boost      # if the gate PriorityBoost is on (Kueue 0.17 or later)\n"
            "fairlead doctor --lever priority   # otherwise; every Kueue obeys it",
            name="lever-unknown",
        )
    elif stated is Lever.BOOST and found is Lever.PRIORITY:
        yield error(
            subject,
            f"boosts were asked for, but Kueue does not read them: {survey.probe.evidence}",
            why="levels would be written and change nothing",
            mend=f"fairlead doctor --lever priority, or turn the gate on:\n{_GATE}",
            name="lever-refused",
        )
    elif Lever.PRIORITY in (stated, found) and stated is not Lever.BOOST:
        yield info(
            subject,
            f"levels go into spec.priority: {survey.probe.evidence if stated is None else 'as was stated'}",
            why="users see a changed priority, and Kueue writes it back when a WorkloadPriorityClass changes or it "
            "restarts; Fairlead repairs that, at a write a job",
            mend=f"with Kueue 0.17 or later the boost is the better lever:\n{_GATE}",
            name="lever-priority",
        )
