"""The parts of the policy document, as types. Read by `read`, checked by `validate`.

Shorthands of the file: `class_mode: drf` and `class_mode: wdrf` stand for the keys of the controllers whose formulas they
name. A key that the file has itself counts before them; the document that is stored has the keys written out.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from fairlead_contracts.base.reading import Strict

POLICY_VERSION = 1
SHARDS = 16
"""Shards of a pool unless the policy says otherwise; independent of the number of scorers."""


class Aging(Strict, frozen=True, kw_only=True):
    """Aging as an exchange rate: waiting a day is worth `entitlement_per_day` of what a tenant is entitled to."""

    entitlement_per_day: float = 0.1
    """Worth of a day, in the unit of tags: 1 is all that the tenant is entitled to. 0 lets waiting count
    nothing."""
    cap_days: float | None = None
    """Days after which waiting counts no more; null for no cap."""


class Match(Strict, frozen=True, kw_only=True):
    """The jobs that are a tenant's: every list that is given must hold the job's value."""

    scopes: list[str] | None = None
    """Namespaces or accounts."""
    queues: list[str] | None = None
    """Queues of the frontend: for Kueue ClusterQueues."""
    clusters: list[str] | None = None
    """Clusters by their names on NATS."""
    labels: dict[str, str] = {}
    """Labels that a job must have, each with that value."""
    annotations: dict[str, str] = {}
    """Annotations that a job must have, each with that value."""
    local_queues: list[str] | None = None
    """LocalQueues of Kueue, as `<namespace>/<name>`."""


class Bands(Strict, frozen=True, kw_only=True):
    """The levels of each class, where a frontend keeps classes apart by them."""

    width: int = 1_000_000
    """Number of levels that a class has above its floor, unless the next class begins before."""


class Tenant(Strict, frozen=True, kw_only=True):
    """One tenant: a leaf of the tree, or the parent of others."""

    name: str
    """Name of the tenant. Jobs of the scope (namespace, account) of this name are its jobs unless `match`
    says otherwise."""
    weight: float = 1.0
    """Weight among the siblings': 3 and 1 are entitled to three quarters and one. 0 lets its jobs stand last;
    else from a millionth to a billion."""
    parent: str | None = None
    """Tenant whose share its use counts towards; null at the top. A tenant with children has no jobs of its
    own."""
    pool: str | None = None
    """The only pool that it counts in; null for all. Inherited from the parent."""
    match: Match | None = None
    """Rule that tells its jobs; null takes those of the scope that has the tenant's name."""


class Pool(Strict, frozen=True, kw_only=True):
    """A fairness domain by its own name, of one or several clusters' pools."""

    name: str
    """Name by which people, subjects and dashboards know the pool."""
    members: list[str]
    """Pools that it joins, as `<cluster>/<pool>`, by the names that the clusters give them. A stated pool
    that no policy pool names is its own pool, under that same `<cluster>/<pool>`."""
    mode: Literal["advise", "reserve"] | None = None
    """Mode of this pool in place of the document's own."""
    hardware: Literal["disjoint", "shared"] = "disjoint"
    """Hardware of the clusters that it joins: `disjoint`, each its own, and capacities add up; `shared`, the
    same machines under several frontends: of each resource there is as much as the cluster says that has most
    of it, and a job that carries out one of another cluster counts once."""


class Grant(Strict, frozen=True, kw_only=True):
    """Classes that a tenant's jobs may have beside the last one, which everybody may."""

    tenant: str
    """Tenant that is granted the classes; so are all below it."""
    classes: list[str] = []
    """Classes that its jobs may ask for."""
    priority_override: bool = False
    """Whether a job may state a number that counts in place of its class's weight."""
    job: str | None = None
    """The only job that is granted them, by id or uid; it then has the first of these classes, asked for or
    not. Null for any."""
    by: str = ""
    """Person who granted them."""
    why: str = ""
    """Reason for the grant, for those who come after."""


class Hierarchy(Strict, frozen=True, kw_only=True):
    """The rule by which the shares of a node's children make the node's own."""

    mode: Literal["drf", "hdrf"] = "drf"
    """Rule: with `drf` the node's share is that of the sum of its children's use. With `hdrf` each waiting
    child counts as if it stood at the lowest share among its siblings, so that a child that holds much of one
    resource does not starve its sibling that wants another (Bhattacharya et al., "Hierarchical Scheduling for
    Diverse Datacenter Workloads", SoCC 2013)."""
    minimum: Literal["nonzero", "live"] = "nonzero"
    """Children among which that lowest share is looked for: `nonzero`, those that use something; `live`, all
    that wait. With `live` a fresh tenant without use sets its whole organisation back to nothing."""


class Fit(Strict, frozen=True, kw_only=True):
    """The fitting of gangs on nodes."""

    strategy: Literal["binpack", "spread", "none"] = "none"
    """Strategy: `binpack` fills nodes one after another, `spread` takes the emptiest first; `none` looks at
    no nodes."""


class Reserve(Strict, frozen=True, kw_only=True):
    """The times that the mode `reserve` counts with. Too long: fewer jobs pass. Too short: promises break."""

    reaction_seconds: float = 20.0
    """Longest time from a fact to the level that follows from it, the wait for an API server's reply
    included."""
    grace_seconds: float = 60.0
    """Time from a run's limit to the moment at which the frontend can give away what it held: pods take time
    to end."""
    rest_seconds: float = 300.0
    """Time for which a job gets no pass after one that the frontend did not use."""


class PolicyDocument(Strict, frozen=True, kw_only=True):
    """The policy: tenants and weights, classes and grants, aging, and how levels are written."""

    version: Literal[1] = 1
    """Version of this format."""
    classes: list[str] = msgspec.field(default_factory=lambda: ["urgent", "approved", "normal"])
    """Names of the classes. The first goes first; the last is everybody's default."""
    class_mode: Literal["strict", "additive", "multiplicative"] = "strict"
    """Rule for classes. `strict`: every job of a class goes before the next class's. `additive`: the class's
    weight is a term of the key, lower goes first. `multiplicative`: it divides the start tag, higher goes
    first."""
    class_weights: dict[str, float] = {}
    """Weights by class; for the modes that are not strict, which need one of each."""
    aging: Aging = msgspec.field(default_factory=Aging)
    resource_weights: dict[str, float] = {}
    """Weights by resource, 1 where none is given; 0 leaves a resource out of the dominant share."""
    half_life_hours: float | None = None
    """Hours after which past use counts half; null counts only what runs now."""
    hierarchy: Hierarchy = msgspec.field(default_factory=Hierarchy)
    fit: Fit = msgspec.field(default_factory=Fit)
    mode: Literal["advise", "reserve"] = "advise"
    """Mode. `advise`: the order alone. `reserve`: a large job at the head is promised a start, and smaller
    ones pass it only where they end before."""
    reserve: Reserve = msgspec.field(default_factory=Reserve)
    """Times that the mode `reserve` counts with."""
    window: int = 32
    """Number of heads of each queue that are labelled."""
    shards: int = SHARDS
    """Number of shards by which scorers share a pool; independent of the number of scorers."""
    bands: Bands = msgspec.field(default_factory=Bands)
    preemption: Literal["never", "protect", "accept"] = "never"
    """Rule for levels by which the frontend could preempt: `never` writes none, `protect` lifts each job that
    was admitted, `accept` lets them be preempted."""
    wake: Literal["always", "never"] = "always"
    """Whether the job that is next gets another level when room comes free, though its own would do: it is
    tried at once then, and not with the frontend's next batch. `never` saves one write a start."""
    unlisted_weight: float | None = None
    """Weight of a tenant that the document does not name; null refuses its submissions, and jobs of it that
    enter a queue by another way stand last."""
    expected_unlisted: int = 10
    """Number of unlisted tenants that the sum of the weights at the top counts, where they are let in."""
    divide_by: Literal["entitlement", "weight"] = "entitlement"
    """Divisor of the share in a start tag. `entitlement`: the weight in relation to the siblings', from the
    top. `weight`: the weight as it stands, 1 being the whole pool, as the formulas of older controllers have
    it; aging counts in the same."""
    pools: list[Pool] = []
    """Pools that have names of their own, or join several clusters."""
    tenants: list[Tenant] = []
    """Tenants, each with the part that it may have."""
    grants: list[Grant] = []
    """Grants of classes: these are granted, not taken."""


_SECONDS_A_DAY = 86_400

PRESETS: Mapping[str, Mapping[object, object]] = {
    # score = W + share - 0.1 * seconds waited; lower goes first (github.com/Godmook/DRF_Controller).
    "drf": {
        "classes": ["urgent", "normal"],
        "class_mode": "additive",
        "class_weights": {"urgent": 0, "normal": 1000},
        "divide_by": "weight",
        "aging": {"entitlement_per_day": 0.1 * _SECONDS_A_DAY, "cap_days": 14},
    },
    # share / W - 0.1 * seconds waited, of which an hour counts (github.com/Godmook/GPU_Controller).
    "wdrf": {
        "classes": ["urgent", "approved", "normal"],
        "class_mode": "multiplicative",
        "class_weights": {"urgent": 1000, "approved": 100, "normal": 1},
        "divide_by": "weight",
        "aging": {"entitlement_per_day": 0.1 * _SECONDS_A_DAY, "cap_days": 1 / 24},
    },
}


def written_out(found: Mapping[object, object]) -> Mapping[object, object]:
    """The document's keys with a preset's in place of its name."""
    mode = found.get("class_mode")
    if not isinstance(mode, str) or mode not in PRESETS:
        return found
    given = {key: value for key, value in found.items() if key != "class_mode"}
    keys: dict[object, object] = {**PRESETS[mode]}
    return keys | given
