"""One job of a snapshot explained: what a scorer would say of it with the same facts."""

from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.messages.questions import Explanation
from fairlead_contracts.messages.state import Phase
from fairlead_contracts.snapshot.types import Snapshot, SnapshotJob
from fairlead_policy.explain.shard_explanation import explain
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.snapshot.ordering import orders_of


def explain_in_snapshot(snapshot: Snapshot, job: str) -> list[Explanation]:
    """The waiting jobs of that name, alone or as `<scope>/<name>`, or of that uid; none where there is none.

    Where an id in the snapshot has its scope before it, what stands behind that is a name of the job, too.

    Raises:
        DocumentError: as `order_snapshot`.
    """
    named = [one for one in snapshot.jobs if job in (_scope_and_id(one)[1], one.id, one.full_name, one.uid)]
    if not named:
        return []
    orders = orders_of(snapshot)
    found = (_explained(one, orders[one.pool], snapshot.now) for one in named)
    return [one for one in found if one is not None]


def _scope_and_id(job: SnapshotJob) -> tuple[str, str]:
    """The names that `fairlead explain` tells of a live job: an id that is not alone in a snapshot has its scope before it."""
    scope, slash, name = job.id.partition("/")
    return (scope, name) if slash else (job.scope, job.id)


def _explained(job: SnapshotJob, known: PoolFacts, now: Micros) -> Explanation | None:
    position = known.position(job.uid, now)
    if position is None:
        return None
    scope, name = _scope_and_id(job)
    fact = Explanation(
        cluster=job.cluster,
        scope=scope,
        id=name,
        uid=job.uid,
        phase=Phase.WAITING.value,
        queue=job.queue,
        pool=job.pool,
        tenant=position.tenant,
        level=job.level,
        waited_seconds=to_seconds(max(0, now - job.submitted)),
    )
    return explain(fact, position, known.at(now))
