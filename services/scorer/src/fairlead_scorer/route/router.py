"""The router: takes submissions for cluster `any` and publishes each again for one cluster.

It runs on the replicas that own shard 0 of some pool. Several may run at once: the route is recorded by compare-and-
swap before the submission is published again, so that a redelivery, whoever gets it, goes the same way.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import msgspec

from fairlead_bus import Bucket, Bus, Delivery, KeyExistsError, NotYetError, PoisonError
from fairlead_bus.pace import LinePace
from fairlead_bus.work.worker import Worker
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.errors import ContractError, FieldError, shown
from fairlead_contracts.base.instants import Micros, to_datetime, to_seconds
from fairlead_contracts.messages.submissions import (
    Refused,
    Submission,
    answer_id,
    fallback_id,
    field_of,
    read_submission,
)
from fairlead_contracts.topology import ROUTES, SUBMIT, submit_durable
from fairlead_policy.snapshot.stated_facts import StatedKey
from fairlead_scorer.report.record import ScorerRecord
from fairlead_scorer.route import choice as routing
from fairlead_scorer.state.cluster_cache import ClusterCache

_SENT_SECONDS = 5.0
"""A submission sent to a pool shows in its state within this time; until then it is counted from memory."""
_MOST_SENT = 10_000
_OF_A_TENANT = 16
"""Submissions of one tenant that are handled at once: a quarter of all."""
_NO_POLICY_SECONDS = 2.0
"""Seconds after which a submission is handled again whose policy went away meanwhile."""
_TRACE_HEADERS = ("traceparent", "tracestate", "baggage")


class _Sent(NamedTuple):
    until: float
    pool: StatedKey
    demand: dict[str, int]


class TenantPace:
    """Objects to submissions of one tenant that come too fast, by the times at which NATS stored them.

    So submissions that waited for a scorer to come back are not taken for a flood.

    Args:
        a_second: submissions a second in the long run.
        burst: submissions at once, after a rest.
    """

    def __init__(self, a_second: float, burst: int) -> None:
        self._a_second = a_second
        self._at = 0.0
        self._pace = LinePace(a_second, burst, clock=lambda: self._at)

    def spend(self, tenant: str, at: Micros) -> None:
        """Counts one more submission of the tenant, stored then.

        Raises:
            FieldError: it is one too many.
        """
        self._at = max(self._at, to_seconds(at))
        if self._pace.rest(tenant):
            reason = f"submits more than the {self._a_second:g} jobs a second that a tenant may in the long run; send it again later"
            raise FieldError("tenant", tenant, reason)
        self._pace.spend(tenant)


@dataclass(eq=False)
class Router:
    """Routes submissions while it is wanted."""

    bus: Bus
    cache: ClusterCache
    record: ScorerRecord
    now: Callable[[], Micros]
    _: KW_ONLY
    pace: TenantPace
    led: Callable[[], Collection[str]]
    """Clusters that an admitter leads now, as far as is known."""

    def __post_init__(self) -> None:
        self._routes = Bucket(self.bus, ROUTES)
        self._sent: deque[_Sent] = deque(maxlen=_MOST_SENT)
        self._wanted = False
        self._changed = asyncio.Event()

    def want(self, wanted: bool) -> None:  # noqa: FBT001 # the verb says what the value is
        """Whether this replica shall route."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._changed.set()

    async def run(self) -> None:
        """Takes submissions whenever it is wanted."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._wanted:
                await self._work()

    async def _work(self) -> None:
        """Works until it is not wanted any more; what is being handled then is handled to its end."""
        durable = submit_durable(subjects.ANY_CLUSTER)
        worker = Worker(
            self.bus,
            stream=SUBMIT,
            durable=durable,
            handle=self.handle,
            line_of=subjects.line_of,
            share=_OF_A_TENANT,
            overtaking=subjects.submit_filter(subjects.ANY_CLUSTER),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.run(), name="router")
            while self._wanted:
                await self._changed.wait()
                self._changed.clear()
            worker.stop()
        self._changed.set()  # it may be wanted again since the last submissions were handled

    async def handle(self, delivery: Delivery) -> None:
        """Sends one submission to a cluster, or answers why none can take it."""
        tenant = subjects.tenant_of_submit(delivery.subject)
        sent = delivery.msg_id, delivery.stream_seq
        try:
            submission = read_submission(delivery.payload, tenant=tenant, fallback_id=fallback_id(*sent))
            cluster = await self._route(submission, delivery.at)
        except ContractError as error:
            problem = field_of(error, delivery.payload)
            await self._refuse(tenant, answer_id(delivery.payload, *sent), problem)
            return
        await self._send(cluster, submission, delivery)
        self.record.routed(submission.id, tenant, cluster)

    async def _route(self, submission: Submission, at: Micros) -> str:
        """The recorded route; else the best one, recorded.

        Raises:
            ContractError: no cluster can take it, or its tenant sends too many.
        """
        key = subjects.route_key(submission.tenant, submission.id)
        known = await self._routes.get(key)
        if known is not None:
            return known.value.decode()
        rulebook = self.cache.rulebook
        if rulebook is None:
            raise NotYetError("there is no policy to route by", seconds=_NO_POLICY_SECONDS)
        self.pace.spend(submission.tenant, at)
        pool = routing.choose(self.cache, rulebook, submission, self._on_their_way(), self.led())
        # Before anything else is awaited: the submissions that are handled side by side must see each other.
        self._sent.append(_Sent(time.monotonic() + _SENT_SECONDS, pool, submission.demand))
        try:
            await self._routes.create(key, pool[0].encode())
        except KeyExistsError:
            return await self._route(submission, at)
        return pool[0]

    def _on_their_way(self) -> dict[StatedKey, dict[str, int]]:
        """The jobs that were sent to each pool and may not show in its state yet."""
        while self._sent and self._sent[0].until < time.monotonic():
            self._sent.popleft()
        total: dict[StatedKey, dict[str, int]] = {}
        for sent in self._sent:
            amounts = total.setdefault(sent.pool, {})
            for resource, amount in sent.demand.items():
                amounts[resource] = amounts.get(resource, 0) + amount
        return total

    async def _send(self, cluster: str, submission: Submission, delivery: Delivery) -> None:
        """Publishes it again under the same id.

        The id goes into the body and nothing into Nats-Msg-Id: whoever may submit could have used any that is made up
        here, for a message that the copy would vanish behind. A second copy is a repeat, which its cluster knows.
        """
        await self.bus.publish(
            subjects.submit(cluster, submission.tenant),
            with_id(delivery.payload, submission.id),
            headers={name: delivery.headers[name] for name in _TRACE_HEADERS if name in delivery.headers},
        )

    async def _refuse(self, tenant: str, submission: str, problem: FieldError) -> None:
        try:
            subject = subjects.answer(tenant, submission)
        except FieldError as unanswerable:
            raise PoisonError(f"its sender cannot be answered: {unanswerable}") from unanswerable
        why = problem.for_operators if isinstance(problem, routing.NoQueueError) else str(problem)
        self.record.not_routed(submission, tenant, why)
        answer = Refused(
            id=submission,
            tenant=tenant,
            cluster=subjects.ANY_CLUSTER,
            at=to_datetime(self.now()),
            field=problem.field,
            value=shown(problem.value),
            reason=problem.reason,
        )
        await self.bus.publish(subject, to_json(answer))


def with_id(payload: bytes, submission: str) -> bytes:
    """The body with the submission's id in it, everything else byte for byte as it was sent."""
    body = msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
    if body.get("id") not in (None, msgspec.Raw(b"null")):
        return payload
    body["id"] = msgspec.Raw(msgspec.json.encode(submission))
    return msgspec.json.encode(body)
