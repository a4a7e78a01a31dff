"""Amounts of waiting jobs that share their nodes with no other: Slurm tells a part of them until they run. Pure."""

from collections.abc import Iterable

import msgspec

from fairlead_slurm import SlurmJob, whole_job
from fairlead_slurm.cluster import SlurmNode

_PENDING = "PENDING"
_AS_ASKED = ("mem", "billing", "node")
"""Resources of which a job on whole nodes has no more than it asks for."""


class WholeNodes:
    """The nodes of a cluster, as such jobs take them."""

    def __init__(self, nodes: Iterable[SlurmNode]) -> None:
        self._nodes = [node for node in nodes if node.usable]
        self._least: dict[tuple[tuple[str, ...], frozenset[str]], dict[str, int]] = {}

    def taken_by(self, job: SlurmJob) -> SlurmJob:
        """The job with what it will have: of each of its nodes as much as the smallest has that it may run on."""
        if any(part.whole_nodes for part in job.parts):
            return whole_job([self.taken_by(part) for part in job.parts])
        if not job.whole_nodes or job.state != _PENDING:
            return job
        # Whatever else is tracked may be of no node, as licences are.
        kind = (job.partitions, frozenset(name for name in job.resources if name.startswith("gres/")))
        if kind not in self._least:
            self._least[kind] = self._of(*kind)
        taken = {
            name: max(job.resources.get(name, 0), max(1, job.nodes) * amount)
            for name, amount in self._least[kind].items()
        }
        return msgspec.structs.replace(job, resources=job.resources | taken)

    def _of(self, partitions: tuple[str, ...], asked: frozenset[str]) -> dict[str, int]:
        """The least of each resource on nodes of these partitions that have all that is asked for."""
        fit = [
            node.resources
            for node in self._nodes
            if not asked - node.resources.keys() and not set(partitions).isdisjoint(node.partitions)
        ]
        names = set.intersection(*map(set, fit)).difference(_AS_ASKED) if fit else ()
        return {name: min(resources[name] for resources in fit) for name in names}
