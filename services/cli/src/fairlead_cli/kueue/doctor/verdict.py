"""The verdict on a cluster: may it be steered?"""

from collections.abc import Collection, Iterable

import msgspec

from fairlead_cli.findings import Finding, Severity
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
        return Leave(
            cluster=survey.cluster,
            lever=self.lever,
            at=at,
            by=by,
            accepted=self.accepted,
            replaced=None
            if before is None
            else before.lever
            if before.lever != self.lever
            else before.replaced,
        )


def judge(survey: Survey, findings: Iterable[Finding], accept: Collection[str]) -> DoctorVerdict:
    """Weigh the findings.

    What the standing leave accepted stays accepted: a person said so, and takes it back with `--revoke`.

    Args:
        survey: the survey that they were found in.
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
