"""Words of a policy without effect: no mistake, and yet not what whoever wrote it may think."""

from collections.abc import Iterator

import msgspec

from fairlead_contracts.policyfile.document import Match, PolicyDocument, Tenant
from fairlead_contracts.policyfile.read import encode_document
from fairlead_policy.reserve.easy import reserves

type _Key = tuple[str, ...]
"""Key that makes a job a tenant's: a kind and a value; empty for every job."""
_MESSAGE_BYTES = 1024 * 1024
"""Size of the largest message that NATS takes, unless its configuration says otherwise."""


def without_effect(document: PolicyDocument) -> Iterator[str]:
    """Sentences on what of a policy has no effect."""
    if document.class_mode == "strict" and document.class_weights:
        yield "class_weights have no effect with class_mode strict: every job of a class goes before the next class's"
    yield from _shadowed(document)


def remarks(document: PolicyDocument) -> Iterator[str]:
    """Sentences on what of a policy in force does nothing, or takes more than the policy."""
    yield from without_effect(document)
    if (size := len(encode_document(document))) > _MESSAGE_BYTES:
        yield (
            f"it has {size:,} bytes as it is stored: NATS takes {_MESSAGE_BYTES:,}, unless its max_payload says more. "
            "List fewer tenants: unlisted_weight lets in those that are alike"
        )
    if document.fit.strategy != "none":
        yield "fit.strategy counts in `fairlead order` alone: the cluster's own scheduler places pods"
    reserved = [pool.name for pool in document.pools if reserves(document, pool.name)]
    if reserved or document.mode == "reserve":
        names = ", ".join(reserved) or "every pool"
        yield (
            f"reserve mode in {names}: each such pool needs one StrictFIFO ClusterQueue; `fairlead doctor` says which has none"
        )


def _shadowed(document: PolicyDocument) -> Iterator[str]:
    """Tenants that never match a job: whichever they take, a tenant before them takes first."""
    parents = {tenant.parent for tenant in document.tenants}
    before: dict[_Key, list[tuple[str, Match]]] = {}
    for place, tenant in enumerate(document.tenants):
        if tenant.name in parents:
            continue
        own = _match(tenant)
        candidates = (one for key in _looked_under(own) for one in before.get(key, ()))
        taker = next((name for name, match in candidates if _takes_all(match, own)), None)
        if taker is not None:
            yield (
                f"tenants[{place}] {tenant.name} never has a job: {taker}, which stands before it, takes all that it "
                f"matches. Put {tenant.name} first, or narrow the match of {taker}"
            )
        for key in _kept_under(own):
            before.setdefault(key, []).append((tenant.name, own))


def _kept_under(match: Match) -> list[_Key]:
    """The keys of which whatever it takes all of has one; so of thousands of tenants only a few are compared."""
    for of, items in (("label", match.labels), ("annotation", match.annotations)):
        if items:
            return [(of, *next(iter(items.items())))]
    for of, names in _lists(match):
        if names is not None:
            return [(of, name) for name in names]
    return [()]


def _looked_under(match: Match) -> Iterator[_Key]:
    yield from (("label", *item) for item in match.labels.items())
    yield from (("annotation", *item) for item in match.annotations.items())
    yield from ((of, names[0]) for of, names in _lists(match) if names)
    yield ()


def _lists(match: Match) -> tuple[tuple[str, list[str] | None], ...]:
    return (
        ("local queue", match.local_queues),
        ("scope", match.scopes),
        ("queue", match.queues),
        ("cluster", match.clusters),
    )


def _match(tenant: Tenant) -> Match:
    """The match of the tenant, with the scopes that it implies written out."""
    match = tenant.match or Match(scopes=[tenant.name])
    if match.scopes is None and match.local_queues is not None:
        return msgspec.structs.replace(match, scopes=[one.partition("/")[0] for one in match.local_queues])
    return match


def _takes_all(match: Match, other: Match) -> bool:
    """Whether each job that the other takes is one that this takes, too."""
    return (
        all(
            mine is None or (its is not None and set(its) <= set(mine))
            for (_, mine), (_, its) in zip(_lists(match), _lists(other), strict=True)
        )
        and match.labels.items() <= other.labels.items()
        and match.annotations.items() <= other.annotations.items()
    )
