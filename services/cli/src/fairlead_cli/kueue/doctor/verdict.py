"""The verdict on a cluster: may it be steered? And how it is told, on a terminal and as JSON."""

import shlex
from collections.abc import Collection, Iterable

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.findings import Finding, Severity, findings_view
from fairlead_cli.kueue.doctor.checks.lever import lever_of
from fairlead_cli.kueue.doctor.survey import Survey
from fairlead_contracts.base.instants import Moment
from fairlead_contracts.messages.leave import Leave, LeverName

_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2, Severity.OK: 3}


class DoctorVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The findings, the worst first, and what follows from them."""

    findings: list[Finding]
    lever: LeverName | None
    """The lever to write by; None where nobody knows."""
    passed: bool
    """Whether levels may be written: no error is open, and the lever is known."""
    accepted: list[str]
    """The names that stand against it and were accepted."""
    needless: list[str]
    """Names that were accepted and of which there is no finding."""

    def leave(self, survey: Survey, *, by: str, at: Moment) -> Leave | None:
        """The leave that follows; None where it did not pass."""
        if not self.passed or self.lever is None:
            return None
        before = survey.leave
        kept = None if before is None else before.replaced
        return Leave(
            cluster=survey.cluster,
            lever=self.lever,
            at=at,
            by=by,
            accepted=self.accepted,
            replaced=before.lever if before is not None and before.lever != self.lever else kept,
        )


def judge(survey: Survey, findings: Iterable[Finding], accept: Collection[str]) -> DoctorVerdict:
    """Weigh the findings.

    What the standing leave accepted stays accepted: a person said so, and takes it back with `--revoke`.

    Args:
        findings: those of all checks.
        accept: names that the operator accepts.
    """
    standing = set(survey.leave.accepted) if survey.leave is not None else set()
    names = {*accept, *standing}
    weighed = [
        msgspec.structs.replace(one, accepted=True)
        if one.name in names and one.severity in (Severity.ERROR, Severity.WARNING)
        else one
        for one in findings
    ]
    lever = lever_of(survey)
    open_errors = [one for one in weighed if one.severity is Severity.ERROR and not one.accepted]
    return DoctorVerdict(
        findings=sorted(weighed, key=lambda one: _RANK[one.severity]),
        lever=lever,
        passed=not open_errors and lever is not None,
        accepted=sorted({one.name for one in weighed if one.accepted}),
        needless=sorted(set(accept) - {one.name for one in weighed}),
    )


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fairlead doctor -o json`."""

    cluster: str
    server: str
    kubernetes: str
    kueue: str | None
    """Kueue's release, where it is known."""
    user: str
    policy: str
    """The policy that the cluster was measured by, in words."""
    lever: str | None
    passed: bool
    exit_code: int
    findings: list[Finding]
    cleared: Leave | None
    """The leave that stands after this run; None where there is none, or where NATS was not reached."""
    said: list[str]
    """Sentences on what was done."""


def view(found: DoctorReport, *, quiet: bool = False) -> RenderableType:
    """The findings for a person; a quiet view leaves out what was fine."""
    kueue = f"Kueue {found.kueue or 'of an unknown release'}"
    where = f": {found.server}, Kubernetes {found.kubernetes}, {kueue}, as {found.user}"
    return Group(
        Text.assemble((f"cluster {found.cluster}", "bold"), where),
        Text(f"measured by {found.policy}", style="dim"),
        *findings_view(found.findings, quiet=quiet),
    )


def closing(survey: Survey, verdict: DoctorVerdict) -> str:
    """The verdict in a sentence."""
    counts = [
        counted(number, severity.value)
        for severity in (Severity.ERROR, Severity.WARNING)
        if (number := sum(one.severity is severity and not one.accepted for one in verdict.findings))
    ]
    open_ones = ", ".join(counts) or "nothing is open"
    if verdict.passed:
        accepted = f"; accepted: {listed(verdict.accepted)}" if verdict.accepted else ""
        return f"{survey.cluster} passes ({open_ones}{accepted})"
    return f"{survey.cluster} does not pass ({open_ones})"


def acceptance(survey: Survey, verdict: DoctorVerdict) -> str:
    """The command that accepts what is open."""
    names = sorted(
        {one.name for one in verdict.findings if one.severity is Severity.ERROR and not one.accepted}
    )
    flags = " ".join(f"--accept {name}" for name in names)
    lever = " --lever boost|priority" if verdict.lever is None else ""
    return f"fairlead doctor --cluster {shlex.quote(survey.cluster)} {flags}{lever}"
