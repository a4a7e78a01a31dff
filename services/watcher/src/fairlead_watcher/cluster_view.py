"""A view of one cluster, kept up to date: objects come in one by one, changed statements come out. Pure.

A changed object has only those Workloads translated anew whose translation looked it up; the result is that of a
translation from scratch (a property test holds it to that).
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from fairlead_bus.facts.announcer import Statements
from fairlead_bus.facts.event_diff import LastEviction
from fairlead_contracts import subjects
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.state import JobState, NodeState, Phase, State, subject_of
from fairlead_kube.kinds.workloads import WORKLOAD_PRIORITY_CLASS
from fairlead_kube.reflector import Key
from fairlead_watcher.objects.cards import CardBook, CardHolding
from fairlead_watcher.objects.quota import CohortFacts, Forest, QueueFacts
from fairlead_watcher.objects.shape_verdicts import FlavorVerdict, ShapeCounts, ShapeVerdicts, WorkloadShape
from fairlead_watcher.objects.workload_context import (
    LEVER,
    ClassKind,
    Dependency,
    Labels,
    LocalQueueFacts,
    LookupTables,
    WorkloadContext,
    queue_view,
)
from fairlead_watcher.objects.workload_facts import End, Known, OwnerFacts, WorkloadFacts
from fairlead_watcher.statements import pools
from fairlead_watcher.statements.jobs import translate


class ClusterView:
    """The objects of one cluster and what is stated of them."""

    def __init__(self, cluster: str, *, ended_stay: Micros) -> None:
        """Create a view of no objects.

        Args:
            ended_stay: time for which a job that ended stays stated.
        """
        self._cluster = cluster
        self._ended_stay = ended_stay
        self._workloads: dict[Key, Known] = {}
        self._queues: dict[str, QueueFacts] = {}
        self._cohorts: dict[str, CohortFacts] = {}
        self._around = LookupTables(workloads=self._workloads, verdicts=ShapeVerdicts(), counts=ShapeCounts())
        self._noting = WorkloadContext(self._around)
        self._cards = CardBook()
        self._looked_up: dict[Key, frozenset[Dependency]] = {}
        self._readers: dict[Dependency, set[Key]] = {}
        self._to_translate: dict[Key, None] = {}
        """Workloads to translate anew, in the order in which they came to be."""
        self._quota_changed = False
        self._due: list[tuple[Micros, Key]] = []
        self._due_at: dict[Key, Micros] = {}
        self.stated: dict[str, State] = {}
        """Stated objects by subject."""
        self._changed: Statements = {}
        self._from_quota: set[str] = set()
        """Subjects of pools and queues."""
        self.phases: Counter[Phase] = Counter()
        """Number of stated jobs, by phase."""

    # --- what comes in

    def workload(self, key: Key, facts: Known | None) -> None:
        """Takes a Workload in as it is now; None: it is gone."""
        _put(self._workloads, key, facts)
        self._to_translate[key] = None
        self._retranslate_readers(Dependency("workload", "", key))

    def local_queue(self, key: Key, facts: LocalQueueFacts | None) -> None:
        """Takes in a LocalQueue; None where it is gone."""
        _put(self._around.local_queues, key, facts)
        state = None if facts is None else pools.tenant(self._cluster, key, facts)
        self._state(subjects.state(self._cluster, "tenant", key.name, scope=key.namespace), state)
        self._retranslate_readers(Dependency("local queue", "", key))

    def cluster_queue(self, key: Key, facts: QueueFacts | None) -> None:
        """Takes in a ClusterQueue; None where it is gone."""
        _put(self._queues, key.name, facts)
        self._quota_changed = True

    def cohort(self, key: Key, facts: CohortFacts | None) -> None:
        """Takes in a Cohort; None where it is gone."""
        _put(self._cohorts, key.name, facts)
        self._quota_changed = True

    def class_value(self, kind: ClassKind, key: Key, value: int | None) -> None:
        """Takes in a class of either kind; Kueue's own are stated."""
        _put(self._around.classes, (kind, key.name), value)
        if kind == WORKLOAD_PRIORITY_CLASS:
            state = None if value is None else pools.priority_class(self._cluster, key.name, value)
            self._state(subjects.state(self._cluster, "class", key.name), state)
        self._retranslate_readers(Dependency("class", kind, Key("", key.name)))

    def owner(self, kind: str, key: Key, facts: OwnerFacts | None) -> None:
        """Takes in an object for which a Workload may have been made."""
        _put(self._around.owners, (kind, key), facts)
        self._retranslate_readers(Dependency("owner", kind, key))

    def namespace(self, key: Key, labels: Labels | None) -> None:
        """Takes in a namespace's labels; None where it is gone."""
        _put(self._around.namespaces, key.name, labels)
        self._retranslate_readers(Dependency("namespace", "", Key("", key.name)))

    def boosts(self, *, read: bool) -> None:
        """Takes in whether Kueue reads boosts."""
        if self._around.reads_boosts != read:
            self._around.reads_boosts = read
            self._retranslate_readers(LEVER)

    def node(self, key: Key, state: NodeState | None) -> None:
        """Takes in a node, with none of its cards in use."""
        self._cards.node(key.name, state)

    def card_holder(self, key: Key, holding: CardHolding | None) -> None:
        """Takes in a pod that HAMi gave cards, until it ends."""
        self._cards.pod(key, holding)

    # --- what comes out

    def settle(self, now: Micros, *, at_most: int | None = None) -> Statements:
        """Translates what has to be; returns the statements that changed since the last time.

        Args:
            now: the time; holds and stays that have ended by then do so here.
            at_most: number of Workloads; `unsettled` then says whether more wait.
        """
        if self._quota_changed:
            self._quota_changed = False
            self._survey_quota()
        for name, state in self._cards.take().items():
            self._state(subjects.state(self._cluster, "node", name), state)
        while self._due and self._due[0][0] <= now:
            _, key = heapq.heappop(self._due)
            self._due_at.pop(key, None)
            self._to_translate[key] = None
        # What is said of these may change others, which then are translated with them, once.
        self._take_verdicts(list(self._to_translate)[:at_most])
        batch = list(self._to_translate)[:at_most]
        for key in batch:
            del self._to_translate[key]
            self._translate(key, now)
        changed, self._changed = self._changed, {}
        return changed

    @property
    def unsettled(self) -> bool:
        """Whether Workloads wait to be translated."""
        return bool(self._to_translate)

    def next_due(self) -> Micros | None:
        """The instant at which time alone may change something."""
        return self._due[0][0] if self._due else None

    def end_of(self, job: JobState) -> End | None:
        """The end of a job's Workload, also long after; None where it did not end, or is gone."""
        facts = self._workloads.get(Key(job.scope, job.id))
        end = facts.end if isinstance(facts, WorkloadFacts) else facts
        return end if end is not None and end.uid == job.uid else None

    def eviction_of(self, job: JobState) -> LastEviction | None:
        """The last eviction of a job, by Kueue's own word, while it waits because of it."""
        facts = self._workloads.get(Key(job.scope, job.id))
        return facts.eviction if isinstance(facts, WorkloadFacts) and facts.uid == job.uid else None

    @property
    def cards_refused(self) -> Mapping[str, int]:
        """Number of nodes and pods whose words on cards cannot be read, by `node` and `pod`."""
        return self._cards.refused

    def jobs(self) -> Iterable[JobState]:
        """The jobs that are stated."""
        return (state for state in self.stated.values() if isinstance(state, JobState))

    # --- inside

    def _take_verdicts(self, keys: Iterable[Key]) -> None:
        verdicts: dict[Key, tuple[WorkloadShape, FlavorVerdict] | None] = {}
        counts: dict[Key, tuple[WorkloadShape, Mapping[str, int]] | None] = {}
        for key in keys:
            verdicts[key] = counts[key] = None
            facts = self._workloads.get(key)
            shape = self._shape(key.namespace, facts) if isinstance(facts, WorkloadFacts) else None
            if isinstance(facts, WorkloadFacts) and shape is not None:
                verdicts[key] = (shape, facts.verdict) if facts.verdict is not None else None
                counted = shape._replace(namespace=key.namespace if facts.counted_in_namespace else "")
                counts[key] = (counted, facts.demand) if facts.counted_otherwise else None
        recounted = (one._replace(namespace="") for one in self._around.counts.take(counts))
        for shape in (*self._around.verdicts.take(verdicts), *recounted):
            if (source := Dependency("shape", "", shape)) in self._readers:
                self._retranslate_readers(source)
            else:
                self._around.verdicts.forget(shape)

    def _shape(self, namespace: str, facts: WorkloadFacts) -> WorkloadShape | None:
        """The shape for which holds what Kueue said of a Workload; None where it said nothing, or leads nowhere."""
        if facts.verdict is None and not facts.counted_otherwise:
            return None
        if facts.run is not None and facts.run.queue:
            return WorkloadShape(facts.run.queue, facts.equivalence)
        leads_to = self._around.local_queues.get(Key(namespace, facts.local_queue))
        return None if leads_to is None else WorkloadShape(leads_to.queue, facts.equivalence)

    def _translate(self, key: Key, now: Micros) -> None:
        facts = self._workloads.get(key)
        subject = subjects.state(self._cluster, "job", key.name, scope=key.namespace)
        end = facts.end if isinstance(facts, WorkloadFacts) else None
        goes = None if end is None else end.at + self._ended_stay
        if not isinstance(facts, WorkloadFacts) or (goes is not None and goes <= now):
            self._note_lookups(key, frozenset())
            self._state(subject, None)
            return
        translation = translate(self._cluster, facts, self._noting, now)
        self._note_lookups(key, self._noting.take())
        self._state(subject, self._as_submitted(subject, translation.job))
        due = translation.due if goes is None else goes
        if due is not None and self._due_at.get(key) != due:
            self._due_at[key] = due
            heapq.heappush(self._due, (due, key))

    def _as_submitted(self, subject: str, job: JobState) -> JobState:
        """The job with its submission, also where only its pods named that, and are gone before it."""
        before = self.stated.get(subject)
        if job.submission is not None or not isinstance(before, JobState) or before.uid != job.uid:
            return job
        return msgspec.structs.replace(job, submission=before.submission)

    def _note_lookups(self, key: Key, looks: frozenset[Dependency]) -> None:
        before = self._looked_up.get(key, frozenset())
        for source in before - looks:
            readers = self._readers[source]
            readers.discard(key)
            if not readers:
                del self._readers[source]
                if isinstance(source.key, WorkloadShape):
                    self._around.verdicts.forget(source.key)
        for source in looks - before:
            self._readers.setdefault(source, set()).add(key)
        if looks:
            self._looked_up[key] = looks
        else:
            self._looked_up.pop(key, None)

    def _retranslate_readers(self, source: Dependency) -> None:
        self._to_translate |= dict.fromkeys(self._readers.get(source, ()))

    def _survey_quota(self) -> None:
        """Works all pools and queues out anew, as quota is lent across trees: there are few, and they change rarely."""
        forest = Forest(self._queues.values(), self._cohorts.values())
        before = self._around.queues
        self._around.queues = {name: queue_view(queue, forest) for name, queue in self._queues.items()}
        for name in before.keys() | self._around.queues.keys():
            if before.get(name) != self._around.queues.get(name):
                self._retranslate_readers(Dependency("queue", "", Key("", name)))
        states = {subject_of(state): state for state in pools.pools_and_queues(self._cluster, forest)}
        for subject in self._from_quota - states.keys():
            self._state(subject, None)
        for subject, state in states.items():
            self._state(subject, state)
        self._from_quota = set(states)

    def _state(self, subject: str, state: State | None) -> None:
        before = self.stated.get(subject)
        if before == state:
            return
        if isinstance(before, JobState):
            self.phases[before.phase] -= 1
        if isinstance(state, JobState):
            self.phases[state.phase] += 1
        _put(self.stated, subject, state)
        self._changed[subject] = state


def _put[K, V](into: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        into.pop(key, None)
    else:
        into[key] = value
