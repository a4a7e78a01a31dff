"""Looks at a site whose Slurm jobs run as pods, all the time: what must never be seen there, even for a moment."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

from fairlead_testkit.kubelab import KubeObject
from fairlead_testkit.kubelab.errors import ApiUnreachableError
from fairlead_testkit.pod_fleet import SUBMISSION, PodFleetSite
from fairlead_testkit.slurmlab import SlurmCommandError

_HELD = ("JobHeld", "JobHoldMaxRequeue", "launch_failed", "requeued_in_held")
_JOB = "slurm.fairlead.dev/job"
_PROGRAM = "slurm.fairlead.dev/program"
_OVER = ("Succeeded", "Failed")
_BEGAN = ("Running", *_OVER)
_FORGOTTEN = "Duplicate jobid"
"""Slurm's own reason, at a node that was sent a job that runs there (slurmctld/agent.c)."""
_PAUSE_SECONDS = 0.1
_SLURM_PAUSE_SECONDS = 0.3
"""A job stays held and a node drained until somebody acts: the bridge does once in its second."""


class PodWatch:
    """What was seen of a site.

    Args:
        site: runs.
        daemons_killed: whether Slurm's daemons are killed: then nodes may be down, and those that Slurm drains over a job that it has
            forgotten to have started are counted: the bridge is to resume them.
    """

    def __init__(self, site: PodFleetSite, *, daemons_killed: bool = False) -> None:
        self._site = site
        self._daemons_killed = daemons_killed
        self._bad_nodes = ("drain",) if daemons_killed else ("drain", "down")
        self.forgotten = 0
        """Nodes that were drained over a forgotten job, each time."""
        self._forgotten_now: set[str] = set()
        self.most_gpus = 0
        """In use at a time, of pods that were not over."""
        self.began: dict[tuple[str, str], set[str]] = {}
        """By job and submission, the pods whose program was seen to run or to have run."""
        self.harm: list[str] = []
        """Jobs that were held, nodes that were drained, jobs with two pods at a time."""

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._watch_pods())
            both.create_task(self._watch_slurm())

    async def _watch_pods(self) -> None:
        while True:
            with contextlib.suppress(ApiUnreachableError):  # a busy machine lets it wait
                pods = await asyncio.to_thread(self._site.pods)
                self.most_gpus = max(self.most_gpus, self._site.gpus_of(pods))
                self.harm += _twice(pods)
                for pod in pods:
                    if _has_begun(pod):
                        self.began.setdefault(_whose(pod), set()).add(pod["metadata"]["uid"])
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _watch_slurm(self) -> None:
        while True:
            with contextlib.suppress(SlurmCommandError):  # it may be away
                self.harm += await asyncio.to_thread(self._of_slurm)
            await asyncio.sleep(_SLURM_PAUSE_SECONDS)

    def _of_slurm(self) -> list[str]:
        jobs = self._site.waiting()
        nodes = self._site.lab.run("sinfo", "-h", "-N", "-o", "%N %T %E").splitlines()
        if self._daemons_killed:
            forgotten = {
                line.split(maxsplit=1)[0] for line in nodes if "drain" in line and _FORGOTTEN in line
            }
            self.forgotten += len(forgotten - self._forgotten_now)
            self._forgotten_now = forgotten
            nodes = [line for line in nodes if _FORGOTTEN not in line]
        held = [line for line in jobs if any(word in line for word in _HELD)]
        return held + [line for line in nodes if any(word in line for word in self._bad_nodes)]


def _has_begun(pod: KubeObject) -> bool:
    """Whether its program has: its container begins sooner, and waits."""
    waits = pod["metadata"].get("annotations", {}).get(_PROGRAM) == "waits"
    return pod["status"].get("phase") in _BEGAN and not waits


def _whose(pod: KubeObject) -> tuple[str, str]:
    variables = {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0].get("env", [])}
    return pod["metadata"]["labels"][_JOB], variables.get(SUBMISSION, "")


def _twice(pods: list[KubeObject]) -> list[str]:
    """Jobs of which two pods run."""
    running = Counter(
        pod["metadata"]["labels"][_JOB] for pod in pods if pod["status"].get("phase") not in _OVER
    )
    return [f"job {job} has {count} pods that are not over" for job, count in running.items() if count > 1]


@contextlib.asynccontextmanager
async def watched(site: PodFleetSite, *, daemons_killed: bool = False) -> AsyncIterator[PodWatch]:
    """Watches for the time of the block."""
    watch = PodWatch(site, daemons_killed=daemons_killed)
    looking = asyncio.create_task(watch.run())
    try:
        yield watch
        if looking.done():
            looking.result()
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
