"""`fairlead slurm check`: look at a slurmctld, and say what is found."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from fairlead_cli.findings import Finding, Severity, exit_code, findings_view, open_names
from fairlead_cli.options import Format
from fairlead_cli.printing import print_answer
from fairlead_cli.slurm.checking import examine
from fairlead_cli.slurm.survey import RestTarget, SlurmSurvey, take


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


async def look(conf: Path | None, user: str, rest: RestTarget | None = None) -> SlurmReport:
    """Look at a slurmctld, and at its slurmrestd where one is named, and weigh what is found.

    Raises:
        ClusterError: it cannot be asked.
    """
    return weigh(await take(conf, user, rest))


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


async def check(conf: Path | None, user: str, form: Format, rest: RestTarget | None = None) -> int:
    """Look, print what is found, and return the exit code.

    Raises:
        ClusterError: slurmctld cannot be asked.
    """
    found = await look(conf, user, rest)
    print_report(found, form)
    return found.exit_code


def print_report(found: SlurmReport, form: Format) -> None:
    """Prints the report in the form that was asked for."""
    print_answer(found, form, view=lambda _columns: view(found), names=open_names(found.findings))


def view(found: SlurmReport, *, quiet: bool = False) -> RenderableType:
    """The findings for a person; a quiet view leaves out what was fine."""
    return Group(*_parts(found, quiet=quiet))


def _parts(found: SlurmReport, *, quiet: bool) -> Iterator[RenderableType]:
    yield Text.assemble((f"cluster {found.cluster}", "bold"), f": Slurm {found.version}, as {found.user}")
    yield from findings_view(found.findings, quiet=quiet)
    if not quiet:
        yield Text("")
        yield Text(f"{found.cluster} passes" if found.passed else f"{found.cluster} does not pass")
