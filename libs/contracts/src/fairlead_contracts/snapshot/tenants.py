"""The sense of a snapshot's tenants: their tree, their pools and their past use."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.quantities import MAX_SUM
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.tree import check_pools_of_tree, check_tree, inner_nodes
from fairlead_contracts.policyfile.validate import check_weight
from fairlead_contracts.snapshot.types import SnapshotTenant, WrittenTenant, in_base_units
from fairlead_contracts.snapshot.values import SnapshotValues


@dataclass(eq=False)
class TenantChecks:
    """Checks the tenants of a snapshot beside those of its policy.

    Attributes:
        names: the names as given.
        pool_of: the pool that each tenant's jobs stand in; None where nothing says. Filled by `find_pools`.
        misnamed: pools that a tenant names and that are none: told there, not once more a job.
        inner: tenants with others below them: they have no jobs of their own. Once the tree is checked.
    """

    written: Sequence[WrittenTenant]
    """The snapshot's tenants."""
    policy: PolicyDocument | None
    """The policy, as far as it is known."""
    by_policy: Collection[str]
    """Names of the policy's tenants, known or not."""
    names: Collection[str]
    """Names of tenants that the file has, also of entries that could not be read."""
    values: SnapshotValues

    def __post_init__(self) -> None:
        self.pool_of: dict[str, str | None] = {}
        self.misnamed: set[str | None] = set()
        self.inner: set[str] = set()

    def read(self) -> list[SnapshotTenant]:
        """The tenants, each by itself."""
        tenants = [self._tenant(at, tenant) for at, tenant in enumerate(self.written)]
        self.values.refuse_twice("tenants", [tenant.name for tenant in self.written])
        return tenants

    def _tenant(self, at: int, tenant: WrittenTenant) -> SnapshotTenant:
        self.values.check_name(("tenants", at, "name"), tenant.name)
        if tenant.weight is not None:
            self.values.problems += check_weight(self.values.field("tenants", at, "weight"), tenant.weight)
        if tenant.pool is not None and not self.values.check_pool("tenants", at, tenant.pool):
            self.misnamed.add(tenant.pool)
        if tenant.unlisted:
            self._check_unlisted(at, tenant)
        past = self.values.amounts(("tenants", at, "past_use"), tenant.past_use, MAX_SUM)
        if any(past.values()) and self.policy is not None and self.policy.half_life_hours is None:
            reason = "past use counts only by a half-life: set half_life_hours in the policy"
            self.values.fail(("tenants", at, "past_use"), tenant.past_use, reason)
        used = {resource: amount for resource, amount in past.items() if amount}
        return in_base_units(SnapshotTenant, tenant, past_use=used)

    def _check_unlisted(self, at: int, tenant: WrittenTenant) -> None:
        """Checks that a tenant that the policy does not name has no word of its own: it stands at the top."""
        if tenant.name in self.by_policy:
            self.values.fail(
                ("tenants", at, "unlisted"), tenant.unlisted, "must be left out: the policy names this tenant"
            )
        for key, value in (("weight", tenant.weight), ("parent", tenant.parent)):
            if value is not None:
                self.values.fail(("tenants", at, key), value, "must be left out: an unlisted tenant has none")

    def check_tree(self) -> None:
        """The tree as a whole: the snapshot's word on a parent counts before the policy's."""
        parents, pools = _parents_and_pools(self.policy, self.written)
        self.inner = inner_nodes(parents)
        self._tell(check_tree(parents, self.names), "parent", parents)
        self._tell(check_pools_of_tree(parents, pools), "pool", pools)

    def _tell(self, found: Iterable[tuple[str, str]], key: str, values: Mapping[str, str | None]) -> None:
        """Problems of tenants, each at the snapshot's entry where it has one, else at the policy's."""
        listed = [] if self.policy is None else self.policy.tenants
        places = {tenant.name: at for at, tenant in enumerate(self.written)}
        by_policy = {tenant.name: at for at, tenant in enumerate(listed)}
        for name, reason in found:
            if name in places:
                self.values.fail(("tenants", places[name], key), values[name], reason)
            else:
                field = f"policy.tenants[{by_policy[name]}].{key}"
                self.values.problems.append(FieldError(field, values[name], reason))

    def find_pools(self) -> None:
        """Finds each known tenant's pool: its own word, then the policy's, its parents', or the only one."""
        alone = next(iter(self.values.pools)) if len(self.values.pools) == 1 else None
        self.pool_of = dict.fromkeys(self.names, alone)
        self.pool_of |= dict.fromkeys(self.by_policy, alone)
        self.pool_of |= pools_of_tenants(self.policy, self.written, alone)

    def check_places_of_past_use(self, resources: Mapping[str, AbstractSet[str]]) -> None:
        """Past use is of resources that the tenant's pool has; `resources` by pool."""
        for at, tenant in enumerate(self.written):
            pool = self.pool_of.get(tenant.name)
            if pool is None and tenant.past_use:
                reason = "counts in one pool: name the tenant's pool"
                self.values.fail(("tenants", at, "past_use"), tenant.past_use, reason)
            elif pool is not None:
                self.values.check_resources(
                    ("tenants", at, "past_use"), tenant.past_use, pool, resources.get(pool)
                )


def pools_of_tenants(
    policy: PolicyDocument | None, stated: Iterable[WrittenTenant | SnapshotTenant], alone: str | None
) -> dict[str, str | None]:
    """The pool that the jobs of each tenant of policy or snapshot stand in; None where nothing says.

    Args:
        policy: the policy, as far as it is known.
        stated: the snapshot's tenants; their word counts before the policy's.
        alone: the only pool, where there is one.
    """
    parents, pools = _parents_and_pools(policy, stated)
    return {name: _inherited(name, pools, parents) or alone for name in pools}


def _parents_and_pools(
    policy: PolicyDocument | None, stated: Iterable[WrittenTenant | SnapshotTenant]
) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """The parent of each tenant and the pool that it names itself: the snapshot's word counts before the policy's."""
    listed = [] if policy is None else policy.tenants
    parents = {tenant.name: tenant.parent for tenant in listed}
    pools = {tenant.name: tenant.pool for tenant in listed}
    for tenant in stated:
        parents[tenant.name] = parents.get(tenant.name) if tenant.parent is None else tenant.parent
        pools[tenant.name] = pools.get(tenant.name) if tenant.pool is None else tenant.pool
    return parents, pools


def _inherited(name: str, pools: Mapping[str, str | None], parents: Mapping[str, str | None]) -> str | None:
    way: set[str] = set()
    above: str | None = name
    while above is not None and above not in way:
        if pools.get(above) is not None:
            return pools[above]
        way.add(above)
        above = parents.get(above)
    return None
