"""The processes that stand on nodes for jobs: which of them listen now, and what those that ended were told.

A slurmctld that is killed forgets its last seconds, and starts attempts anew whose process stands on a node already, or has
ended there. slurmd takes no second one (it drains its node over it), and no program is to run twice: so it has to be known.
"""

from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.pods.news import News

_REMEMBERED = 10_000


class Bodies:
    """Those of one partition."""

    def __init__(self) -> None:
        self.listening: set[Attempt] = set()
        """Attempts whose process listens now."""
        self._codes: dict[tuple[Attempt, str], int] = {}
        self._replays: dict[Attempt, int] = {}
        self._news = News()

    def came(self, attempt: Attempt) -> None:
        """Its process listens."""
        self.listening.add(attempt)
        self._news.tell()

    def left(self, attempt: Attempt) -> None:
        """It does not any more."""
        self.listening.discard(attempt)
        self._news.tell()

    def stand_for(self, job: int) -> bool:
        """Whether a process of any attempt of the job listens."""
        return any(attempt.job == job for attempt in self.listening)

    async def change(self, seconds: float) -> None:
        """Return when one came or left, or the time is over."""
        await self._news.wait(seconds)

    def ended(self, attempt: Attempt, digest: str, code: int) -> None:
        """The pod of this attempt, made from what has this digest, ended by itself with that code."""
        _keep(self._codes, (attempt, digest), code)

    def replay(self, attempt: Attempt, digest: str) -> bool:
        """Whether its program has run to its end already: then its next process is told the code of that at once."""
        code = self._codes.get((attempt, digest))
        if code is not None:
            _keep(self._replays, attempt, code)
        return code is not None

    def code_again(self, attempt: Attempt) -> int | None:
        """What a process is told that is started once more; None where there is nothing to replay."""
        return self._replays.get(attempt)


def _keep[K](where: dict[K, int], key: K, code: int) -> None:
    """Remember, and forget the oldest."""
    where[key] = code
    while len(where) > _REMEMBERED:
        where.pop(next(iter(where)))
