"""The members of a policy's pools against what clusters state: a name that no cluster has joins nothing, or stops the pool."""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from fairlead_bus import Bus, DeniedError, JetStreamNotFoundError, RetryableBusError, Stored, bucket_stream
from fairlead_cli.client.connection import connected
from fairlead_cli.client.phrases import listed
from fairlead_cli.errors import NotRunningError
from fairlead_cli.policy.aging_in_cards import Capacities, asked_pools, capacities, waiting_jobs
from fairlead_cli.policy.files import PolicyFile
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.errors import ContractError, MalformedError
from fairlead_contracts.messages.members import LEADER_LEASE
from fairlead_contracts.policyfile.document import PolicyDocument

_MOST_NAMED = 5


class KnownPools(NamedTuple):
    """Pools as a running Fairlead knows them; empty where none runs."""

    capacities: Capacities = {}
    stated: frozenset[str] = frozenset()
    """Pools that clusters state, as `<cluster>/<pool>`."""
    waiting: Mapping[str, int] = {}
    """Numbers of waiting jobs by tenant."""
    running: frozenset[str] = frozenset()
    """The clusters that a service leads."""


async def known_pools(nats: str | None) -> KnownPools:
    """The pools as a running Fairlead knows them; empty where none runs, which is no failure.

    Raises:
        NotRunningError: an address is stated, and nobody is there.
    """
    try:
        async with connected(nats) as bus:
            return await pools_known(bus)
    except NotRunningError:
        if nats is not None:
            raise
        return KnownPools()


async def pools_known(bus: Bus) -> KnownPools:
    """The pools as scorers, clusters and leases tell of them, each as far as it may be read."""
    told = await asked_pools(bus)
    return KnownPools(
        capacities=capacities(told),
        stated=frozenset(await stated_members(bus)),
        waiting=waiting_jobs(told),
        running=frozenset(await running_clusters(bus)),
    )


async def stated_members(bus: Bus) -> list[str]:
    """The pools that clusters state, as sorted `<cluster>/<pool>`; none where the state may not be read."""
    found: set[str] = set()
    for stored in await _kept(bus, topology.STATE, subjects.pools_filter()):
        # A name that cannot be read is one that no policy can mean.
        with contextlib.suppress(MalformedError):
            named = subjects.parse_state(stored.subject)
            found.add(f"{named.cluster}/{named.name}")
    return sorted(found)


async def running_clusters(bus: Bus) -> set[str]:
    """The clusters that some service leads now; none where leases may not be read.

    What a cluster stated outlasts its services, its leases do not.
    """
    found: set[str] = set()
    leases = subjects.kv_subject(topology.MEMBERS, "leader.>")
    for stored in await _kept(bus, bucket_stream(topology.MEMBERS), leases):
        with contextlib.suppress(ContractError):
            found.add(LEADER_LEASE.decode(stored.payload).cluster)
    return found


async def _kept(bus: Bus, stream: str, subject: str) -> list[Stored]:
    """The messages that a stream keeps under these subjects, but for tombstones, which are empty; none where they may not be read."""
    found, seq = [], 1
    try:
        while (stored := await bus.jetstream.next_of(stream, subject, seq)) is not None:
            seq = stored.seq + 1
            found += [stored] if stored.payload else []
    except (DeniedError, JetStreamNotFoundError, RetryableBusError):
        return []
    return found


async def other_clusters(bus: Bus, cluster: str) -> list[str]:
    """The clusters that services tell of, where this one is none of them; none where nobody tells of any."""
    told = sorted({member.partition("/")[0] for member in await stated_members(bus)})
    return [] if cluster in told else told


def without_unknown(known: KnownPools, document: PolicyDocument) -> Capacities:
    """The capacities of pools, without those with a member that no cluster states: nobody knows of these."""
    unknown = {pool.name for pool in document.pools if known.stated and not known.stated >= set(pool.members)}
    return {pool: amounts for pool, amounts in known.capacities.items() if pool not in unknown}


def doubts_of(file: PolicyFile, known: KnownPools) -> Iterator[str]:
    """Warnings about valid entries that are probably mistakes, going by what is known of pools.

    They tell of jobs that it leaves out only where it says who the tenants are.
    """
    policy = file.policy
    yield from nobody_let_in(policy)
    yield from unknown_members(policy, known.stated)
    yield from ended_members(policy, known.stated, known.running)
    yield from left_out(policy, known.waiting if file.says is None else {})


def nobody_let_in(document: PolicyDocument) -> Iterator[str]:
    """A sentence that every submission would be refused, where that is so."""
    if not document.tenants and document.unlisted_weight is None:
        yield (
            "tenants: none is listed, and without `unlisted_weight` no other is let in: every submission is refused"
        )


def left_out(document: PolicyDocument, waiting: Mapping[str, int]) -> Iterator[str]:
    """A sentence that tenants with jobs in the queue are neither named nor let in."""
    if document.unlisted_weight is not None:
        return
    named = {tenant.name for tenant in document.tenants}
    gone = {tenant: jobs for tenant, jobs in sorted(waiting.items()) if jobs and tenant not in named}
    if gone:
        told = listed(f"{tenant} ({jobs} waiting)" for tenant, jobs in gone.items())
        yield (
            f"tenants: these have jobs in the queue and are not in this policy: {told}. Unless a `match` takes them, "
            "their jobs go last and new ones are refused"
        )


def ended_members(
    document: PolicyDocument, stated: Collection[str], running: Collection[str]
) -> Iterator[str]:
    """A sentence for each member whose cluster stated it and runs no more; none where no cluster runs."""
    if not running:
        return
    for place, pool in enumerate(document.pools):
        for member in pool.members:
            cluster = member.partition("/")[0]
            if member in stated and cluster not in running:
                yield (
                    f"pools[{place}].members: pool {pool.name} has {member}, and no service leads cluster {cluster} now: "
                    f"what is known of it is old. Led now: {', '.join(sorted(running)[:_MOST_NAMED])}"
                )


def unknown_members(document: PolicyDocument, stated: Collection[str]) -> Iterator[str]:
    """A sentence for each member that no cluster states; none where nobody states anything."""
    if not stated:
        return
    known = listed(sorted(stated))
    for place, pool in enumerate(document.pools):
        for member in pool.members:
            if member not in stated:
                cluster, _, name = member.partition("/")
                # Scorers wait for every cluster of a pool; of a cluster that is there they know all pools.
                absent = (
                    f"cluster {cluster} has no pool {name}, so {member} adds nothing to pool {pool.name}"
                    if any(one.partition("/")[0] == cluster for one in stated)
                    else f"no cluster {cluster} is known, and pool {pool.name} has no order until it is there"
                )
                near = get_close_matches(member, stated, 1)
                yield (
                    f"pools[{place}].members: {absent}. Known are {known}"
                    + (f". Did you mean {near[0]}?" if near else "")
                )
