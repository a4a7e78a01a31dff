"""The checks: pure functions from a survey to findings, a module a theme."""

from collections.abc import Iterator

from fairlead_cli.findings import Finding
from fairlead_cli.kueue.doctor.checks import (
    capacity,
    cards,
    classes,
    flavors,
    gangs,
    installation,
    jobs,
    karpenter,
    lever,
    pools,
    queues,
    reserving,
    rights,
    tenants,
    writers,
)
from fairlead_cli.kueue.doctor.survey import Check, Survey

CHECKS: tuple[Check, ...] = (
    *installation.CHECKS,
    *lever.CHECKS,
    *rights.CHECKS,
    *queues.CHECKS,
    *reserving.CHECKS,
    *classes.CHECKS,
    *tenants.CHECKS,
    *pools.CHECKS,
    *writers.CHECKS,
    *flavors.CHECKS,
    *capacity.CHECKS,
    *cards.CHECKS,
    *karpenter.CHECKS,
    *jobs.CHECKS,
    *gangs.CHECKS,
)

__all__ = ["CHECKS", "examine", "known_names"]


def examine(survey: Survey) -> Iterator[Finding]:
    """Every check on the survey, in the order of their themes; without Kueue, that alone."""
    if not survey.kueue.served:
        yield from installation.absent.run(survey)
        return
    for check in CHECKS:
        yield from check.run(survey)


def known_names() -> set[str]:
    """The names by which findings are accepted."""
    return {name for check in CHECKS for name in check.names}
