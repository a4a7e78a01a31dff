"""What a check finds: one thing, what it is, why it matters, and the command or YAML that mends it."""

import enum
from collections.abc import Callable, Iterable, Iterator

import msgspec

from fairlead_cli.kueue.doctor.survey import Survey


class Severity(enum.StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    """Levels must not be written before it is mended, or accepted by name."""
    WARNING = "warning"
    """Jobs may wait for ever, or the order is followed less exactly than one would think."""
    INFO = "info"
    """Good to know."""
    OK = "ok"
    """Looked at, and nothing found."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was found."""

    name: str
    """What it is accepted by: the same for all findings of the kind."""
    severity: Severity
    subject: str
    """The object, as `<kind>/<name>` or `<kind>/<namespace>/<name>`."""
    what: str
    why: str = ""
    mend: str = ""
    """A command or YAML; empty where there is nothing to mend."""
    accepted: bool = False
    """Whether an operator accepted it by name."""


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


def error(name: str, subject: str, what: str, *, why: str, mend: str = "") -> Finding:
    """A finding that stands against writing."""
    return Finding(name=name, severity=Severity.ERROR, subject=subject, what=what, why=why, mend=mend)


def warning(name: str, subject: str, what: str, *, why: str, mend: str = "") -> Finding:
    """A finding that somebody should look at."""
    return Finding(name=name, severity=Severity.WARNING, subject=subject, what=what, why=why, mend=mend)


def info(name: str, subject: str, what: str, *, why: str = "", mend: str = "") -> Finding:
    """A finding that is good to know."""
    return Finding(name=name, severity=Severity.INFO, subject=subject, what=what, why=why, mend=mend)


def listed(names: Iterable[str], *, most: int = 5) -> str:
    """Some names in words, and how many more there are."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"
