"""Scene: a moment of a pool with a tree of tenants, told to the policy core and ordered by brute force beside it."""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from fairlead_contracts.base.instants import Micros
from fairlead_policy.order.order import Order
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.oracles.oracle import OracleJob, OracleRules, Pick, picks_of


@dataclass(frozen=True)
class TreeScene:
    """A scene: jobs that wait and run under some rules, and what was used before."""

    rules: PoolRules
    waiting: tuple[WaitingJob, ...]
    running: tuple[tuple[str, str, dict[str, int]], ...]
    """Running jobs: (uid, tenant, demand)."""
    now: Micros
    past: Mapping[str, dict[str, int]] = field(default_factory=dict)
    """Past use by tenant."""


def pool(scene: TreeScene, tops: Collection[str] | None = None) -> PoolFacts:
    """The pool as the policy core is told it; only what is below these top-level tenants, or all."""
    order, top_of = PoolFacts(scene.rules), scene.rules.top_of
    for uid, tenant, demand in scene.running:
        if tops is None or top_of(tenant) in tops:
            order.run(uid, tenant, demand)
    for job in scene.waiting:
        if tops is None or top_of(job.tenant) in tops:
            order.wait(job)
    for tenant, past in scene.past.items():
        if tops is None or top_of(tenant) in tops:
            order.remember(tenant, past)
    return order


def order_before_changes(scene: TreeScene, rng: random.Random) -> Order:
    """The order of a scene, as it was taken before its jobs came to start and go, and others looked at what was left."""
    facts = pool(scene)
    order = facts.at(scene.now)
    if rng.random() < 0.5:  # noqa: PLR2004 # half of them
        order.queue_heads(1)
    for job in scene.waiting:
        if rng.random() < 0.5:  # noqa: PLR2004 # half of them
            facts.run(job.uid, job.tenant, job.demand)
        else:
            facts.forget(job.uid)
        facts.at(scene.now).queue_heads(rng.randint(1, 3))
    return order


def by_brute_force(scene: TreeScene) -> list[str]:
    """The uids in order, one pick after another."""
    return [pick.job.uid for pick in picks(scene)]


def picks(scene: TreeScene) -> list[Pick]:
    """The jobs in order, each with what it was compared by."""
    jobs = [
        OracleJob(
            uid=job.uid,
            tenant=job.tenant,
            job_class=job.job_class,
            submitted=job.submitted,
            demand=job.demand,
            override=None if job.override is None else Fraction(job.override),
        )
        for job in scene.waiting
    ]
    rules, use = scene.rules, _use(scene)
    tenants = {*use, *(job.tenant for job in jobs), *rules.entitlements, *rules.parents.values()}
    return picks_of(jobs, _plain(rules, tenants), scene.now, use)


def _use(scene: TreeScene) -> dict[str, dict[str, int]]:
    known = [(tenant, demand) for _, tenant, demand in scene.running]
    # What a tenant used of a resource that the pool has no more of is history: only what runs is held against it.
    past = [
        (tenant, {name: amount for name, amount in used.items() if not scene.rules.lacks(name)})
        for tenant, used in scene.past.items()
    ]
    use: dict[str, dict[str, int]] = {}
    for tenant, demand in [*known, *past]:
        held = use.setdefault(tenant, {})
        for resource, amount in demand.items():
            held[resource] = held.get(resource, 0) + amount
    return use


def _plain(rules: PoolRules, tenants: Collection[str]) -> OracleRules:
    return OracleRules(
        capacity=rules.capacity,
        entitlements={tenant: rules.entitlement_of(tenant) for tenant in tenants},
        parents=rules.parents,
        classes=rules.classes,
        mode=rules.class_mode,
        class_weights=rules.class_weights,
        resource_weights=rules.resource_weights,
        rate=rules.rate,
        cap=rules.cap,
        rescaled=rules.rescaled,
        lowest_of_live=rules.lowest_of_live,
        saturated=rules.saturated,
    )
