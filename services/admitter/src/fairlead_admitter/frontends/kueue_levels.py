"""Kueue as a frontend: levels as the boost annotation or as the priority of Workloads."""

from collections.abc import Callable

from fairlead_admitter.errors import FrontendRefusedError
from fairlead_contracts.clearance import Clearance
from fairlead_contracts.state import JobState
from fairlead_kube import KubeClient


class KueueLevels:
    """Writes levels to Workloads.

    Args:
        client: of the cluster.
        clearance: the operator's leave to steer, which names the lever; None where there is none.
    """

    def __init__(self, client: KubeClient, clearance: Callable[[], Clearance | None]) -> None:
        self._client = client
        self._clearance = clearance

    async def write(self, job: JobState, level: int) -> int | None:
        """Give a waiting Workload a level; see LevelWriter."""
        raise FrontendRefusedError(f"{job.id}: level {level} is not written to Kueue yet")
