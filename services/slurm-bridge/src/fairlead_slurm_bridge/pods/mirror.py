"""Mirrors of nodes and pods in memory, by which the gate decides without asking anybody."""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping

import msgspec

from fairlead_contracts.base.observer import LibraryObserver
from fairlead_kube.client import KubeClient
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.kinds.resources import NODES, PODS
from fairlead_kube.reflector import Key, Reflector
from fairlead_policy.fit.shapes import FitNode
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.capacity import CapacityCache
from fairlead_slurm_bridge.gate.kube_facts import JobPod, PodFacts, partition_node, pod_facts

LOOK_SECONDS = 2.0
"""Seconds after which whoever waits for a pod looks at it again, also when nothing is heard of it."""


class ChangeSignal:
    """A signal that wakes all who wait for a change; later waiters wait for the next change."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def notify(self) -> None:
        """Wake all who wait: something has changed."""
        changed, self._next = self._next, asyncio.Event()
        changed.set()

    async def wait(self, seconds: float) -> None:
        """Return when something has changed, or the time is over."""
        changed = self._next
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0)):
                await changed.wait()


class KubeMirror:
    """The nodes and pods of a cluster, and the capacity cache that follows them.

    Args:
        client: calls the cluster's API server.
        cluster: name of Slurm's cluster, whose jobs' pods are ours.
        node_labels: labels of the nodes that count.
        observer: hears of troubles.
    """

    def __init__(
        self, client: KubeClient, cluster: str, node_labels: Mapping[str, str], *, observer: LibraryObserver
    ) -> None:
        self.capacity = CapacityCache()
        self.pods: dict[Key, JobPod] = {}
        """Pods of this cluster's jobs."""
        self._begun: set[str] = set()
        self._leaving: set[str] = set()
        """UIDs of pods of which Kubernetes may not have told yet what it was asked for: see `begins` and
        `leaving`."""
        self._wake = asyncio.Event()
        self._changed = ChangeSignal()
        self._nodes = Reflector[Node, FitNode](
            client,
            NODES,
            project=lambda node: partition_node(node, node_labels),
            wake=self._wake,
            observer=observer,
        )
        self._all_pods = Reflector[Pod, PodFacts](
            client, PODS, project=lambda pod: pod_facts(pod, cluster), wake=self._wake, observer=observer
        )
        self._heard = time.monotonic()

    async def run(self) -> None:
        """Follow Kubernetes until cancelled.

        Raises:
            FatalKubeError: the right to read nodes or pods is missing from the start.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nodes.run(), name="mirror of nodes")
            group.create_task(self._all_pods.run(), name="mirror of pods")
            group.create_task(self._follow(), name="capacity")

    def why_not(self, longest_seconds: float) -> str | None:
        """The complaint about Kubernetes: not all is known, or it is silent for too long; None if neither."""
        if not (self._nodes.complete and self._all_pods.complete):
            return "Kubernetes has not told all of its nodes and pods yet"
        if self._nodes.following and self._all_pods.following:
            self._heard = time.monotonic()
        silent = time.monotonic() - self._heard
        return f"Kubernetes has said nothing for {silent:.0f} s" if silent > longest_seconds else None

    def of_job(self, number: int) -> dict[Key, JobPod]:
        """The pods of a job, of all its attempts."""
        return {key: pod for key, pod in self.pods.items() if pod.attempt.job == number}

    def of_attempt(self, attempt: Attempt) -> tuple[Key, JobPod] | None:
        """The pod of an attempt, if it has one."""
        return next(((key, pod) for key, pod in self.pods.items() if pod.attempt == attempt), None)

    async def change(self, seconds: float) -> None:
        """Return when anything has changed, or the time is over."""
        await self._changed.wait(seconds)

    def begins(self, key: Key) -> None:
        """Count a pod's program as begun before Kubernetes is asked for that: nobody takes it for waiting."""
        self._begun.add(self.pods[key].uid)
        self.pods[key] = self._foreseen(self.pods[key])

    @contextlib.contextmanager
    def leaving(self, key: Key) -> Iterator[None]:
        """Count a waiting pod as leaving from before the block, which asks Kubernetes to end it: its program stays unbegun.

        Where the block raises, Kubernetes was not asked, and the pod counts as before.
        """
        if key in self.pods and self.pods[key].waits:
            self._leaving.add(self.pods[key].uid)
            self.pods[key] = self._foreseen(self.pods[key])
        try:
            yield
        except BaseException:
            if key in self.pods and self.pods[key].uid in self._leaving:
                self._leaving.discard(self.pods[key].uid)
                self.pods[key] = msgspec.structs.replace(self.pods[key], leaving=False)
            raise

    def _foreseen(self, pod: JobPod) -> JobPod:
        waits, leaving = pod.waits and pod.uid not in self._begun, pod.leaving or pod.uid in self._leaving
        return msgspec.structs.replace(pod, waits=waits, leaving=leaving)

    def look(self) -> None:
        """Take in what was heard, and wake all who wait for changes."""
        for key, node in self._nodes.take().changed.items():
            self.capacity.node(key.name, node)
        for key, facts in self._all_pods.take().changed.items():
            self._take(key, facts)
        self._changed.notify()

    def _take(self, key: Key, facts: PodFacts | None) -> None:
        job = None if facts is None else facts.job
        before = self.pods.pop(key, None)
        if job is not None:
            self.pods[key] = self._foreseen(job)
        if before is not None and (job is None or job.uid != before.uid):
            self._begun.discard(before.uid)
            self._leaving.discard(before.uid)
        if facts is None or (facts.use is None and job is not None and job.over):
            self.capacity.pod(key, None)
        elif facts.use is not None:
            self.capacity.pod(key, facts.use)
        elif facts.ask is not None:
            # Of an earlier bridge, or of this one: what was promised to it stays promised.
            self.capacity.reserve(key, facts.ask)

    async def _follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self.look()
