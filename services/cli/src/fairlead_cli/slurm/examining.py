"""`fairlead slurm check`: look at a slurmctld, say what is found, and give or take back the leave to write to it.

Leave is asked for by naming the cluster, where its services were started one by one: `fairlead up` looks by itself.
"""

from datetime import UTC, datetime

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from fairlead_bus import Bus
from fairlead_cli.client import leave
from fairlead_cli.client.connection import connected
from fairlead_cli.client.steering_mode import this_user
from fairlead_cli.console import say, warn
from fairlead_cli.findings import Finding, Severity, checks_in, exit_code, findings_view, open_names
from fairlead_cli.options import Format
from fairlead_cli.policy.members import other_clusters
from fairlead_cli.printing import print_answer
from fairlead_cli.slurm import checking, pod_hooks
from fairlead_cli.slurm.flags import SlurmCheckFlags
from fairlead_cli.slurm.survey import SlurmSurvey, take
from fairlead_contracts.messages.leave import Leave


class SlurmReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fairlead slurm check -o json`."""

    cluster: str
    version: str
    """Version of slurmctld."""
    user: str
    """User whose rights were looked at."""
    passed: bool
    """Whether levels may be written: no finding is an error."""
    exit_code: int
    findings: list[Finding]


def examine(survey: SlurmSurvey) -> list[Finding]:
    """The findings, the worst first; of a check that finds nothing, that it was fine."""
    found = (one for check in checks_in(checking, pod_hooks) for one in check.run(survey))
    return sorted(found, key=lambda one: list(Severity).index(one.severity))


def weigh(survey: SlurmSurvey) -> SlurmReport:
    """The report that follows from a survey."""
    findings = examine(survey)
    passed = all(finding.severity is not Severity.ERROR for finding in findings)
    return SlurmReport(
        cluster=survey.settings.cluster,
        version=survey.settings.version,
        user=survey.user,
        passed=passed,
        exit_code=exit_code(findings, passed=passed),
        findings=findings,
    )


async def check(flags: SlurmCheckFlags, nats: str | None, form: Format) -> int:
    """Look, print what is found, and give leave where a cluster is named and no error is open; the exit code is the look's.

    Raises:
        ClusterError: slurmctld cannot be asked.
        NotRunningError: nobody is there on NATS.
    """
    survey = await take(flags.slurm_conf, flags.user, rest=flags.slurmrestd, token=flags.slurm_token)
    found = weigh(survey)
    print_answer(found, form, view=lambda _screen: view(found), names=open_names(found.findings))
    if flags.cluster is not None and not found.passed:
        warn(f"{flags.cluster}: no leave was given. Mend what is said above")
    elif flags.cluster is not None:
        await _clear(flags.cluster, flags.by or this_user(), nats)
    return found.exit_code


async def _clear(cluster: str, by: str, nats: str | None) -> None:
    async with connected(nats) as bus:
        if others := await other_clusters(bus, cluster):
            warn(
                f"no service of Fairlead has told of a cluster {cluster} yet. Known are {', '.join(others)}: if it is "
                f"one of these, take this leave back (--cluster {cluster} --revoke) and name that one"
            )
        await give_leave(bus, cluster, by)
    say(f"{cluster}: levels may be written from now on, as SiteFactor (--revoke takes it back)")


async def give_leave(bus: Bus, cluster: str, by: str) -> None:
    """Let levels be written to the cluster from now on."""
    await leave.give(bus, Leave(cluster=cluster, lever="site-factor", at=datetime.now(UTC), by=by))


async def revoke(cluster: str, by: str | None, nats: str | None) -> int:
    """Take the leave back, and say so.

    Raises:
        NotRunningError: nobody is there on NATS.
    """
    async with connected(nats) as bus:
        say(await leave.take_back(bus, cluster, by=by or this_user()))
    return 0


def view(found: SlurmReport, *, quiet: bool = False) -> RenderableType:
    """The findings for a person; a quiet view leaves out what was fine."""
    passes = Text(f"{found.cluster} passes" if found.passed else f"{found.cluster} does not pass")
    return Group(
        Text.assemble((f"cluster {found.cluster}", "bold"), f": Slurm {found.version}, as {found.user}"),
        *findings_view(found.findings, quiet=quiet),
        *(() if quiet else (Text(""), passes)),
    )
