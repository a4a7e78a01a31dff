"""The rate of aging in a policy as cards a day, where somebody knows how many the pools have."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fairlead_bus import Bus, DeniedError
from fairlead_cli.client.connection import ask
from fairlead_cli.errors import CommandError
from fairlead_contracts.messages.questions import TENANTS_REPLY, PoolTenants, TenantsQuestion
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.explain.aging_text import aging_by_tenant, aging_in_words

type Capacities = Mapping[str, Mapping[str, int]]
"""Capacities by pool, in base units; empty where nobody knows."""

_ANY = "(each)"
"""Name that stands for each pool of a policy that names none, while nobody says which there are."""


async def asked_pools(bus: Bus) -> Sequence[PoolTenants]:
    """Ask the scorers for the pools; none where no scorer answers, or none may be asked."""
    try:
        return (await ask(bus, "tenants", TenantsQuestion(), TENANTS_REPLY)).pools
    except (CommandError, DeniedError):
        return []


def capacities(pools: Sequence[PoolTenants]) -> Capacities:
    """The capacities of pools, by name."""
    return {pool.pool: pool.capacity for pool in pools}


def waiting_jobs(pools: Sequence[PoolTenants]) -> Mapping[str, int]:
    """The numbers of waiting jobs by tenant, over all pools."""
    waiting: Counter[str] = Counter()
    for pool in pools:
        waiting.update({line.standing.tenant: line.standing.waiting for line in pool.tenants})
    return waiting


def aging_lines(document: PolicyDocument, known: Capacities) -> Iterator[str]:
    """Lines on the rate of aging, and on what it comes to in each pool."""
    yield aging_in_words(document)
    for pool in [pool.name for pool in document.pools] or sorted(known) or [_ANY]:
        yield from aging_by_tenant(document, pool, known.get(pool, {}))
