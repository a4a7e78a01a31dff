"""The processes that Slurm runs on nodes for jobs whose programs run in pods (hook `body`): those that listen here now."""

from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.pods.change_signal import ChangeSignal


class JobProcesses:
    """The processes of one partition's jobs, as far as they listen here."""

    def __init__(self) -> None:
        self.listening: set[Attempt] = set()
        """Attempts whose process listens now."""
        self._changed = ChangeSignal()

    def connected(self, attempt: Attempt) -> None:
        """Note that the attempt's process listens."""
        self.listening.add(attempt)
        self._changed.notify()

    def disconnected(self, attempt: Attempt) -> None:
        """Note that the attempt's process listens no more."""
        self.listening.discard(attempt)
        self._changed.notify()

    def any_of(self, job: int) -> bool:
        """Whether a process of any attempt of the job listens."""
        return any(attempt.job == job for attempt in self.listening)

    async def change(self, seconds: float) -> None:
        """Return when one has connected or disconnected, or the time is over."""
        await self._changed.wait(seconds)
