"""What becomes of published jobs, as their answers arrive."""

from collections.abc import Iterable

import msgspec

from fairlead_contracts.messages.submissions import Accepted, AnyAnswer, Ended, Refused, Started

type SubmissionName = tuple[str, str]
"""Tenant and submission id."""


class SubmissionTally(msgspec.Struct, frozen=True, kw_only=True):
    """How many came how far."""

    submitted: int
    accepted: int
    refused: int
    started: int
    succeeded: int
    unsuccessful: int
    """Ended as failed or cancelled."""

    @property
    def well(self) -> bool:
        """Whether all were accepted and succeeded."""
        return self.succeeded == self.submitted

    def words(self) -> str:
        """The tally on one line."""
        parts = [f"{self.submitted} submitted", f"{self.accepted} accepted", f"{self.succeeded} succeeded"]
        parts += [f"{self.refused} refused"] if self.refused else []
        parts += [f"{self.unsuccessful} failed or cancelled"] if self.unsuccessful else []
        return ", ".join(parts)


class Following:
    """Takes answers, at least once and in any number, and knows which of the published jobs still want some."""

    def __init__(self, names: Iterable[SubmissionName]) -> None:
        self._names = set(names)
        self._open = set(self._names)
        self._unanswered = set(self._names)
        self._seen: dict[type[object], set[SubmissionName]] = {
            kind: set() for kind in (Accepted, Refused, Started, Ended)
        }
        self._succeeded: set[SubmissionName] = set()

    @property
    def done(self) -> bool:
        """Whether each has ended or was refused."""
        return not self._open

    def is_refused(self, name: SubmissionName) -> bool:
        """Whether one of ours was refused."""
        return name in self._seen[Refused]

    @property
    def unanswered(self) -> int:
        """Of how many nothing was heard yet."""
        return len(self._unanswered)

    @property
    def open(self) -> int:
        """How many have not ended."""
        return len(self._open)

    @property
    def names_open(self) -> list[SubmissionName]:
        """Those that have not ended, by tenant and id."""
        return sorted(self._open)

    def take(self, answer: AnyAnswer) -> bool:
        """Note an answer.

        Returns:
            Whether it is news about one of ours.
        """
        name = (answer.tenant, answer.id)
        seen = self._seen[type(answer)]
        if name not in self._names or name in seen:
            return False
        seen.add(name)
        self._unanswered.discard(name)
        if isinstance(answer, Ended | Refused):
            self._open.discard(name)
        if isinstance(answer, Ended) and answer.outcome == "succeeded":
            self._succeeded.add(name)
        return True

    def give_up(self, name: SubmissionName) -> None:
        """Wait no longer for one that was never stored."""
        self._open.discard(name)
        self._unanswered.discard(name)

    def tally(self) -> SubmissionTally:
        """How many came how far."""
        ended = len(self._seen[Ended])
        return SubmissionTally(
            submitted=len(self._names),
            accepted=len(self._seen[Accepted] | self._seen[Started] | self._seen[Ended]),
            refused=len(self._seen[Refused]),
            started=len(self._seen[Started]),
            succeeded=len(self._succeeded),
            unsuccessful=ended - len(self._succeeded),
        )


def answer_line(answer: AnyAnswer) -> str:
    """One answer as one line."""
    who = f"{answer.tenant}/{answer.id}"
    match answer:
        case Accepted():
            warned = "".join(f"; warning: {warning}" for warning in answer.warnings)
            return (
                f"{who}: accepted on {answer.cluster}, queue {answer.queue}, class {answer.job_class}{warned}"
            )
        case Refused():
            found = f" (found {answer.value})" if answer.value else ""
            return f"{who}: refused, {answer.field}: {answer.reason}{found}"
        case Started():
            return f"{who}: started after waiting {answer.waited_seconds:.1f} s"
        case Ended():
            return f"{who}: {answer.outcome.value} after running {answer.ran_seconds:.1f} s"
