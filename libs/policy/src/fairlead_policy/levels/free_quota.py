"""Free quota: which waiting jobs would fit into what is free of a pool's quota, flavor by flavor.

A queue has what is left of its own quota, and what the nodes above it have left of what is lent to them, as far as it may
borrow (as Kueue 0.19 reckons: `available`, pkg/cache/scheduler/resource_node.go). What cannot be seen from a queue's quota,
as taints and nodes of a flavor, is taken as no hindrance until the frontend says so of that flavor: who is told to fit and
does not costs one try.
"""

from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.messages.state import CohortQuota, FlavorQuota, JobState, QueueState

type FlavorResource = tuple[str, str]
"""A resource of one flavor: what quota is given for."""
type HeldQuota = Mapping[FlavorResource, int]

type QuotaShape = tuple[object, ...]


def shape_of(job: JobState) -> QuotaShape:
    """All that decides whether there is room for a job: jobs that share it need not be asked again."""
    parts = tuple((part.pods, *part.demand.items()) for part in job.shapes)
    return job.queue, job.refused_by, tuple(job.demand.items()), parts


class _Node(msgspec.Struct, kw_only=True):
    """A queue or a cohort."""

    parent: str | None
    quota: dict[FlavorResource, int]
    """Quota of its own, and what its children lend."""
    used: dict[FlavorResource, int]
    """Use by its own jobs, and what its children hold beyond what they do not lend."""
    borrowing: dict[FlavorResource, int]
    lending: dict[FlavorResource, int]

    def kept(self, name: FlavorResource) -> int:
        """The part of its quota that it does not lend (`localQuota`)."""
        most = self.lending.get(name)
        return 0 if most is None or self.parent is None else max(0, self.quota.get(name, 0) - most)


class FreeQuota:
    """The free quota in the queues of one pool.

    Args:
        queues: the pool's queues; one that states no quotas has no room.
        cohorts: the nodes above them.
        held: quota that each queue's jobs hold.
    """

    def __init__(
        self, queues: Iterable[QueueState], cohorts: Iterable[CohortQuota], held: Mapping[str, HeldQuota]
    ) -> None:
        self._queues = {queue.name: queue for queue in queues}
        self._cohorts = {cohort.name: _node(cohort.parent, cohort.quotas, {}) for cohort in cohorts}
        self._nodes = {
            name: _node(queue.cohort, queue.quotas, held.get(name, {}))
            for name, queue in self._queues.items()
        }
        for cohort in self._deepest_first():
            self._count_above(cohort)
        self._fits: dict[QuotaShape, bool] = {}
        """Answers since something was held last, by shape."""

    def fits(self, job: JobState) -> bool:
        """Whether there is room for all of the job's pods at once."""
        shape = shape_of(job)
        found = self._fits.get(shape)
        if found is None:
            found = self._fits[shape] = self.placed(job) is not None
        return found

    def placed(self, job: JobState) -> HeldQuota | None:
        """The amounts of each flavor that the job would take; None where there is no room for all of its pods at once."""
        queue = self._queues.get(job.queue)
        if queue is None or not queue.active or not queue.quotas:
            return None
        taken: dict[FlavorResource, int] = {}
        return taken if all(self._place(part, job, taken) for part in _parts(job)) else None

    def take(self, job: JobState) -> bool:
        """Hold what the job would take, where there is room for it; gives whether there is."""
        placed = self.placed(job)
        if placed is not None:
            self.hold(job.queue, placed)
        return placed is not None

    def hold(self, queue: str, held: HeldQuota, *, sign: int = 1) -> None:
        """Counts so much more, or less, as held by a queue: the same as room made anew with it."""
        node = self._nodes.get(queue)
        if node is not None:
            self._fits.clear()
            for name, amount in held.items():
                self._add_use(node, name, sign * amount)

    def _add_use(self, node: _Node, name: FlavorResource, more: int) -> None:
        """Adds use to a node; what exceeds the quota that the node keeps counts in the nodes above, too."""
        used, kept = node.used.get(name, 0), node.kept(name)
        node.used[name] = used + more
        above = self._cohorts.get(node.parent) if node.parent else None
        beyond = max(0, used + more - kept) - max(0, used - kept)
        if above is not None and beyond:
            self._add_use(above, name, beyond)

    def free(self, queue: str, name: FlavorResource) -> int:
        """The amount of a flavor's resource that the queue could still take, base units; negative beyond quota."""
        return self._free(self._nodes[queue], name)

    def _place(self, part: Mapping[str, int], job: JobState, taken: dict[FlavorResource, int]) -> bool:
        """Take one pod set's demand from the first flavors that have it, one for the resources of a group."""
        groups: dict[tuple[str, ...], dict[str, int]] = {}
        quotas = self._queues[job.queue].quotas
        for resource, amount in part.items():
            flavors = tuple(quota.flavor for quota in quotas if resource in quota.nominal)
            if flavors and amount:
                groups.setdefault(flavors, {})[resource] = amount
        return all(self._place_group(flavors, asked, job, taken) for flavors, asked in groups.items())

    def _place_group(
        self,
        flavors: Iterable[str],
        asked: Mapping[str, int],
        job: JobState,
        taken: dict[FlavorResource, int],
    ) -> bool:
        refusing = job.refused_by or ()
        for flavor in (one for one in flavors if one not in refusing):
            wanted = {
                (flavor, resource): amount + taken.get((flavor, resource), 0)
                for resource, amount in asked.items()
            }
            if all(amount <= self.free(job.queue, name) for name, amount in wanted.items()):
                taken |= wanted
                return True
        return False

    def _free(self, node: _Node, name: FlavorResource) -> int:
        quota, used = node.quota.get(name, 0), node.used.get(name, 0)
        above = self._cohorts.get(node.parent) if node.parent else None
        if above is None:
            return quota - used
        kept = node.kept(name)
        free_above = self._free(above, name)
        if (limit := node.borrowing.get(name)) is not None:
            free_above = min(free_above, quota - kept - max(0, used - kept) + limit)
        return max(0, kept - used) + free_above

    def _deepest_first(self) -> list[_Node]:
        """The nodes of the pool, each before the one above it. Cohorts in a circle have no room: nothing is above them."""
        depth: dict[str, int] = {}
        for name in self._cohorts:
            path, at = [], name
            while at in self._cohorts and at not in path:
                path.append(at)
                at = self._cohorts[at].parent or ""
            if at in path:
                self._cohorts[name].parent = None
            depth[name] = len(path)
        ordered = sorted(self._cohorts, key=lambda name: -depth[name])
        return [*self._nodes.values(), *(self._cohorts[name] for name in ordered)]

    def _count_above(self, node: _Node) -> None:
        above = self._cohorts.get(node.parent) if node.parent else None
        if above is None:
            return
        for name, amount in node.quota.items():
            above.quota[name] = above.quota.get(name, 0) + amount - node.kept(name)
        for name, amount in node.used.items():
            above.used[name] = above.used.get(name, 0) + max(0, amount - node.kept(name))


def _node(parent: str, quotas: Iterable[FlavorQuota], held: HeldQuota) -> _Node:
    return _Node(
        parent=parent or None,
        quota=_by_name(quotas, "nominal"),
        used=dict(held),
        borrowing=_by_name(quotas, "borrowing"),
        lending=_by_name(quotas, "lending"),
    )


def _by_name(quotas: Iterable[FlavorQuota], what: str) -> dict[FlavorResource, int]:
    amounts: dict[FlavorResource, int] = {}
    for quota in quotas:
        of_resources: dict[str, int] = getattr(quota, what)
        amounts |= {(quota.flavor, resource): amount for resource, amount in of_resources.items()}
    return amounts


def _parts(job: JobState) -> list[Mapping[str, int]]:
    """The pods of a job by kind, where they sum up to what it is counted as; else the job as one."""
    total: dict[str, int] = {}
    parts: list[Mapping[str, int]] = []
    for shape in job.shapes:
        part = {resource: amount * shape.pods for resource, amount in shape.demand.items()}
        parts.append(part)
        for resource, amount in part.items():
            total[resource] = total.get(resource, 0) + amount
    return parts if total and total == job.demand else [job.demand]
