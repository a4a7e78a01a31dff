"""The policy bucket as the admitter reads it: the document with its revision, and the operators' words."""

from collections.abc import Iterable, Mapping

from fairlead_contracts import subjects, topology
from fairlead_contracts.clearance import Clearance
from fairlead_contracts.control import CONTROL, Mode
from fairlead_contracts.document import PolicyDocument
from fairlead_contracts.errors import ContractError
from fairlead_contracts.state import JobState, QueueState
from fairlead_policy import Rulebook

DOCUMENT_SUBJECT = subjects.kv_subject(topology.POLICY, subjects.DOCUMENT_KEY)
_NO_POLICY = Rulebook(PolicyDocument(tenants=[]), 0)
_STRICTNESS = (Mode.ACTIVE, Mode.PAUSED, Mode.RELEASED)


class PolicyView:
    """What holds now. Nothing is known before the first document was read."""

    def __init__(self) -> None:
        self.rulebook: Rulebook | None = None
        self.clearance: Clearance | None = None
        """The leave to steer this cluster, where an operator gave one."""
        self._modes: dict[str, Mode] = {}
        self.unreadable: dict[str, str] = {}
        """Operators' words that can't be read, by subject, and why. They pause: to stop is never the wrong guess."""

    def enact(self, rulebook: Rulebook | None) -> None:
        """Follow this document from now on; None where there is none."""
        self.rulebook = rulebook

    def hear(self, subject: str, payload: bytes | None) -> None:
        """Take note of an operator's word; None where it was taken back."""
        self._modes.pop(subject, None)
        self.unreadable.pop(subject, None)
        if payload is None:
            return
        try:
            self._modes[subject] = CONTROL.decode(payload).mode
        except ContractError as error:
            self.unreadable[subject] = str(error)
            self._modes[subject] = Mode.PAUSED

    def mode(self, pool: str) -> Mode:
        """The strictest word on this pool and on all pools."""
        words = (
            self._modes.get(subjects.kv_subject(topology.POLICY, subjects.control_key(name)), Mode.ACTIVE)
            for name in (pool, None)
        )
        return max(words, key=_STRICTNESS.index)

    def queues_by_pool(self, cluster: str, queues: Mapping[str, QueueState]) -> dict[str, frozenset[str]]:
        """The cluster's queues by the policy's pools; by the pools that the cluster states where no policy is known."""
        rulebook = self.rulebook if self.rulebook is not None else _NO_POLICY
        pools: dict[str, set[str]] = {}
        for queue in queues.values():
            pools.setdefault(rulebook.pool_of(cluster, queue.pool), set()).add(queue.name)
        return {pool: frozenset(pools[pool]) for pool in sorted(pools)}

    def tenant_of(self, job: JobState) -> str:
        """The tenant that the job counts for; its scope where no policy is known."""
        return job.scope if self.rulebook is None else self.rulebook.tenant_of(job)

    def urgency_of(self, job: JobState) -> str:
        """The class that the job has, as granted."""
        if self.rulebook is None:
            return ""
        return self.rulebook.class_of(job, self.rulebook.tenant_of(job)).urgency


def control_words(changed: Iterable[str]) -> list[str]:
    """The subjects among these that hold operators' words."""
    prefix = subjects.kv_subject(topology.POLICY, "control.")
    return [subject for subject in changed if subject.startswith(prefix)]
