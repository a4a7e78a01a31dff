"""A whole Fairlead beside a real Kubernetes with Kueue: watcher, scorers and admitter as processes."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path

from fairlead_bus import Bus
from fairlead_contracts.messages.leave import LeverName
from fairlead_contracts.policyfile.document import Aging, PolicyDocument
from fairlead_testkit.by_hand.people import give_leave
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.fleets.process_fleet import ProcessFleet
from fairlead_testkit.inputs.builders import a_weighted_policy
from fairlead_testkit.kubelab import ADMITTER, RUN_SECONDS, WATCHER, AuditLine, KubeLab
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture, effective_priority
from fairlead_testkit.timing.awaiting import eventually

KUBE_CLUSTER = "lab"
POOL = "gpu"
"""The policy's name for the pool of a fixture."""
_USERS = {"watcher": WATCHER, "admitter": ADMITTER}


class KubeFleet(ProcessFleet):
    """A nats-server, and the services that serve one lab; each asks the API server as the user that it is.

    Args:
        lever: lever of the leave to steer that is stored before; None stores none.
        watchers: number of watchers; one leads.
        admitters: number of admitters; one leads.
    """

    def __init__(
        self,
        directory: Path,
        lab: KubeLab,
        *,
        policy: PolicyDocument,
        lever: LeverName | None = "boost",
        watchers: int = 1,
        scorers: int = 2,
        admitters: int = 1,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        counts = {"watcher": watchers, "scorer": scorers, "admitter": admitters}
        super().__init__(directory, cluster=KUBE_CLUSTER, policy=policy, counts=counts, settings=settings)
        self.lab = lab
        self._lever = lever

    async def prepare(self, bus: Bus) -> None:
        """Prepares the fleet, with the leave to steer."""
        await super().prepare(bus)
        if self._lever is not None:
            await give_leave(bus, self._lever, cluster=KUBE_CLUSTER)

    def own_settings(self, service: str) -> Mapping[str, object]:
        """Adds to the base's: who talks to Kubernetes does so as its own user."""
        own = dict(super().own_settings(service))
        if service in _USERS:
            own["kubeconfig"] = self.lab.kubeconfig(_USERS[service])
        if service == "admitter":
            own["frontend"] = "kueue"
            own["template_annotation_prefixes"] = [f"{RUN_SECONDS.partition('/')[0]}/"]
        return own


async def all_placed(bus: Bus, fixture: NamespaceFixture) -> None:
    """Wait until the scorers have a position for all that waits, and for nothing else."""

    async def known() -> bool:
        found = await whole_queue(bus, POOL)
        return not found.silent_shards and {one.position.id for one in found.positions} == set(
            fixture.waiting()
        )

    await eventually(known, 60, what="all that waits has a position")


async def heads_stand(bus: Bus, fixture: NamespaceFixture, first: int = 1) -> None:
    """Wait until the scorers know what waits, Kueue's `first` next jobs are theirs, and Kueue is done with what was written to it.

    Real jobs last longer than a reaction. Whoever then ends one has the first of these jobs admitted.
    """

    async def stands() -> bool:
        found = await whole_queue(bus, POOL)
        wanted = [one.position.id for one in found.positions]
        known = not found.silent_shards and set(wanted) == set(fixture.waiting())
        return known and wanted[:first] == fixture.kueue_order()[:first]

    await eventually(
        partial(holds_still, fixture, stands), 60, what="Kueue's next jobs are those that are wanted"
    )


async def holds_still(fixture: NamespaceFixture, stands: Callable[[], Awaitable[bool]]) -> bool:
    """Whether a state holds now and again once Kueue has taken in all writes, with no write in between.

    A state that is right by chance between two writes would be wrong when quota comes free amid the next.
    """
    if not await stands():
        return False
    written = levels(fixture)
    await fixture.settled()
    return written == levels(fixture) and await stands()


def levels(fixture: NamespaceFixture) -> dict[str, int]:
    """Numbers that Kueue orders by, of each Workload that waits."""
    return {name: effective_priority(item) for name, item in fixture.waiting().items()}


def level_patches(fixture: NamespaceFixture, after: int) -> list[AuditLine]:
    """Fairlead's writes of levels that the API server took, by its own audit log."""
    lines = fixture.lab.audit_lines(user=ADMITTER, verb="patch", resource="workloads", after=after)
    mine = [line for line in lines if line.namespace in fixture.namespaces.values()]
    return [line for line in mine if line.code == HTTPStatus.OK and not line.dry_run and not line.subresource]


def fair_policy(
    fixture: NamespaceFixture,
    weights: Mapping[str, float],
    pool: str,
    *,
    entitlement_per_day: float = 0.0,
    **more: object,
) -> PolicyDocument:
    """A policy for a fixture.

    Args:
        weights: weights by the tenants' short names.
        pool: name of the pool, as the cluster states it: a cohort or a lone ClusterQueue.
        entitlement_per_day: of aging. 0 leaves it out: jobs that were created within a second have no order in Kubernetes.
    """
    by_namespace = {fixture.namespaces[name]: weight for name, weight in weights.items()}
    aging = Aging(entitlement_per_day=entitlement_per_day)
    return a_weighted_policy(by_namespace, POOL, f"{KUBE_CLUSTER}/{pool}", aging=aging, **more)
