"""The sense of a policy document: what its types alone do not tell."""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.quantities import in_digits
from fairlead_contracts.policyfile.document import (
    PolicyDocument,
    Pool,
    Reserve,
    Tenant,
)
from fairlead_contracts.policyfile.tree import check_pools_of_tree, check_tree, inner_nodes

LEAST_WEIGHT, LARGEST_WEIGHT = 1e-6, 1e9
"""Bounds of a weight that is not 0: keys stay finite, and differ by more than what a float can hold."""
LARGEST_RATE = 1e12
"""Entitlements a day."""
LONGEST_CAP_DAYS = 1e6
MOST_UNLISTED = 1_000_000
LARGEST_WINDOW = 10_000
SHORTEST_HALF_LIFE_HOURS, LONGEST_HALF_LIFE_HOURS = 1 / 60, 1e6
LARGEST_CLASS_WEIGHT = 1e9
LONGEST_REACTION_SECONDS, LONGEST_GRACE_SECONDS, LONGEST_REST_SECONDS = 3600, 86_400, 86_400
"""Bounds of what reserve mode counts with."""
MOST_SHARDS = 256
LONGEST_NAME = 253
"""Characters, as in a name of Kubernetes."""
NARROWEST_BAND, WIDEST_BAND = 1_000, 10_000_000
"""Bounds of a class's levels: room to insert between two jobs, and room for many classes in Kueue's int32."""

_NAME = re.compile(rf"[^\s\x00-\x1f\x7f]{{1,{LONGEST_NAME}}}")


type KeptPositions = Mapping[str, list[int]]


def check_document(
    document: PolicyDocument,
    kept: KeptPositions | None = None,
    tenants: Collection[str] = (),
    stated: Collection[str] = (),
    pools: Collection[str] = (),
) -> list[FieldError]:
    """Finds every fault of the document's sense, which the types alone do not tell.

    Args:
        document: the document, as far as it could be read.
        kept: positions in the file of the entries that are in the document, by list; by default all are.
        tenants: names that it may grant classes to, and have as parents, beside its own tenants.
        stated: names of tenants that the file has, also of entries that could not be read.
        pools: names that tenants may have as pools beside the document's own.
    """
    kept = kept or {}
    parents = {*tenants, *stated}
    return [
        *_check_numbers(document),
        *_check_classes(document),
        *_check_class_weights(document),
        *_check_grants(document, kept, tenants),
        *_check_tenants(document, kept, pools),
        *_check_tree(document, kept, parents, tenants),
        *_check_pools(document, kept),
    ]


def _placed[T](name: str, entries: list[T], kept: KeptPositions) -> Iterator[tuple[str, T]]:
    """Each entry with its place in the file."""
    for number, entry in zip(kept.get(name, range(len(entries))), entries, strict=True):
        yield f"{name}[{number}]", entry


def _check_numbers(document: PolicyDocument) -> Iterator[FieldError]:
    rate, cap = document.aging.entitlement_per_day, document.aging.cap_days
    if not 0 <= rate <= LARGEST_RATE:
        yield FieldError("aging.entitlement_per_day", rate, f"must be a number from 0 to {LARGEST_RATE:,.0f}")
    if cap is not None and not 0 < cap <= LONGEST_CAP_DAYS:
        reason = f"must be above 0, and at most {LONGEST_CAP_DAYS:,.0f}; leave it null for no cap"
        yield FieldError("aging.cap_days", cap, reason)
    for resource, weight in document.resource_weights.items():
        yield from check_weight(f"resource_weights.{resource}", weight)
    half_life = document.half_life_hours
    if half_life is not None and not SHORTEST_HALF_LIFE_HOURS <= half_life <= LONGEST_HALF_LIFE_HOURS:
        reason = (
            f"must lie between a minute, 1/60, and {LONGEST_HALF_LIFE_HOURS:,.0f}; "
            "leave it null to count only what runs now"
        )
        yield FieldError("half_life_hours", half_life, reason)
    if not 1 <= document.window <= LARGEST_WINDOW:
        yield FieldError("window", document.window, f"must lie between 1 and {LARGEST_WINDOW}")
    if not 1 <= document.shards <= MOST_SHARDS:
        yield FieldError("shards", document.shards, f"must lie between 1 and {MOST_SHARDS}")
    if not NARROWEST_BAND <= document.bands.width <= WIDEST_BAND:
        reason = f"must lie between {NARROWEST_BAND} and {WIDEST_BAND}"
        yield FieldError("bands.width", document.bands.width, reason)
    if document.unlisted_weight is not None:
        yield from check_weight("unlisted_weight", document.unlisted_weight)
    if not 1 <= document.expected_unlisted <= MOST_UNLISTED:
        yield FieldError(
            "expected_unlisted", document.expected_unlisted, f"must lie between 1 and {MOST_UNLISTED:,}"
        )
    yield from _check_reserve(document.reserve)


def _check_reserve(reserve: Reserve) -> Iterator[FieldError]:
    for name, seconds, least, most in (
        ("reaction_seconds", reserve.reaction_seconds, 1, LONGEST_REACTION_SECONDS),
        ("grace_seconds", reserve.grace_seconds, 0, LONGEST_GRACE_SECONDS),
        ("rest_seconds", reserve.rest_seconds, 0, LONGEST_REST_SECONDS),
    ):
        if not least <= seconds <= most:
            yield FieldError(f"reserve.{name}", seconds, f"must lie between {least} and {most}")


def check_weight(field: str, weight: float) -> Iterator[FieldError]:
    """Finds the fault of a weight, of a tenant or of a resource."""
    if weight != 0 and not LEAST_WEIGHT <= weight <= LARGEST_WEIGHT:
        yield FieldError(
            field,
            weight,
            f"must be 0 or lie between {in_digits(LEAST_WEIGHT)} and {in_digits(LARGEST_WEIGHT)}",
        )


def _check_name(field: str, name: str) -> Iterator[FieldError]:
    if not _NAME.fullmatch(name):
        yield FieldError(field, name, f"must be 1 to {LONGEST_NAME} characters without blanks")


def _check_classes(document: PolicyDocument) -> Iterator[FieldError]:
    if not document.classes or len(set(document.classes)) != len(document.classes):
        yield FieldError("classes", document.classes, "must name at least one class, each once")
    for number, name in enumerate(document.classes):
        yield from _check_name(f"classes[{number}]", name)


def _check_class_weights(document: PolicyDocument) -> Iterator[FieldError]:
    """Checks that each class has a weight where weights count, of a size and sign that the mode can use."""
    if document.class_mode == "strict":
        return
    missing = [name for name in document.classes if name not in document.class_weights]
    if missing:
        reason = (
            f"class_mode {document.class_mode} takes a weight of each class; {', '.join(missing)} has none"
        )
        yield FieldError("class_weights", dict(document.class_weights), reason)
    least = 0 if document.class_mode == "additive" else LEAST_WEIGHT
    for name, weight in document.class_weights.items():
        field = f"class_weights.{name}"
        if name not in document.classes:
            yield FieldError(field, weight, "is the weight of a class that is not in classes")
        if not least <= weight <= LARGEST_CLASS_WEIGHT:
            yield FieldError(
                field, weight, f"must lie between {in_digits(least)} and {in_digits(LARGEST_CLASS_WEIGHT)}"
            )
    yield from _check_order_of_class_weights(document)


def _check_order_of_class_weights(document: PolicyDocument) -> Iterator[FieldError]:
    """Checks that no class goes before one that `classes` has before it: who grants it would grant the opposite."""
    additive, weights = document.class_mode == "additive", document.class_weights
    first = "lower" if additive else "higher"
    for before, after in pairwise(name for name in document.classes if name in weights):
        if (weights[after] < weights[before]) if additive else (weights[after] > weights[before]):
            reason = f"puts it before {before}, which stands first in classes: the {first} weight goes first in {document.class_mode}"
            yield FieldError(f"class_weights.{after}", weights[after], reason)


def _check_grants(
    document: PolicyDocument, kept: KeptPositions, others: Collection[str]
) -> Iterator[FieldError]:
    tenants = {*others, *(tenant.name for tenant in document.tenants)}
    for field, grant in _placed("grants", document.grants, kept):
        unknown = [name for name in grant.classes if name not in document.classes]
        if unknown:
            yield FieldError(f"{field}.classes", unknown, "names a class that is not in classes")
        if not grant.classes and not grant.priority_override:
            yield FieldError(f"{field}.classes", [], "must name a class, or grant priority_override")
        # A grant to one job lists nobody: whoever is let in unlisted may have it as they are.
        let_in = grant.job is not None and document.unlisted_weight is not None
        if grant.tenant not in tenants and not let_in:
            yield FieldError(f"{field}.tenant", grant.tenant, "names a tenant that is not in tenants")


def _check_tenants(
    document: PolicyDocument, kept: KeptPositions, others: Collection[str]
) -> Iterator[FieldError]:
    pools = {*others, *(pool.name for pool in document.pools)}
    seen: set[str] = set()
    for field, tenant in _placed("tenants", document.tenants, kept):
        yield from _check_tenant(field, tenant, pools)
        if tenant.name in seen:
            yield FieldError(f"{field}.name", tenant.name, "is named twice")
        seen.add(tenant.name)


def _check_tenant(field: str, tenant: Tenant, pools: set[str]) -> Iterator[FieldError]:
    yield from _check_name(f"{field}.name", tenant.name)
    yield from check_weight(f"{field}.weight", tenant.weight)
    if tenant.pool is not None and tenant.pool not in pools:
        yield FieldError(f"{field}.pool", tenant.pool, "names a pool that is not in pools")


def _check_tree(
    document: PolicyDocument, kept: KeptPositions, others: Collection[str], outside: Collection[str]
) -> Iterator[FieldError]:
    fields = {tenant.name: field for field, tenant in _placed("tenants", document.tenants, kept)}
    parents = {tenant.name: tenant.parent for tenant in document.tenants}
    if not outside:
        # With a snapshot's tenants the tree is looked over as a whole, there.
        for name, reason in check_tree(parents, others):
            yield FieldError(f"{fields[name]}.parent", parents[name], reason)
        pools = {tenant.name: tenant.pool for tenant in document.tenants}
        for name, reason in check_pools_of_tree(parents, pools):
            yield FieldError(f"{fields[name]}.pool", pools[name], reason)
    inner = inner_nodes(parents)
    for tenant in document.tenants:
        if tenant.name in inner and tenant.match is not None:
            reason = "a tenant with children has no jobs of its own: match them to one of its children"
            yield FieldError(f"{fields[tenant.name]}.match", msgspec.to_builtins(tenant.match), reason)


def _check_pools(document: PolicyDocument, kept: KeptPositions) -> Iterator[FieldError]:
    names: set[str] = set()
    members: set[str] = set()
    for field, pool in _placed("pools", document.pools, kept):
        yield from _check_pool(field, pool)
        if pool.name in names:
            yield FieldError(f"{field}.name", pool.name, "is named twice")
        names.add(pool.name)
        for member in pool.members:
            if member in members:
                yield FieldError(f"{field}.members", member, "is a member already, here or of another pool")
            members.add(member)


def _check_pool(field: str, pool: Pool) -> Iterator[FieldError]:
    yield from _check_name(f"{field}.name", pool.name)
    if not pool.members:
        yield FieldError(f"{field}.members", pool.members, "must name at least one <cluster>/<pool>")
    for member in pool.members:
        cluster, _, name = member.partition("/")
        if not cluster or not name:
            yield FieldError(f"{field}.members", member, "must be <cluster>/<pool>")
    if pool.hardware == "shared" and len({member.partition("/")[0] for member in pool.members}) == 1:
        yield FieldError(
            f"{field}.hardware", pool.hardware, "is of a pool that joins several clusters; this one has one"
        )
    if "/" in pool.name and pool.name not in pool.members:
        yield FieldError(
            f"{field}.name", pool.name, "is the name of a cluster's own pool, which is not a member"
        )
