"""Position in the order of each admission: quota and order are replayed from what an API server's watch told. Pure.

It shares nothing with the product: the order is the brute-force oracle's, room is counted here. One resource counts,
GPUs, of one flavor; tenants are namespaces.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Literal, NamedTuple

from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_testkit.kubelab import GPU, KubeObject, things
from fairlead_testkit.oracles.oracle import OracleJob, OracleRules, fill


class Glimpse(NamedTuple):
    """An event of a watch."""

    kind: Literal["ADDED", "MODIFIED", "DELETED"]
    item: KubeObject
    at: float
    """Monotonic seconds when the watch told it."""


@dataclass(frozen=True, kw_only=True)
class QuotaNode:
    """A ClusterQueue or a Cohort: GPUs of its own, and what it may borrow and lends."""

    nominal: int = 0
    parent: str = ""
    borrowing: int | None = None
    lending: int | None = None


@dataclass(frozen=True, kw_only=True)
class PlacedAdmission:
    """An admission, and the position in the order that its job had."""

    name: str
    tenant: str
    position: int
    """Among the waiting jobs that had room at that instant, in the order of that instant; 0 is right."""
    position_before: int
    """Position in the order of `reaction` seconds before: an order that nobody can have followed yet is no fault."""
    fitting: int
    """Number of waiting jobs that had room."""
    at: float
    idle: float
    """Seconds since a unit came free that this may have taken."""
    newcomer: bool
    """Whether the job came so lately that nobody can have ordered it yet."""

    @property
    def missed(self) -> int:
        """Number of jobs before it that could be known."""
        return min(self.position, self.position_before)


@dataclass(kw_only=True)
class _PlacedJob:
    uid: str
    name: str
    tenant: str
    queue: str
    gpus: int
    job_class: str
    submitted: Micros
    since: float
    running: bool = False


@dataclass
class PlacementReplay:
    """A pool as a watch told of it.

    Args:
        nodes: ClusterQueues and Cohorts, by name.
        queues: the ClusterQueue behind each namespace.
        reaction: seconds after which a release or an arrival has been ordered by at the latest.
        ignored: names of Workloads that only fill the queue: they hold quota, their admissions are not judged.
    """

    rules: OracleRules
    nodes: Mapping[str, QuotaNode]
    queues: Mapping[str, str]
    reaction: float = 0.1
    ignored: frozenset[str] = frozenset()
    placements: list[PlacedAdmission] = field(default_factory=list)
    _jobs: dict[str, _PlacedJob] = field(default_factory=dict)
    _recent: list[tuple[float, dict[str, _PlacedJob]]] = field(default_factory=list)
    """Jobs that stood before each of the last facts, and the second at which it came."""
    _freed: list[float] = field(default_factory=list)
    """Seconds at which units came free that nobody has taken since."""

    def replay(self, glimpses: Iterable[Glimpse]) -> Sequence[PlacedAdmission]:
        """Take in what the watch told, in its order."""
        for glimpse in glimpses:
            self._take(glimpse)
        return self.placements

    def _take(self, glimpse: Glimpse) -> None:
        item, metadata = glimpse.item, glimpse.item["metadata"]
        uid = metadata["uid"]
        known = self._jobs.get(uid)
        over = glimpse.kind == "DELETED" or things.condition(item, "Finished")
        runs = not over and things.condition(item, "QuotaReserved")
        if known is None:
            if over or metadata["namespace"] not in self.queues:
                return
            self._note(glimpse.at)
            known = self._jobs[uid] = self._job(item, glimpse.at)
        if over:
            self._note(glimpse.at)
            del self._jobs[uid]
            self._freed += [glimpse.at] * known.gpus if known.running else []
        elif runs and not known.running:
            self._judge(known, glimpse.at)
            self._jobs[uid] = _PlacedJob(**{**vars(known), "running": True})
            del self._freed[: known.gpus]
        elif not runs and known.running:
            self._note(glimpse.at)
            self._jobs[uid] = _PlacedJob(**{**vars(known), "running": False})
            self._freed += [glimpse.at] * known.gpus

    def _job(self, item: KubeObject, at: float) -> _PlacedJob:
        metadata, spec = item["metadata"], item["spec"]
        reference = spec.get("priorityClassRef") or {}
        created = datetime.fromisoformat(metadata["creationTimestamp"])
        job_class = reference.get("name", "")
        return _PlacedJob(
            uid=metadata["uid"],
            name=metadata["name"],
            tenant=metadata["namespace"],
            queue=self.queues[metadata["namespace"]],
            gpus=things.gpus(item),
            job_class=job_class if job_class in self.rules.classes else self.rules.classes[-1],
            submitted=round(created.timestamp()) * SECOND,
            since=at,
        )

    def _note(self, at: float) -> None:
        self._recent = [(when, jobs) for when, jobs in self._recent if at - when < self.reaction]
        self._recent.append((at, dict(self._jobs)))

    def _judge(self, job: _PlacedJob, at: float) -> None:
        if job.name in self.ignored:
            return
        fitting = self._fitting(self._jobs, self._jobs)
        earlier = [jobs for when, jobs in self._recent if at - when < self.reaction and job.uid in jobs]
        # Room is that of now: what ended was seen to end by whoever admitted this.
        before = [self._fitting(jobs, self._jobs) for jobs in earlier]
        positions = [order.index(job.uid) for order in before if job.uid in order]
        position = fitting.index(job.uid) if job.uid in fitting else len(fitting)
        self.placements.append(
            PlacedAdmission(
                name=job.name,
                tenant=job.tenant,
                position=position,
                position_before=min(positions, default=position),
                fitting=len(fitting),
                at=at,
                idle=at - self._freed[0] if self._freed else 0.0,
                newcomer=at - job.since < self.reaction,
            )
        )

    def _fitting(self, known: Mapping[str, _PlacedJob], now: Mapping[str, _PlacedJob]) -> list[str]:
        """The uids of those that wait and have room now, in the order that the known jobs make."""
        use: dict[str, dict[str, int]] = {}
        waiting = []
        for job in known.values():
            if job.running:
                held = use.setdefault(job.tenant, {GPU: 0})
                held[GPU] += job.gpus
            else:
                demand = {GPU: job.gpus}
                waiting.append(
                    OracleJob(
                        uid=job.uid,
                        tenant=job.tenant,
                        job_class=job.job_class,
                        submitted=job.submitted,
                        demand=demand,
                    )
                )
        order = [position.uid for position in fill(waiting, self.rules, 0, use)]
        usage = Counter[str]()
        for job in now.values():
            usage[job.queue] += job.gpus if job.running else 0
        return [
            uid for uid in order if uid in now and not now[uid].running and self._has_room(usage, now[uid])
        ]

    def _has_room(self, usage: Counter[str], job: _PlacedJob) -> bool:
        """Whether no ClusterQueue or Cohort would hold or borrow more than it may, with the job."""
        with_it = usage + Counter({job.queue: job.gpus})
        children: dict[str, list[str]] = {}
        for name, node in self.nodes.items():
            children.setdefault(node.parent, []).append(name)

        def settle(name: str) -> tuple[int, int] | None:
            """The subtree's quota and use as the parent sees them; None where it holds too much."""
            node = self.nodes[name]
            below = [settle(child) for child in children.get(name, ())]
            if None in below:
                return None
            quota = node.nominal + sum(part[0] for part in below if part)
            used = with_it[name] + sum(part[1] for part in below if part)
            kept = 0 if node.lending is None else max(0, quota - node.lending)
            most = quota if not node.parent else None if node.borrowing is None else quota + node.borrowing
            if most is not None and used > most:
                return None
            return quota - kept, max(0, used - kept)

        root = job.queue
        while self.nodes[root].parent:
            root = self.nodes[root].parent
        return settle(root) is not None


@dataclass(frozen=True, kw_only=True)
class PlacementTally:
    """Number of admissions at each position, and how long units stood idle."""

    positions: Counter[int]
    strict: Counter[int]
    """Admissions by position in the order of the very instant."""
    newcomers: Counter[int]
    """Admissions of jobs that came just before: nobody can have ordered them yet."""
    takeovers: Counter[int]
    """Admissions while nobody led, or whoever leads had just begun."""
    idle: float
    """Median seconds from a release to the next admission."""

    @staticmethod
    def of(
        placements: Iterable[PlacedAdmission], takeovers: Sequence[tuple[float, float]] = ()
    ) -> "PlacementTally":
        """Count the admissions; apart those while the lead changed hands (`takeovers`, from when to when in monotonic seconds)."""
        found = list(placements)
        apart = [one for one in found if any(begin <= one.at < end for begin, end in takeovers)]
        found = [one for one in found if one not in apart]
        ordered = [one for one in found if not one.newcomer]
        return PlacementTally(
            takeovers=Counter(one.missed for one in apart),
            positions=Counter(one.missed for one in ordered),
            strict=Counter(one.position for one in ordered),
            newcomers=Counter(one.missed for one in found if one.newcomer),
            idle=median([one.idle for one in ordered] or [0.0]),
        )

    @property
    def right(self) -> float:
        """The part of the admissions that were at position 0."""
        return self.positions[0] / max(1, self.positions.total())
