"""The checks: pure functions from a survey to findings, a module a theme."""

from collections.abc import Iterator

from fairlead_cli.findings import Check, Finding, checks_in
from fairlead_cli.kueue.doctor.checks import (
    capacity,
    classes,
    flavors,
    gangs,
    installation,
    jobs,
    karpenter,
    lever,
    queues,
    reserving,
    rights,
    tenants,
    writers,
)
from fairlead_cli.kueue.doctor.survey import Survey

CHECKS: tuple[Check[Survey], ...] = checks_in(
    *(installation, lever, rights, queues, reserving, classes, tenants),
    *(writers, flavors, capacity, karpenter, jobs, gangs),
)


def examine(survey: Survey) -> Iterator[Finding]:
    """Every check on the survey whose kinds could be read, in the order of their themes; without Kueue, that alone."""
    if not survey.kueue.served:
        yield from installation.absent.run(survey)
        return
    for check in CHECKS:
        if survey.unread.keys().isdisjoint(check.needs):
            yield from check.run(survey)


def known_names() -> set[str]:
    """The names by which findings are accepted."""
    return {name for check in CHECKS for name in check.names}
