"""Findings of checks: what each is, why it matters, and the command or YAML that mends it."""

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

EXIT_WARNINGS, EXIT_ERRORS = 1, 2


class Severity(enum.StrEnum):
    """A grade of how much a finding matters."""

    ERROR = "error"
    """Levels must not be written before it is mended, or accepted by name."""
    WARNING = "warning"
    """Jobs may wait for ever, or the order is followed less exactly than one would think."""
    INFO = "info"
    """Good to know."""
    OK = "ok"
    """Looked at, and nothing found."""


_MARKS = {
    Severity.ERROR: ("✗ error  ", "bold red"),
    Severity.WARNING: ("! warning", "yellow"),
    Severity.INFO: ("· info   ", "cyan"),
    Severity.OK: ("✓", "green"),
}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a check."""

    name: str = ""
    """Name by which it is accepted: the same for all findings of the kind. Empty until its check gives it its own."""
    severity: Severity
    subject: str
    """The object, as `<kind>/<name>` or `<kind>/<namespace>/<name>`."""
    what: str
    why: str = ""
    mend: str = ""
    """A command or YAML; empty where there is nothing to mend."""
    accepted: bool = False
    """Whether an operator accepted it by name."""


def error(subject: str, what: str, *, why: str, mend: str = "", name: str = "") -> Finding:
    """A finding that stands against writing."""
    return Finding(name=name, severity=Severity.ERROR, subject=subject, what=what, why=why, mend=mend)


def warning(subject: str, what: str, *, why: str, mend: str = "", name: str = "") -> Finding:
    """A finding that somebody should look at."""
    return Finding(name=name, severity=Severity.WARNING, subject=subject, what=what, why=why, mend=mend)


def info(subject: str, what: str, *, why: str = "", mend: str = "", name: str = "") -> Finding:
    """A finding that is good to know."""
    return Finding(name=name, severity=Severity.INFO, subject=subject, what=what, why=why, mend=mend)


def fine(topic: str, what: str) -> Finding:
    """The word that a check finds nothing."""
    return Finding(name=topic, severity=Severity.OK, subject=topic, what=what)


type Look[S] = Callable[[S], Iterable[Finding]]


class Check[S](msgspec.Struct, frozen=True, kw_only=True):
    """A check of a survey."""

    topic: str
    names: tuple[str, ...]
    """Names of all findings that it can have; the first is that of a finding that states none."""
    look: Look[S]
    fine: str | Callable[[S], str]
    """Sentence that it says where it finds nothing."""
    needs: tuple[str, ...] = ()
    """Kinds, by plural, without which it cannot look."""

    def run(self, survey: S) -> Iterator[Finding]:
        """The findings, or that there are none."""
        found = list(self.look(survey))
        yield from (msgspec.structs.replace(one, name=one.name or self.names[0]) for one in found)
        if not found:
            yield fine(self.topic, self.fine if isinstance(self.fine, str) else self.fine(survey))


def checks_in(*themes: ModuleType) -> tuple[Check[Any], ...]:
    """The checks of these modules, in the order in which each defines them."""
    return tuple(one for theme in themes for one in vars(theme).values() if isinstance(one, Check))


def exit_code(findings: Iterable[Finding], *, passed: bool) -> int:
    """The exit code: 0 if all that is open is good to know, 1 with open warnings, 2 if it did not pass."""
    if not passed:
        return EXIT_ERRORS
    warned = any(one.severity is Severity.WARNING and not one.accepted for one in findings)
    return EXIT_WARNINGS if warned else 0


def open_names(findings: Iterable[Finding]) -> list[str]:
    """The names of findings that are open, each once, as `--accept` takes them."""
    is_open = (Severity.ERROR, Severity.WARNING)
    return list(dict.fromkeys(one.name for one in findings if one.severity in is_open and not one.accepted))


def findings_view(findings: Sequence[Finding], *, quiet: bool = False) -> Iterator[RenderableType]:
    """Findings for a person, what was fine first: on a terminal what is to be done stands last. A quiet one leaves out the former."""
    fine = [finding for finding in findings if finding.severity is Severity.OK]
    if fine and not quiet:
        yield Text("")
        for finding in fine:
            yield Text.assemble(_MARKS[Severity.OK], f" {finding.subject}: ", (finding.what, "dim"))
    for finding in findings:
        if finding.severity is not Severity.OK:
            yield Text("")
            yield from _finding(finding)


def _finding(finding: Finding) -> Iterator[RenderableType]:
    mark, style = _MARKS[finding.severity]
    accepted = " (accepted)" if finding.accepted else ""
    yield Text.assemble((mark, style), "  ", (finding.name, "bold"), accepted, f"  {finding.subject}")
    yield Padding(Text(finding.what), (0, 0, 0, 4), expand=False)
    if finding.why:
        yield Padding(Text(finding.why, style="dim"), (0, 0, 0, 4), expand=False)
    if finding.mend:
        # As it stands: a command that was wrapped could not be copied. Who prints it lets it run over (`crop=False`).
        yield Text(
            "\n".join(f"      {line}" for line in finding.mend.splitlines()),
            style="green",
            no_wrap=True,
            overflow="ignore",
        )
