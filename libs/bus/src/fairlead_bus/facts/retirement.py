"""Taking away what a cluster that is gone for good has left on NATS.

Two things stay. Events age by themselves. The durable that turns them into answers knows how far senders were told: made
anew for a cluster that comes back, it would tell them all of the last week again.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

import msgspec

from fairlead_bus.connection.bus import Bus
from fairlead_bus.errors import JetStreamNotFoundError
from fairlead_bus.facts.comparison import Comparison
from fairlead_bus.streams.bucket import Bucket
from fairlead_bus.streams.mirror import is_deletion
from fairlead_bus.streams.publisher import Publisher
from fairlead_contracts import subjects
from fairlead_contracts.topology import MEMBERS, POLICY, STATE, SUBMIT, submit_durable

_ROLES = ("watcher", "admitter", "checker")


class Leftover(NamedTuple):
    """A thing that a cluster left."""

    what: str
    """The thing, in a line for people."""
    remove: Callable[[], Awaitable[object]]
    """Takes it away."""


class _SubmitCounts(msgspec.Struct):
    subjects: dict[str, int] | None = None


class _SubmitStream(msgspec.Struct):
    config: dict[str, object]
    state: _SubmitCounts


_submit_stream = msgspec.json.Decoder(_SubmitStream)


async def leading_roles(bus: Bus, cluster: str) -> list[str]:
    """The roles in which a service leads for the cluster."""
    members = Bucket(bus, MEMBERS)
    return [role for role in _ROLES if await members.get(subjects.leader_key(role, cluster)) is not None]


async def find_leftovers(bus: Bus, cluster: str) -> list[Leftover]:
    """Finds what the cluster left, in the order in which it is to be taken away. Changes nothing.

    Args:
        bus: connected as a user who may manage streams.
        cluster: a cluster for which no service leads.

    Raises:
        NotProvisionedError, JetStreamNotFoundError: Fairlead's streams are missing.
        RetryableBusError: not all was seen; look again.
    """
    return [
        *await _durable(bus, cluster),
        *await _submissions(bus, cluster),
        *await _facts(bus, cluster),
        *await _words(bus, cluster),
    ]


async def _durable(bus: Bus, cluster: str) -> list[Leftover]:
    name = submit_durable(cluster)
    try:
        await bus.jetstream.consumer(SUBMIT, name)
    except JetStreamNotFoundError:
        return []
    delete = partial(bus.jetstream.call, f"CONSUMER.DELETE.{SUBMIT}.{name}")
    return [Leftover(f"durable {SUBMIT}/{name}", delete)]


async def _submissions(bus: Bus, cluster: str) -> list[Leftover]:
    """The subject of the cluster's submissions, so that the next one fails at once; and those that nobody will take in."""
    pattern, call = subjects.submit_filter(cluster), bus.jetstream.call
    stream = _submit_stream.decode(await call(f"STREAM.INFO.{SUBMIT}", {"subjects_filter": pattern}))
    found = []
    taken = stream.config["subjects"]
    if isinstance(taken, list) and pattern in taken:
        config = {**stream.config, "subjects": [one for one in taken if one != pattern]}
        found.append(
            Leftover(f"stream {SUBMIT}: {pattern}", partial(call, f"STREAM.UPDATE.{SUBMIT}", config))
        )
    if waiting := stream.state.subjects:
        senders = (f"{subjects.tenant_of_submit(subject)} ({count})" for subject, count in waiting.items())
        what = f"stream {SUBMIT}: submissions that nobody took in, by tenant: {', '.join(sorted(senders))}"
        found.append(Leftover(what, partial(call, f"STREAM.PURGE.{SUBMIT}", {"filter": pattern})))
    return found


async def _facts(bus: Bus, cluster: str) -> list[Leftover]:
    compared = Comparison(bus, cluster, {}, epoch=0)
    await compared.run()
    standing = set(compared.wrong)
    mark = await bus.last(STATE, subjects.mark(cluster))
    if mark is not None and not is_deletion(mark.headers):
        standing.add(mark.subject)
    if not standing:
        return []
    return [Leftover(f"stream {STATE}: facts: {len(standing)}", partial(_delete_facts, bus, standing))]


async def _delete_facts(bus: Bus, standing: set[str]) -> None:
    """Leaves tombstones: scorers hear nothing of a purge. They have no stamp, as only an owner has an epoch."""
    publisher = Publisher(bus)
    for subject in sorted(standing):
        await publisher.delete(subject)
    await publisher.flush()


async def _words(bus: Bus, cluster: str) -> list[Leftover]:
    """The words on the cluster's leave and lever. A cluster that takes its name is looked over anew."""
    bucket = Bucket(bus, POLICY)
    keys = (subjects.leave_key(cluster), subjects.revocation_key(cluster), subjects.lever_key(cluster))
    return [
        Leftover(f"bucket {POLICY}: {key}", partial(bucket.delete, key))
        for key in keys
        if await bucket.get(key) is not None
    ]
