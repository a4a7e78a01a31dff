"""Steering of clusters, for people: how far each follows a pool's order, as the admitter judges it."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from fairlead_contracts.base.instants import Moment, to_datetime
from fairlead_contracts.messages.members import LeaderLease, OutOfTurn
from fairlead_contracts.messages.questions import Adherence, Steering
from fairlead_contracts.messages.state import JobState, PoolState, QueueState
from fairlead_policy.levels.operators import OperatorWords
from fairlead_policy.levels.withholding import LevelFate, Withholding, judge_withholding
from fairlead_scorer.query.reservations import ADMITTER, ClusterLeaders, ReserveView
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_scorer.state.queue_indexes import awaits_gang_fit

_WATCHER = "watcher"
"""The role whose leader states a cluster, whatever its frontend."""
_CHECKER = "checker"
"""The role whose leader answers the check of gangs."""
_UNWATCHED = "nobody watches it now, so all is as it was last told"
_NO_ADMITTER = "no admitter leads there: none runs, or only a dry run. Submissions wait, too"
_DIFFERENT = "scorers differ in their clocks (where past use counts), in the capacity that they see, or in their release"
_RIVAL = "another Fairlead writes levels to this cluster, too: end one of the two"
_CLOSE, _LOOSE = "close", "loose"
_FIRMNESS = ("exact", "standing", _CLOSE, "within-queue", _LOOSE, "tie-break")
"""Degrees of a pool's enforcement, the firmest first."""


@dataclass(eq=False)
class SteeringView:
    """Says of pools where their levels are written."""

    cache: ClusterCache
    words: OperatorWords
    leaders: ClusterLeaders
    """The leases of those who lead, with what admitters and watchers saw."""
    reserved: ReserveView
    unmarked: Callable[[str], list[str]]
    """The clusters that hold a pool's order up."""
    cut_off: Callable[[], str | None] = lambda: None
    """The reason for which NATS takes nothing from us, and may tell us of no lease that has ended."""

    def of(self, pool: str) -> list[Steering]:
        """The steering of each cluster that is joined into the pool and has queues there, by name."""
        queues: dict[str, list[QueueState]] = {}
        for queue in self.cache.facts.queues_of(pool):
            queues.setdefault(queue.cluster, []).append(queue)
        return [self._of_cluster(pool, cluster, queues[cluster]) for cluster in sorted(queues)]

    def of_cluster(self, pool: str, cluster: str) -> Steering | None:
        """The steering of one cluster; None where the pool has no queue there."""
        return next((one for one in self.of(pool) if one.cluster == cluster), None)

    def left_alone_since(self, uid: str) -> Moment | None:
        """The instant since which a job's level is left alone; None where it is not, or where it is one of too many to be named."""
        known = (one.since for lease in self.leaders.leaders(ADMITTER) for one in lease.left_alone)
        return next((to_datetime(since[uid]) for since in known if uid in since), None)

    def unheard(self) -> dict[str, str]:
        """Watched clusters of which nothing is heard, and why what is known of each may be old."""
        cut_off = self.cut_off()
        watched = self.leaders.leaders(_WATCHER)
        return {lease.cluster: why for lease in watched if (why := cut_off or lease.silent)}

    def is_unanswered(self, job: JobState) -> bool:
        """Whether the job has its quota and waits for a check that nobody answers now."""
        return awaits_gang_fit(job) and self.leaders.leader(_CHECKER, job.cluster) is None

    def _of_cluster(self, pool: str, cluster: str, queues: list[QueueState]) -> Steering:
        differ = self.cache.waiting_differ(queues)
        stated = [
            _where_jobs_differ(one) if differ else one
            for one in self.cache.facts.parts_of(pool)
            if one.cluster == cluster
        ]
        judged = self._decider(pool, cluster, queues)
        going = judged.unsafe or judged.fate is LevelFate.GO
        lease, watcher = self.leaders.leader(ADMITTER, cluster), self.leaders.leader(_WATCHER, cluster)
        checked = self.leaders.leader(_CHECKER, cluster) is not None
        left_alone = sum(one.jobs for one in ([] if lease is None else lease.left_alone) if one.pool == pool)
        still = _stands_still(self.unmarked(pool)) or _unfollowed(lease, pool)
        unwritten = judged.why or _unwritten(lease, queues[0]), still
        how, why = _enforcement(stated, lease, pool, left_alone)
        return Steering(
            cluster=cluster,
            frontend=queues[0].frontend,
            enforcement=how,
            enforcement_why=why,
            withheld="; ".join(filter(None, unwritten)),
            unheard=self.cut_off() or (_UNWATCHED if watcher is None else watcher.silent) or msgspec.UNSET,
            untaken=(0 if lease is None else lease.untaken) or msgspec.UNSET,
            unanswered=(0 if checked else self.cache.awaiting_gang_fit(queues)) or msgspec.UNSET,
            left_alone=left_alone or msgspec.UNSET,
            promised=self.reserved.promised(cluster, pool) or msgspec.UNSET,
            levels_left=sum(map(self.cache.levels_in, queues)) if going else 0,
            preemptions_by_left_levels=0 if lease is None else lease.preemptions_by_left_levels.get(pool, 0),
            adherence=None if lease is None else _adherence(lease, pool),
        )

    def _decider(self, pool: str, cluster: str, queues: list[QueueState]) -> Withholding:
        rulebook, words = self.cache.rulebook, self.words
        if rulebook is None:
            return Withholding(why="there is no policy", fate=LevelFate.STAND)
        return judge_withholding(
            rulebook.document,
            queues,
            words.leave(cluster),
            control=words.control(pool),
            values=self.cache.facts.cluster(cluster).class_values,
            found=words.lever_found(cluster),
            revocation=words.revocation(cluster),
        )


def _enforcement(
    stated: list[PoolState], lease: LeaderLease | None, pool: str, left_alone: int
) -> tuple[str, str]:
    """The enforcement of the loosest of these pools, and why it is no better.

    Args:
        stated: as their cluster states them.
        lease: the lease of the cluster's admitter.
        pool: the pool that they are joined into.
        left_alone: number of jobs whose levels somebody else keeps changing.
    """
    loosest = max(stated, key=_looseness, default=None)
    how, why = (_FIRMNESS[0], "") if loosest is None else (loosest.enforcement, loosest.enforcement_why)
    if lease is None:
        return how, why
    rank = 0 if loosest is None else _looseness(loosest)
    firmer = rank <= _FIRMNESS.index(_LOOSE)
    told, contested = [], lease.contested.get(pool, 0)
    if lease.rival:
        told.append(_RIVAL)
    if firmer and (outpaced := lease.outpaced.get(pool)):
        told.append(f"jobs start faster than levels reach them ({', '.join(outpaced)})")
    if left_alone:
        told.append(_left_alone_in_words(left_alone))
    if contested:
        what = "the level of 1 job" if contested == 1 else f"the levels of {contested} jobs"
        told.append(f"somebody else changed {what} within the last ten seconds")
    at_best = _LOOSE if told else how
    if firmer and (out_of_turn := lease.out_of_turn.get(pool)) is not None:
        told.append(_out_of_turn_in_words(out_of_turn))
        at_best = _LOOSE if out_of_turn.many or at_best == _LOOSE else _CLOSE
    worse = at_best in _FIRMNESS and rank < _FIRMNESS.index(at_best)
    return at_best if worse else how, "; ".join([*told, why] if why else told)


def _out_of_turn_in_words(found: OutOfTurn) -> str:
    told = []
    if found.passed:
        told.append(f"{found.passed} took room that a job before them should have had")
    if found.newcomers:
        told.append(f"{found.newcomers} had just come, and took room that others waited for")
    return f"of the last {found.starts} starts {' and '.join(told)}"


def _left_alone_in_words(jobs: int) -> str:
    many, levels, these = (
        ("1 job", "its level", "it") if jobs == 1 else (f"{jobs} jobs", "their levels", "these")
    )
    return f"the admitter leaves {many} alone, as somebody else keeps changing {levels}: the order holds but for {these}"


def _where_jobs_differ(pool: PoolState) -> PoolState:
    """The pool with the enforcement that it has while waiting jobs are not all alike."""
    if not pool.enforcement_mixed:
        return pool
    return msgspec.structs.replace(
        pool, enforcement=pool.enforcement_mixed, enforcement_why=pool.enforcement_mixed_why
    )


def _unwritten(lease: LeaderLease | None, queue: QueueState) -> str:
    """The reason for which nothing reaches the queue's frontend although it may be written; empty where it does."""
    if lease is None:
        return _NO_ADMITTER
    if not lease.silent or not queue.check_command:
        return lease.silent
    return f"{lease.silent}. `{queue.check_command}` says what is broken"


def _stands_still(unmarked: list[str]) -> str:
    """The reason for which the order of a pool of these clusters stands still; empty where there are none."""
    names = ", ".join(unmarked)
    return (
        f"the order stands still: {names} has not confirmed its state since NATS started (where it is gone for good, "
        "`fairlead nats retire` takes it out)"
        if names
        else ""
    )


def _unfollowed(lease: LeaderLease | None, pool: str) -> str:
    """The reason for which the admitter follows no order of the pool; empty where it does, or is not known to."""
    why = "" if lease is None else lease.stale.get(pool, "")
    doubtful = f"the scorers' decisions cannot be followed: {why}"
    return f"{doubtful}; {_DIFFERENT}" if "mixed-basis" in why else doubtful if why else ""


def as_a_tenant_hears(steering: Steering) -> Steering:
    """The steering without others' jobs, and without how many others submit."""
    promised = steering.promised
    if promised is not msgspec.UNSET:
        promised = msgspec.structs.replace(promised, job="", in_its_way=msgspec.UNSET, passing=[])
    hidden = {"untaken": msgspec.UNSET, "unanswered": msgspec.UNSET}
    return msgspec.structs.replace(steering, promised=promised, **hidden)


def _looseness(pool: PoolState) -> int:
    """The rank of a pool's enforcement, loosest last. An unknown word counts as the loosest: it promises nothing."""
    return _FIRMNESS.index(pool.enforcement) if pool.enforcement in _FIRMNESS else len(_FIRMNESS)


def _adherence(lease: LeaderLease, pool: str) -> Adherence | None:
    found = next((one for one in lease.followed if one.pool == pool), None)
    if found is None:
        return None
    return Adherence(
        since=to_datetime(found.since),
        admissions=found.admissions,
        missed=found.missed,
        idle=found.idle,
        hindered=found.hindered,
        newcomers=found.newcomers,
        takeovers=found.takeovers,
        unordered=found.unordered,
        unseen=found.unseen,
    )
