"""The checks: pure functions from a survey to findings, a module a theme."""

from collections.abc import Iterator
from itertools import chain
from types import ModuleType

from fairlead_cli.findings import Finding
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
from fairlead_cli.kueue.doctor.survey import Check, Survey


def checks_in(theme: ModuleType) -> tuple[Check, ...]:
    """The checks of a theme, in the order in which its module defines them."""
    return tuple(found for found in vars(theme).values() if isinstance(found, Check))


_THEMES = (
    *(installation, lever, rights, queues, reserving, classes, tenants),
    *(writers, flavors, capacity, karpenter, jobs, gangs),
)
CHECKS = tuple(chain.from_iterable(map(checks_in, _THEMES)))


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
