"""Published jobs followed to their end, as their answers arrive."""

from collections.abc import Iterable

import msgspec

from fairlead_contracts.messages.submissions import (
    Accepted,
    AnyAnswer,
    Cancelling,
    Ended,
    Refused,
    Started,
)

type SubmissionName = tuple[str, str]
"""Tenant and submission id."""


class SubmissionTally(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of jobs by how far they came."""

    submitted: int
    accepted: int
    """Jobs that were taken as new ones."""
    known: int
    """Jobs that were there before: the same id with the same body."""
    refused: int
    started: int
    succeeded: int
    unsuccessful: int
    """Jobs that ended as failed or cancelled."""

    @property
    def well(self) -> bool:
        """Whether all were accepted and succeeded."""
        return self.succeeded == self.submitted

    def words(self) -> str:
        """The tally on one line."""
        parts = [f"{self.submitted} submitted", *self.taken_in_words(), f"{self.succeeded} succeeded"]
        parts += [f"{self.refused} refused"] if self.refused else []
        parts += [f"{self.unsuccessful} failed or cancelled"] if self.unsuccessful else []
        return ", ".join(parts)

    def taken_in_words(self) -> list[str]:
        """The numbers of new jobs and of jobs that were there before, in words."""
        new = [f"{self.accepted} accepted"] if self.accepted or not self.known else []
        return [*new, f"{self.known} known already"] if self.known else new

    def why_nothing_new_runs(self) -> str:
        """Advice for a new run of jobs that are known already; empty where none is."""
        if not self.known:
            return ""
        jobs, them, ids = (
            ("1 job was", "it", "a new id")
            if self.known == 1
            else (f"{self.known} jobs were", "them", "new ids")
        )
        return f"{jobs} known already, with the same id and the same body: nothing new runs for {them}. A new run needs {ids}."


class Following:
    """Takes answers, at least once and in any number, and knows which of the published jobs still want some."""

    def __init__(self, names: Iterable[SubmissionName]) -> None:
        self._names = set(names)
        self._open = set(self._names)
        self._unanswered = set(self._names)
        self._known: set[SubmissionName] = set()
        self._seen: dict[type[object], set[SubmissionName]] = {
            kind: set() for kind in (Accepted, Refused, Started, Cancelling, Ended)
        }
        self._succeeded: set[SubmissionName] = set()

    @property
    def done(self) -> bool:
        """Whether each has ended or was refused."""
        return not self._open

    def is_refused(self, name: SubmissionName) -> bool:
        """Whether one of ours was refused."""
        return name in self._seen[Refused]

    def is_known(self, name: SubmissionName) -> bool:
        """Whether one of ours was a job before, under the same id with the same body."""
        return name in self._known

    @property
    def unanswered(self) -> int:
        """The number of jobs of which nothing was heard yet."""
        return len(self._unanswered)

    @property
    def open(self) -> int:
        """The number of jobs that have not ended."""
        return len(self._open)

    def left_in_words(self) -> str:
        """A sentence on the jobs that have not ended, for who stops following them."""
        if self.open == 1:
            return "1 job has not ended; it goes on without being followed"
        return f"{self.open} jobs have not ended; they go on without being followed"

    @property
    def names_open(self) -> list[SubmissionName]:
        """The jobs that have not ended, by tenant and id."""
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
        if isinstance(answer, Refused) and name not in self._unanswered:
            return False  # of another body under the same id: ours was taken before
        seen.add(name)
        # Whoever has heard that it is accepted made it: what is told again then answers a copy that was sent for safety.
        if answer.repeated is True and name in self._unanswered:
            self._known.add(name)
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
        """The numbers of jobs by how far they came."""
        ended = len(self._seen[Ended])
        return SubmissionTally(
            submitted=len(self._names),
            accepted=len((self._seen[Accepted] | self._seen[Started] | self._seen[Ended]) - self._known),
            known=len(self._known),
            refused=len(self._seen[Refused]),
            started=len(self._seen[Started]),
            succeeded=len(self._succeeded),
            unsuccessful=ended - len(self._succeeded),
        )


def answer_line(answer: AnyAnswer) -> str:
    """An answer as one line."""
    again = ": known already" if answer.repeated is True else ""
    who = f"{answer.tenant}/{answer.id}{again}"
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
        case Cancelling():
            return f"{who}: is being cancelled"
        case Ended():
            return f"{who}: {answer.outcome.value} after running {answer.ran_seconds:.1f} s"
