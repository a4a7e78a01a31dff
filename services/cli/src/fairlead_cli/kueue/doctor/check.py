"""A check of the doctor: one look at a survey."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from fairlead_cli.findings import Finding, Severity
from fairlead_cli.kueue.doctor.survey import Survey


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a survey."""

    topic: str
    names: tuple[str, ...]
    """Of all findings that it can have."""
    look: Callable[[Survey], Iterable[Finding]]
    fine: str
    """What it says where it finds nothing."""
    needs: tuple[str, ...] = ()
    """Kinds, by plural, without which it cannot look."""

    def run(self, survey: Survey) -> Iterator[Finding]:
        """What it finds, or that it found nothing; silent where what it needs could not be read."""
        if any(kind in survey.unread for kind in self.needs):
            return
        found = list(self.look(survey))
        yield from found or [
            Finding(name=self.topic, severity=Severity.OK, subject=self.topic, what=self.fine)
        ]
