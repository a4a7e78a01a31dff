"""Looks at a site whose Slurm jobs run as pods, all the time: what must never be seen there, even for a moment."""

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection

from fairlead_testkit.fleets.pod_fleet import SUBMISSION, PodFleetSite
from fairlead_testkit.kubelab import KubeObject
from fairlead_testkit.kubelab.errors import ApiUnreachableError
from fairlead_testkit.slurmlab import SlurmCommandError
from fairlead_testkit.slurmlab.console import SlurmConsole
from fairlead_testkit.timing.in_hand import beside

_HELD = ("JobHeld", "JobHoldMaxRequeue", "launch_failed", "requeued_in_held")
_ENDED = (
    "CANCELLED",
    "COMPLETED",
    "FAILED",
    "TIMEOUT",
    "DEADLINE",
    "OUT_OF_MEMORY",
    "BOOT_FAIL",
    "NODE_FAIL",
)
_JOB = "slurm.fairlead.dev/job"
_PROGRAM = "slurm.fairlead.dev/program"
_OVER = ("Succeeded", "Failed")
_BEGAN = ("Running", *_OVER)
_FORGOTTEN = "Duplicate jobid"
"""Slurm's own reason, at a node that was sent a job that runs there (slurmctld/agent.c)."""
_PAUSE_SECONDS = 0.1
"""Seconds between two tries while the API server is away."""
_TURN_SECONDS = 2
"""Seconds after which a watch is opened anew: its thread looks then whether the test is over."""
_SLURM_PAUSE_SECONDS = 0.3
"""A job stays held and a node drained until somebody acts: the bridge does once in its second."""


class PodWatch:
    """Observations of a site's pods, jobs and nodes.

    Args:
        daemons_killed: whether Slurm's daemons are killed: then nodes may be down, and those that Slurm drains over a job that it has
            forgotten to have started are counted: the bridge is to resume them.
    """

    def __init__(self, site: PodFleetSite, *, daemons_killed: bool = False) -> None:
        self._site = site
        self._daemons_killed = daemons_killed
        self._bad_nodes = ("DRAIN",) if daemons_killed else ("DRAIN", "DOWN")
        self.forgotten = 0
        """Nodes that were drained over a forgotten job, each time."""
        self._forgotten_now: set[str] = set()
        self.most_gpus = 0
        """The most GPUs in use at a time, of pods that were not over."""
        self.began: dict[tuple[str, str], set[str]] = {}
        """Pods whose program was seen to run or to have run, by job and submission."""
        self.harm: list[str] = []
        """Jobs that were held, nodes that were drained, jobs with two pods at a time."""

    async def run(self) -> None:
        """Runs until cancelled."""
        over = threading.Event()
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(asyncio.to_thread(self._follow_pods, over.is_set))
                both.create_task(asyncio.to_thread(self._follow_slurm, over))
        finally:
            over.set()

    def _follow_pods(self, is_over: Callable[[], bool]) -> None:
        """Follow a watch, which tells each state that was; lists, ten a second, cost more than it."""
        while not is_over():
            try:
                pods, since = self._site.pods_and_version()
                self._look(pods.values())
                self._follow(pods, since, is_over)
            except (
                ApiUnreachableError
            ):  # a busy machine lets it wait, and a version may be too old to go on from
                time.sleep(_PAUSE_SECONDS)

    def _follow(self, pods: dict[str, KubeObject], since: str, is_over: Callable[[], bool]) -> None:
        while not is_over():
            for event in self._site.pod_events(since, seconds=_TURN_SECONDS):
                if event["type"] == "ERROR":
                    raise ApiUnreachableError(str(event["object"]))
                metadata = event["object"]["metadata"]
                since = metadata["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    continue
                pods.pop(metadata["uid"], None)
                if event["type"] != "DELETED":
                    pods[metadata["uid"]] = event["object"]
                if is_over():
                    return
                self._look(pods.values())

    def _look(self, pods: Collection[KubeObject]) -> None:
        self.most_gpus = max(self.most_gpus, self._site.gpus_of(pods))
        self.harm += _twice(pods)
        for pod in pods:
            if _has_begun(pod):
                self.began.setdefault(_whose(pod), set()).add(pod["metadata"]["uid"])

    def _follow_slurm(self, over: threading.Event) -> None:
        with SlurmConsole(self._site.lab) as console:
            while not over.is_set():
                with contextlib.suppress(SlurmCommandError):  # it may be away
                    self.harm += self._of_slurm(console)
                over.wait(_SLURM_PAUSE_SECONDS)

    def _of_slurm(self, console: SlurmConsole) -> list[str]:
        jobs, nodes = console.jobs(), console.nodes()
        if self._daemons_killed:
            forgotten = {
                line.split(maxsplit=1)[0] for line in nodes if "DRAIN" in line and _FORGOTTEN in line
            }
            self.forgotten += len(forgotten - self._forgotten_now)
            self._forgotten_now = forgotten
            nodes = [line for line in nodes if _FORGOTTEN not in line]
        held = [
            line
            for line in jobs
            if any(word in line for word in _HELD)
            # A job that was held and cancelled keeps its reason.
            and not any(state in line.split()[1] for state in _ENDED)
        ]
        return held + [line for line in nodes if any(word in line for word in self._bad_nodes)]


def _has_begun(pod: KubeObject) -> bool:
    """Whether the pod's program has begun: its container begins sooner, and waits."""
    waits = pod["metadata"].get("annotations", {}).get(_PROGRAM) == "waits"
    return pod["status"].get("phase") in _BEGAN and not waits


def _whose(pod: KubeObject) -> tuple[str, str]:
    variables = {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0].get("env", [])}
    return pod["metadata"]["labels"][_JOB], variables.get(SUBMISSION, "")


def _twice(pods: Collection[KubeObject]) -> list[str]:
    """Jobs of which two pods run."""
    running = Counter(
        pod["metadata"]["labels"][_JOB] for pod in pods if pod["status"].get("phase") not in _OVER
    )
    return [f"job {job} has {count} pods that are not over" for job, count in running.items() if count > 1]


@contextlib.asynccontextmanager
async def watched(site: PodFleetSite, *, daemons_killed: bool = False) -> AsyncIterator[PodWatch]:
    """Watches for the time of the block."""
    watch = PodWatch(site, daemons_killed=daemons_killed)
    async with beside(watch.run()):
        yield watch
