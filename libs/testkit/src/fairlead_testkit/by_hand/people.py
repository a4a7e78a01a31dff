"""Deeds of people on a Fairlead from outside: operators put policies, give leave and say a word, senders submit and hear."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from fairlead_bus import Asked, Bucket, Bus
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.leave import Leave, LeverName
from fairlead_contracts.messages.submissions import ANSWER, AnyAnswer
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.read import encode_document
from fairlead_testkit.inputs.builders import a_cancellation, a_control


async def put_policy(bus: Bus, document: PolicyDocument) -> int:
    """Put a policy in force; gives its revision."""
    return await Bucket(bus, topology.POLICY).put(subjects.DOCUMENT_KEY, encode_document(document))


async def say(bus: Bus, mode: Mode, pool: str | None = None) -> None:
    """Says an operator's word on a pool, or on all."""
    await Bucket(bus, topology.POLICY).put(subjects.control_key(pool), to_json(a_control(mode=mode)))


async def give_leave(bus: Bus, lever: LeverName, *, cluster: str = "c1") -> None:
    """Give leave to steer a cluster, as `fairlead doctor` does."""
    leave = Leave(cluster=cluster, lever=lever, at=datetime.now(UTC), by="test")
    await Bucket(bus, topology.POLICY).put(subjects.leave_key(cluster), to_json(leave))


async def submit(
    bus: Bus, payload: bytes, *, cluster: str = "c1", tenant: str = "team-a", msg_id: str | None = None
) -> int:
    """Publish a submission; gives its place in the stream. Without a Msg-Id, as a plain client would.

    Args:
        cluster: cluster to send to; the builders' own unless given, `any` for the scorers to choose.
    """
    return (await bus.publish(subjects.submit(cluster, tenant), payload, msg_id=msg_id)).seq


async def cancel(bus: Bus, job: str, *, cluster: str = "c1", tenant: str = "team-a") -> int:
    """Publish a cancellation of a job that was submitted under this id; gives its place in the stream."""
    return await submit(bus, a_cancellation(job), cluster=cluster, tenant=tenant)


async def hear_answers(
    bus: Bus, take: Callable[[AnyAnswer], None], tenant: str | None = None
) -> Callable[[], Awaitable[None]]:
    """Call `take` with each answer from now on, of one tenant or of all; gives what ends it."""

    async def hear(asked: Asked) -> None:
        take(ANSWER.decode(asked.payload))

    return await bus.subscribe_core(subjects.answer_filter(tenant), hear)
