"""The policy bucket as the admitter reads it: the document with its revision, and the operators' words."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.state import JobState, QueueState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.levels.operators import OperatorWords
from fairlead_policy.rules.rulebook import Rulebook

DOCUMENT_SUBJECT = subjects.kv_subject(topology.POLICY, subjects.DOCUMENT_KEY)
_NO_POLICY = Rulebook(PolicyDocument(tenants=[]), 0)


@dataclass(eq=False)
class PolicyView:
    """The policy that holds now."""

    rulebook: Rulebook | None = None
    """The document; None where there is none, and before the first one was read."""
    words: OperatorWords = field(default_factory=OperatorWords)

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

    def granted_class(self, job: JobState) -> str:
        """The class that the job has, as granted."""
        if self.rulebook is None:
            return ""
        return self.rulebook.class_of(job, self.rulebook.tenant_of(job)).job_class
