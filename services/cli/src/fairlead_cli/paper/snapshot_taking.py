"""`fairlead snapshot`: what a running Fairlead knows, as a file that `fairlead order` reads."""

import asyncio
import time

import msgspec

from fairlead_bus import Bus, Mirror
from fairlead_bus.facts.mirrors import decision_mirror, state_mirror
from fairlead_cli.client.connection import connected
from fairlead_cli.console import warn, write_line
from fairlead_cli.errors import CommandError, NoPolicyError
from fairlead_cli.options import Format
from fairlead_cli.policy.store import stored_policy
from fairlead_cli.printing import as_text, print_names
from fairlead_contracts.messages.decisions import DECISION
from fairlead_contracts.messages.state import NodeState, State, SyncMark
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.from_state import snapshot_of

REPLAY_SECONDS = 30.0
_MOST_NAMED = 5
"""Nodes that a warning names."""
_NANOS_PER_MICRO = 1000


async def take_snapshot(nats: str | None, *, pool: str | None, form: Format = "table") -> None:
    """Print a snapshot of all pools, or of one.

    Raises:
        CommandError: there is no policy, no such pool, or the state is not to be had in time.
    """
    async with connected(nats) as bus:
        snapshot = await taken(bus, pool)
    written = encode_snapshot(snapshot)
    match form:
        case "yaml":
            write_line(as_text(msgspec.json.decode(written), form))
        case "name":
            print_names(job.full_name for job in snapshot.jobs)
        case _:
            write_line(written.decode())


async def taken(bus: Bus, pool: str | None) -> Snapshot:
    """The snapshot of what is known now; see take_snapshot."""
    found = await stored_policy(bus)
    if found is None:
        raise NoPolicyError
    document, revision = found
    states = await _complete(state_mirror(bus), "the state was")
    now = time.time_ns() // _NANOS_PER_MICRO
    rulebook = Rulebook(document, revision)
    past = {} if rulebook.half_life is None else await _past_uses(bus, rulebook)
    snapshot = snapshot_of(states, document, now, pool=pool, past=past)
    if not snapshot.pools:
        known = ", ".join(one.name for one in snapshot_of(states, document, now).pools) or "none yet"
        raise CommandError(
            "no pool is known yet" if pool is None else f"pool {pool!r} is not a pool; pools are {known}"
        )
    names = {one.name for one in snapshot.pools}
    _warn_of_unread_cards(states)
    _warn_of_unconfirmed(states, bus.incarnation, {c for name in names for c, _ in rulebook.members_of(name)})
    return snapshot


async def _past_uses(bus: Bus, rulebook: Rulebook) -> dict[str, dict[str, dict[str, int]]]:
    """Past use by pool and tenant, as the last decisions say; of a tenant with children, theirs say it."""
    above = {tenant.parent for tenant in rulebook.document.tenants}
    found: dict[str, dict[str, dict[str, int]]] = {}
    for decision in (await _complete(decision_mirror(bus, DECISION), "the decisions were")).values():
        for standing in decision.standings:
            if standing.past and standing.tenant not in above:
                found.setdefault(decision.pool, {})[standing.tenant] = standing.past
    return found


async def _complete[T](mirror: Mirror[T], what: str) -> dict[str, T]:
    """The values that a mirror has once it is complete."""
    async with asyncio.TaskGroup() as group:
        following = group.create_task(mirror.run(), name="mirror")
        try:
            async with asyncio.timeout(REPLAY_SECONDS):
                await mirror.wait_complete()
        except TimeoutError as error:
            raise CommandError(f"{what} not complete within {REPLAY_SECONDS:g} s") from error
        following.cancel()
    return dict(mirror.values)


def _warn_of_unread_cards(states: dict[str, State]) -> None:
    """Warns of nodes whose register of cards cannot be read: HAMi gives none of their cards either."""
    refused = sorted(
        f"{state.cluster}/{state.name}"
        for state in states.values()
        if isinstance(state, NodeState) and state.cards_refused
    )
    if refused:
        named = ", ".join(refused[:_MOST_NAMED]) + (", …" if len(refused) > _MOST_NAMED else "")
        warn(f"left out are the cards of nodes whose register cannot be read: {named}")


def _warn_of_unconfirmed(states: dict[str, State], incarnation: str, clusters: set[str]) -> None:
    """Warns of clusters that have not confirmed their state: their pools are not scored, and may be in another order than this one."""
    marks = (state for state in states.values() if isinstance(state, SyncMark))
    confirmed = {mark.cluster for mark in marks if mark.incarnation == incarnation}
    for cluster in sorted(clusters - confirmed):
        warn(
            f"cluster {cluster} has not confirmed its state since NATS started: ended jobs may be in the snapshot"
        )
