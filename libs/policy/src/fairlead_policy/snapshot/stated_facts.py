"""The facts that clusters state, folded: jobs and other objects, which pool a queue leads to, and what a job counts for.

The one fold of cluster state, for scorers, admitters and paper. Pure and incremental: after any sequence of changes it
equals one that learned the last state alone. It answers what changed as data; each reader keeps up by it what it alone
needs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairlead_contracts.messages.state import JobState, NodeState, Phase, PoolState, QueueState, State
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.pool_shapes import PoolShape, cards_by_pool, is_beyond, pool_shapes
from fairlead_policy.snapshot.stated_cards import PoolCards, same_cards
from fairlead_policy.snapshot.stated_cluster import StatedCluster
from fairlead_policy.snapshot.stated_jobs import JobChange, StatedJobs

type StatedKey = tuple[str, str]
"""A pool or a queue as its cluster names it: (cluster, name)."""


class StatementChange(NamedTuple):
    """A subject's statement before a change and after it; None for none."""

    subject: str
    before: State | None
    after: State | None


class PoolsChange(NamedTuple):
    """A change by which pools of the policy may have another shape, or other queues."""

    new_queues: Collection[StatedKey]
    """Queues that were not stated before."""
    other_cards: Collection[str]
    """Pools of which other cards are known: their jobs may weigh something else."""


class FactsChange(NamedTuple):
    """Changes by one step of learning."""

    statements: Sequence[StatementChange] = ()
    jobs: Collection[JobChange] = ()
    """Jobs of which another statement holds."""
    pools: PoolsChange | None = None
    """Change of the policy's pools; None where they stay as they are, or no policy is known."""
    recharged: Collection[str] = ()
    """Uids of jobs that may count elsewhere now, or otherwise."""


class ChargedJob(msgspec.Struct, frozen=True):
    """A waiting or running job, with the pool and tenant that it counts for and the demand that it counts with."""

    job: JobState
    queue: QueueState
    pool: str
    """Name of the policy's pool."""
    tenant: str
    weighs: dict[str, int]
    """Demand of the job, its cards as HAMi gives them where its pool's are known."""
    flavors: dict[str, str]
    """Flavor of each resource that it holds while it runs, by the same names."""
    apart: bool
    """Whether it cannot start as things are: its frontend passes it by, or it asks for more than its whole pool's quota."""


class StatedFacts:
    """The last word of all clusters on their jobs and other objects, read through a policy where one is known."""

    def __init__(self, rulebook: Rulebook | None = None) -> None:
        self.jobs = StatedJobs()
        self.rulebook = rulebook
        """Rules of the policy. Without them no job counts anywhere, and there are no pools of the policy."""
        self.shapes: Mapping[str, PoolShape] = {}
        """Pools by policy name."""
        self.cards: Mapping[str, PoolCards] = {}
        """Cards by policy pool, where its clusters register any."""
        self.clusters: dict[str, StatedCluster] = {}
        self._objects: dict[str, State] = {}
        """Objects other than jobs, by subject."""
        self._jobs_in: dict[StatedKey, dict[str, None]] = {}
        """Uids of the jobs in each queue."""

    # What happens to it -------------------------------------------------------------------------------------------

    def adopt(self, rulebook: Rulebook | None) -> None:
        """Takes on another policy, or none: every pool is worked out anew, and every job may count otherwise."""
        self.rulebook = rulebook
        self._shape_pools()

    def learn(self, changes: Mapping[str, State | None]) -> None:
        """Takes in what changed, by state subject, all at once."""
        for _ in self.learning(changes):
            pass

    def learning(self, changes: Mapping[str, State | None]) -> Iterator[FactsChange]:
        """Takes in what changed, by state subject, in steps of a job each; None where an object is gone.

        Other objects come first, all in one step: there are few, and jobs find their queue then.
        """
        jobs = {
            subject: state if isinstance(state, JobState) else None
            for subject, state in changes.items()
            if isinstance(state, JobState) or (state is None and self.jobs.stated(subject) is not None)
        }
        if len(jobs) < len(changes):
            yield from self._replace_objects(
                {subject: state for subject, state in changes.items() if subject not in jobs}
            )
        for subject, job in jobs.items():
            yield self._replace_job(subject, job)

    def _replace_objects(self, changes: Mapping[str, State | None]) -> Iterator[FactsChange]:
        statements = [self._replace_object(subject, state) for subject, state in changes.items()]
        if self.rulebook is None or not any(map(_may_reshape, statements)):
            yield FactsChange(statements)
            return
        before, shapes = self.cards, self.shapes
        self._shape_pools()
        other_cards = {
            name for name in self.cards.keys() | before.keys() if self.cards.get(name) != before.get(name)
        }
        moved = _moved_queues(statements)
        new_queues = {queue for queue, was_stated in moved.items() if not was_stated}
        yield FactsChange(statements, pools=PoolsChange(new_queues, other_cards))
        weighed_anew = [queue for queue in self._jobs_in if self.leads_to(*queue) in other_cards]
        recharged = self._with_carriers(uid for queue in moved for uid in self._jobs_in.get(queue, ()))
        for uid in (*recharged, *(uid for queue in weighed_anew for uid in self._jobs_in[queue])):
            yield FactsChange(recharged=(uid,))
        yield from self._judged_anew(shapes)

    def _judged_anew(self, before: Mapping[str, PoolShape]) -> Iterator[FactsChange]:
        """Yields a step for each job of a pool with another quota: few can start now and could not, or the other way."""
        for queue, uids in self._jobs_in.items():
            pool = self.leads_to(*queue)
            if pool is None or pool not in before or before[pool].quota == self.shapes[pool].quota:
                continue
            was, now = before[pool].quota, self.shapes[pool].quota
            lesser = {name: min(amount, was.get(name, 0)) for name, amount in now.items()}
            for job in filter(None, map(self.jobs.get, uids)):
                may = is_beyond(job.demand, lesser)  # rarely: one look is enough of all others
                other = may and is_beyond(job.demand, was) != is_beyond(job.demand, now)
                yield FactsChange(recharged=(job.uid,) if other else ())

    def _replace_object(self, subject: str, after: State | None) -> StatementChange:
        before = self._objects.pop(subject, None)
        if after is not None:
            self._objects[subject] = after
            self.cluster(after.cluster).put(after)
        elif before is not None:
            self.cluster(before.cluster).drop(before)
        return StatementChange(subject, before, after)

    def _shape_pools(self) -> None:
        """Works out pools anew, whole: there are few, and no path is left on which it could go wrong."""
        if self.rulebook is None:
            self.cards, self.shapes = {}, {}
        else:
            self.cards = cards_by_pool(self.clusters, self.rulebook)
            self.shapes = pool_shapes(self.clusters, self.rulebook, self.cards)

    def _replace_job(self, subject: str, job: JobState | None) -> FactsChange:
        before = self.jobs.stated(subject)
        if before == job:
            return FactsChange()  # told again by a replay
        changes = self.jobs.replace(subject, job)
        for uid, change in changes.items():
            self._index(uid, change)
        recharged: Collection[str] = changes.keys()
        if self.jobs.carriers:
            told = [one for change in changes.values() for one in change if one is not None]
            recharged = self._with_carriers(uid for one in told for uid in (one.uid, one.carries) if uid)
        return FactsChange((StatementChange(subject, before, job),), changes.values(), None, recharged)

    def _index(self, uid: str, change: JobChange) -> None:
        before, after = map(_queue_of, change)
        if before == after:
            return
        if before is not None:
            uids = self._jobs_in[before]
            del uids[uid]
            if not uids:
                del self._jobs_in[before]
        if after is not None:
            self._jobs_in.setdefault(after, {})[uid] = None

    def _with_carriers(self, uids: Iterable[str]) -> list[str]:
        """Uids of these jobs and of their carriers."""
        return [one for uid in dict.fromkeys(uids) for one in (uid, *self.jobs.carriers.of(uid))]

    # What is known ------------------------------------------------------------------------------------------------

    def cluster(self, name: str) -> StatedCluster:
        """The objects that a cluster states; none of one that states nothing yet."""
        return self.clusters.setdefault(name, StatedCluster())

    def confirmed(self, incarnation: str) -> set[str]:
        """The clusters that have confirmed their state to this incarnation of the server."""
        marks = ((name, cluster.mark) for name, cluster in self.clusters.items())
        return {name for name, mark in marks if mark is not None and mark.incarnation == incarnation}

    def queue(self, cluster: str, name: str) -> QueueState | None:
        """A queue as its cluster states it."""
        stated = self.clusters.get(cluster)
        return None if stated is None else stated.queues.get(name)

    def scopes(self) -> set[str]:
        """The scopes that have accounts, or local queues, in some cluster."""
        return {scope for cluster in self.clusters.values() for scope in cluster.accounts}

    def jobs_in(self, queue: QueueState) -> Iterator[JobState]:
        """The jobs of a queue, in whatever phase."""
        uids = self._jobs_in.get((queue.cluster, queue.name), ())
        return (job for job in map(self.jobs.get, uids) if job is not None)

    def leads_to(self, cluster: str, queue: str) -> str | None:
        """The policy's pool that a queue's jobs compete in; None for a queue that nobody states."""
        stated = self.queue(cluster, queue)
        if stated is None or self.rulebook is None:
            return None
        return self.rulebook.pool_of(cluster, stated.pool)

    def queues_of(self, pool: str) -> list[QueueState]:
        """The queues of a policy pool, of all clusters."""
        return [
            queue
            for name, cluster in self.clusters.items()
            for queue in cluster.queues.values()
            if self.leads_to(name, queue.name) == pool
        ]

    def parts_of(self, pool: str) -> list[PoolState]:
        """The pools of clusters that a policy pool is made of."""
        return [
            part
            for name, cluster in self.clusters.items()
            for part in cluster.pools.values()
            if self.rulebook is not None and self.rulebook.pool_of(name, part.name) == pool
        ]

    def charged(self, job: JobState) -> ChargedJob | None:
        """The job with what it counts for and with; None where it counts nowhere by itself."""
        rulebook, queue = self.rulebook, self.queue(job.cluster, job.queue)
        if job.phase not in (Phase.WAITING, Phase.RUNNING) or rulebook is None or queue is None:
            return None
        pool = rulebook.pool_of(job.cluster, queue.pool)
        if job.carries is not None and self._counts_as_carried(job, pool, rulebook):
            return None
        cards = self.cards.get(pool)
        return ChargedJob(
            job=job,
            queue=queue,
            pool=pool,
            tenant=rulebook.tenant_of(job),
            weighs=job.demand if cards is None else cards.demand_of(job.demand, job.pods, job.shapes),
            flavors=job.flavors if cards is None else cards.flavors_of(job),
            apart=job.passed_by or is_beyond(job.demand, self.shapes[pool].quota),
        )

    def _counts_as_carried(self, job: JobState, pool: str, rulebook: Rulebook) -> bool:
        """Whether a job counts as the one that it carries out, and not by itself.

        Anybody may say so of a job of theirs. It is believed where that one runs in another cluster of the same pool,
        whose hardware is shared, for the same tenant; and of one carrier alone, the first by uid.
        """
        carried = None if job.carries is None else self.jobs.get(job.carries)
        return (
            carried is not None
            and carried.phase is Phase.RUNNING
            and pool == self.leads_to(carried.cluster, carried.queue)
            and carried.cluster != job.cluster
            and rulebook.shares_hardware(pool)
            and rulebook.tenant_of(job) == rulebook.tenant_of(carried)
            and self.jobs.carriers.of(job.carries)[0] == job.uid
        )


def _queue_of(job: JobState | None) -> StatedKey | None:
    return None if job is None else (job.cluster, job.queue)


def _may_reshape(change: StatementChange) -> bool:
    """Whether the policy's pools may be others by it. A pool's capacity is stated, not summed from nodes, but for cards."""
    before, after = change.before, change.after
    return (
        isinstance(before, QueueState | PoolState)
        or isinstance(after, QueueState | PoolState)
        or not same_cards(_node(before), _node(after))
    )


def _node(state: State | None) -> NodeState | None:
    return state if isinstance(state, NodeState) else None


def _moved_queues(statements: Iterable[StatementChange]) -> dict[StatedKey, bool]:
    """The queues that lead elsewhere now, or nowhere; of each whether it was stated before."""
    moved: dict[StatedKey, bool] = {}
    for _, before, after in statements:
        queues = [one for one in (before, after) if isinstance(one, QueueState)]
        if len(queues) == 1 or len({queue.pool for queue in queues}) > 1:
            moved[queues[0].cluster, queues[0].name] = isinstance(before, QueueState)
    return moved
