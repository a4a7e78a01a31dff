"""Mirrors of what a checker must know: Workloads with checks, pods on nodes, nodes, flavors, and the checks themselves.

Rights that this takes: `list` and `watch` of these kinds in the whole cluster (deploy/kustomize/gang-fit). Of pods, only
those come that are on a node and not over, and of these only what they take is kept.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from fairlead_checker.facts import CheckedWorkload, PodUse, checked, pod_use
from fairlead_checker.free_capacity import FreeCapacity
from fairlead_contracts.base.observer import LibraryObserver
from fairlead_kube.client import KubeClient
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.objects import holds
from fairlead_kube.kinds.observed import observed_node
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.kinds.queues import ResourceFlavor
from fairlead_kube.kinds.resources import ADMISSION_CHECKS, NODES, PODS, RESOURCE_FLAVORS, WORKLOADS
from fairlead_kube.kinds.workloads import AdmissionCheck, Workload
from fairlead_kube.reflector import Reflector, whole
from fairlead_policy.fit.observed import ready_node
from fairlead_policy.fit.shapes import FitNode

ON_NODES = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Pods that take something of a node."""


class CheckSources:
    """The mirrors of one cluster, and the free capacity that they show.

    Args:
        client: the cluster's client.
        controller: who answers a check, as its `spec.controllerName` says; checks of others are left out.
        wake: set when there is something to look at.
        observer: hears of troubles.
    """

    def __init__(
        self, client: KubeClient, controller: str, *, wake: asyncio.Event, observer: LibraryObserver
    ) -> None:
        def ours(check: AdmissionCheck) -> AdmissionCheck | None:
            return check if check.spec.controller_name == controller else None

        self.free_capacity = FreeCapacity()
        self._checks = Reflector[AdmissionCheck, AdmissionCheck](
            client, ADMISSION_CHECKS, project=ours, wake=wake, observer=observer
        )
        self._flavors = Reflector[ResourceFlavor, ResourceFlavor](
            client, RESOURCE_FLAVORS, project=whole, wake=wake, observer=observer
        )
        self._nodes = Reflector[Node, FitNode](
            client,
            NODES,
            project=lambda node: ready_node(observed_node(node)),
            wake=wake,
            observer=observer,
        )
        self._pods = Reflector[Pod, PodUse](
            client, PODS, project=pod_use, wake=wake, observer=observer, field_selector=ON_NODES
        )
        self._workloads = Reflector[Workload, CheckedWorkload](
            client, WORKLOADS, project=checked, wake=wake, observer=observer
        )
        self._all: dict[str, Reflector[Any, Any]] = {
            "admissionchecks": self._checks,
            "resourceflavors": self._flavors,
            "nodes": self._nodes,
            "pods": self._pods,
            "workloads": self._workloads,
        }
        self._heard = dict.fromkeys(self._all, time.monotonic())

    def refresh(self) -> None:
        """Take in what changed of nodes and pods."""
        for key, node in self._nodes.take().changed.items():
            self.free_capacity.set_node(key.name, node)
        for key, use in self._pods.take().changed.items():
            self.free_capacity.set_pod(key, use)
        for kind in (self._checks, self._flavors, self._workloads):
            kind.take()

    @property
    def workloads(self) -> list[CheckedWorkload]:
        """The Workloads that have checks and are not over."""
        return list(self._workloads.values.values())

    @property
    def flavors(self) -> Mapping[str, ResourceFlavor]:
        """The flavors, by name."""
        return {key.name: flavor for key, flavor in self._flavors.values.items()}

    @property
    def checks(self) -> frozenset[str]:
        """Names of the checks that we answer."""
        return frozenset(key.name for key in self._checks.values)

    def unclaimed(self) -> list[AdmissionCheck]:
        """Our checks that do not say yet that somebody answers them."""
        return [one for one in self._checks.values.values() if not holds(one.status.conditions, "Active")]

    def missing(self) -> str | None:
        """The reason for which not everything is known, if so."""
        return next(
            (f"not all {name} were heard yet" for name, one in self._all.items() if not one.complete), None
        )

    def why_silent(self, longest_seconds: float) -> str | None:
        """The sources that were not heard of for longer than that, in words."""
        now = time.monotonic()
        for name, kind in self._all.items():
            if kind.following:
                self._heard[name] = now
            elif now - self._heard[name] > longest_seconds:
                return f"the API server has said nothing of {name} for {now - self._heard[name]:.0f} s"
        return None

    async def run(self) -> None:
        """Runs until cancelled.

        Raises:
            FatalKubeError: a kind or the right to read it is missing from the start.
        """
        async with asyncio.TaskGroup() as group:
            for name, kind in self._all.items():
                group.create_task(kind.run(), name=f"mirror of {name}")
