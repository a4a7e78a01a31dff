"""The processes that stand on nodes for jobs, and those of them that listen now."""

from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.pods.news import News


class Bodies:
    """The bodies of one partition's jobs."""

    def __init__(self) -> None:
        self.listening: set[Attempt] = set()
        """Attempts whose process listens now."""
        self._news = News()

    def came(self, attempt: Attempt) -> None:
        """Note that the attempt's process listens."""
        self.listening.add(attempt)
        self._news.tell()

    def left(self, attempt: Attempt) -> None:
        """Note that the attempt's process listens no more."""
        self.listening.discard(attempt)
        self._news.tell()

    def stand_for(self, job: int) -> bool:
        """Whether a process of any attempt of the job listens."""
        return any(attempt.job == job for attempt in self.listening)

    async def change(self, seconds: float) -> None:
        """Return when one came or left, or the time is over."""
        await self._news.wait(seconds)
