"""Findings on a terminal and as JSON."""

import shlex
from collections.abc import Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.findings import Finding, Severity, findings_view
from fairlead_cli.kueue.doctor.survey import Survey
from fairlead_cli.kueue.doctor.verdict import DoctorVerdict
from fairlead_contracts.messages.leave import Leave


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
    return Group(*_parts(found, quiet=quiet))


def _parts(found: DoctorReport, *, quiet: bool) -> Iterator[RenderableType]:
    kueue = f"Kueue {found.kueue or 'of an unknown release'}"
    yield Text.assemble(
        (f"cluster {found.cluster}", "bold"),
        f": {found.server}, Kubernetes {found.kubernetes}, {kueue}, as {found.user}",
    )
    yield Text(f"measured by {found.policy}", style="dim")
    yield from findings_view(found.findings, quiet=quiet)


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
