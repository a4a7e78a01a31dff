"""The rate of aging in a policy as cards a day, where somebody knows how many the pools have."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fairlead_bus import Bus, DeniedError
from fairlead_cli.client.connection import ask, connected
from fairlead_cli.errors import CommandError, NotRunningError
from fairlead_contracts.messages.questions import TENANTS_REPLY, PoolTenants, TenantsQuestion
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.explain.aging_text import aging_in_words, worth_in_words

type Capacities = Mapping[str, Mapping[str, int]]
"""Capacities by pool, in base units; empty where nobody knows."""

_ANY = "(each)"
"""Name that stands for each pool of a policy that names none, while nobody says which there are."""


async def known_capacities(nats: str | None) -> Capacities:
    """The capacities of a running Fairlead's pools; empty where none runs, which is no failure.

    Raises:
        NotRunningError: an address is stated, and nobody is there.
    """
    try:
        async with connected(nats) as bus:
            return await capacities(bus)
    except NotRunningError:
        if nats is not None:
            raise
        return {}


async def capacities(bus: Bus) -> Capacities:
    """The capacities of pools, over a connection; empty where no scorer answers, or none may be asked."""
    return {pool.pool: pool.capacity for pool in await _pools(bus)}


async def waiting_jobs(bus: Bus) -> Mapping[str, int]:
    """The numbers of waiting jobs by tenant, over all pools; empty where nobody says."""
    waiting: Counter[str] = Counter()
    for pool in await _pools(bus):
        waiting.update({line.standing.tenant: line.standing.waiting for line in pool.tenants})
    return waiting


async def _pools(bus: Bus) -> Sequence[PoolTenants]:
    try:
        return (await ask(bus, "tenants", TenantsQuestion(), TENANTS_REPLY)).pools
    except (CommandError, DeniedError):
        return []


def worth_of_waiting(document: PolicyDocument, known: Capacities) -> Iterator[str]:
    """A line on the rate, and for each pool what it comes to."""
    yield aging_in_words(document)
    for pool in [pool.name for pool in document.pools] or sorted(known) or [_ANY]:
        yield from worth_in_words(document, pool, known.get(pool, {}))
